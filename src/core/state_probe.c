/* SPDX-License-Identifier: ISC */
#include "core/state_probe.h"

#include "base/str.h"
#include "core/backend.h"
#include "core/session.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Everything is qualified: the session's search_path, role and timeouts must not matter. pg_depend is asked for temporary
 * objects since it has an index for the question, and every object of the schema is in it.
 */
#define EQ " OPERATOR(pg_catalog.=) "
static const struct {
	enum pin pin;
	const char *sql;
} pin_questions[] = {
	{PIN_TEMP, "pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AND EXISTS (SELECT 1 FROM "
                   "pg_catalog.pg_depend d WHERE d.refclassid" EQ "2615::pg_catalog.oid AND d.refobjid" EQ
                   "pg_catalog.pg_my_temp_schema())"},
	{PIN_LISTEN, "EXISTS (SELECT 1 FROM pg_catalog.pg_listening_channels())"},
	{PIN_LOCK, "EXISTS (SELECT 1 FROM pg_catalog.pg_lock_status() l WHERE l.locktype" EQ
                   "'advisory'::pg_catalog.text AND l.pid" EQ "pg_catalog.pg_backend_pid())"},
	{PIN_PREPARED, "EXISTS (SELECT 1 FROM pg_catalog.pg_prepared_statement() p WHERE p.from_sql)"},
	{PIN_CURSOR, "EXISTS (SELECT 1 FROM pg_catalog.pg_cursor() c WHERE c.is_holdable)"},
};
#define N_PINS (sizeof(pin_questions) / sizeof(pin_questions[0]))

#define SCAN                                                                                                           \
	"SELECT s.name, pg_catalog.current_setting(s.name, true) FROM pg_catalog.pg_show_all_settings() s WHERE "      \
	"s.source" EQ "'session'::pg_catalog.text"
/* Of the session's own timeout: what it is, before it is none for the rest of the unit. */
#define NO_TIMEOUT                                                                                                     \
	"SELECT pg_catalog.current_setting('statement_timeout'), pg_catalog.set_config('statement_timeout', '0', "     \
	"true)"

#define ASKED_MAX (TOUCHED_MAX + 64u)

enum step { STEP_SKIPPED, STEP_TIMEOUT, STEP_PINS, STEP_NAMES, STEP_SCAN };

struct state_probe {
	enum step steps[6];
	unsigned n_steps, at; /* of its statements: sent, answered */
	unsigned asked, found;
	bool failed;
	struct settings *next; /* NULL: settings are not asked for */
	char timeout[32];      /* statement_timeout, while it is none; else "" */
	uint32_t n_names;
	char *names[ASKED_MAX];
};

void
state_probe_free(struct state_probe **p)
{
	if (*p == NULL)
		return;
	settings_unref(&(*p)->next);
	for (uint32_t i = 0; i < (*p)->n_names; i++)
		free((*p)->names[i]);
	free(*p);
	*p = NULL;
}

/* Takes over `next`; NULL: no memory. */
static void
put(struct state_probe *p, struct settings *next)
{
	if (next == NULL) {
		p->failed = true;
		return;
	}
	settings_unref(&p->next);
	p->next = next;
}

/* ---- asking ---- */

static bool
add_name(struct state_probe *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_names; i++)
		if (strcasecmp(p->names[i], name) == 0)
			return true;
	if (p->n_names == ASKED_MAX)
		return false;
	p->names[p->n_names] = strdup(name);
	return p->names[p->n_names] != NULL && ++p->n_names > 0;
}

/* The list is made from pg_settings. */
bool
state_is_listed(const char *name)
{
	return strchr(name, '.') == NULL && strcasecmp(name, "role") != 0 &&
	       strcasecmp(name, "session_authorization") != 0;
}

/* What the list leaves out; the rest of what the session had is in the list, or gone. */
static bool
prepare_scan(struct state_probe *p, struct settings *had)
{
	bool ok = add_name(p, "session_authorization") && add_name(p, "role");

	for (size_t i = 0; ok && i < settings_n(had); i++) {
		const char *name = settings_name(had, i);

		if (!state_is_listed(name)) {
			ok = add_name(p, name);
			continue;
		}
		put(p, settings_without(p->next, name));
		ok = !p->failed;
	}
	return ok;
}

static bool
build_statement(struct state_probe *p, struct backend *b, struct buf *out, enum step step, const char *sql,
                const char *const *values, size_t n)
{
	p->steps[p->n_steps++] = step;
	build_parse(out, "", sql);
	build_bind_text(out, "", "", values, n);
	build_execute(out, "");
	/* the types of the messages don't matter to the queue, only that they are extended ones */
	for (int i = 0; i < 3; i++)
		if (!replyq_sent(&b->owed, FE_EXECUTE, true))
			return false;
	return true;
}

