/* SPDX-License-Identifier: ISC */
#include "core/backend.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "core/cancel.h"
#include "core/group_hosts.h"
#include "core/prepared.h"
#include "core/prepared_set.h"
#include "core/replication.h"
#include "core/session.h"
#include "core/shown.h"
#include "core/socket_options.h"
#include "core/state.h"
#include "net/resolve.h"
#include "wire/build.h"
#include "wire/parse.h"
#include "wire/pgmsg.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABANDONED_US 10000000u /* how long an abandoned transaction may take to be cancelled and rolled back */
#define CLEANING_US 15000000u  /* and a reset, check or connect query */

enum timeout_kind { TIMEOUT_NONE, TIMEOUT_CONNECT, TIMEOUT_ABANDONED, TIMEOUT_CLEANING, TIMEOUT_CANCEL };

static const struct {
	const char *label;
	enum timeout_kind timeout;
	uint32_t moves;
} states[BACKEND_STATE_N] = {
#define BACKEND_STATE(name, label, timeout, moves) [name] = {label, timeout, moves},
#include "core/states.def"
};

const char *
backend_state_label(enum backend_state state)
{
	return states[state].label;
}

static uint64_t
timeout_us(const struct backend *b, enum timeout_kind kind)
{
	const struct config *c = b->pool->group->weir->config;

	switch (kind) {
	case TIMEOUT_CONNECT:
		return (uint64_t)c->server_connect_timeout_us;
	case TIMEOUT_ABANDONED:
		/* PostgreSQL finishes a statement whose client has gone; only transactions are bounded */
		return b->owed.tx == TX_IDLE && replyq_at_boundary(&b->owed) ? 0 : ABANDONED_US;
	case TIMEOUT_CLEANING:
		return CLEANING_US;
	case TIMEOUT_CANCEL:
		return (uint64_t)c->cancel_wait_timeout_us;
	case TIMEOUT_NONE:
		break;
	}
	return 0;
}

void
backend_enter(struct backend *b, enum backend_state next)
{
	uint64_t limit_us;

	if (next == b->state)
		return;
	invariant(next == BACKEND_CLOSED || (states[b->state].moves & (1u << next)) != 0);
	if (log_enabled(LOG_TRACE_))
		log_event(LOG_TRACE_, "server_state", LOG_U("server", b->id), LOG_S("from", states[b->state].label),
		          LOG_I("from_n", b->state), LOG_S("to", states[next].label), LOG_I("to_n", next),
		          LOG_U("cancels", b->n_cancels));
	b->state = (uint8_t)next;
	limit_us = timeout_us(b, states[next].timeout);
	if (limit_us > 0)
		loop_timer_set(b->pool->proxy->loop, &b->timer, clock_cached_us() + limit_us);
	else
		loop_timer_clear(&b->timer);
}

/* ---- events of the stream ---- */

static struct backend *
from_stream(struct stream *st)
{
	struct backend *b = container_of(st, struct backend, stream);

	obj_check(b, BACKEND_MAGIC);
	return b;
}

static size_t
on_bytes(struct stream *st, const uint8_t *p, size_t n)
{
	struct backend *b = from_stream(st);

	if (b->state == BACKEND_LOGIN)
		return backend_login_bytes(b, p, n);
	if (b->state == BACKEND_TUNNEL)
		return replication_server_bytes(b, p, n);
	return backend_relay_bytes(b, p, n);
}

static void
on_drained(struct stream *st)
{
	struct backend *b = from_stream(st);

	if (b->session != NULL)
		session_flow(b->session);
}

static void
on_gone(struct backend *b, const char *why)
{
	switch ((enum backend_state)b->state) {
	case BACKEND_CONNECTING:
		backend_close(b, CLOSE_CONNECT_FAILED, why);
		return;
	case BACKEND_LOGIN:
		backend_close(b, CLOSE_LOGIN_FAILED, why);
		return;
	case BACKEND_IDLE:
		backend_close(b, CLOSE_SERVER_IDLE_LOST, why);
		return;
	case BACKEND_ACTIVE:
	case BACKEND_ABANDONED:
	case BACKEND_CLEANING:
	case BACKEND_BEING_CANCELED:
	case BACKEND_TUNNEL:
		backend_close(b, CLOSE_SERVER_LOST, b->said_fatal && b->said ? b->said->message : why);
		return;
	case BACKEND_CLOSED:
	case BACKEND_STATE_N:
		return;
	}
}

