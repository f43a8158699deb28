/* SPDX-License-Identifier: ISC */
#include "core/prepared.h"

#include "core/backend.h"
#include "core/prepared_note.h"
#include "core/prepared_set.h"
#include "core/session.h"
#include "core/shown.h"
#include "core/statement.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"
#include "wire/sql.h"
#include "wire/suspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHOLE_MAX 32768u /* a larger Parse is not interned */

bool
prepared_is_on(const struct session *s)
{
	return s->pool->group->mode != POOL_SESSION && s->proxy->weir->config->max_prepared_statements > 0;
}

/* ---- what is sent ---- */

/* Takes st off the backend; the Close's answer is swallowed. */
static bool
send_evict(struct relay *r, struct statement *st)
{
	struct backend *b = r->session->backend;
	struct note *note = note_new(NOTE_EVICTED, b, NULL, NULL);

	if (note == NULL)
		return false;
	note->st = statement_ref(st);
	prepared_set_remove(b->prepared, st);
	counter_add(&b->pool->stats.n_evictions, 1);
	return note_send_close(r, statement_server_name(st), REPLYQ_SWALLOW, note);
}

static bool
make_room(struct relay *r)
{
	struct backend *b = r->session->backend;
	size_t most = (size_t)b->pool->group->weir->config->max_prepared_statements;
	struct statement *victim;

	/* what is sent while the server skips is undone at once: evicting would never make room */
	while (prepared_set_n(b->prepared) >= most && b->owed.mode != REPLYQ_SKIPPING) {
		victim = prepared_set_victim(b->prepared, b->n_units_done);
		if (victim == NULL)
			return true; /* all are in use by what is under way: a few too many for a moment */
		if (!send_evict(r, victim))
			return false;
	}
	return true;
}

/*
 * Our Parse of a statement that a session has had elsewhere. With the parameter types that the server inferred then, if they
 * are known: they stay as they are there, too, whatever becomes of the tables.
 */
static bool
send_parse_again(struct relay *r, const struct statement *st, struct note *note)
{
	const struct description *described = statement_described(st);
	size_t n, n_types, n_text;
	const uint8_t *body = statement_body(st, &n), *types;
	struct buf with_types;
	bool ok;

	if (described == NULL)
		return note_send_parse(r, statement_server_name(st), body, n, REPLYQ_SWALLOW, note);
	n_text = strnlen((const char *)body, n);
	types = description_types(described, &n_types);
	buf_init(&with_types);
	buf_append(&with_types, body, n_text + (n_text < n));
	buf_append(&with_types, types, n_types);
	ok = !with_types.failed;
	if (ok)
		ok = note_send_parse(r, statement_server_name(st), buf_head(&with_types), with_types.len,
		                     REPLYQ_SWALLOW, note);
	else
		note_free(note);
	buf_fini(&with_types);
	return ok;
}

/* Makes sure that st is prepared on the backend when the client's message arrives there. */
static bool
ensure_prepared(struct relay *r, struct statement *st)
{
	struct backend *b = r->session->backend;
	struct note *note;

	if (prepared_set_state(b->prepared, st) == PREPARED_STALE && !send_evict(r, st))
		return false;
	if (prepared_set_has(b->prepared, st)) {
		counter_add(&b->pool->stats.n_prepared_hits, 1);
		prepared_set_use(b->prepared, st, b->n_units_sent);
		return true;
	}
	/* gone with a DEALLOCATE ALL that is under way, as the server will say; or it can't be parsed anew */
	if (prepared_is_discarding(b) || statement_is_large(st))
		return true;
	note = make_room(r) ? note_new(NOTE_PARSED_AHEAD, b, NULL, NULL) : NULL;
	if (note == NULL)
		return false;
	note->st = statement_ref(st);
	/* noted first: where the server skips it, the queue undoes it at once */
	if (!prepared_set_add(&b->prepared, st)) {
		note_free(note);
		return false;
	}
	prepared_set_use(b->prepared, st, b->n_units_sent);
	if (statement_described(st) != NULL)
		prepared_set_mark(b->prepared, st, PREPARED_UNCHECKED);
	counter_add(&b->pool->stats.n_server_parses, 1);
	return send_parse_again(r, st, note);
}

