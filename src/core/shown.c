/* SPDX-License-Identifier: ISC */
#include "core/shown.h"

#include "core/backend.h"
#include "core/prepared_note.h"
#include "core/session.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"
#include "wire/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 1000u /* mentions in one unit; what follows is not looked at */

enum item_state {
	ITEM_UNKNOWN, /* the session has no such statement: the server may, by SQL */
	ITEM_SHOWN,
	ITEM_CLOSING, /* our Close is under way behind its Execute */
	ITEM_GONE,
};

/* One mention; a name that is mentioned again in a Query has an item each time, and is shown for the first. */
struct item {
	enum sql_mention_kind kind;
	enum item_state state;
	bool is_executed; /* DEALLOCATE in a Query: the server has said so */
	char name[SQL_NAME_MAX], portal[SQL_NAME_MAX];
};

/* The mentions of the unit under way, in order. Belongs to the backend. */
struct shown {
	bool is_query;
	size_t n;
	struct item items[];
};

void
shown_free(struct shown **s)
{
	free(*s);
	*s = NULL;
}

static struct item *
add_item(struct backend *b, enum sql_mention_kind kind, const char *name, const char *portal)
{
	size_t n = b->shown ? b->shown->n : 0;
	struct shown *s = realloc(b->shown, sizeof(*s) + (n + 1) * sizeof(s->items[0]));

	if (s == NULL)
		return NULL;
	if (n == 0)
		s->is_query = portal == NULL;
	s->n = n + 1;
	s->items[n] = (struct item){.kind = kind};
	snprintf(s->items[n].name, sizeof(s->items[n].name), "%s", name);
	snprintf(s->items[n].portal, sizeof(s->items[n].portal), "%s", portal ? portal : "");
	b->shown = s;
	return &s->items[n];
}

static struct item *
find_item(const struct backend *b, const char *name)
{
	for (size_t i = 0; b->shown != NULL && i < b->shown->n; i++)
		if (strcmp(b->shown->items[i].name, name) == 0 && b->shown->items[i].state != ITEM_GONE)
			return &b->shown->items[i];
	return NULL;
}

/* ---- showing ---- */

/* An empty statement will do where the text does not execute it: it is parsed in any state of any transaction. */
static bool
show(struct relay *r, const char *name, struct statement *st, bool is_executed)
{
	static const uint8_t empty[] = {0, 0, 0};
	const uint8_t *body = empty;
	size_t n = sizeof(empty);

	if (is_executed) {
		prepared_suspect(r->session, st);
		if (!statement_is_large(st))
			body = statement_body(st, &n);
	}
	/* what SQL has prepared under that name here is not this session's: it would have been told that the name is in use */
	return note_send_close(r, name, REPLYQ_SWALLOW, NULL) &&
	       note_send_parse(r, name, body, n, REPLYQ_SWALLOW, NULL);
}

static bool
is_executed_somewhere(struct sql_mentions m, const struct sql_mention *from)
{
	struct sql_mention x = *from;

	do {
		if (x.kind == SQL_EXECUTES && strcmp(x.name, from->name) == 0)
			return true;
	} while (sql_mentions_next(&m, &x));
	return false;
}

/* portal: NULL for a Query. */
static bool
show_mentions(struct relay *r, const char *portal, const uint8_t *sql, size_t n)
{
	struct session *s = r->session;
	struct backend *b = s->backend;
	struct sql_mentions m;
	struct sql_mention x;

	sql_mentions_init(&m, sql, n, session_standard_strings(s));
	while (sql_mentions_next(&m, &x) && (b->shown == NULL || b->shown->n < ITEMS_MAX)) {
		struct statement *st = x.n_name > 0 ? names_find(s->names, x.name) : NULL;
		bool is_first = find_item(b, x.name) == NULL;
		struct item *item;

		if (portal != NULL && (st == NULL || !is_first))
			continue;
		item = add_item(b, x.kind, x.name, portal);
		if (item == NULL)
			return false;
		item->state = st != NULL ? ITEM_SHOWN : ITEM_UNKNOWN;
		if (st != NULL && is_first && !show(r, x.name, st, is_executed_somewhere(m, &x)))
			return false;
	}
	return true;
}

