/* SPDX-License-Identifier: ISC */
#include "core/prepared_note.h"

#include "core/backend.h"
#include "core/prepared_set.h"
#include "core/session.h"
#include "core/shown.h"
#include "wire/build.h"
#include "wire/pgmsg.h"

#include <stdlib.h>
#include <string.h>

void
unnamed_free(struct unnamed **u)
{
	free(*u);
	*u = NULL;
}

struct unnamed *
unnamed_new(const uint8_t *body, size_t n)
{
	struct unnamed *u = malloc(sizeof(*u) + n);

	if (u != NULL) {
		u->n = n;
		memcpy(u->body, body, n);
	}
	return u;
}

struct note *
note_new(enum note_kind kind, struct backend *b, struct session *s, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	struct note *x = calloc(1, sizeof(*x) + len + 1);

	if (x == NULL)
		return NULL;
	x->kind = kind;
	x->backend = b;
	x->session = s;
	x->unit = b->n_units_sent;
	if (name != NULL)
		memcpy(x->name, name, len);
	return x;
}

void
note_free(struct note *x)
{
	statement_unref(&x->st);
	statement_unref(&x->want);
	unnamed_free(&x->old);
	unnamed_free(&x->types);
	description_free(&x->told);
	free(x);
}

/* The session has no such statement after all; what the server says of it, if it was used ahead, is put in the client's words. */
static void
forget_name(struct session *s, const char *name)
{
	struct statement *st = s ? names_take(s->names, name) : NULL, *older;

	if (st == NULL)
		return;
	older = names_take(s->lost, name);
	statement_unref(&older);
	if (!names_add(&s->lost, name, st))
		statement_unref(&st);
}

/* The last note of the name that is still under way. */
static struct note *
last_note_of(const struct backend *b, const char *name)
{
	for (uint32_t i = b->owed.n; i > 0; i--) {
		struct note *x = replyq_what(&b->owed, i - 1);

		if (x != NULL && x->name[0] != '\0' && names_are_same(x->name, name))
			return x;
	}
	return NULL;
}

/*
 * A Parse that was to fail has not: the statement before it was gone when it came, because its own Parse had failed or because
 * of a DEALLOCATE ALL. On the server its text is under another's name, for those who use it in the same pipeline.
 */
static void
name_after_all(struct note *x)
{
	struct backend *b = x->backend;
	struct note *later = x->session ? last_note_of(b, x->name) : NULL;

	if (!prepared_set_has(b->prepared, x->st) && !prepared_set_add(&b->prepared, x->st))
		b->retire = true;
	prepared_set_mark(b->prepared, x->st, PREPARED_STALE);
	if (x->session == NULL || x->want == NULL)
		return;
	if (later == NULL && names_add(&x->session->names, x->name, x->want)) {
		x->want = NULL;
	} else if (later != NULL && later->kind == NOTE_NAME_CLOSED) {
		statement_unref(&later->st);
		later->st = statement_ref(x->want); /* what is there again if the Close is skipped */
	}
}

/* The next change of the unnamed statement that is under way in a later unit; those of the same unit are undone already. */
static struct note *
next_unnamed(const struct note *x)
{
	const struct replyq *owed = &x->backend->owed;

	for (uint32_t i = 0; i < owed->n; i++) {
		struct note *later = replyq_what(owed, i);

		if (later != NULL && later->kind == NOTE_UNNAMED && later->unit > x->unit)
			return later;
	}
	return NULL;
}

static void
undo_unnamed(struct note *x, enum replyq_outcome outcome)
{
	struct note *later = next_unnamed(x);
	struct unnamed **at;

	x->backend->unnamed_of = NULL;
	if (x->session == NULL)
		return;
	/* what the session has now, or what it had before the next change */
	at = later != NULL ? &later->old : &x->session->unnamed;
	unnamed_free(at);
	/* a Parse that fails has ended the one before it all the same */
	if (outcome == REPLYQ_SKIPPED) {
		*at = x->old;
		x->old = NULL;
	}
}