/* Notes a Describe of st, the client's or ours. */
static bool
note_describe(struct relay *r, enum note_kind kind, enum replyq_answer answer, struct statement *st)
{
	struct note *note = note_new(kind, r->session->backend, NULL, NULL);

	if (note == NULL)
		return false;
	note->st = statement_ref(st);
	return note_sent(r, REPLYQ_DESCRIBE, answer, note);
}

/* Asks whether a statement that was parsed again still has the result that it had. */
static bool
send_check(struct relay *r, struct statement *st)
{
	struct buf out;

	if (!note_describe(r, NOTE_CHECKED, REPLYQ_SWALLOW, st))
		return false;
	prepared_set_mark(r->session->backend->prepared, st, PREPARED_CHECKING);
	buf_init(&out);
	build_describe_statement(&out, statement_server_name(st));
	build_flush(&out);
	return relay_queue(r, &out);
}

/* Writes the message's beginning up to and with the statement's name anew. */
static bool
rename_reference(struct relay *r, const struct frame *f, const struct statement_ref *ref, const char *server_name,
                 size_t *n_replaced)
{
	const char *body = (const char *)r->p + r->pos + MSG_HEADER;
	size_t n_before = (size_t)(ref->name - body), n_name = strlen(ref->name) + 1;
	struct buf out;

	buf_init(&out);
	buf_append_u8(&out, (uint8_t)f->type);
	buf_append_u32(&out, (uint32_t)(f->len - 1 - n_name + strlen(server_name) + 1));
	buf_append(&out, body, n_before);
	msg_str(&out, server_name);
	*n_replaced = MSG_HEADER + n_before + n_name;
	return relay_queue(r, &out);
}

/* ---- what is not known yet ---- */

/* Whether what x notes comes about is not known, and what becomes of a message of this type depends on it. */
static bool
is_in_doubt(const struct note *x, char type, const char *name, const struct statement *st)
{
	bool is_same_name = names_are_same(x->name, name);

	if (name[0] == '\0')
		return x->kind == NOTE_UNNAMED || x->kind == NOTE_REPARSED;
	/* on the server the statement is the same, by whatever name it was parsed */
	if (st != NULL && x->st == st &&
	    (x->kind == NOTE_PARSED_AHEAD || x->kind == NOTE_EVICTED ||
	     (x->kind == NOTE_NAMED && x->on_backend && !is_same_name)))
		return true;
	if (!is_same_name)
		return false;
	/* of a Parse that goes to the server as it is, nothing is there if it is skipped, as the server will say */
	return x->kind == NOTE_NAME_CLOSED ||
	       (x->kind == NOTE_NAMED && (!x->on_backend || type == FE_PARSE || type == FE_CLOSE));
}

/*
 * A Parse or Close of that name, or of the statement on the server, in an earlier unit has not been answered: whether it is
 * there when this message is executed can't be told before, and another session's may be in its place. wanted: what a Parse
 * makes of the name if that is free. A Parse of the unnamed statement doesn't mind.
 */
static bool
is_doubtful(const struct session *s, char type, const char *name, const struct statement *wanted)
{
	const struct backend *b = s->backend;
	const struct statement *st;

	if (b->n_units_sent == b->n_units_done || (type == FE_PARSE && name[0] == '\0'))
		return false;
	st = names_find(s->names, name);
	st = st != NULL ? st : wanted;
	for (uint32_t i = b->owed.n; i > 0; i--) {
		const struct note *x = replyq_what(&b->owed, i - 1);

		if (x == NULL || !is_in_doubt(x, type, name, st))
			continue;
		if (x->unit != b->n_units_sent)
			return true;
		if (name[0] == '\0')
			return false; /* what was before has an end in this unit */
	}
	return false;
}

/* ---- Parse ---- */

/* What the text means depends on the settings, but not on the application's name. */
static struct settings *
meaning(struct session *s)
{
	if (s->meaning_of != s->settings) {
		settings_unref(&s->meaning);
		settings_unref(&s->meaning_of);
		s->meaning = settings_without(s->settings, "application_name");
		s->meaning_of = settings_ref(s->settings); /* held, so that its address can't come to mean another */
	}
	return s->meaning;
}

/*
 * The client's Parse, which is whole, under the server's name. Behind that of a statement that is new a Describe of ours: its
 * result is to stay the same, see send_check().
 */