static void
on_eof(struct stream *st)
{
	on_gone(from_stream(st), NULL);
}

static void
on_broken(struct stream *st, int err)
{
	on_gone(from_stream(st), strerror(err));
}

static void
on_connected(struct stream *st)
{
	struct backend *b = from_stream(st);

	backend_enter(b, BACKEND_LOGIN);
	if (!backend_login_begin(b))
		backend_close(b, CLOSE_LOGIN_FAILED, "out of memory");
}

static const struct stream_ops backend_ops = {
	.bytes = on_bytes, .drained = on_drained, .eof = on_eof, .broken = on_broken, .connected = on_connected};

static void
on_timeout(struct loop_timer *t)
{
	struct backend *b = container_of(t, struct backend, timer);

	obj_check(b, BACKEND_MAGIC);
	switch ((enum backend_state)b->state) {
	case BACKEND_CONNECTING:
	case BACKEND_LOGIN:
		backend_close(b, CLOSE_CONNECT_TIMEOUT, NULL);
		return;
	case BACKEND_ABANDONED:
	case BACKEND_CLEANING:
		backend_close(b, CLOSE_SERVER_CLEAN_FAILED, "timeout");
		return;
	case BACKEND_BEING_CANCELED:
		backend_close(b, CLOSE_CANCEL_TIMEOUT, NULL);
		return;
	case BACKEND_IDLE:
	case BACKEND_ACTIVE:
	case BACKEND_TUNNEL:
	case BACKEND_CLOSED:
	case BACKEND_STATE_N:
		return;
	}
}

/* ---- opening ---- */

static void
log_backend(const struct backend *b, enum log_level level, const char *event, const char *msg)
{
	char addr[ADDR_TEXT_MAX];

	log_event(level, event, LOG_U("server", b->id), LOG_U("proxy", b->pool->proxy->index),
	          LOG_S("db", b->pool->group->database), LOG_S("user", b->pool->group->user),
	          LOG_S("addr", addr_text(&b->peer, addr)), LOG_U("pid", b->server_pid), LOG_S("msg", msg));
}

static void
connect_to(struct backend *b, const struct addr *to)
{
	char msg[ADDR_TEXT_MAX + 64], addr[ADDR_TEXT_MAX];

	b->peer = *to;
	stream_init(&b->stream, b->pool->proxy->loop, &backend_ops, true);
	if (stream_connect(&b->stream, to) != STATUS_OK) {
		backend_close(b, CLOSE_CONNECT_FAILED, strerror(errno));
		return;
	}
	if (!addr_is_unix(to))
		socket_tune(b->pool->group->weir->config, b->stream.fd);
	if (b->pool->group->weir->config->log_connections) {
		snprintf(msg, sizeof(msg), "new connection to server %s", addr_text(&b->peer, addr));
		log_backend(b, LOG_INFO_, "server_connect", msg);
	}
}

/* The resolver's answer, in this proxy's loop. */
static void
on_resolved(struct resolve *r)
{
	struct backend *b = obj_from(resolve_owner(r), backend, BACKEND_MAGIC);
	const struct addr *to = resolve_addr(r);

	if (b->state == BACKEND_CONNECTING) {
		if (to != NULL)
			connect_to(b, to);
		else
			backend_close(b, CLOSE_DNS_FAILED, resolve_error(r));
	}
	b->resolve = NULL;
}

/* Deferred: opening fails or succeeds from the loop, never inside the pool's call. */
static void
begin_connect(struct loop_task *t)
{
	struct backend *b = container_of(t, struct backend, open_task);
	const struct host_conf *conf = b->pool->group->hosts[b->host].conf;
	const struct config *c = b->pool->group->weir->config;
	const char *host = conf->name ? conf->name : c->unix_socket_dir;
	struct addr to;

	if (host[0] == '/' || host[0] == '@' || host[0] == '\0') {
		if (addr_from_unix_dir(&to, host[0] ? host : "/tmp", conf->port) == STATUS_OK)
			connect_to(b, &to);
		else
			backend_close(b, CLOSE_CONNECT_FAILED, "the path of the server's socket is too long");
		return;
	}
	if (addr_from_ip(&to, host, conf->port)) {
		connect_to(b, &to);
		return;
	}
	b->resolve = resolve_begin(b->pool->group->weir->resolver, b->pool->proxy->mailbox, host, conf->port,
	                           on_resolved, b);
	if (b->resolve == NULL)
		backend_close(b, CLOSE_DNS_FAILED, "out of memory");
}

