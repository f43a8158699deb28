/* SPDX-License-Identifier: ISC */
/* How a backend changes hands: attach, release, abandon, park, adopt; and the hidden units in between. */
#include "base/clock.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/group_hosts.h"
#include "core/prepared.h"
#include "core/session.h"
#include "core/state.h"
#include "wire/build.h"
#include "wire/pgmsg.h"

#include <stdlib.h>

/* ---- hidden units ---- */

void
backend_forget_error(struct backend *b)
{
	free(b->said);
	b->said = NULL;
	b->said_fatal = false;
}

bool
backend_start_chore(struct backend *b, enum backend_chore chore, const char *sql)
{
	struct buf out;
	bool ok;

	backend_forget_error(b);
	b->chore = (uint8_t)chore;
	backend_enter(b, BACKEND_CLEANING);
	buf_init(&out);
	build_query(&out, sql);
	ok = !out.failed && replyq_sent(&b->owed, FE_QUERY, true);
	if (ok)
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	buf_fini(&out);
	if (!ok)
		backend_close(b, CLOSE_SERVER_UNCLEAN, "out of memory");
	return ok;
}

static bool
has_strays_of_others(const struct backend *b, const struct session *s)
{
	return b->strays_of != 0 && b->strays_of != s->id;
}

bool
backend_differs(const struct backend *b, const struct session *s)
{
	return b->label != s->settings || has_strays_of_others(b, s) || state_must_discard_sequences(b, s);
}

/* What RESET ALL leaves of a label. */
static struct settings *
without_resettable(const struct settings *label)
{
	static const char *const kept[] = {"session_authorization", "role"};
	struct settings *left = settings_empty();

	for (size_t i = 0; left != NULL && i < sizeof(kept) / sizeof(kept[0]); i++) {
		const char *value = settings_get(label, kept[i]);
		struct settings *more = value ? settings_with(left, kept[i], value) : settings_ref(left);

		settings_unref(&left);
		left = more;
	}
	return left;
}

/* label: a reference; NULL: no memory, then the old one is the last. */
static void
set_label(struct backend *b, struct settings *label)
{
	if (label == NULL) {
		b->retire = true;
		return;
	}
	settings_unref(&b->label);
	b->label = label;
}

/* Answers the number of messages in front of the Sync; 0: nothing is to be done, or out->failed. */
static size_t
build_apply(struct backend *b, struct settings *to, enum backend_chore chore, struct buf *out)
{
	bool sequences = chore == CHORE_APPLY && state_must_discard_sequences(b, b->session);
	bool strays = chore == CHORE_APPLY && has_strays_of_others(b, b->session);
	struct settings *from = strays ? without_resettable(b->label) : settings_ref(b->label);
	size_t n;

	if (from == NULL) {
		out->failed = true;
		return 0;
	}
	n = settings_build_forget(out, sequences, strays);
	n += settings_build_apply(out, from, to, chore == CHORE_VALIDATE ? SETTINGS_TRY : SETTINGS_OR_END);
	if (strays)
		n += settings_build_forgotten(out);
	if (n > 0)
		build_sync(out);
	if (sequences)
		b->sequences_of = b->session->id;
	settings_unref(&from);
	return n;
}

bool
backend_apply_settings(struct backend *b, struct settings *to, enum backend_chore chore)
{
	struct buf out;
	size_t n_messages;
	bool ok;

	backend_forget_error(b);
	buf_init(&out);
	n_messages = build_apply(b, to, chore, &out);
	ok = !out.failed;
	/* the types of the messages don't matter to the queue, only that they are extended ones */
	for (size_t i = 0; i < n_messages && ok; i++)
		ok = replyq_sent(&b->owed, FE_EXECUTE, true);
	if (ok && n_messages > 0)
		ok = replyq_sent(&b->owed, FE_SYNC, true);
	if (ok && n_messages == 0) {
		set_label(b, settings_ref(to)); /* no answer would do it */
	} else if (ok) {
		b->chore = (uint8_t)chore;
		b->applying = settings_ref(to);
		b->n_applied = 0;
		if (chore == CHORE_APPLY)
			counter_add(&b->pool->stats.n_replays, 1);
		stream_queue(&b->stream, buf_head(&out), out.len);
	}
	buf_fini(&out);
	return ok;
}

void
backend_check(struct backend *b)
{
	const char *sql = b->pool->group->weir->config->server_check_query;

	(void)backend_start_chore(b, CHORE_CHECK, strcmp(sql, "<empty>") == 0 ? "" : sql);
}