static bool
send_new(struct relay *r, const struct frame *f, struct statement *st, struct note *note, size_t *n_replaced)
{
	const uint8_t *body;
	struct buf out;
	size_t n;

	body = statement_body(st, &n);
	*n_replaced = f->len;
	if (!note_send_parse(r, statement_server_name(st), body, n, REPLYQ_PASS, note))
		return false;
	if (statement_described(st) != NULL)
		return true;
	if (!note_describe(r, NOTE_DESCRIBED, REPLYQ_SWALLOW, st))
		return false;
	buf_init(&out);
	build_describe_statement(&out, statement_server_name(st));
	return relay_queue(r, &out);
}

/* A DEALLOCATE ALL or DISCARD ALL was bound in this unit. */
bool
prepared_is_discarding(const struct backend *b)
{
	return b->discarding_unit == b->n_units_sent + 1;
}

/* The status in which the server will see the message is known, and it is no failed transaction. */
static bool
is_sure_to_parse(const struct backend *b)
{
	return b->n_units_sent == b->n_units_done && b->owed.tx != TX_FAILED && b->owed.mode == REPLYQ_NORMAL &&
	       !prepared_is_discarding(b);
}

/* Sends the client's Parse under the server's name. */
static bool
send_named(struct relay *r, const struct frame *f, const struct statement *st, struct note *note, size_t *n_replaced)
{
	const struct statement_ref ref = {.kind = 'S', .name = (const char *)r->p + r->pos + MSG_HEADER};

	return note_sent(r, REPLYQ_PARSE, REPLYQ_PASS, note) &&
	       rename_reference(r, f, &ref, statement_server_name(st), n_replaced);
}

/* Consumes the note. */
static bool
parse_new_name(struct relay *r, const struct frame *f, struct statement *st, struct note *note, size_t *n_replaced)
{
	struct backend *b = r->session->backend;

	if (prepared_set_state(b->prepared, st) == PREPARED_READY && is_sure_to_parse(b)) {
		counter_add(&b->pool->stats.n_prepared_hits, 1);
		prepared_set_use(b->prepared, st, b->n_units_sent);
		*n_replaced = f->len;
		return note_send_close(r, NEVER_PREPARED, REPLYQ_AS_PARSE, note);
	}
	if ((prepared_set_has(b->prepared, st) && !send_evict(r, st)) || !make_room(r) ||
	    !prepared_set_add(&b->prepared, st)) {
		note_free(note);
		return false;
	}
	prepared_set_use(b->prepared, st, b->n_units_sent);
	note->on_backend = true;
	counter_add(&b->pool->stats.n_server_parses, 1);
	return statement_is_large(st) ? send_named(r, f, st, note, n_replaced) : send_new(r, f, st, note, n_replaced);
}

/* The name is in use: the server shall say so, in its own words and at its place. */
static bool
parse_used_name(struct relay *r, const struct frame *f, const char *name, struct statement *st, struct statement *want,
                size_t *n_replaced)
{
	struct backend *b = r->session->backend;
	struct note *note;

	/* behind a DEALLOCATE ALL it will not fail; it is there, then, for the messages that follow */
	if (prepared_is_discarding(b) ? !prepared_set_has(b->prepared, st) && !prepared_set_add(&b->prepared, st)
	                              : !ensure_prepared(r, st))
		return false;
	note = note_new(NOTE_DUPLICATE, b, r->session, name);
	if (note == NULL)
		return false;
	note->st = statement_ref(st);
	note->want = statement_ref(want);
	return send_named(r, f, st, note, n_replaced);
}

/*
 * SQL may have prepared a statement of that name: the server says so to a Parse under the name itself, whose text is empty and
 * which is closed again if it worked.
 */
static bool
try_name(struct relay *r, const char *name)
{
	static const uint8_t empty[] = {0, 0, 0};
	const struct session *s = r->session;

	if ((s->pins & PIN_PREPARED) == 0 && (s->marks.suspects & SUSPECT_PREPARES) == 0 && s->backend->probe == NULL)
		return true;
	if (s->backend->owed.tx == TX_FAILED)
		return true; /* which the server says first */
	return note_send_parse(r, name, empty, sizeof(empty), REPLYQ_SWALLOW, NULL) &&
	       note_send_close(r, name, REPLYQ_SWALLOW, NULL);
}