/* Ends are spread over the last fifth of server_lifetime, so that connections of one moment don't all end together. */
static uint64_t
lifetime_end_us(const struct group *g, uint64_t now_us)
{
	uint64_t lifetime_us = (uint64_t)config_server_lifetime_us(g->weir->config, g->db);
	uint32_t r = 0;

	(void)RAND_bytes((unsigned char *)&r, sizeof(r));
	return now_us + lifetime_us - (lifetime_us / 5) * (r % 1000) / 1000;
}

void
backend_reconnect(struct backend *b)
{
	backend_login_free(b);
	backend_forget_error(b);
	stream_close(&b->stream);
	backend_enter(b, BACKEND_CONNECTING);
	loop_defer(b->pool->proxy->loop, &b->open_task);
}

/* NULL: no memory. */
static struct backend *
backend_new(struct pool *pool, struct group_slot slot)
{
	struct proxy *p = pool->proxy;
	struct backend *b = calloc(1, sizeof(*b)); /* not a slab's: it may end in another thread */
	struct settings *empty = settings_empty();

	if (b == NULL || empty == NULL) {
		free(b);
		settings_unref(&empty);
		return NULL;
	}
	b->magic = BACKEND_MAGIC;
	b->pool = pool;
	b->host = slot.host;
	b->is_trial = slot.is_trial;
	b->label = empty;
	b->id = weir_next_id(pool->group->weir);
	b->connected_us = b->request_us = clock_cached_us();
	b->retire_at_us = lifetime_end_us(pool->group, b->connected_us);
	b->timer.fire = on_timeout;
	b->timer.deadline_us = LOOP_NEVER;
	b->open_task.run = begin_connect;
	b->minor = PROTO_3_2 & 0xffff;
	replyq_init(&b->owed, TX_IDLE);
	b->owed.settle = prepared_settle;
	stream_init(&b->stream, p->loop, &backend_ops, true);
	TAILQ_INSERT_TAIL(&p->backends, b, link);
	counter_add(&p->n_backends, 1);
	pool_count_backend(pool, b, 1);
	loop_timer_set(p->loop, &b->timer, b->connected_us + timeout_us(b, TIMEOUT_CONNECT));
	loop_defer(p->loop, &b->open_task);
	return b;
}

void
backend_open(struct pool *pool, struct group_slot slot)
{
	struct backend *b = backend_new(pool, slot);
	struct said said;

	if (b != NULL) {
		pool_count_opening(pool, b, 1);
		return;
	}
	said_set(&said, "53200", "out of memory");
	group_failed(pool->group, slot.host, CLOSE_NO_MEMORY, false, &said);
	group_return_token(pool->group, slot.host, true, false);
}

void
backend_open_own(struct pool *pool, struct session *s, struct group_slot slot)
{
	struct backend *b = backend_new(pool, slot);
	struct said said;

	if (b != NULL) {
		b->is_own = true;
		b->session = s;
		s->backend = b;
		return;
	}
	group_return_token(pool->group, slot.host, true, true);
	said_set(&said, "53200", "out of memory");
	session_refused(s, CLOSE_NO_MEMORY, &said);
}

static bool
is_opening(const struct backend *b)
{
	return b->state == BACKEND_CONNECTING || b->state == BACKEND_LOGIN;
}

void
backend_logged_in(struct backend *b)
{
	const struct database_conf *db = b->pool->group->db;

	backend_login_free(b);
	if (b->is_own) {
		group_login_done(b->pool->group, b->host, true);
		backend_enter(b, BACKEND_TUNNEL);
		session_given(b->session, b);
		return;
	}
	pool_count_opening(b->pool, b, -1);
	group_succeeded(b->pool->group, b->host);
	group_set_welcome(b->pool->group, b->host, b->login);
	group_login_done(b->pool->group, b->host, false);
	if (db->connect_query != NULL && db->connect_query[0] != '\0')
		(void)backend_start_chore(b, CHORE_CONNECT_QUERY, db->connect_query);
	else
		backend_release(b);
}

