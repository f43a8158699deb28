/* SPDX-License-Identifier: ISC */
/*
 * What comes from a client that is logged in: framed in place, noted in the backend's
 * reply queue and sent on in one piece. The other half of the hot path is
 * backend_relay.c.
 */
#include "base/clock.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/prepared_note.h"
#include "core/session.h"
#include "core/shown.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"
#include "wire/suspect.h"

#include <stdio.h>
#include <string.h>

#define WHOLE_MAX 32768u /* a message up to that size is awaited whole before a backend is taken for it */

#define AHEAD_MAX 32u /* units that a client may have under way at once */

static size_t
min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- errors in what the client sends, worded as the server's ---- */

static enum session_state
bad_type(struct session *s, char type)
{
	char text[64];

	snprintf(text, sizeof(text), "invalid frontend message type %d", (unsigned char)type);
	return session_close(s, CLOSE_BAD_PACKET, text);
}

static enum session_state
bad_length(struct session *s)
{
	return session_close(s, CLOSE_BAD_PACKET, "invalid message length");
}

/* A frame that the server would take. False: *next is the closed state. */
static bool
is_acceptable(struct session *s, const struct frame *f, enum status status, enum session_state *next)
{
	uint32_t limit = frame_client_limit(f->type);

	if (limit == 0) {
		*next = bad_type(s, f->type);
		return false;
	}
	if (status != STATUS_OK || f->len - 1 > limit) {
		*next = bad_length(s);
		return false;
	}
	return true;
}

static void
answer_ready(struct session *s)
{
	struct buf out;

	buf_init(&out);
	build_ready(&out, TX_IDLE);
	if (!out.failed)
		session_reply(s, buf_head(&out), out.len);
	buf_fini(&out);
}

/* ---- no backend yet ---- */

enum session_state
session_take_backend(struct session *s)
{
	struct backend *b = pool_take(s->pool, s);

	s->request_us = clock_cached_us();
	return b != NULL ? SESSION_ACTIVE : SESSION_WAITING;
}

/* Rest of a message that is dropped. */
static void
drop_rest(struct session *s, struct session_input *in)
{
	size_t n = min_size(s->msg_left, in->n - in->used);

	in->used += n;
	s->msg_left -= (uint32_t)n;
}

static void
drop_message(struct session *s, struct session_input *in, const struct frame *f)
{
	in->used += f->avail;
	s->msg_left = f->len - f->avail;
}

enum session_state
relay_idle(struct session *s, struct session_input *in)
{
	enum session_state next;
	struct frame f;

	if (s->next_is_canceled) {
		s->next_is_canceled = false;
		s->at_unit_start = true;
		return SESSION_SKIPPING;
	}
	for (;;) {
		drop_rest(s, in);
		enum status status = frame_next(in->p + in->used, in->n - in->used, &f);

		if (status == STATUS_MORE)
			return SESSION_IDLE;
		if (!is_acceptable(s, &f, status, &next))
			return next;
		switch (f.type) {
		case FE_TERMINATE:
			in->used = in->n;
			return session_close(s, CLOSE_CLIENT_BYE, NULL);
		case FE_SYNC:
			if (f.len != MSG_HEADER)
				return session_take_backend(s); /* malformed: in the server's words */
			/* nothing to end: the answer is known without a server */
			drop_message(s, in, &f);
			answer_ready(s);
			break;
		case FE_FLUSH:
		case FE_COPY_DATA:
		case FE_COPY_DONE:
		case FE_COPY_FAIL:
			drop_message(s, in, &f); /* as the server does outside a COPY */
			break;
		default:
			if (f.avail < f.len && f.len <= WHOLE_MAX)
				return SESSION_IDLE;
			return session_take_backend(s);
		}
	}
}

/* ---- a unit that was cancelled in the queue ---- */

static void
answer_cancelled(struct session *s, bool and_ready)
{
	struct buf out;

	buf_init(&out);
	build_error(&out, "ERROR", "57014", "canceling statement due to user request", NULL, NULL);
	if (and_ready)
		build_ready(&out, TX_IDLE);
	if (!out.failed)
		session_reply(s, buf_head(&out), out.len);
	buf_fini(&out);
}

/*
 * As the server after an error: a Query or FunctionCall is answered with the error at once; an extended-protocol unit is
 * skipped up to its Sync.
 */