static bool
build_pins(struct state_probe *p, struct backend *b, struct buf *out, unsigned pins)
{
	char sql[1024];
	size_t n = 0;

	p->asked = pins;
	for (size_t i = 0; i < N_PINS; i++)
		n += (size_t)snprintf(sql + n, sizeof(sql) - n, "%s%s", i == 0 ? "SELECT " : ", ",
		                      (pins & (unsigned)pin_questions[i].pin) != 0 ? pin_questions[i].sql : "false");
	return build_statement(p, b, out, STEP_PINS, sql, NULL, 0);
}

static bool
build_names(struct state_probe *p, struct backend *b, struct buf *out)
{
	char sql[64 * ASKED_MAX];
	size_t n = 0;

	for (uint32_t i = 0; i < p->n_names; i++)
		n += (size_t)snprintf(sql + n, sizeof(sql) - n, "%spg_catalog.current_setting($%u, true)",
		                      i == 0 ? "SELECT " : ", ", i + 1);
	return build_statement(p, b, out, STEP_NAMES, sql, (const char *const *)p->names, p->n_names);
}

/*
 * A startup setting that is no more the session's own was reset. Those that pg_settings does not list (dotted names) are
 * empty then, which the session may also have made them.
 */
#define RESTORE_BEGIN "SELECT pg_catalog.set_config(v.n, v.v, false) FROM (VALUES "
#define RESTORE_END                                                                                                    \
	") v(n, v) WHERE CASE WHEN pg_catalog.lower(v.n)" EQ "'role'::pg_catalog.text THEN "                           \
	"pg_catalog.current_setting('role')" EQ                                                                        \
	"'none'::pg_catalog.text WHEN pg_catalog.strpos(v.n, '.') OPERATOR(pg_catalog.>) 0 THEN "                      \
	"COALESCE(pg_catalog.current_setting(v.n, true), '')" EQ "''::pg_catalog.text ELSE EXISTS (SELECT 1 FROM "     \
	"pg_catalog.pg_show_all_settings() s WHERE pg_catalog.lower(s.name)" EQ "pg_catalog.lower(v.n) AND s.source "  \
	"OPERATOR(pg_catalog.<>) 'session'::pg_catalog.text) END"

static bool
is_to_be_restored(const struct session *s, const char *name)
{
	return state_may_have_reset(s, name) && (strchr(name, '.') == NULL || !state_was_emptied(s, name));
}

static bool
build_restore(struct state_probe *p, struct backend *b, struct buf *out)
{
	const struct settings *startup = b->session->marks.startup;
	size_t n = 0;
	const char **values = calloc(2 * settings_n(startup), sizeof(*values));
	struct buf sql;
	char pair[96];
	bool ok;

	buf_init(&sql);
	buf_append_str(&sql, RESTORE_BEGIN);
	for (size_t i = 0; values != NULL && i < settings_n(startup); i++) {
		if (!is_to_be_restored(b->session, settings_name(startup, i)))
			continue;
		snprintf(pair, sizeof(pair), "%s($%zu::pg_catalog.text, $%zu::pg_catalog.text)", n == 0 ? "" : ", ",
		         2 * n + 1, 2 * n + 2);
		buf_append_str(&sql, pair);
		values[2 * n] = settings_name(startup, i);
		values[2 * n + 1] = settings_value(startup, i);
		n++;
	}
	buf_append(&sql, RESTORE_END, sizeof(RESTORE_END));
	ok = values != NULL && !sql.failed;
	if (ok && n > 0)
		ok = build_statement(p, b, out, STEP_SKIPPED, (const char *)buf_head(&sql), values, 2 * n);
	buf_fini(&sql);
	free(values);
	return ok;
}

/* The order matters: what was put back is listed, the timeout among it, and none of the session's may end the rest. */
static bool
build(struct state_probe *p, struct backend *b, struct buf *out, const struct state_question *q)
{
	struct session *s = b->session;
	bool ok = true;

	if (q->n_names > 0 || q->scans)
		ok = (p->next = settings_ref(s->settings)) != NULL;
	for (uint32_t i = 0; ok && i < q->n_names; i++)
		ok = add_name(p, q->names[i]);
	if (ok && q->scans)
		ok = prepare_scan(p, s->settings);
	if (ok && q->restores)
		ok = build_restore(p, b, out);
	if (ok && b->owed.tx == TX_IDLE && settings_get(s->settings, "statement_timeout") != NULL)
		ok = build_statement(p, b, out, STEP_TIMEOUT, NO_TIMEOUT, NULL, 0);
	if (ok && q->pins != 0)
		ok = build_pins(p, b, out, q->pins);
	if (ok && p->n_names > 0)
		ok = build_names(p, b, out);
	if (ok && q->scans)
		ok = build_statement(p, b, out, STEP_SCAN, SCAN, NULL, 0);
	build_sync(out);
	return ok && !out->failed && replyq_sent(&b->owed, FE_SYNC, true);
}