/* Takes over the reference to st; NULL: no memory. */
static bool
parse_named(struct relay *r, const struct frame *f, const char *name, struct statement *st, size_t *n_replaced)
{
	struct session *s = r->session;
	struct statement *used = names_find(s->names, name);
	struct note *note;
	bool ok;

	if (st == NULL)
		return false;
	if (used != NULL) {
		ok = parse_used_name(r, f, name, used, st, n_replaced);
		statement_unref(&st);
		return ok;
	}
	note = try_name(r, name) ? note_new(NOTE_NAMED, s->backend, s, name) : NULL;
	if (note == NULL || !names_add(&s->names, name, st)) {
		free(note);
		statement_unref(&st);
		return false;
	}
	note->st = statement_ref(st);
	/* where the server skips it, the queue undoes it at once, and the last references are gone before it is sent */
	st = statement_ref(st);
	ok = parse_new_name(r, f, st, note, n_replaced);
	statement_unref(&st);
	return ok;
}

static struct statement *
get_statement(struct session *s, const uint8_t *body, size_t n)
{
	return meaning(s) ? statement_get(s->meaning, group_schema(s->pool->group), body, n) : NULL;
}

/* Goes as it is; a copy is kept for a Bind that comes when the session has another backend. */
static bool
parse_unnamed(struct relay *r, const uint8_t *body, size_t n)
{
	struct session *s = r->session;
	struct note *note = note_new(NOTE_UNNAMED, s->backend, s, NULL);
	struct unnamed *copy = unnamed_new(body, n);

	if (note == NULL || copy == NULL) {
		free(note);
		free(copy);
		return false;
	}
	note->old = s->unnamed;
	s->unnamed = copy;
	s->backend->unnamed_of = s;
	return note_sent(r, REPLYQ_PARSE, REPLYQ_PASS, note);
}

/* Too large to be kept: it ties the session to this backend until it is bound. */
static bool
parse_large_unnamed(struct relay *r)
{
	struct session *s = r->session;
	struct note *note = note_new(NOTE_UNNAMED, s->backend, s, NULL);

	if (note == NULL)
		return false;
	note->old = s->unnamed;
	s->unnamed = NULL;
	s->backend->unnamed_of = s;
	s->parse_is_unbound = true;
	return note_sent(r, REPLYQ_PARSE, REPLYQ_PASS, note);
}

/* ... and for good, if it has a name. */
static bool
parse_large_named(struct relay *r, const struct frame *f, const char *name, size_t *n_replaced)
{
	session_pin(r->session, PIN_STATEMENT);
	return parse_named(r, f, name, statement_new_large(), n_replaced);
}

static bool
on_parse_unnamed(struct relay *r, const struct frame *f)
{
	counter_add(&r->session->pool->stats.n_client_parses, 1);
	if (f->len > WHOLE_MAX)
		return parse_large_unnamed(r);
	r->session->parse_is_unbound = false;
	return parse_unnamed(r, r->p + r->pos + MSG_HEADER + 1, f->len - MSG_HEADER - 1);
}

static enum prepared_verdict
on_parse(struct relay *r, const struct frame *f, const char *name, size_t *n_replaced)
{
	struct session *s = r->session;
	const uint8_t *body = r->p + r->pos + MSG_HEADER;
	size_t n_name = strlen(name) + 1;
	struct statement *st = NULL;
	bool ok;

	if (name[0] == '\0')
		return on_parse_unnamed(r, f) ? PREPARED_PASS : PREPARED_FAILED;
	if (f->len <= WHOLE_MAX)
		st = get_statement(s, body + n_name, f->len - MSG_HEADER - n_name);
	if (is_doubtful(s, FE_PARSE, name, st)) {
		statement_unref(&st);
		return PREPARED_WAIT;
	}
	counter_add(&s->pool->stats.n_client_parses, 1);
	ok = f->len > WHOLE_MAX ? parse_large_named(r, f, name, n_replaced) : parse_named(r, f, name, st, n_replaced);
	return ok ? PREPARED_PASS : PREPARED_FAILED;
}

/* ---- Bind, Describe, Close ---- */