/* ---- closing ---- */

static void
bury(struct loop_grave *g)
{
	struct backend *b = container_of(g, struct backend, grave);
	prepared_set_free(&b->prepared);
	shown_free(&b->shown);
	state_probe_free(&b->probe);
	settings_unref(&b->label);
	settings_unref(&b->login);
	settings_unref(&b->applying);
	free(b->said);
	secret_wipe_bytes(b->key, sizeof(b->key));
	b->magic = 0;
	free(b);
}

/* Why it could not be opened: in the server's words, if it said any. */
static struct said
failure_of(const struct backend *b, enum close_reason reason, const char *detail)
{
	const struct close_row *row = close_row(reason);
	char message[256];
	struct said said;

	if (b->said != NULL)
		return *b->said;
	snprintf(message, sizeof(message), detail ? "%s: %s" : "%s", row->text, detail);
	said_set(&said, row->sqlstate, message);
	return said;
}

/* Nobody was there to say yes or no: no answer, or a server that is just starting or stopping. */
static bool
is_out_of_reach(const struct backend *b)
{
	return b->said == NULL || strncmp(b->said->sqlstate, "57P0", 4) == 0;
}

/* Tells the group why no connection could be had, for those who wait. */
static void
note_failure(struct backend *b, const struct said *said)
{
	/* out of room is a state that passes, too */
	bool is_final = !is_out_of_reach(b) && strcmp(b->said->sqlstate, "53300") != 0;

	group_failed(b->pool->group, b->host, CLOSE_SERVER_LOGIN, is_final, said);
}

/* A session that waits for its own connection has it from another host, where there is one that works. */
static bool
is_elsewhere(const struct backend *b)
{
	struct group *g = b->pool->group;

	return b->is_own && b->session != NULL && is_opening(b) && is_out_of_reach(b) && g->n_hosts > 1 &&
	       weir_phase(g->weir) == WEIR_RUNNING && group_hosts_state(g).well != 0;
}

static void
log_close(const struct backend *b, enum close_reason reason, const char *detail)
{
	const struct close_row *row = close_row(reason);
	uint64_t age_s = (clock_cached_us() - b->connected_us) / 1000000;
	char msg[400];

	snprintf(msg, sizeof(msg), "closing because: %s%s%s (age=%llus)", row->text, detail ? ": " : "",
	         detail ? detail : "", (unsigned long long)age_s);
	if (row->level < LOG_INFO_ || b->pool->group->weir->config->log_disconnections)
		log_backend(b, row->level, "server_close", msg);
	if (b->said != NULL && is_opening(b)) {
		snprintf(msg, sizeof(msg), "server login failed: %s %s", b->said->severity, b->said->message);
		log_backend(b, LOG_WARN_, "server_login", msg);
	}
}

/* A farewell where the server is listening for one. */
static void
say_goodbye(struct backend *b)
{
	struct buf out;

	if (is_opening(b) || replyq_is_open(&b->owed) || b->msg_left > 0 || stream_is_blocked(&b->stream))
		return;
	buf_init(&out);
	build_terminate(&out);
	if (!out.failed)
		(void)stream_send(&b->stream, buf_head(&out), out.len);
	buf_fini(&out);
}