enum session_state
relay_skip(struct session *s, struct session_input *in)
{
	enum session_state next;
	struct frame f;

	for (;;) {
		bool is_first = s->at_unit_start;

		drop_rest(s, in);
		enum status status = frame_next(in->p + in->used, in->n - in->used, &f);

		if (status == STATUS_MORE)
			return SESSION_SKIPPING;
		if (!is_acceptable(s, &f, status, &next))
			return next;
		if (f.type == FE_TERMINATE)
			return session_close(s, CLOSE_CLIENT_BYE, NULL);
		drop_message(s, in, &f);
		s->at_unit_start = false;
		if (is_first && (f.type == FE_QUERY || f.type == FE_FUNCTION_CALL)) {
			answer_cancelled(s, true);
			return SESSION_IDLE;
		}
		if (is_first)
			answer_cancelled(s, false);
		if (f.type == FE_SYNC) {
			answer_ready(s);
			return SESSION_IDLE;
		}
	}
}

/* ---- attached ---- */

static bool
begins_unit(char type)
{
	return type != FE_COPY_DATA && type != FE_COPY_DONE && type != FE_COPY_FAIL && type != FE_FLUSH;
}

/*
 * A pipelining client may send some units ahead while nobody waits; else its next unit waits for the answer of the one
 * under way, so that the backend can be passed on. What is sent can't be taken back for somebody who comes to wait. Nor is
 * any unit to meet a cancel request that is still under way: it was meant for an earlier one.
 */
static bool
must_brake(const struct session *s, char type)
{
	const struct replyq *owed = &s->backend->owed;

	if (!replyq_at_boundary(owed) || !begins_unit(type))
		return false;
	if (replyq_must_wait(owed) || s->backend->n_cancels > 0)
		return true;
	if (owed->n == 0)
		return false;
	if (owed->n >= AHEAD_MAX)
		return true;
	return owed->tx == TX_IDLE && (!replyq_is_hidden(owed) || s->backend->probe != NULL) &&
	       s->pool->group->mode != POOL_SESSION && s->pins == 0 && pool_has_waiters_anywhere(s->pool);
}

/* When its statements are executed their texts can't be told: what one is suspected of, all are. */
static void
suspect_parsed(struct session *s, const struct frame *f, const uint8_t *p, const char *name)
{
	const uint8_t *text = (const uint8_t *)name + strlen(name) + 1;
	size_t n = strnlen((const char *)text, (size_t)(p + f->avail - text));
	struct suspicion x;

	state_scan(s, text, n, f->avail == f->len, &x);
	state_suspect_text(s, text, n, &x);
	s->marks.prepared_suspects |= s->marks.suspects;
}

/*
 * Without mapping (prepared_is_on), prepared statements tie a session to its backend: a named one for good, the unnamed one
 * until it has been bound. False: more of the message must be seen.
 */
static bool
note_statement(struct session *s, const struct frame *f, const uint8_t *p)
{
	struct statement_ref ref;
	enum status status;

	if (s->pool->group->mode == POOL_SESSION || (f->type != FE_PARSE && f->type != FE_BIND))
		return true;
	status = parse_statement_ref(f->type, p + MSG_HEADER, f->avail - MSG_HEADER, &ref);
	if (status != STATUS_OK)
		return f->avail == f->len || f->avail > WHOLE_MAX; /* malformed: the server says so */
	if (f->type == FE_PARSE && state_looks_at_texts(s)) {
		if (f->avail < f->len && f->len <= WHOLE_MAX)
			return false;
		suspect_parsed(s, f, p, ref.name);
	}
	if (f->type == FE_BIND)
		s->marks.suspects |= s->marks.prepared_suspects; /* of whichever it executes */
	if (f->type == FE_PARSE && ref.name[0] != '\0')
		session_pin(s, PIN_STATEMENT);
	if (ref.name[0] == '\0')
		s->parse_is_unbound = f->type == FE_PARSE;
	return true;
}

/* What happens with one message. */
enum step {
	STEP_ON,
	STEP_WAIT,  /* for the rest of it */
	STEP_BRAKE, /* the next one waits for an answer */
	STEP_STOP,  /* so does this one */
	STEP_FAILED
};

/*
 * The first text of all that asks for currval() or lastval(), in front of which nothing was discarded when the session got the
 * backend. In a transaction it is not done: there the value is the session's own, if the text is in its right mind.
 */
static bool
discard_sequences(struct relay *r)
{
	struct backend *b = r->session->backend;
	struct buf out;

	if (!state_must_discard_sequences(b, r->session) || b->owed.tx != TX_IDLE ||
	    b->n_units_sent != b->n_units_done || !replyq_at_boundary(&b->owed))
		return true;
	buf_init(&out);
	build_query(&out, "DISCARD SEQUENCES");
	if (!replyq_sent(&b->owed, FE_QUERY, true)) {
		buf_fini(&out);
		return false;
	}
	b->sequences_of = r->session->id;
	b->unnamed_of = NULL; /* a Query ends it */
	return relay_queue(r, &out);
}