/* ---- sessions ---- */

void
backend_attach_session(struct backend *b, struct session *s)
{
	invariant(replyq_is_settled(&b->owed) && b->n_cancels == 0);
	backend_enter(b, BACKEND_ACTIVE);
	backend_forget_error(b);
	b->session = s;
	b->has_served = true;
	b->unnamed_of = NULL;
	state_sequences_attached(b, s);
	b->request_us = clock_cached_us();
	s->backend = b;
	s->xact_began_us = s->query_began_us = b->request_us;
}

/* What must be run before anyone else may have it; NULL: nothing. */
static const char *
reset_query(const struct backend *b)
{
	const char *sql = b->pool->group->weir->config->server_reset_query;

	if (!b->needs_reset)
		return NULL;
	return sql[0] ? sql : "DISCARD ALL";
}

/* Free and clean: to the next owner, unless its time is over. */
static void
pass_on(struct backend *b)
{
	if (weir_phase(b->pool->group->weir) >= WEIR_WAIT_SERVERS)
		backend_close(b, CLOSE_SERVER_SHUTDOWN, NULL);
	else if (b->retire)
		backend_close(b, CLOSE_SERVER_UNCLEAN, NULL);
	else if (b->has_served && clock_cached_us() >= b->retire_at_us)
		backend_close(b, CLOSE_SERVER_LIFETIME, NULL);
	else if (b->n_cancels > 0)
		backend_enter(b, BACKEND_BEING_CANCELED);
	else
		pool_give(b->pool, b);
}

/* Takes it from its session, and notes whether that may have left something behind. */
static void
detach_session(struct backend *b)
{
	struct session *s = b->session;

	prepared_session_gone(b);
	if (s->login != NULL)
		b->needs_reset = false; /* it only tried its settings, and those are in the label */
	else if (b->pool->group->mode == POOL_SESSION)
		b->needs_reset = b->pool->group->weir->config->server_reset_query[0] != '\0';
	else
		b->needs_reset =
			s->pins != 0 || state_is_open(s) || b->pool->group->weir->config->server_reset_query_always;
	if ((s->pins & (PIN_LOADED | PIN_SEED | PIN_PRIVATE)) != 0)
		b->retire = true; /* no reset ends that */
	s->backend = NULL;
	b->session = NULL;
}

/* The hidden unit of a backend without session has been answered. */
static void
finish_chore(struct backend *b)
{
	enum backend_chore chore = (enum backend_chore)b->chore;

	b->chore = CHORE_NONE;
	if (b->said != NULL || b->owed.tx != TX_IDLE) {
		backend_close(b, CLOSE_SERVER_CLEAN_FAILED, b->said ? b->said->message : NULL);
		return;
	}
	if (chore == CHORE_CONNECT_QUERY)
		group_set_welcome(b->pool->group, b->host, b->login);
	if (chore == CHORE_UNLIMIT)
		set_label(b, settings_without(b->label, "idle_session_timeout"));
	if (chore == CHORE_RESET) {
		set_label(b, settings_empty());
		b->needs_reset = false;
		b->strays_of = 0;
		b->sequences_of = 0;
	}
	backend_release(b);
}

void
backend_release(struct backend *b)
{
	const char *sql;

	invariant(replyq_is_settled(&b->owed) && b->msg_left == 0);
	if (b->session != NULL)
		detach_session(b);
	b->cancel_sent = false;
	cancel_withdraw(b);
	sql = reset_query(b);
	if (sql != NULL && !b->retire && b->n_cancels == 0)
		(void)backend_start_chore(b, CHORE_RESET, sql);
	else if (settings_idle_limit_us(b->label) > 0 && !b->retire && b->n_cancels == 0)
		/* idle, the server would end it, perhaps just when another session has it */
		(void)backend_start_chore(b, CHORE_UNLIMIT, "RESET idle_session_timeout");
	else
		pass_on(b);
}

void
backend_cancel_finished(struct backend *b)
{
	invariant(b->n_cancels > 0);
	b->n_cancels--;
	if (b->n_cancels > 0)
		return;
	if (b->session != NULL)
		session_cancels_over(b->session);
	else if (b->state == BACKEND_BEING_CANCELED)
		backend_release(b);
	else if (b->state == BACKEND_ABANDONED && !replyq_is_open(&b->owed) && b->msg_left == 0)
		backend_settled(b);
}

