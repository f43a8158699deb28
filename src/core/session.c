/* SPDX-License-Identifier: ISC */
/*
 * The session's states: one handler each, one writer (session_enter). What moves the
 * bytes is in session_relay.c, what happens until the login is done in
 * session_login.c, how a session ends in session_close.c.
 */
#include "core/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "core/backend.h"
#include "core/cancel.h"
#include "core/group_hosts.h"
#include "core/replication.h"
#include "wire/pgmsg.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRACE_US 1000000u /* for a client that ended its sending side: half-closed, or gone? */

enum timeout_kind {
	TIMEOUT_NONE,
	TIMEOUT_LOGIN,
	TIMEOUT_QUERY_WAIT,
	TIMEOUT_CLIENT_IDLE,
	TIMEOUT_HELD,
	TIMEOUT_GRACE,
	TIMEOUT_CANCEL,
};

typedef enum session_state (*handler)(struct session *s, enum session_event ev, struct session_input *in);

static const struct {
	const char *label;
	enum timeout_kind timeout;
	uint32_t moves;
} states[SESSION_STATE_N] = {
#define SESSION_STATE(name, label, timeout, moves) [name] = {label, timeout, moves},
#include "core/states.def"
};

const char *
session_state_label(enum session_state state)
{
	return states[state].label;
}

bool
session_may_move(enum session_state from, enum session_state to)
{
	return from != SESSION_CLOSED && (to == SESSION_CLOSED || (states[from].moves & (1u << to)) != 0);
}

static bool
waits_in_queue(enum session_state state)
{
	return state == SESSION_LOGIN_WAIT || state == SESSION_WAITING || state == SESSION_WAITING_EOF ||
	       state == SESSION_OWN_WAIT;
}

/* ---- the only writer ---- */

/* Outside a transaction: pin_idle_timeout ends it, and not client_idle_timeout. */
static bool
pin_is_limited(const struct session *s)
{
	const struct config *c = s->proxy->weir->config;
	int64_t idle_us = config_client_idle_timeout_us(c, s->pool->group->user_conf);

	return s->pins != 0 && c->pin_idle_timeout_us > 0 && (idle_us <= 0 || c->pin_idle_timeout_us < idle_us);
}

/* By its own idle_session_timeout, which no server process is there to watch, rather than by client_idle_timeout. */
static bool
idle_is_limited(const struct session *s)
{
	uint64_t own_us = settings_idle_limit_us(s->settings);
	int64_t idle_us;

	if (own_us == 0)
		return false;
	idle_us = config_client_idle_timeout_us(s->proxy->weir->config, s->pool->group->user_conf);
	return idle_us <= 0 || own_us < (uint64_t)idle_us;
}

static uint64_t
deadline_us(const struct session *s, enum timeout_kind kind)
{
	const struct config *c = s->proxy->weir->config;
	uint64_t now_us = clock_cached_us();
	int64_t limit_us = 0;

	switch (kind) {
	case TIMEOUT_NONE:
		return LOOP_NEVER;
	case TIMEOUT_LOGIN:
		/* one limit from accept to the end of the login, however many steps that has */
		return c->client_login_timeout_us > 0 ? s->connected_us + (uint64_t)c->client_login_timeout_us
		                                      : LOOP_NEVER;
	case TIMEOUT_QUERY_WAIT:
		limit_us = config_query_wait_timeout_us(c, s->pool->group->db, s->pool->group->user_conf);
		break;
	case TIMEOUT_CLIENT_IDLE:
		limit_us = idle_is_limited(s) ? (int64_t)settings_idle_limit_us(s->settings)
		                              : config_client_idle_timeout_us(c, s->pool->group->user_conf);
		break;
	case TIMEOUT_HELD:
		if (s->backend->owed.tx != TX_IDLE)
			limit_us = config_idle_transaction_timeout_us(c, s->pool->group->user_conf);
		else if (pin_is_limited(s))
			limit_us = c->pin_idle_timeout_us;
		else
			limit_us = config_client_idle_timeout_us(c, s->pool->group->user_conf);
		break;
	case TIMEOUT_GRACE:
		limit_us = GRACE_US;
		break;
	case TIMEOUT_CANCEL:
		limit_us = c->cancel_wait_timeout_us;
		break;
	}
	return limit_us > 0 ? now_us + (uint64_t)limit_us : LOOP_NEVER;
}