static enum step
relay_statement(struct relay *r, const struct frame *f)
{
	struct session *s = r->session;
	size_t n_replaced = 0;

	if (f->type == FE_PARSE && replyq_at_boundary(&s->backend->owed)) {
		state_glance_at_parse(s, r->p + r->pos, f->avail);
		if (f->avail == f->len && !discard_sequences(r))
			return STEP_FAILED;
	}
	if (!prepared_is_on(s)) {
		if (!note_statement(s, f, r->p + r->pos))
			return STEP_WAIT;
		return replyq_sent(&s->backend->owed, f->type, false) ? STEP_ON : STEP_FAILED;
	}
	switch (prepared_client_message(r, f, &n_replaced)) {
	case PREPARED_MORE:
		return STEP_WAIT;
	case PREPARED_WAIT:
		return STEP_STOP;
	case PREPARED_FAILED:
		return STEP_FAILED;
	case PREPARED_PASS:
		break;
	}
	/* what was queued stands for the beginning of the message, and all before it is queued as well */
	r->from += n_replaced;
	return STEP_ON;
}

/* In place of a Query that must not be executed: what fails there, see state_may_execute(). */
static enum step
refuse_query(struct relay *r, const struct frame *f)
{
	struct replyq *owed = &r->session->backend->owed;
	struct buf out;

	buf_init(&out);
	build_bind_text(&out, "", STATE_REFUSED_STATEMENT, NULL, 0);
	build_sync(&out);
	if (!replyq_sent(owed, FE_BIND, false) || !replyq_sent(owed, FE_SYNC, false)) {
		buf_fini(&out);
		return STEP_FAILED;
	}
	if (!relay_queue(r, &out))
		return STEP_FAILED;
	r->from += f->avail;
	return STEP_ON;
}

static enum step
relay_query(struct relay *r, const struct frame *f)
{
	struct session *s = r->session;

	const uint8_t *sql = r->p + r->pos + MSG_HEADER;
	size_t n = f->avail - MSG_HEADER;
	bool is_whole = f->avail == f->len;
	uint32_t flags = UINT32_MAX; /* what it is suspected of */

	if (!is_whole && f->len <= WHOLE_MAX)
		return STEP_WAIT;
	if (state_looks_at_texts(s)) {
		size_t n_text = strnlen((const char *)sql, n);
		struct suspicion x;

		state_scan(s, sql, n_text, is_whole, &x);
		if (!state_may_execute(s, &x) && is_whole && replyq_at_boundary(&s->backend->owed))
			return refuse_query(r, f);
		state_suspect_text(s, sql, n_text, &x);
		flags = x.flags;
		if ((flags & SUSPECT_READS_SEQUENCE) != 0 && !discard_sequences(r))
			return STEP_FAILED;
	}
	if (!prepared_is_on(s)) {
		if (!replyq_sent(&s->backend->owed, FE_QUERY, false))
			return STEP_FAILED;
		return is_whole && s->backend->owed.mode != REPLYQ_SKIPPING && state_may_reset_startup(s) ? STEP_BRAKE
		                                                                                          : STEP_ON;
	}
	if (is_whole && (flags & (SUSPECT_PREPARES | SUSPECT_EXECUTES)) != 0) {
		enum prepared_verdict verdict = shown_query(r, sql, strnlen((const char *)sql, n));

		if (verdict != PREPARED_PASS)
			return verdict == PREPARED_WAIT ? STEP_STOP : STEP_FAILED;
	}
	if (!prepared_client_query(s))
		return STEP_FAILED;
	if (s->backend->owed.mode == REPLYQ_SKIPPING)
		return STEP_ON; /* nothing will be answered that could be waited for */
	return is_whole && (s->backend->shown != NULL || state_may_reset_startup(s) ||
	                    ((flags & SUSPECT_PREPARES) != 0 && prepared_may_discard(sql, n)))
	               ? STEP_BRAKE
	               : STEP_ON;
}

/* Of a portal whose text may name prepared statements. */
static enum step
relay_shown_execute(struct relay *r, const struct frame *f)
{
	if (f->avail < f->len && f->len <= WHOLE_MAX)
		return STEP_WAIT;
	if (!replyq_sent(&r->session->backend->owed, FE_EXECUTE, false))
		return STEP_FAILED;
	return f->avail < f->len || shown_execute(r, f) ? STEP_ON : STEP_FAILED;
}