/* The server has not executed it. */
static void
undo(struct note *x, enum replyq_outcome outcome)
{
	switch (x->kind) {
	case NOTE_NAMED:
		forget_name(x->session, x->name);
		if (x->on_backend)
			prepared_set_remove(x->backend->prepared, x->st);
		break;
	case NOTE_UNNAMED:
		undo_unnamed(x, outcome);
		break;
	case NOTE_NAME_CLOSED:
		if (x->session != NULL && x->st != NULL && names_add(&x->session->names, x->name, x->st))
			x->st = NULL;
		break;
	case NOTE_PARSED_AHEAD:
		prepared_set_remove(x->backend->prepared, x->st);
		break;
	case NOTE_REPARSED:
		x->backend->unnamed_of = NULL;
		break;
	case NOTE_EVICTED:
		/* still there under its name, which must not be used for another Parse */
		if (!prepared_set_has(x->backend->prepared, x->st) && !prepared_set_add(&x->backend->prepared, x->st))
			x->backend->retire = true;
		break;
	case NOTE_CHECKED:
		prepared_set_mark(x->backend->prepared, x->st, PREPARED_UNCHECKED);
		break;
	case NOTE_DUPLICATE:
	case NOTE_DESCRIBED:
	case NOTE_NOTHING:
		break;
	}
}

/* The answer to our Describe is there: with another result the client must not be served from this plan. */
static void
checked(struct note *x)
{
	const struct description *before = statement_described(x->st);
	bool is_same = x->told == NULL || before == NULL || description_has_same_result(before, x->told);

	prepared_set_mark(x->backend->prepared, x->st, is_same ? PREPARED_READY : PREPARED_CHANGED);
	if (!is_same)
		group_schema_changed(x->backend->pool->group);
}

static void
done(struct note *x)
{
	switch (x->kind) {
	case NOTE_DUPLICATE:
		name_after_all(x);
		break;
	case NOTE_DESCRIBED:
		if (x->told != NULL)
			statement_set_described(x->st, x->told);
		x->told = NULL;
		break;
	case NOTE_CHECKED:
		checked(x);
		break;
	case NOTE_NAME_CLOSED:
	case NOTE_NOTHING:
		if (x->name[0] != '\0')
			shown_closed(x->backend, x->name);
		break;
	case NOTE_NAMED:
	case NOTE_UNNAMED:
	case NOTE_PARSED_AHEAD:
	case NOTE_REPARSED:
	case NOTE_EVICTED:
		break;
	}
}

void
prepared_settle(void *what, enum replyq_outcome outcome)
{
	struct note *x = what;

	if (x->kind == NOTE_NAME_CLOSED && x->session != NULL)
		x->session->n_closing--;
	if (outcome == REPLYQ_DONE)
		done(x);
	else
		undo(x, outcome);
	note_free(x);
}

void
prepared_session_gone(struct backend *b)
{
	for (uint32_t i = 0; i < b->owed.n; i++) {
		struct note *x = replyq_what(&b->owed, i);

		if (x != NULL)
			x->session = NULL;
	}
}

/* ---- what the server says ---- */

/* Keeps on the backend what was sent behind what ended all statements. */
static void
discard_on_backend(struct backend *b)
{
	struct prepared_set *kept = NULL;

	for (uint32_t i = 0; i < b->owed.n; i++) {
		struct note *x = replyq_what(&b->owed, i);

		if (x == NULL)
			continue;
		if (x->kind == NOTE_EVICTED && !prepared_set_has(kept, x->st))
			x->kind = NOTE_NOTHING; /* gone already */
		else if (x->kind == NOTE_EVICTED)
			prepared_set_remove(kept, x->st);
		else if ((x->kind == NOTE_NAMED && x->on_backend) || x->kind == NOTE_PARSED_AHEAD ||
		         x->kind == NOTE_DUPLICATE)
			if (!prepared_set_has(kept, x->st) && !prepared_set_add(&kept, x->st))
				b->retire = true;
	}
	prepared_set_free(&b->prepared);
	b->prepared = kept;
}