static void
set_timer(struct session *s, enum session_state state)
{
	uint64_t at_us = deadline_us(s, states[state].timeout);

	if (at_us == LOOP_NEVER)
		loop_timer_clear(&s->timer);
	else
		loop_timer_set(s->proxy->loop, &s->timer, at_us);
}

static void
session_enter(struct session *s, enum session_state next)
{
	enum session_state from = (enum session_state)s->state;

	invariant(session_may_move(from, next));
	if (log_enabled(LOG_TRACE_))
		log_event(LOG_TRACE_, "session_state", LOG_U("client", s->id), LOG_S("from", states[from].label),
		          LOG_I("from_n", from), LOG_S("to", states[next].label), LOG_I("to_n", next));
	if (s->is_queued && !waits_in_queue(next))
		pool_unwait(s->pool, s);
	s->state = (uint8_t)next;
	if (next == SESSION_CLOSED) {
		session_end(s);
		return;
	}
	set_timer(s, next);
	if (next == SESSION_IDLE)
		stream_trim(&s->stream);
	if (waits_in_queue(next) && !s->is_queued) {
		s->wait_since_us = clock_cached_us();
		pool_wait(s->pool, s);
	}
}

/* ---- handlers ---- */

/* What is the same in every state. */
static enum session_state
common_event(struct session *s, enum session_event ev, struct session_input *in)
{
	enum session_state stay = (enum session_state)s->state;

	switch (ev) {
	case EV_EOF:
		return session_close(s, CLOSE_CLIENT_EOF, NULL);
	case EV_HANGUP:
		return in->both ? session_close(s, CLOSE_CLIENT_BROKEN, NULL) : stay;
	case EV_BROKEN:
		return session_close(s, CLOSE_CLIENT_BROKEN, NULL);
	case EV_PHASE:
		return weir_phase(s->proxy->weir) == WEIR_STOPPING ? session_close(s, CLOSE_SHUTDOWN, NULL) : stay;
	case EV_REFUSED:
		return session_close(s, in->reason, NULL);
	case EV_SETTINGS_FAILED:
		return session_close(s, CLOSE_SETTINGS_FAILED,
		                     s->backend && s->backend->said ? s->backend->said->message : NULL);
	case EV_BACKEND_LOST:
		/* the server's own last words have been passed on already */
		return session_close(s, in->said ? CLOSE_SERVER_SAID : CLOSE_SERVER_LOST, NULL);
	case EV_BYTES:
	case EV_DRAINED:
	case EV_BACKEND:
	case EV_UNIT_DONE:
	case EV_CANCEL:
	case EV_CANCEL_DONE:
	case EV_PROGRESS:
	case EV_TIMEOUT:
	case SESSION_EVENT_N:
		break;
	}
	return stay;
}

static bool
is_ending(const struct session *s)
{
	return weir_phase(s->proxy->weir) >= WEIR_WAIT_SERVERS;
}

static enum session_state
on_startup(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BYTES)
		return login_startup(s, in);
	if (ev == EV_EOF)
		return session_close(s, CLOSE_CLIENT_SILENT, NULL);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_LOGIN_TIMEOUT, NULL);
	if (ev == EV_PHASE)
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_auth(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BYTES)
		return login_auth(s, in);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_LOGIN_TIMEOUT, NULL);
	if (ev == EV_PHASE)
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

/* The time in the queue is over: with the real reason, where the server could not be reached. */
static enum session_state
waited_too_long(struct session *s)
{
	struct group_failure f;

	if (group_failure(s->pool->group, &f) && group_n_live(s->pool->group) == 0) {
		session_keep_words(s, &f.said);
		return session_close(s, CLOSE_SERVER_LOGIN, NULL);
	}
	return session_close(s, CLOSE_QUERY_WAIT, NULL);
}