static enum step
relay_message(struct relay *r, const struct frame *f)
{
	struct backend *b = r->session->backend;
	enum step step;

	switch (f->type) {
	case FE_PARSE:
	case FE_BIND:
	case FE_DESCRIBE:
	case FE_CLOSE:
		return relay_statement(r, f);
	case FE_QUERY:
		step = relay_query(r, f);
		break;
	case FE_EXECUTE:
		if (b->shown != NULL)
			return relay_shown_execute(r, f);
		__attribute__((fallthrough));
	default:
		step = replyq_sent(&b->owed, f->type, false) ? STEP_ON : STEP_FAILED;
		if (step == STEP_ON && f->type == FE_SYNC &&
		    (prepared_is_discarding(b) || b->shown != NULL || state_may_reset_startup(r->session)))
			step = STEP_BRAKE;
		break;
	}
	if ((step == STEP_ON || step == STEP_BRAKE) &&
	    (f->type == FE_QUERY || f->type == FE_SYNC || f->type == FE_FUNCTION_CALL))
		b->n_units_sent++;
	return step;
}

/* The backend turned out dead before anything of the unit was sent: another one takes it. */
static enum session_state
try_another(struct session *s, struct session_input *in)
{
	struct backend *b = s->backend;

	in->used = 0;
	s->msg_left = 0;
	s->backend = NULL;
	b->session = NULL;
	backend_close(b, CLOSE_SERVER_IDLE_LOST, NULL);
	return session_take_backend(s) == SESSION_ACTIVE ? relay_client(s, in) : SESSION_WAITING;
}

/* Looks at the messages from r->pos on, as far as they may go; answers the session's next state. */
static enum session_state
relay_messages(struct relay *r, size_t n)
{
	struct session *s = r->session;
	enum session_state next = s->state == SESSION_HELD ? SESSION_HELD : SESSION_ACTIVE;
	struct frame f;

	while (r->pos < n) {
		enum status status = frame_next(r->p + r->pos, n - r->pos, &f);
		enum step step;

		if (status == STATUS_MORE || !is_acceptable(s, &f, status, &next))
			return next;
		if (f.type == FE_TERMINATE)
			return session_leave(s, CLOSE_CLIENT_BYE);
		if (must_brake(s, f.type))
			return SESSION_BRAKED;
		step = relay_message(r, &f);
		if (step == STEP_WAIT)
			return next;
		if (step == STEP_STOP)
			return SESSION_BRAKED;
		if (step == STEP_FAILED)
			return session_close(s, CLOSE_NO_MEMORY, NULL);
		next = SESSION_ACTIVE;
		r->pos += f.avail;
		s->msg_left = f.len - f.avail;
		if (step == STEP_BRAKE)
			return SESSION_BRAKED;
	}
	return next;
}

enum session_state
relay_client(struct session *s, struct session_input *in)
{
	struct backend *b = s->backend;
	bool is_fresh = !replyq_is_open(&b->owed) && s->state != SESSION_HELD;
	struct relay r = {.session = s, .p = in->p, .pos = min_size(s->msg_left, in->n)};
	enum session_state next;
	enum status sent;

	if (is_fresh && s->msg_left == 0 && backend_differs(b, s) &&
	    !backend_apply_settings(b, s->settings, CHORE_APPLY))
		return session_close(s, CLOSE_NO_MEMORY, NULL);
	s->msg_left -= (uint32_t)r.pos;
	next = relay_messages(&r, in->n);
	in->used = next == SESSION_LEAVING || next == SESSION_CLOSED ? in->n : r.pos;
	/* what was queued ahead of a message that waits, or of which more must be seen, goes out all the same */
	if (r.pos == 0 && !(next != SESSION_CLOSED && s->backend == b && stream_is_blocked(&b->stream)))
		return next;
	counter_add(&s->pool->stats.bytes_received, r.pos);
	counter_add(&s->proxy->bytes_from_clients, r.pos);
	if (s->next_is_canceled && r.pos > 0 && next != SESSION_CLOSED) {
		s->next_is_canceled = false;
		cancel_begin(b, NULL);
	}
	sent = r.pos > r.from ? stream_send(&b->stream, r.p + r.from, r.pos - r.from) : stream_flush(&b->stream);
	if (sent == STATUS_CLOSED && is_fresh)
		return try_another(s, in);
	return next;
}

/* ---- to the client ---- */

void
session_reply(struct session *s, const uint8_t *p, size_t n)
{
	counter_add(&s->pool->stats.bytes_sent, n);
	counter_add(&s->proxy->bytes_to_clients, n);
	(void)stream_send(&s->stream, p, n); /* a dead client is told by the loop */
}