void
backend_settled(struct backend *b)
{
	switch ((enum backend_state)b->state) {
	case BACKEND_ABANDONED:
		cancel_withdraw(b);
		if (b->n_cancels > 0)
			return; /* it could hit the ROLLBACK: go on when it is over */
		if (b->owed.tx != TX_IDLE)
			(void)backend_start_chore(b, CHORE_ROLLBACK, "ROLLBACK");
		else
			backend_release(b);
		return;
	case BACKEND_CLEANING:
		finish_chore(b);
		return;
	case BACKEND_CONNECTING:
	case BACKEND_LOGIN:
	case BACKEND_IDLE:
	case BACKEND_ACTIVE:
	case BACKEND_BEING_CANCELED:
	case BACKEND_TUNNEL:
	case BACKEND_CLOSED:
	case BACKEND_STATE_N:
		return;
	}
}

/* A half-sent message or unit can't be completed for a client that has gone; PostgreSQL would abort it, too. */
static bool
is_beyond_repair(const struct backend *b, bool mid_message)
{
	return mid_message || b->owed.in_doubt || stream_is_blocked(&b->stream) || b->applying != NULL ||
	       (replyq_is_half_sent(&b->owed) && !replyq_copy_wants_data(&b->owed));
}

void
backend_fail_copy(struct backend *b)
{
	struct buf out;
	uint32_t mark;
	bool ok;

	if (!replyq_copy_wants_data(&b->owed))
		return; /* the client sent all of it */
	buf_init(&out);
	mark = msg_begin(&out, FE_COPY_FAIL);
	msg_str(&out, "client disconnected");
	msg_end(&out, mark);
	build_sync(&out); /* for a COPY by the extended protocol; else one more ReadyForQuery, in order */
	ok = !out.failed && replyq_sent(&b->owed, FE_COPY_FAIL, true) && replyq_sent(&b->owed, FE_SYNC, true);
	if (ok)
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	buf_fini(&out);
	if (!ok)
		backend_close(b, CLOSE_SERVER_UNCLEAN, "out of memory");
}

/* Nobody else may have it. A goodbye in the middle of a message would be taken for part of it. */
static void
end_own(struct backend *b, bool mid_message)
{
	b->session->backend = NULL;
	b->session = NULL;
	if (mid_message)
		stream_close(&b->stream);
	backend_close(b, CLOSE_REPLICATION_OVER, NULL);
}

void
backend_abandon(struct backend *b)
{
	bool mid_message = b->session->msg_left > 0, in_transaction = b->owed.tx != TX_IDLE;
	bool is_answered = !replyq_is_open(&b->owed) && b->msg_left == 0;

	if (b->is_own) {
		end_own(b, mid_message);
		return;
	}
	detach_session(b);
	if (is_beyond_repair(b, mid_message)) {
		backend_close(b, CLOSE_SERVER_UNCLEAN, "client disconnected in the middle of a request");
		return;
	}
	backend_enter(b, BACKEND_ABANDONED);
	stream_resume(&b->stream);
	if (is_answered) {
		backend_settled(b);
	} else if (b->owed.mode == REPLYQ_COPY_IN) {
		backend_fail_copy(b);
	} else if (in_transaction || b->msg_left > 0) {
		b->cancel_sent = true;
		cancel_begin(b, NULL);
	}
}

/* ---- pools and proxies ---- */

void
backend_park(struct backend *b)
{
	if (b->state == BACKEND_IDLE)
		return;
	backend_enter(b, BACKEND_IDLE);
	b->idle_since_us = clock_cached_us();
}

void
backend_adopt(struct backend *b, struct pool *pool)
{
	struct proxy *p = pool->proxy;

	b->pool = pool;
	TAILQ_INSERT_TAIL(&p->backends, b, link);
	counter_add(&p->n_backends, 1);
	pool_count_backend(pool, b, 1);
	if (stream_attach(&b->stream, p->loop) != STATUS_OK) {
		pool_adopt_idle(pool, b);
		backend_close(b, CLOSE_SERVER_IDLE_LOST, "no descriptor for it");
		return;
	}
	/* it may have said its last words on the way */
	pool_adopt_idle(pool, b);
	stream_receive(&b->stream);
	if (b->state != BACKEND_IDLE)
		return;
	pool_remove_idle(pool, b);
	pool_receive(pool, b);
}