static enum session_state
on_login_wait(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BACKEND)
		return login_have_backend(s);
	if (ev == EV_TIMEOUT)
		return waited_too_long(s);
	if (ev == EV_HANGUP)
		return session_close(s, CLOSE_CLIENT_EOF, NULL);
	if (ev == EV_PHASE && is_ending(s))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_login_apply(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_UNIT_DONE)
		return login_applied(s);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_LOGIN_TIMEOUT, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_idle(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BYTES)
		return relay_idle(s, in);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_CLIENT_IDLE,
		                     idle_is_limited(s) ? "terminating connection due to idle-session timeout" : NULL);
	if (ev == EV_PHASE && is_ending(s))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_waiting(struct session *s, enum session_event ev, struct session_input *in)
{
	switch (ev) {
	case EV_BACKEND:
		return SESSION_ACTIVE;
	case EV_HANGUP:
		return in->both ? session_close(s, CLOSE_CLIENT_BROKEN, NULL) : SESSION_WAITING_EOF;
	case EV_CANCEL:
		s->at_unit_start = true;
		return SESSION_SKIPPING;
	case EV_TIMEOUT:
		return waited_too_long(s);
	case EV_PHASE:
		return is_ending(s) ? session_close(s, CLOSE_SHUTDOWN, NULL) : SESSION_WAITING;
	case EV_BYTES:
	case EV_EOF:
	case EV_BROKEN:
	case EV_DRAINED:
	case EV_UNIT_DONE:
	case EV_SETTINGS_FAILED:
	case EV_BACKEND_LOST:
	case EV_REFUSED:
	case EV_CANCEL_DONE:
	case EV_PROGRESS:
	case SESSION_EVENT_N:
		break;
	}
	return common_event(s, ev, in);
}

static enum session_state
on_waiting_eof(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BACKEND)
		return SESSION_ACTIVE;
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_CLIENT_EOF, NULL);
	if (ev == EV_PHASE && is_ending(s))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

/* The backend owes nothing; it was released before the reply went out, if it could be. */
static enum session_state
unit_done(struct session *s)
{
	if (s->backend == NULL)
		return SESSION_IDLE;
	if (session_is_in_forbidden_block(s))
		return session_close(s, CLOSE_STATEMENT_MODE, NULL);
	return SESSION_HELD;
}

/* No more requests will come: what is owed is delivered, then the session ends. */
enum session_state
session_leave(struct session *s, enum close_reason reason)
{
	const struct replyq *owed = s->backend ? &s->backend->owed : NULL;
	bool is_answered = owed == NULL || !replyq_is_open(owed);

	if (owed != NULL && (s->msg_left > 0 || replyq_is_half_sent(owed) || owed->in_doubt))
		return session_close(s, reason, NULL); /* half a request, or nobody knows: it may never be answered */
	if (is_answered && !stream_is_blocked(&s->stream))
		return session_close(s, reason, NULL);
	s->close_reason = (uint8_t)reason;
	return SESSION_LEAVING;
}

static enum session_state
on_active(struct session *s, enum session_event ev, struct session_input *in)
{
	enum session_state next;

	switch (ev) {
	case EV_BYTES:
		return relay_client(s, in);
	case EV_PROGRESS:
		return SESSION_ACTIVE;
	case EV_UNIT_DONE:
		next = unit_done(s);
		return next == SESSION_IDLE && is_ending(s) ? session_close(s, CLOSE_SHUTDOWN, NULL) : next;
	case EV_EOF:
		return session_leave(s, CLOSE_CLIENT_EOF);
	case EV_HANGUP:
	case EV_BROKEN:
	case EV_DRAINED:
	case EV_BACKEND:
	case EV_SETTINGS_FAILED:
	case EV_BACKEND_LOST:
	case EV_REFUSED:
	case EV_CANCEL:
	case EV_CANCEL_DONE:
	case EV_TIMEOUT:
	case EV_PHASE:
	case SESSION_EVENT_N:
		break;
	}
	return common_event(s, ev, in);
}

static enum close_reason
idle_too_long(const struct session *s)
{
	if (s->backend->owed.tx != TX_IDLE)
		return CLOSE_IDLE_TRANSACTION;
	return pin_is_limited(s) ? CLOSE_PIN_IDLE : CLOSE_CLIENT_IDLE;
}

static enum session_state
on_held(struct session *s, enum session_event ev, struct session_input *in)
{
	switch (ev) {
	case EV_BYTES:
		return relay_client(s, in);
	case EV_UNIT_DONE: /* a notice or parameter between the units */
		return s->backend == NULL ? SESSION_IDLE : SESSION_HELD;
	case EV_TIMEOUT:
		return session_close(s, idle_too_long(s), NULL);
	case EV_PHASE:
		/* its own backend outside a transaction: nothing to wait for */
		if (is_ending(s) && s->backend->owed.tx == TX_IDLE)
			return session_close(s, CLOSE_SHUTDOWN, NULL);
		break;
	case EV_EOF:
	case EV_HANGUP:
	case EV_BROKEN:
	case EV_DRAINED:
	case EV_BACKEND:
	case EV_SETTINGS_FAILED:
	case EV_BACKEND_LOST:
	case EV_REFUSED:
	case EV_CANCEL:
	case EV_CANCEL_DONE:
	case EV_PROGRESS:
	case SESSION_EVENT_N:
		break;
	}
	return common_event(s, ev, in);
}