/* Makes the backend's unnamed statement this session's, or none if it has none. */
static bool
ensure_unnamed(struct relay *r)
{
	struct session *s = r->session;
	struct backend *b = s->backend;
	struct note *note;

	if (b->unnamed_of == s)
		return true;
	if (s->unnamed == NULL)
		return note_send_close(r, "", REPLYQ_SWALLOW, NULL);
	note = note_new(NOTE_REPARSED, b, NULL, NULL);
	if (note == NULL)
		return false;
	b->unnamed_of = s;
	counter_add(&b->pool->stats.n_server_parses, 1);
	return note_send_parse(r, "", s->unnamed->body, s->unnamed->n, REPLYQ_SWALLOW, note);
}

/* The text of one of the session's statements, NULL: of the unnamed one. Its length; 0: there is none, or it is not kept. */
static size_t
text_of(const struct session *s, const struct statement *st, const uint8_t **text)
{
	size_t n = 0;

	*text = NULL;
	if (st != NULL)
		*text = statement_body(st, &n);
	else if (s->unnamed != NULL)
		*text = s->unnamed->body, n = s->unnamed->n;
	return n > 0 ? strnlen((const char *)*text, n) : 0;
}

/* DISCARD ALL, DEALLOCATE ALL or DEALLOCATE PREPARE ALL is among its statements. */
static bool
discards_all(const uint8_t *sql, size_t n)
{
	struct sql_lexer lx;
	struct sql_token t;
	enum { ELSEWHERE, AT_START, AFTER_WORD, AFTER_PREPARE } at = AT_START;

	if (!prepared_may_discard(sql, n))
		return false;
	sql_lexer_init(&lx, sql, n, true);
	while (sql_next(&lx, &t) != SQL_END) {
		if (t.kind == SQL_SEMICOLON)
			at = AT_START;
		else if (at == AT_START && (sql_token_is(&t, "discard") || sql_token_is(&t, "deallocate")))
			at = AFTER_WORD;
		else if ((at == AFTER_WORD || at == AFTER_PREPARE) && sql_token_is(&t, "all"))
			return true;
		else
			at = at == AFTER_WORD && sql_token_is(&t, "prepare") ? AFTER_PREPARE : ELSEWHERE;
	}
	return false;
}

/* A name that this session never prepared by the protocol: SQL may have, else the server says that it is missing. */
static bool
pass_unknown_name(struct relay *r, const struct frame *f, const struct statement_ref *ref, size_t *n_replaced)
{
	char other[128];

	if (strncmp(ref->name, STATEMENT_PREFIX, strlen(STATEMENT_PREFIX)) != 0)
		return true;
	/* it looks like one of ours, and must not reach another session's statement */
	snprintf(other, sizeof(other), "?%.100s", ref->name);
	return rename_reference(r, f, ref, other, n_replaced);
}

/* Prepares st and answers how it is on the backend: not before the server has said so, where that must be asked. */
static bool
ensure_usable(struct relay *r, struct statement *st, enum prepared_state *state)
{
	struct backend *b = r->session->backend;

	*state = prepared_set_use(b->prepared, st, b->n_units_sent);
	if (*state == PREPARED_READY) { /* nearly always */
		counter_add(&b->pool->stats.n_prepared_hits, 1);
		return true;
	}
	if (!ensure_prepared(r, st))
		return false;
	*state = prepared_set_state(b->prepared, st);
	if (*state != PREPARED_UNCHECKED || b->owed.mode == REPLYQ_SKIPPING)
		return true;
	*state = PREPARED_CHECKING;
	return send_check(r, st);
}

/* Bind or Describe of a statement that the session has prepared. */
static enum prepared_verdict
on_use_named(struct relay *r, const struct frame *f, const struct statement_ref *ref, struct statement *st,
             size_t *n_replaced)
{
	struct replyq *owed = &r->session->backend->owed;
	enum prepared_state state;
	bool ok;

	if (!ensure_usable(r, st, &state))
		return PREPARED_FAILED;
	if (state == PREPARED_CHECKING && owed->mode != REPLYQ_SKIPPING)
		return PREPARED_WAIT;
	/* the server refuses a name that it does not know, at the right place; prepared_reword_error() says why it really does */
	ok = rename_reference(r, f, ref, state == PREPARED_CHANGED ? NEVER_PREPARED : statement_server_name(st),
	                      n_replaced);
	if (f->type == FE_DESCRIBE)
		statement_set_told(st);
	/* of which nothing is known yet, or whose answer won't be the server's */
	if (f->type == FE_DESCRIBE &&
	    (state == PREPARED_CHANGED || (!statement_is_large(st) && statement_described(st) == NULL)))
		ok = ok && note_describe(r, NOTE_DESCRIBED, REPLYQ_PASS, st);
	else
		ok = ok && replyq_sent(owed, f->type, false);
	return ok ? PREPARED_PASS : PREPARED_FAILED;
}