/* Cheap: is there one of the words at all? */
static bool
may_mention(const uint8_t *sql, size_t n)
{
	for (size_t i = 0; i + 7 <= n; i++) {
		const char *p = (const char *)sql + i;

		switch (sql[i] | 0x20) {
		case 'd':
			if (i + 10 <= n && strncasecmp(p, "deallocate", 10) == 0)
				return true;
			break;
		case 'e':
			if (strncasecmp(p, "execute", 7) == 0)
				return true;
			break;
		case 'p':
			if (strncasecmp(p, "prepare", 7) == 0)
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

enum prepared_verdict
shown_query(struct relay *r, const uint8_t *sql, size_t n)
{
	struct session *s = r->session;

	if (names_n(s->names) == 0 || !may_mention(sql, n))
		return PREPARED_PASS;
	if (!replyq_at_boundary(&s->backend->owed))
		return PREPARED_PASS; /* behind extended messages without a Sync: it may be skipped, with what would be shown */
	if (s->backend->n_units_sent != s->backend->n_units_done)
		return PREPARED_WAIT; /* not for a hidden unit in front: when that is answered, the backend may be passed on */
	return show_mentions(r, NULL, sql, n) ? PREPARED_PASS : PREPARED_FAILED;
}

bool
shown_bind(struct relay *r, const char *portal, const uint8_t *sql, size_t n)
{
	if (names_n(r->session->names) == 0 || !may_mention(sql, n))
		return true;
	return show_mentions(r, portal, sql, n);
}

/* Behind the client's Execute: closed again, and what was deallocated is the session's no more, unless the server skips it. */
static bool
close_behind(struct relay *r, struct item *item)
{
	struct session *s = r->session;
	bool is_taken = item->kind == SQL_DEALLOCATES;
	struct note *note = note_new(is_taken ? NOTE_NAME_CLOSED : NOTE_NOTHING, s->backend, s, item->name);

	if (note == NULL)
		return false;
	if (is_taken) {
		note->st = names_take(s->names, item->name);
		s->n_closing++;
	}
	item->state = ITEM_CLOSING;
	return note_send_close(r, item->name, REPLYQ_SWALLOW, note);
}

bool
shown_execute(struct relay *r, const struct frame *f)
{
	struct shown *shown = r->session->backend->shown;
	const char *portal = (const char *)r->p + r->pos + MSG_HEADER;
	bool ok = true;

	if (shown == NULL || memchr(portal, '\0', f->len - MSG_HEADER) == NULL)
		return true;
	r->pos += f->avail; /* as if it had been looked at: the Close goes behind it */
	for (size_t i = 0; ok && i < shown->n; i++)
		if (shown->items[i].state == ITEM_SHOWN &&
		    strncmp(shown->items[i].portal, portal, SQL_NAME_MAX - 1) == 0)
			ok = close_behind(r, &shown->items[i]);
	r->pos -= f->avail;
	return ok;
}

/* ---- what the server says ---- */

static void
gone(struct backend *b, const char *name)
{
	struct item *item;

	while ((item = find_item(b, name)) != NULL)
		item->state = ITEM_GONE;
}

void
shown_deallocated(struct backend *b)
{
	struct shown *shown = b->shown;
	struct statement *st = NULL;

	if (shown == NULL || !shown->is_query)
		return;
	for (size_t i = 0; i < shown->n; i++) {
		struct item *item = &shown->items[i];

		if (item->kind != SQL_DEALLOCATES || item->is_executed)
			continue;
		item->is_executed = true;
		if (item->state == ITEM_SHOWN && b->session != NULL)
			st = names_take(b->session->names, item->name);
		gone(b, item->name);
		break;
	}
	statement_unref(&st);
}

void
shown_closed(struct backend *b, const char *name)
{
	struct item *item = find_item(b, name);

	/* else it was the client's Close of that name, and what is shown is still there */
	if (item != NULL && item->state == ITEM_CLOSING)
		item->state = ITEM_GONE;
}

bool
shown_wants_sync(const struct backend *b)
{
	return b->shown != NULL && b->shown->is_query && b->owed.mode == REPLYQ_SKIPPING;
}

bool
shown_unit_over(struct backend *b)
{
	struct shown *shown = b->shown;
	struct item *item = NULL;
	struct buf out;
	bool ok = true;

	buf_init(&out);
	b->shown = NULL;
	for (size_t i = 0; ok && i < shown->n; i++) {
		item = &shown->items[i];
		if (item->state != ITEM_SHOWN && item->state != ITEM_CLOSING)
			continue;
		build_close_statement(&out, item->name);
		ok = replyq_sent_statement(&b->owed, REPLYQ_CLOSE, REPLYQ_SWALLOW, NULL);
	}
	if (ok && out.len > 0) {
		build_sync(&out);
		ok = !out.failed && replyq_sent(&b->owed, FE_SYNC, true);
		if (ok)
			(void)stream_send(&b->stream, buf_head(&out), out.len);
	}
	buf_fini(&out);
	free(shown);
	return ok;
}
