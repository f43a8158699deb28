/* SPDX-License-Identifier: ISC */
/*
 * What comes from a server that is logged in: framed in place, matched with the reply
 * queue, and the client's part sent on in one piece. This is half of the hot path;
 * the other half is session_relay.c.
 */
#include "base/clock.h"
#include "base/log.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/prepared.h"
#include "core/session.h"
#include "core/shown.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX 32768u /* messages that pgweir reads itself are kept up to that size until they are whole */

static void
note_statistics(struct backend *b)
{
	struct pool *pool = b->pool;
	struct session *s = b->session;
	uint64_t now_us = clock_cached_us();

	counter_add(&pool->stats.n_queries, 1);
	b->n_units_done++;
	if (s == NULL)
		return;
	counter_add(&pool->stats.query_us, now_us - s->query_began_us);
	s->query_began_us = now_us; /* the next pipelined unit is served from here on */
	if (b->owed.tx == TX_IDLE) {
		counter_add(&pool->stats.n_xacts, 1);
		counter_add(&pool->stats.xact_us, now_us - s->xact_began_us);
		counter_add(&pool->proxy->n_transactions, 1);
		s->xact_began_us = now_us;
	}
}

/* A hidden unit that changes the label has ended. A session that logs in looks at b->said itself, when all is settled. */
static void
finish_apply(struct backend *b)
{
	enum backend_chore chore = (enum backend_chore)b->chore;

	b->chore = CHORE_NONE;
	if (b->said == NULL) {
		settings_unref(&b->label);
		b->label = b->applying;
		b->applying = NULL;
		if (chore == CHORE_APPLY && b->session != NULL && b->strays_of != b->session->id)
			b->strays_of = 0;
		return;
	}
	settings_unref(&b->applying);
	if (chore == CHORE_VALIDATE)
		return; /* its own transaction: the error has undone all of it, and the label is as it was */
	/* how far it came is not known: what it carries can't be told any more */
	b->retire = true;
	if (chore == CHORE_APPLY && b->session != NULL)
		session_settings_failed(b->session);
}

/* CHORE_VALIDATE: set_config() answers the value as the server spells it. */
static void
got_applied_value(struct backend *b, const uint8_t *body, size_t n)
{
	struct settings *asked = b->session ? b->session->settings : NULL;
	const char *name = asked ? settings_applied_name(b->label, asked, b->n_applied++) : NULL;
	char value[1024];
	struct reader r;
	uint32_t len;
	const uint8_t *text;

	reader_init(&r, body, n);
	if (name == NULL || settings_get(asked, name) == NULL || reader_u16(&r) != 1)
		return;
	len = reader_u32(&r);
	text = reader_bytes(&r, len);
	if (r.bad || text == NULL || len >= sizeof(value))
		return; /* what the client asked for stays as he wrote it */
	memcpy(value, text, len);
	value[len] = '\0';
	backend_note_parameter(b, name, value);
}

/* A value that the label will have, since it is being applied, is no news. */
static enum replyq_fate
got_parameter(struct backend *b, const uint8_t *body, size_t n, enum replyq_fate fate)
{
	struct parameter_status ps;
	struct session *s = b->session;
	bool hidden = fate == REPLYQ_HIDE, is_asking = s != NULL && b->probe != NULL;

	if (parse_parameter_status(body, n, &ps) != STATUS_OK)
		return fate;
	if (hidden && b->applying != NULL)
		return b->chore == CHORE_APPLY && backend_login_parameter_changed(b, ps.name, ps.value) ? REPLYQ_FORWARD
		                                                                                        : fate;
	if (is_asking || (s != NULL && !hidden))
		fate = state_withholds(s, ps.name) ? REPLYQ_HIDE : REPLYQ_FORWARD;
	if (b->state == BACKEND_IDLE || b->chore == CHORE_CONNECT_QUERY)
		backend_note_login_parameter(b, ps.name, ps.value);
	else
		backend_note_parameter(b, ps.name, ps.value);
	if (is_asking)
		state_parameter_was_restored(b, ps.name, ps.value);
	if (is_asking || (s != NULL && !hidden))
		session_parameter_changed(s);
	return fate;
}