/* What is bound is executed. A named statement's text is looked at once for all; `scratch` is for others. */
static const struct suspicion *
suspicion_of(const struct session *s, struct statement *st, struct suspicion *scratch)
{
	static const struct suspicion none;
	const struct suspicion *known = NULL;
	const uint8_t *text;
	size_t n;
	bool is_set = false;

	if (st != NULL && statement_is_large(st))
		return &none; /* its session has its backend to itself */
	if (st != NULL)
		known = statement_suspicion(st, &is_set);
	if (is_set)
		return known ? known : &none;
	n = text_of(s, st, &text);
	if (n == 0)
		return &none;
	state_scan(s, text, n, true, scratch);
	if (st != NULL)
		(void)statement_set_suspicion(st, scratch);
	return scratch;
}

static void
suspect_use(struct session *s, const struct statement *st, const struct suspicion *x)
{
	const uint8_t *text = NULL;
	size_t n;

	state_suspect(s, x);
	if ((x->flags & SUSPECT_ANY_SETTING) != 0) {
		n = text_of(s, st, &text);
		state_touch_mentioned(s, text, n);
	}
	if (state_wants_text(s, x) && (n = text_of(s, st, &text)) > 0)
		state_text_note(s, text, n);
}

void
prepared_suspect(struct session *s, struct statement *st)
{
	struct suspicion scratch;

	if (state_looks_at_texts(s))
		suspect_use(s, st, suspicion_of(s, st, &scratch));
}

/* The server fails at this place, for a name that it does not know; prepared_reword_error() says why it really does. */
static enum prepared_verdict
refuse(struct relay *r, const struct frame *f, const struct statement_ref *ref, size_t *n_replaced)
{
	bool ok = rename_reference(r, f, ref, STATE_REFUSED_STATEMENT, n_replaced) &&
	          replyq_sent(&r->session->backend->owed, f->type, false);

	return ok ? PREPARED_PASS : PREPARED_FAILED;
}

/* Bind, or Describe of a statement. */
static enum prepared_verdict
on_use(struct relay *r, const struct frame *f, const struct statement_ref *ref, size_t *n_replaced)
{
	struct session *s = r->session;
	struct statement *st = ref->name[0] != '\0' ? names_find(s->names, ref->name) : NULL;
	enum prepared_verdict verdict;
	const uint8_t *text = NULL;
	size_t n_text = 0; /* of what may end or name statements */
	bool ok;

	if (f->type == FE_BIND && (st != NULL || ref->name[0] == '\0')) {
		struct suspicion scratch;
		const struct suspicion *x = suspicion_of(s, st, &scratch);

		if (state_looks_at_texts(s)) {
			if (!state_may_execute(s, x))
				return refuse(r, f, ref, n_replaced);
			suspect_use(s, st, x);
			if ((x->flags & SUSPECT_ANY_SETTING) != 0)
				state_touch_mentioned(s, r->p + r->pos + MSG_HEADER, f->avail - MSG_HEADER);
		}
		if ((x->flags & (SUSPECT_PREPARES | SUSPECT_EXECUTES)) != 0)
			n_text = text_of(s, st, &text);
	}
	if (n_text > 0 && !shown_bind(r, (const char *)r->p + r->pos + MSG_HEADER, text, n_text))
		return PREPARED_FAILED;
	if (st != NULL) {
		verdict = on_use_named(r, f, ref, st, n_replaced);
	} else {
		ok = ref->name[0] == '\0' ? ensure_unnamed(r) : pass_unknown_name(r, f, ref, n_replaced);
		verdict = ok && replyq_sent(&s->backend->owed, f->type, false) ? PREPARED_PASS : PREPARED_FAILED;
	}
	if (f->type != FE_BIND || verdict != PREPARED_PASS)
		return verdict;
	counter_add(&s->pool->stats.n_binds, 1);
	if (ref->name[0] == '\0')
		s->parse_is_unbound = false;
	/* what it does to the session's names is known when it is answered; until then, see prepared_is_discarding() */
	if (n_text > 0 && discards_all(text, n_text))
		s->backend->discarding_unit = s->backend->n_units_sent + 1;
	return verdict;
}