static enum session_state
on_skipping(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BYTES)
		return relay_skip(s, in);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_CLIENT_IDLE, NULL);
	if (ev == EV_PHASE && is_ending(s))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_leaving(struct session *s, enum session_event ev, struct session_input *in)
{
	switch (ev) {
	case EV_UNIT_DONE:
	case EV_DRAINED:
	case EV_PROGRESS:
		return session_leave(s, (enum close_reason)s->close_reason);
	case EV_TIMEOUT:
		/* nobody can commit any more: a transaction will be rolled back, so it need not run on */
		if (s->backend != NULL && s->backend->owed.tx != TX_IDLE)
			return session_close(s, (enum close_reason)s->close_reason, NULL);
		return SESSION_LEAVING;
	case EV_EOF:
		return SESSION_LEAVING;
	case EV_BYTES:
	case EV_HANGUP:
	case EV_BROKEN:
	case EV_BACKEND:
	case EV_SETTINGS_FAILED:
	case EV_BACKEND_LOST:
	case EV_REFUSED:
	case EV_CANCEL:
	case EV_CANCEL_DONE:
	case EV_PHASE:
	case SESSION_EVENT_N:
		break;
	}
	return common_event(s, ev, in);
}

/* In the queue, or with a backend that logs in. */
static enum session_state
on_own_wait(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BACKEND)
		return login_have_own_backend(s);
	if (ev == EV_BACKEND_LOST) {
		session_keep_words(s, in->said);
		return session_close(s, CLOSE_SERVER_LOGIN, NULL);
	}
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_QUERY_WAIT, NULL);
	if (ev == EV_HANGUP)
		return session_close(s, CLOSE_CLIENT_EOF, NULL);
	if (ev == EV_PHASE && is_ending(s))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_tunnel(struct session *s, enum session_event ev, struct session_input *in)
{
	switch (ev) {
	case EV_BYTES:
		return replication_client_bytes(s, in);
	case EV_EOF:
		return replication_client_end(s, CLOSE_CLIENT_EOF);
	case EV_PROGRESS:
	case EV_PHASE:
		return replication_consider(s);
	case EV_BACKEND_LOST:
		return replication_server_end(s, in);
	case EV_HANGUP:
	case EV_BROKEN:
	case EV_DRAINED:
	case EV_BACKEND:
	case EV_UNIT_DONE:
	case EV_SETTINGS_FAILED:
	case EV_REFUSED:
	case EV_CANCEL:
	case EV_CANCEL_DONE:
	case EV_TIMEOUT:
	case SESSION_EVENT_N:
		break;
	}
	return common_event(s, ev, in);
}

static enum session_state
on_tunnel_end(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BROKEN || (ev == EV_HANGUP && in->both))
		return session_close(s, (enum close_reason)s->close_reason, NULL);
	if (ev == EV_BACKEND_LOST)
		return replication_server_end(s, in);
	if (ev == EV_EOF)
		return SESSION_TUNNEL_END;
	return common_event(s, ev, in);
}

static enum session_state
on_cancelling(struct session *s, enum session_event ev, struct session_input *in)
{
	if (ev == EV_BYTES) {
		in->used = in->n;
		return SESSION_CANCELLING;
	}
	if (ev == EV_EOF) /* some clients don't wait; the request goes on all the same */
		return session_close(s, CLOSE_CANCEL_DONE, NULL);
	if (ev == EV_CANCEL_DONE)
		return session_close(s, CLOSE_CANCEL_DONE, NULL);
	if (ev == EV_TIMEOUT)
		return session_close(s, CLOSE_CANCEL_TIMEOUT, NULL);
	return common_event(s, ev, in);
}

static enum session_state
on_closed(struct session *s, enum session_event ev, struct session_input *in)
{
	(void)s;
	(void)ev;
	(void)in;
	return SESSION_CLOSED;
}

static const handler handlers[SESSION_STATE_N] = {
	[SESSION_STARTUP] = on_startup,
	[SESSION_AUTH] = on_auth,
	[SESSION_LOGIN_WAIT] = on_login_wait,
	[SESSION_LOGIN_APPLY] = on_login_apply,
	[SESSION_IDLE] = on_idle,
	[SESSION_WAITING] = on_waiting,
	[SESSION_WAITING_EOF] = on_waiting_eof,
	[SESSION_ACTIVE] = on_active,
	[SESSION_BRAKED] = on_active,
	[SESSION_HELD] = on_held,
	[SESSION_SKIPPING] = on_skipping,
	[SESSION_LEAVING] = on_leaving,
	[SESSION_OWN_WAIT] = on_own_wait,
	[SESSION_TUNNEL] = on_tunnel,
	[SESSION_TUNNEL_END] = on_tunnel_end,
	[SESSION_CANCELLING] = on_cancelling,
	[SESSION_CLOSED] = on_closed,
};