static void
discard_names(struct session *s)
{
	const struct replyq *owed = &s->backend->owed;
	struct names *kept = NULL;

	for (uint32_t i = 0; i < owed->n; i++) {
		struct note *x = replyq_what(owed, i);
		struct statement *st = x && x->kind == NOTE_NAMED ? statement_ref(x->st) : NULL;

		if (st != NULL && !names_add(&kept, x->name, st))
			statement_unref(&st);
		if (x == NULL || x->kind != NOTE_NAME_CLOSED)
			continue;
		st = names_take(kept, x->name);
		if (st == NULL)
			statement_unref(&x->st); /* it was closed when it was gone: nothing to come back */
		statement_unref(&st);
	}
	names_free(&s->lost);
	s->lost = s->names; /* what is sent already may use them: the server's errors are put in the client's words */
	s->names = kept;
}

/* A message that answers a Describe, before the queue forgets which. */
void
prepared_described(struct backend *b, char type, const uint8_t *body, size_t n)
{
	struct note *x = replyq_current(&b->owed);

	if (x == NULL || (x->kind != NOTE_DESCRIBED && x->kind != NOTE_CHECKED))
		return;
	if (type == BE_PARAMETER_DESCRIPTION)
		x->types = unnamed_new(body, n);
	else if (x->types != NULL)
		x->told = description_new(x->types->body, x->types->n, type == BE_NO_DATA ? NULL : body, n);
}

void
prepared_discarded(struct backend *b)
{
	discard_on_backend(b);
	if (b->session != NULL)
		discard_names(b->session);
}

/* The session has been told that the result has changed: from now on it is what it is now, unless a client goes by the old one. */
static void
renew(struct statement **st, void *arg)
{
	const struct backend *b = arg;
	enum prepared_state state = prepared_set_state(b->prepared, *st);
	struct statement *fresh;

	if ((state != PREPARED_STALE && state != PREPARED_CHANGED) || statement_is_told(*st))
		return;
	fresh = statement_renewed(*st, group_schema(b->pool->group));
	if (fresh == NULL)
		return;
	statement_unref(st);
	*st = fresh;
}

void
prepared_result_changed(struct backend *b)
{
	if (b->session != NULL)
		names_each(b->session->names, renew, b);
}

void
prepared_plan_failed(struct backend *b)
{
	prepared_set_stale(b->prepared, b->n_units_done);
	/* what changed is in no statement that we saw, or we would have known */
	group_schema_changed(b->pool->group);
	prepared_result_changed(b);
}

/* ---- what is sent ---- */

bool
relay_queue(struct relay *r, struct buf *out)
{
	struct stream *to = &r->session->backend->stream;
	bool ok = !out->failed;

	/* in order: first what was looked at and goes as it is */
	if (r->pos > r->from)
		stream_queue(to, r->p + r->from, r->pos - r->from);
	r->from = r->pos;
	if (ok)
		stream_queue(to, buf_head(out), out->len);
	buf_fini(out);
	return ok;
}

bool
note_sent(struct relay *r, enum replyq_kind kind, enum replyq_answer answer, struct note *note)
{
	if (replyq_sent_statement(&r->session->backend->owed, kind, answer, note))
		return true;
	if (note != NULL)
		note_free(note);
	return false;
}

bool
note_send_close(struct relay *r, const char *server_name, enum replyq_answer answer, struct note *note)
{
	struct buf out;

	if (!note_sent(r, REPLYQ_CLOSE, answer, note))
		return false;
	buf_init(&out);
	build_close_statement(&out, server_name);
	return relay_queue(r, &out);
}

bool
note_send_parse(struct relay *r, const char *server_name, const uint8_t *body, size_t n, enum replyq_answer answer,
                struct note *note)
{
	struct buf out;
	uint32_t mark;

	if (!note_sent(r, REPLYQ_PARSE, answer, note))
		return false;
	buf_init(&out);
	mark = msg_begin(&out, FE_PARSE);
	msg_str(&out, server_name);
	buf_append(&out, body, n);
	msg_end(&out, mark);
	return relay_queue(r, &out);
}