bool
state_probe_send(struct backend *b, const struct state_question *q)
{
	struct state_probe *p = calloc(1, sizeof(*p));
	struct buf out;
	bool ok;

	if (p == NULL)
		return false;
	backend_forget_error(b);
	buf_init(&out);
	ok = build(p, b, &out, q);
	if (ok) {
		b->probe = p;
		b->unnamed_of = NULL; /* the unnamed statement was ours */
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	} else {
		state_probe_free(&p);
	}
	buf_fini(&out);
	return ok;
}

/* ---- the answer ---- */

/* What every session has that says nothing of it. */
static bool
is_default(const struct backend *b, const char *name, const char *value)
{
	if (strcasecmp(name, "role") == 0)
		return strcmp(value, "none") == 0;
	return strcasecmp(name, "session_authorization") == 0 && strcmp(value, b->pool->group->user) == 0;
}

/* Column: its text with a terminator in `text`; false: NULL, or too long (then p->failed). */
static bool
next_column(struct state_probe *p, struct reader *r, char *text, size_t cap)
{
	uint32_t n = reader_u32(r);
	const uint8_t *bytes;

	if (n == UINT32_MAX)
		return false;
	bytes = reader_bytes(r, n);
	if (r->bad || n >= cap) {
		p->failed = true;
		return false;
	}
	memcpy(text, bytes, n);
	text[n] = '\0';
	return true;
}

static void
got_pins(struct state_probe *p, struct reader *r)
{
	char text[8];

	for (size_t i = 0; i < N_PINS; i++)
		if (next_column(p, r, text, sizeof(text)) && text[0] == 't')
			p->found |= (unsigned)pin_questions[i].pin;
}

#define VALUE_MAX 4096 /* longer ones can't be carried over */

static void
got_names(struct backend *b, struct state_probe *p, struct reader *r)
{
	char value[VALUE_MAX];

	for (uint32_t i = 0; i < p->n_names && !p->failed; i++) {
		bool has = next_column(p, r, value, sizeof(value)) && !is_default(b, p->names[i], value);

		if (p->timeout[0] != '\0' && strcmp(p->names[i], "statement_timeout") == 0)
			str_copy(value, sizeof(value), p->timeout);
		put(p, has ? settings_with(p->next, p->names[i], value) : settings_without(p->next, p->names[i]));
	}
}

static void
got_listed(struct state_probe *p, struct reader *r)
{
	char name[128], value[VALUE_MAX];

	if (!next_column(p, r, name, sizeof(name)) || !next_column(p, r, value, sizeof(value)))
		return;
	if (strncmp(name, "transaction_", strlen("transaction_")) == 0 && strcmp(name, "transaction_timeout") != 0)
		return; /* of the transaction that asks */
	if (p->timeout[0] != '\0' && strcmp(name, "statement_timeout") == 0)
		str_copy(value, sizeof(value), p->timeout);
	put(p, settings_with(p->next, name, value));
}

void
state_got_row(struct backend *b, const uint8_t *body, size_t n)
{
	struct state_probe *p = b->probe;
	struct reader r;

	reader_init(&r, body, n);
	(void)reader_u16(&r);
	switch (p->at < p->n_steps ? p->steps[p->at] : STEP_SKIPPED) {
	case STEP_TIMEOUT:
		(void)next_column(p, &r, p->timeout, sizeof(p->timeout));
		break;
	case STEP_PINS:
		got_pins(p, &r);
		break;
	case STEP_NAMES:
		got_names(b, p, &r);
		break;
	case STEP_SCAN:
		got_listed(p, &r);
		break;
	case STEP_SKIPPED:
		break;
	}
	p->failed = p->failed || r.bad;
}

void
state_parameter_was_restored(struct backend *b, const char *name, const char *value)
{
	if (b->probe->next != NULL)
		put(b->probe, settings_with(b->probe->next, name, value));
}

void
state_got_complete(struct backend *b)
{
	b->probe->at++;
}

void
state_probe_over(struct backend *b)
{
	struct state_probe *p = b->probe;
	bool ok = b->said == NULL && !p->failed && p->at == p->n_steps;

	b->probe = NULL;
	if (b->session != NULL && ok)
		state_answered(b->session, p->asked, p->found, p->next ? settings_ref(p->next) : NULL);
	else if (b->session != NULL)
		state_unanswered(b->session);
	state_probe_free(&p);
}