void
session_step(struct session *s, enum session_event ev, struct session_input *in)
{
	enum session_state next;

	obj_check(s, SESSION_MAGIC);
	next = handlers[s->state](s, ev, in);
	if (next != s->state)
		session_enter(s, next);
	if (s->state != SESSION_CLOSED)
		session_flow(s);
}

/* ---- both directions run or stop ---- */

static void
set_paused(struct stream *st, bool pause)
{
	if (st->paused == pause)
		return;
	if (pause)
		stream_pause(st);
	else
		stream_resume(st);
}

static bool
reads_client(const struct session *s)
{
	switch ((enum session_state)s->state) {
	case SESSION_STARTUP:
	case SESSION_AUTH:
	case SESSION_CANCELLING:
		return true;
	case SESSION_IDLE:
	case SESSION_SKIPPING:
		/* who doesn't take his replies may not ask for more */
		return !stream_is_blocked(&s->stream);
	case SESSION_ACTIVE:
	case SESSION_TUNNEL:
		return !stream_is_blocked(&s->backend->stream);
	case SESSION_HELD:
		return !stream_is_blocked(&s->backend->stream) && !stream_is_blocked(&s->stream);
	case SESSION_LOGIN_WAIT:
	case SESSION_LOGIN_APPLY:
	case SESSION_WAITING:
	case SESSION_WAITING_EOF:
	case SESSION_BRAKED:
	case SESSION_LEAVING:
	case SESSION_OWN_WAIT:
	case SESSION_TUNNEL_END:
	case SESSION_CLOSED:
	case SESSION_STATE_N:
		break;
	}
	return false;
}

void
session_flow(struct session *s)
{
	if (s->state == SESSION_CLOSED)
		return;
	if (s->backend != NULL)
		set_paused(&s->backend->stream, stream_is_blocked(&s->stream));
	set_paused(&s->stream, !reads_client(s));
}

/* ---- events from outside ---- */

static struct session *
from_stream(struct stream *st)
{
	struct session *s = container_of(st, struct session, stream);

	obj_check(s, SESSION_MAGIC);
	return s;
}

/* A state may leave bytes to the next one: go on as long as there is progress. */
static size_t
on_bytes(struct stream *st, const uint8_t *p, size_t n)
{
	struct session *s = from_stream(st);
	size_t used = 0;

	for (;;) {
		enum session_state before = (enum session_state)s->state;
		struct session_input in = {.p = p + used, .n = n - used};

		session_step(s, EV_BYTES, &in);
		used += in.used;
		if (used == n || s->stream.paused || s->state == SESSION_CLOSED)
			return used;
		if (s->state == before)
			return used;
	}
}

static void
on_drained(struct stream *st)
{
	session_step(from_stream(st), EV_DRAINED, NULL);
}

static void
on_eof(struct stream *st)
{
	session_step(from_stream(st), EV_EOF, NULL);
}

static void
on_broken(struct stream *st, int err)
{
	(void)err;
	session_step(from_stream(st), EV_BROKEN, NULL);
}

static void
on_hangup(struct stream *st, bool both)
{
	struct session_input in = {.both = both};

	session_step(from_stream(st), EV_HANGUP, &in);
}

static const struct stream_ops session_ops = {
	.bytes = on_bytes, .drained = on_drained, .eof = on_eof, .broken = on_broken, .hangup = on_hangup};

static void
on_timeout(struct loop_timer *t)
{
	struct session *s = container_of(t, struct session, timer);

	obj_check(s, SESSION_MAGIC);
	session_step(s, EV_TIMEOUT, NULL);
}