/*
 * Commands after which the same text may have another result. A DO block may hold some; what functions do is found out
 * when a plan fails.
 */
static bool
may_change_schema(const uint8_t *tag, size_t n)
{
	static const char *const begins[] = {"ALTER ", "CREATE ", "DROP ", "IMPORT FOREIGN SCHEMA", "DO"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (n > strlen(begins[i]) && memcmp(tag, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* Tags are "DISCARD ALL" and "DEALLOCATE ALL". */
static void
got_complete(struct backend *b, const uint8_t *tag, size_t n, bool hidden)
{
	struct session *s = hidden ? NULL : b->session;

	if (hidden && b->probe != NULL)
		state_got_complete(b);
	if (s != NULL && n == 4 && memcmp(tag, "SET", 4) == 0)
		s->marks.n_sets++;
	if (s != NULL && n == 6 && memcmp(tag, "RESET", 6) == 0)
		s->marks.n_resets++;
	if (s != NULL && n == 12 && memcmp(tag, "DISCARD ALL", 12) == 0)
		state_discarded(s);
	if (n > 2 && tag[0] <= 'I' && may_change_schema(tag, n)) {
		b->changed_schema = true;
		group_schema_changed(b->pool->group);
	}
	if (n > 11 && tag[0] == 'D' &&
	    (memcmp(tag, "DISCARD ALL", 12) == 0 || (n > 14 && memcmp(tag, "DEALLOCATE ALL", 15) == 0)))
		prepared_discarded(b);
	else if (n == 11 && memcmp(tag, "DEALLOCATE", 11) == 0)
		shown_deallocated(b);
}

static void
got_error(struct backend *b, const uint8_t *body, size_t n, bool hidden)
{
	struct error_fields e;
	bool is_fatal;

	if (parse_error(body, n, &e) != STATUS_OK)
		return;
	is_fatal = e.severity != NULL && (strcmp(e.severity, "FATAL") == 0 || strcmp(e.severity, "PANIC") == 0);
	if (!hidden && b->session != NULL)
		b->session->marks.failed = true;
	if (hidden || is_fatal)
		backend_keep_error(b, body, n);
	if (e.routine != NULL && strcmp(e.routine, "RevalidateCachedQuery") == 0)
		prepared_plan_failed(b);
}

/*
 * The server ends the connection in a hidden unit. A session that is only watched does without. Settings that can't be applied end it on purpose (SETTINGS_OR_END), so
 * that nothing that was sent behind them runs without them; else its words are for the client.
 */
static enum replyq_fate
got_last_words(struct backend *b)
{
	if (state_is_only_watched(b)) {
		backend_close(b, CLOSE_SERVER_IDLE_LOST, b->said->message); /* before the client sends more */
		return REPLYQ_HIDE;
	}
	if (b->chore != CHORE_APPLY || b->applying == NULL || strncmp(b->said->sqlstate, "57P", 3) == 0)
		return REPLYQ_FORWARD;
	b->retire = true;
	session_settings_failed(b->session);
	return REPLYQ_HIDE;
}

static void
got_notice(struct backend *b, const uint8_t *body, size_t n)
{
	struct error_fields e;

	if (b->session != NULL || parse_error(body, n, &e) != STATUS_OK)
		return;
	log_event(LOG_DEBUG_, "server_notice", LOG_U("server", b->id), LOG_S("sqlstate", e.sqlstate),
	          LOG_S("msg", e.message));
}

/* Messages that pgweir reads itself must be whole. */
static bool
must_be_whole(const struct backend *b, char type)
{
	if (type == BE_PARAMETER_DESCRIPTION || type == BE_ROW_DESCRIPTION)
		return replyq_current(&b->owed) != NULL;
	return type == BE_READY || type == BE_ERROR || type == BE_NOTICE || type == BE_PARAMETER_STATUS ||
	       type == BE_COMMAND_COMPLETE || type == BE_NOTIFICATION ||
	       (type == BE_DATA_ROW && (b->applying != NULL || b->probe != NULL));
}

/* What a server may say at any time. */
static bool
may_come_unasked(char type)
{
	return type == BE_ERROR || type == BE_NOTICE || type == BE_PARAMETER_STATUS || type == BE_NOTIFICATION;
}

/* The end of a unit that may have reset startup settings: the client has it when they are back, and told of. */
static bool
must_hold_ready(const struct backend *b)
{
	const struct session *s = b->session;

	return s != NULL && s->login == NULL && s->state != SESSION_LEAVING && !replyq_is_open(&b->owed) &&
	       state_must_restore(s) && !session_is_in_forbidden_block(s);
}

/* The end of the client's unit, behind what was withheld in it. */
static void
end_unit(struct backend *b, struct buf *other)
{
	if (b->session != NULL)
		state_tell(b->session, other);
	build_ready(other, b->owed.tx);
}

/* What was asked last is answered. */
static void
finish_probe(struct backend *b, struct buf *other)
{
	state_probe_over(b);
	if (b->ready_is_held)
		end_unit(b, other);
	b->ready_is_held = false;
}

/* A ReadyForQuery: the unit at the head has been answered. */
static enum replyq_fate
got_ready(struct backend *b, const uint8_t *body, size_t n, struct buf *other)
{
	char tx;
	enum replyq_fate fate;
	bool is_hidden;

	if (parse_ready(body, n, &tx) != STATUS_OK)
		return REPLYQ_UNEXPECTED;
	fate = replyq_got(&b->owed, BE_READY, tx);
	is_hidden = fate == REPLYQ_HIDE;
	if (b->changed_schema && tx == TX_IDLE) {
		/* now others see it, too */
		b->changed_schema = false;
		group_schema_changed(b->pool->group);
	}
	if (fate == REPLYQ_FORWARD) {
		note_statistics(b);
		b->ready_is_held = must_hold_ready(b);
		if (b->ready_is_held)
			state_withhold(b->session);
		else if (b->session != NULL && b->session->marks.told != NULL)
			end_unit(b, other);
		else
			return fate;
		fate = REPLYQ_HIDE;
	} else if (is_hidden && b->applying != NULL) {
		finish_apply(b);
	} else if (is_hidden && b->probe != NULL) {
		finish_probe(b, other);
	}
	if (is_hidden && b->state != BACKEND_CLOSED)
		cancel_hidden_unit_over(b);
	return fate;
}

/*
 * Clients know their own notifications by the process id of their login, which was ours: in place, since both have the same
 * length.
 */
static void
sign_own_notification(struct backend *b, const uint8_t *body, size_t n)
{
	uint8_t *pid = (uint8_t *)(uintptr_t)body;

	if (b->session == NULL || n < sizeof(uint32_t) || frame_get_u32(pid) != b->server_pid)
		return;
	for (unsigned i = 0; i < sizeof(uint32_t); i++)
		pid[i] = (uint8_t)(b->session->cancel_pid >> (24 - 8 * i));
}

/* One message whose beginning is at p (whole, where it must be). What the client gets instead of it goes to `other`. */
static enum replyq_fate
got_message(struct backend *b, const struct frame *f, const uint8_t *p, struct buf *other)
{
	const uint8_t *body = p + MSG_HEADER;
	size_t n = f->avail - MSG_HEADER;
	enum replyq_fate fate;

	if (f->type == BE_READY)
		return got_ready(b, body, n, other);
	if (b->state == BACKEND_IDLE && !may_come_unasked(f->type))
		return REPLYQ_UNEXPECTED;
	if (f->type == BE_ERROR) /* before the queue forgets which message it was */
		prepared_reword_error(b, body, n, other);
	if ((f->type == BE_PARAMETER_DESCRIPTION || f->type == BE_ROW_DESCRIPTION || f->type == BE_NO_DATA) &&
	    f->avail == f->len)
		prepared_described(b, f->type, body, n);
	fate = replyq_got(&b->owed, f->type, 0);
	switch (f->type) {
	case BE_PARAMETER_STATUS:
		fate = got_parameter(b, body, n, fate);
		break;
	case BE_ERROR:
		got_error(b, body, n, fate == REPLYQ_HIDE);
		if (fate == REPLYQ_HIDE && b->said_fatal && b->session != NULL)
			fate = got_last_words(b);
		break;
	case BE_NOTICE:
		got_notice(b, body, n);
		break;
	case BE_NOTIFICATION:
		sign_own_notification(b, body, n);
		/* to who listens, also while the server is asked whether he does */
		if (b->session != NULL && b->probe != NULL)
			fate = REPLYQ_FORWARD;
		break;
	case BE_COMMAND_COMPLETE:
		got_complete(b, body, n, fate == REPLYQ_HIDE);
		break;
	case BE_COPY_IN:
		if (b->state == BACKEND_ABANDONED)
			backend_fail_copy(b);
		break;
	case BE_DATA_ROW:
		if (fate == REPLYQ_HIDE && b->chore == CHORE_VALIDATE && f->avail == f->len)
			got_applied_value(b, body, n);
		if (fate == REPLYQ_HIDE && b->probe != NULL && f->avail == f->len)
			state_got_row(b, body, n);
		__attribute__((fallthrough));
	case BE_COPY_DATA:
	case BE_COPY_OUT:
		/* the result of a client that has gone: PostgreSQL would fail to send it, too */
		if (b->state == BACKEND_ABANDONED && !b->cancel_sent) {
			b->cancel_sent = true;
			cancel_begin(b, NULL);
		}
		break;
	default:
		break;
	}
	return fate;
}

static bool
send_barrier(struct backend *b)
{
	struct buf out;
	bool ok;

	if (b->owed.in_doubt)
		b->retire = true; /* what of it was executed is not known, nor what is prepared there, then */
	buf_init(&out);
	build_close_statement(&out, "pgweir barrier: never prepared");
	build_sync(&out);
	ok = !out.failed && replyq_sent_barrier(&b->owed);
	if (ok)
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	buf_fini(&out);
	return ok;
}

/* On behalf of the client, whose Query is skipped. */
static bool
send_sync(struct backend *b)
{
	struct buf out;
	bool ok;

	buf_init(&out);
	build_sync(&out);
	ok = !out.failed && replyq_sent(&b->owed, FE_SYNC, false);
	if (ok)
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	buf_fini(&out);
	return ok;
}

/*
 * All that came has been looked at. The backend is passed on first, with the last part of the reply still in hand: the
 * next session's bytes are on their way to the server before this one's client is served.
 */
static void
end_of_bytes(struct backend *b, const uint8_t *tail, size_t n_tail)
{
	struct session *s = b->session;
	bool done = !replyq_is_open(&b->owed) && b->msg_left == 0;

	if (done && b->shown != NULL) {
		if (!shown_unit_over(b)) {
			backend_close(b, CLOSE_SERVER_UNCLEAN, NULL);
			return;
		}
		done = !replyq_is_open(&b->owed);
	}
	if (shown_wants_sync(b) && !send_sync(b)) {
		backend_close(b, CLOSE_SERVER_UNCLEAN, NULL);
		return;
	}
	if (done && s != NULL && s->login == NULL)
		switch (state_unit_over(s)) {
		case STATE_CLEAR:
			break;
		case STATE_ASKING:
			done = false;
			break;
		case STATE_FAILED:
			backend_close(b, CLOSE_SERVER_UNCLEAN, NULL);
			return;
		}
	if (done)
		b->n_units_done = b->n_units_sent; /* those that the server ignored will never be answered */
	if (replyq_wants_barrier(&b->owed) && !send_barrier(b)) {
		backend_close(b, CLOSE_SERVER_UNCLEAN, NULL);
		return;
	}
	if (s == NULL) {
		if (b->state == BACKEND_IDLE && b->said_fatal)
			backend_close(b, CLOSE_SERVER_IDLE_LOST, b->said->message); /* before anybody is given it */
		else if (done)
			backend_settled(b);
		else if (b->state == BACKEND_ABANDONED && replyq_is_half_sent(&b->owed))
			/* only now it turned out that an end was missing, as of what is skipped behind an error */
			backend_close(b, CLOSE_SERVER_UNCLEAN, "client disconnected in the middle of a request");
		return;
	}
	if (done && session_wants_release(s))
		backend_release(b);
	/* a transaction block that statement pooling forbids: the error comes instead of the reply */
	if (n_tail > 0 && !(done && session_is_in_forbidden_block(s)))
		session_reply(s, tail, n_tail);
	if (done)
		session_unit_done(s);
	else
		session_progress(s);
}

/* A message behind the reply with which the session gives the backend up. */
static enum replyq_fate
got_afterwards(struct backend *b, const struct frame *f)
{
	/* its last words: it is not to be given to anybody */
	if (f->type == BE_ERROR)
		b->retire = true;
	return may_come_unasked(f->type) ? REPLYQ_HIDE : REPLYQ_FORWARD;
}

/* Passes on p[0..n), the client's part of what came. */
static void
forward(struct backend *b, const uint8_t *p, size_t n)
{
	if (n > 0 && b->session != NULL)
		session_reply(b->session, p, n);
}

/* Bytes of a message that began in an earlier receive. */
static size_t
continue_message(struct backend *b, size_t n)
{
	size_t take = n < b->msg_left ? n : b->msg_left;

	b->msg_left -= (uint32_t)take;
	return take;
}

size_t
backend_relay_bytes(struct backend *b, const uint8_t *p, size_t n)
{
	size_t pos = 0, from = 0; /* [from, pos): seen, the client's, not yet sent on */
	struct frame f;
	struct buf other;
	bool is_over = false; /* the session's last unit is answered, what follows is said to nobody in particular */

	buf_init(&other);
	if (b->msg_left > 0) {
		pos = continue_message(b, n);
		if (b->msg_hidden)
			from = pos;
	}
	while (pos < n) {
		enum status status = frame_next(p + pos, n - pos, &f);
		enum replyq_fate fate;

		if (status == STATUS_MORE ||
		    (status == STATUS_OK && f.avail < f.len && must_be_whole(b, f.type) && f.len <= WHOLE_MAX))
			break;
		if (status != STATUS_OK) {
			forward(b, p + from, pos - from);
			backend_close(b, CLOSE_SERVER_GARBLED, "malformed message");
			return n;
		}
		fate = got_message(b, &f, p + pos, &other);
		if (b->state == BACKEND_CLOSED)
			return n;
		if (fate == REPLYQ_UNEXPECTED) {
			forward(b, p + from, pos - from);
			backend_close(b, CLOSE_SERVER_GARBLED, "a message that nothing asked for");
			return n;
		}
		if (is_over)
			fate = got_afterwards(b, &f);
		if (fate == REPLYQ_PARSED)
			((uint8_t *)(uintptr_t)p)[pos] =
				BE_PARSE_COMPLETE; /* in place: the two differ in their type only */
		if (fate == REPLYQ_HIDE || other.len > 0) {
			forward(b, p + from, pos - from);
			forward(b, buf_head(&other), other.len);
			buf_fini(&other);
			from = pos + f.avail;
		}
		b->msg_hidden = fate == REPLYQ_HIDE;
		b->msg_left = f.len - f.avail;
		pos += f.avail;
		is_over = is_over || (f.type == BE_READY && b->session != NULL && session_wants_release(b->session));
	}
	end_of_bytes(b, p + from, pos - from);
	return pos;
}