/* The statement stays on the backend for others: the client's Close becomes one of a name that nobody has. */
static bool
on_close(struct relay *r, const struct frame *f, const struct statement_ref *ref, size_t *n_replaced)
{
	struct session *s = r->session;
	struct note *note;

	if (ref->name[0] == '\0') {
		note = note_new(NOTE_UNNAMED, s->backend, s, NULL);
		if (note == NULL)
			return false;
		note->old = s->unnamed;
		s->unnamed = NULL;
		s->backend->unnamed_of = s;
		return note_sent(r, REPLYQ_CLOSE, REPLYQ_PASS, note);
	}
	if (names_find(s->names, ref->name) == NULL)
		return pass_unknown_name(r, f, ref, n_replaced) && note_sent(r, REPLYQ_CLOSE, REPLYQ_PASS, NULL);
	note = note_new(NOTE_NAME_CLOSED, s->backend, s, ref->name);
	if (note == NULL)
		return false;
	note->st = names_take(s->names, ref->name);
	s->n_closing++;
	*n_replaced = f->len;
	return note_send_close(r, NEVER_PREPARED, REPLYQ_PASS, note);
}

enum prepared_verdict
prepared_client_message(struct relay *r, const struct frame *f, size_t *n_replaced)
{
	const uint8_t *body = r->p + r->pos + MSG_HEADER;
	struct statement_ref ref;
	bool must_be_whole = f->type != FE_BIND && f->len <= WHOLE_MAX, ok;

	*n_replaced = 0;
	if (must_be_whole && f->avail < f->len)
		return PREPARED_MORE;
	if (parse_statement_ref(f->type, body, f->avail - MSG_HEADER, &ref) != STATUS_OK) {
		if (f->avail < f->len && f->avail <= WHOLE_MAX)
			return PREPARED_MORE;
		/* malformed: as it is, for the server to say so */
		return replyq_sent(&r->session->backend->owed, f->type, false) ? PREPARED_PASS : PREPARED_FAILED;
	}
	if (ref.kind != 'P' && f->type != FE_PARSE && is_doubtful(r->session, f->type, ref.name, NULL))
		return PREPARED_WAIT;
	if (r->session->lost != NULL && !replyq_is_open(&r->session->backend->owed))
		names_free(&r->session->lost);
	if (f->type == FE_PARSE)
		return on_parse(r, f, ref.name, n_replaced);
	if (ref.kind == 'P')
		ok = replyq_sent(&r->session->backend->owed, f->type, false);
	else if (f->type == FE_CLOSE)
		ok = on_close(r, f, &ref, n_replaced);
	else
		return on_use(r, f, &ref, n_replaced);
	return ok ? PREPARED_PASS : PREPARED_FAILED;
}

/* ---- Query ---- */

/* A change of the unnamed statement is under way, and may be undone. */
static bool
is_unnamed_pending(const struct backend *b)
{
	for (uint32_t i = 0; i < b->owed.n; i++) {
		const struct note *x = replyq_what(&b->owed, i);

		if (x != NULL && x->kind == NOTE_UNNAMED)
			return true;
	}
	return false;
}

bool
prepared_client_query(struct session *s)
{
	struct backend *b = s->backend;
	struct note *note;

	b->unnamed_of = NULL;
	s->parse_is_unbound = false;
	if (!replyq_is_open(&b->owed))
		unnamed_free(&s->unnamed); /* nothing can make the server skip it */
	if (s->unnamed == NULL && !is_unnamed_pending(b))
		return replyq_sent(&b->owed, FE_QUERY, false);
	note = note_new(NOTE_UNNAMED, b, s, NULL);
	if (note == NULL)
		return false;
	note->old = s->unnamed;
	s->unnamed = NULL;
	return replyq_sent_query(&b->owed, note);
}

bool
prepared_may_discard(const uint8_t *sql, size_t n)
{
	for (size_t i = 0; i + 7 <= n; i++) {
		if ((sql[i] | 0x20) != 'd')
			continue;
		if (strncasecmp((const char *)sql + i, "discard", 7) == 0 ||
		    (i + 10 <= n && strncasecmp((const char *)sql + i, "deallocate", 10) == 0))
			return true;
	}
	return false;
}