void
session_new(struct proxy *p, int fd)
{
	struct session *s = slab_alloc(p->session_slab);

	if (s == NULL) {
		close(fd);
		counter_add(&p->n_sessions_ended, 1);
		atomic_fetch_sub(&p->weir->n_clients, 1);
		return;
	}
	s->magic = SESSION_MAGIC;
	s->state = SESSION_STARTUP;
	s->proxy = p;
	s->id = weir_next_id(p->weir);
	s->connected_us = s->request_us = clock_cached_us();
	s->timer.fire = on_timeout;
	s->timer.deadline_us = LOOP_NEVER;
	TAILQ_INSERT_TAIL(&p->sessions, s, link);
	counter_add(&p->n_sessions, 1);
	stream_init(&s->stream, p->loop, &session_ops, false);
	if (stream_open_fd(&s->stream, fd) != STATUS_OK) {
		session_enter(s, session_close(s, CLOSE_CLIENT_BROKEN, NULL));
		return;
	}
	set_timer(s, SESSION_STARTUP);
}

void
session_given(struct session *s, struct backend *b)
{
	struct session_input in = {.backend = b};

	session_step(s, EV_BACKEND, &in);
	/* what waited goes out now, before the loop does anything else */
	if (s->state == SESSION_ACTIVE)
		stream_offer(&s->stream);
}

void
session_refused(struct session *s, enum close_reason reason, const struct said *said)
{
	struct session_input in = {.reason = reason};

	session_keep_words(s, said);
	session_step(s, EV_REFUSED, &in);
}

void
session_backend_lost(struct session *s, enum close_reason reason, const struct said *said)
{
	struct session_input in = {.reason = reason, .said = said};

	s->backend = NULL;
	session_step(s, EV_BACKEND_LOST, &in);
}

void
session_settings_failed(struct session *s)
{
	session_step(s, EV_SETTINGS_FAILED, NULL);
}

void
session_unit_done(struct session *s)
{
	session_step(s, EV_UNIT_DONE, NULL);
}

void
session_progress(struct session *s)
{
	const struct replyq *owed = &s->backend->owed;

	/*
	 * At a boundary it waits until all is answered; else for an earlier unit: perhaps this was it. A client that sends no more
	 * may turn out to have begun a COPY FROM STDIN.
	 */
	if ((s->state == SESSION_BRAKED && !replyq_at_boundary(owed)) ||
	    (s->state == SESSION_LEAVING && replyq_is_half_sent(owed)))
		session_step(s, EV_PROGRESS, NULL);
	else
		session_flow(s);
}

bool
session_is_in_forbidden_block(const struct session *s)
{
	return s->backend != NULL && s->pool->group->mode == POOL_STATEMENT && s->backend->owed.tx != TX_IDLE;
}

bool
session_standard_strings(const struct session *s)
{
	enum settings_strings strings = settings_strings(s->settings);

	if (strings == STRINGS_UNSET && s->backend != NULL && s->backend->login != NULL)
		strings = settings_strings(s->backend->login);
	return strings != STRINGS_ESCAPED;
}

bool
session_wants_release(const struct session *s)
{
	return s->state != SESSION_LOGIN_APPLY && s->pool->group->mode != POOL_SESSION && s->pins == 0 &&
	       !state_is_open(s) && !s->parse_is_unbound && replyq_is_settled(&s->backend->owed) && s->msg_left == 0;
}

void
session_parameter_changed(struct session *s)
{
	struct settings *old = s->settings;

	s->settings = settings_ref(s->backend->label);
	settings_unref(&old);
}

void
session_cancels_over(struct session *s)
{
	/* else it waits for an answer, too */
	if (s->state == SESSION_BRAKED && !replyq_is_open(&s->backend->owed))
		session_step(s, EV_UNIT_DONE, NULL);
}

/* Something of the client's is under way there, not only of ours. */
static bool
serves_client(const struct backend *b)
{
	return b->state == BACKEND_TUNNEL || b->n_units_sent != b->n_units_done || !replyq_at_boundary(&b->owed);
}

bool
session_cancel(struct proxy *p, const struct mail_cancel *m)
{
	struct session *s;

	HASH_FIND(hh, p->sessions_by_key, &m->pid, sizeof(m->pid), s);
	if (s == NULL || !secret_equal(m->secret, m->secret_len, s->cancel_secret, s->secret_len))
		return false;
	if (s->backend != NULL && serves_client(s->backend)) {
		cancel_begin(s->backend, m);
		return true;
	}
	/* behind a hidden unit, and seen to be there */
	if (s->state == SESSION_BRAKED && s->stream.in.len > 0)
		s->next_is_canceled = true;
	session_step(s, EV_CANCEL, NULL);
	return false;
}

struct session *
session_find_id(struct proxy *p, uint64_t id)
{
	struct session *s;

	TAILQ_FOREACH (s, &p->sessions, link)
		if (s->id == id)
			return s;
	return NULL;
}