void
backend_close(struct backend *b, enum close_reason reason, const char *detail)
{
	struct pool *pool = b->pool;
	struct proxy *p = pool->proxy;
	struct session *s = b->session;
	bool was_opening = is_opening(b);
	const struct said *told = b->said_fatal ? b->said : NULL; /* last words that its client has been sent */
	bool elsewhere, is_missed;
	struct said failure;

	if (b->state == BACKEND_CLOSED)
		return;
	log_close(b, reason, detail);
	if (b->state == BACKEND_IDLE)
		pool_remove_idle(pool, b);
	if (was_opening)
		failure = failure_of(b, reason, detail);
	else
		say_goodbye(b);
	if (was_opening && !b->is_own) {
		pool_count_opening(pool, b, -1);
		note_failure(b, &failure);
	} else if (was_opening && is_out_of_reach(b) && pool->group->n_hosts > 1) {
		note_failure(b, &failure);
	}
	elsewhere = is_elsewhere(b);
	is_missed = !state_is_only_watched(b);
	/* what it will never answer is undone while its session is still there */
	replyq_fini(&b->owed);
	b->session = NULL;
	cancel_forget_backend(b);
	if (b->resolve != NULL)
		resolve_abandon(&b->resolve);
	loop_cancel_task(p->loop, &b->open_task);
	backend_login_free(b);
	stream_close(&b->stream);
	backend_enter(b, BACKEND_CLOSED);
	loop_timer_remove(p->loop, &b->timer);
	TAILQ_REMOVE(&p->backends, b, link);
	counter_add(&p->n_backends, (uint64_t)-1);
	pool_count_backend(pool, b, -1);
	if (s != NULL && !elsewhere && is_missed) {
		session_backend_lost(s, reason, was_opening ? &failure : told);
	} else if (s != NULL && !elsewhere) {
		s->backend = NULL;
		session_unit_done(s);
	}
	loop_bury(p->loop, &b->grave, bury);
	group_return_token(pool->group, b->host, was_opening, b->is_own);
	if (elsewhere) {
		s->backend = NULL;
		pool_wait(pool, s);
	}
	if (was_opening && !b->is_own)
		pool_open_failed(pool);
}

/* ---- what the server says of itself ---- */

void
backend_keep_error(struct backend *b, const uint8_t *body, size_t n)
{
	struct error_fields e;

	if (parse_error(body, n, &e) != STATUS_OK)
		return;
	if (b->said == NULL && (b->said = calloc(1, sizeof(*b->said))) == NULL)
		return;
	said_set(b->said, e.sqlstate ? e.sqlstate : "XX000", e.message ? e.message : "(no message)");
	str_copy(b->said->severity, sizeof(b->said->severity), e.severity ? e.severity : "ERROR");
	str_copy(b->said->detail, sizeof(b->said->detail), e.detail ? e.detail : "");
	str_copy(b->said->hint, sizeof(b->said->hint), e.hint ? e.hint : "");
	b->said_fatal = strcmp(b->said->severity, "FATAL") == 0 || strcmp(b->said->severity, "PANIC") == 0;
}

/* The server's default has changed (reload), or the connect query set it. */
void
backend_note_login_parameter(struct backend *b, const char *name, const char *value)
{
	struct settings *next;

	if (settings_get(b->label, name) != NULL)
		return; /* hidden behind the label */
	next = settings_with(b->login, name, value);
	if (next == NULL)
		return;
	settings_unref(&b->login);
	b->login = next;
}

bool
backend_login_parameter_changed(struct backend *b, const char *name, const char *value)
{
	const char *was = settings_get(b->login, name);
	struct settings *next;

	if (group_is_server_fact(name) || was == NULL || strcmp(was, value) == 0 ||
	    settings_get(b->applying, name) != NULL)
		return false;
	next = settings_with(b->login, name, value);
	if (next == NULL)
		return false;
	settings_unref(&b->login);
	b->login = next;
	group_set_welcome(b->pool->group, b->host, next);
	return true;
}

/*
 * A login value that the session has set instead of its startup value is one of its settings as any other: where it were
 * not set again, it would look like the outcome of a RESET.
 */
static bool
replaces_startup_value(const struct backend *b, const char *name)
{
	const struct settings *startup = b->session ? b->session->marks.startup : NULL;

	return startup != NULL && settings_get(startup, name) != NULL;
}

/* The server reports a value: the label follows it, and a value equal to the login's needs no label. */
void
backend_note_parameter(struct backend *b, const char *name, const char *value)
{
	const char *at_login;
	struct settings *next, **label = b->applying ? &b->applying : &b->label;

	if (group_is_server_fact(name))
		return;
	at_login = settings_get(b->login, name);
	next = at_login != NULL && strcmp(at_login, value) == 0 && !replaces_startup_value(b, name)
	               ? settings_without(*label, name)
	               : settings_with(*label, name, value);
	if (next == NULL) {
		b->retire = true; /* its label is not known any more */
		return;
	}
	settings_unref(label);
	*label = next;
}
