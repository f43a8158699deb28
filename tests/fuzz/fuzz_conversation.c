/* SPDX-License-Identifier: ISC */
/*
 * Whole conversations: two clients at a time, a proxy as the daemon runs it, and a server that is a model. The input
 * decides what the clients say, when which part of it arrives where, and when the servers take the next message and
 * answer. Nothing waits: one thread, a clock that stands still unless the input moves it, sockets of this process.
 *
 * What must hold: each client gets the bytes that a server of its own would have sent, in order (fake_client.h); a
 * server sees a client's messages only when all that others asked of it is answered and it is outside a transaction;
 * in the end every session, connection, token and statement is accounted for.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/obj.h"
#include "core/backend.h"
#include "core/config.h"
#include "core/group.h"
#include "core/pool.h"
#include "core/session.h"
#include "core/statement.h"
#include "fake_client.h"
#include "net/addr.h"
#include "proxy/proxy.h"
#include "wire/pgmsg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_CLIENTS 2
#define N_SESSIONS_MAX 8 /* clients may leave and come again */
#define N_SERVERS 12     /* cancel requests among them */
#define CLOCK_START_US 1000000000u
#define CLOCK_STEP_US 350000u
#define CLOCK_STEPS_MAX 20 /* in all less than any timeout of the daemon for what a server does */
#define QUIET_ROUNDS 3

/* One connection to the server. */
struct side {
	int fd; /* -1: none */
	bool has_started;
	char owner;    /* tag of the client it serves; 0: not known yet */
	bool is_quiet; /* nothing was under way when bytes arrived, and none of them was taken since */
	struct buf in;
	uint32_t n_sent; /* of model.out */
	struct fake_server model;
};

struct world {
	struct fake_input in;
	struct weir *weir;
	struct proxy *proxy;
	struct fake_client clients[N_CLIENTS];
	struct side sides[N_SERVERS];
	unsigned n_sessions, n_steps, n_servers;
	uint64_t now_us;
};

static int listener = -1;
static char server_dir[32];

/* ---- sockets ---- */

static void
open_listener(void)
{
	struct addr a;

	atomic_store(&log_verbosity, LOG_FATAL_);
	snprintf(server_dir, sizeof(server_dir), "@pgweir-fuzz-%ld", (long)getpid());
	invariant(addr_from_unix_dir(&a, server_dir, 5432) == STATUS_OK);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	invariant(listener >= 0 && bind(listener, &a.sa, a.len) == 0 && listen(listener, 64) == 0);
}

/* Sends the first n bytes of [p, p + len), or all if n is 0. Answers what the socket took. */
static size_t
send_part(int fd, const uint8_t *p, size_t len, size_t n)
{
	ssize_t r;

	if (n == 0 || n > len)
		n = len;
	if (n == 0)
		return 0;
	r = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r < 0)
		invariant(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
	return r > 0 ? (size_t)r : 0;
}

/* ---- servers ---- */

static void
close_side(struct side *x)
{
	close(x->fd);
	x->fd = -1;
	buf_fini(&x->in);
	fake_server_fini(&x->model);
}

static bool
accept_server(struct world *w)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct side *x = w->sides;

	if (fd < 0)
		return false;
	while (x < w->sides + N_SERVERS && x->fd >= 0)
		x++;
	invariant(x < w->sides + N_SERVERS);
	memset(x, 0, sizeof(*x));
	x->fd = fd;
	buf_init(&x->in);
	fake_server_init(&x->model);
	return true;
}

static bool
receive_server(struct side *x)
{
	uint8_t bytes[4096];
	ssize_t n;

	if (x->fd < 0)
		return false;
	n = recv(x->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		close_side(x);
		return true;
	}
	x->is_quiet = x->is_quiet || (x->in.len == 0 && x->n_sent == x->model.out.len);
	buf_append(&x->in, bytes, (size_t)n);
	return true;
}

static void
take_startup(struct world *w, struct side *x)
{
	const uint8_t *p = buf_head(&x->in);

	if (x->in.len < 8 || x->in.len < frame_get_u32(p))
		return;
	if (frame_get_u32(p + 4) == PROTO_CANCEL) {
		close_side(x); /* nothing ever runs long enough */
		return;
	}
	x->has_started = true;
	buf_consume(&x->in, frame_get_u32(p));
	fake_server_greet(&x->model, ++w->n_servers);
}

/* Whose message it is; 0: anybody's, or the daemon's own. */
static char
tag_of(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (p[i] == '@' && p[i + 1] >= 'a' && p[i + 1] < 'a' + N_SESSIONS_MAX)
			return (char)p[i + 1];
	return 0;
}

static void
check_owner(struct side *x, const struct frame *f, const uint8_t *p)
{
	char tag = tag_of(p, f->len);

	if (x->is_quiet && fake_server_is_settled(&x->model))
		x->owner = 0;
	x->is_quiet = false;
	if (tag == 0)
		return;
	invariant(x->owner == 0 || x->owner == tag);
	x->owner = tag;
}

/* The server takes its next message. */
static bool
handle_message(struct world *w, struct side *x)
{
	const uint8_t *p;
	struct frame f;

	if (x->fd < 0 || x->in.len == 0)
		return false;
	if (!x->has_started) {
		take_startup(w, x);
		return false;
	}
	p = buf_head(&x->in);
	if (frame_next(p, x->in.len, &f) != STATUS_OK || f.avail < f.len)
		return false;
	fake_trace("server", (char)('0' + (x - w->sides)), p, f.len);
	if (f.type == FE_TERMINATE) {
		close_side(x);
		return true;
	}
	check_owner(x, &f, p);
	fake_server_message(&x->model, &f, p);
	buf_consume(&x->in, f.len);
	return true;
}

static bool
answer(struct side *x, size_t n)
{
	size_t sent;

	if (x->fd < 0 || x->n_sent == x->model.n_flushed)
		return false;
	sent = send_part(x->fd, buf_head(&x->model.out) + x->n_sent, x->model.n_flushed - x->n_sent, n);
	x->n_sent += (uint32_t)sent;
	return sent > 0;
}

/* ---- clients ---- */

static void
connect_client(struct world *w, struct fake_client *c)
{
	int fds[2];

	if (c->state != FAKE_ABSENT || w->n_sessions == N_SESSIONS_MAX)
		return;
	invariant(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	fake_client_init(c, (char)('a' + w->n_sessions++), fds[0]);
	atomic_fetch_add(&w->weir->n_clients, 1);
	session_new(w->proxy, fds[1]);
}

static bool
push_client(struct fake_client *c, size_t n)
{
	size_t sent;

	if (c->state == FAKE_ABSENT)
		return false;
	sent = send_part(c->fd, buf_head(&c->outgoing), c->outgoing.len, n);
	buf_consume(&c->outgoing, sent);
	return sent > 0;
}

static void
client_at_end(struct fake_client *c)
{
	fake_trace("closed", c->tag, (const uint8_t *)"", 0);
	/* the daemon never ends a connection by itself */
	invariant(c->state == FAKE_LEAVING || c->state == FAKE_BREAKING || c->state == FAKE_DOUBTFUL);
	if (c->state == FAKE_LEAVING)
		invariant(c->n_seen == c->private.out.len);
	fake_client_fini(c);
}

static bool
hear_client(struct fake_client *c)
{
	uint8_t bytes[4096];
	ssize_t n;

	if (c->state == FAKE_ABSENT)
		return false;
	n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		client_at_end(c);
	else
		fake_client_hear(c, bytes, (size_t)n);
	return true;
}

static void
hang_up(struct fake_client *c)
{
	if (c->state == FAKE_ABSENT)
		return;
	fake_trace("hangs up", c->tag, (const uint8_t *)"", 0);
	fake_client_fini(c);
}

static void
half_close(struct fake_client *c)
{
	if (c->state != FAKE_TALKING && c->state != FAKE_DOUBTFUL)
		return;
	(void)push_client(c, 0);
	if (c->outgoing.len > 0)
		return;
	fake_trace("half-closes", c->tag, (const uint8_t *)"", 0);
	shutdown(c->fd, SHUT_WR);
	if (c->state == FAKE_TALKING)
		c->state = FAKE_BREAKING;
}

/* ---- the daemon ---- */

static void
check_proxy(const struct proxy *p)
{
	const struct session *s;
	const struct backend *b;

	TAILQ_FOREACH (s, &p->sessions, link)
		invariant(s->backend == NULL || s->backend->session == s);
	TAILQ_FOREACH (b, &p->backends, link) {
		invariant(b->session == NULL || b->session->backend == b);
		if (b->state == BACKEND_IDLE)
			invariant(replyq_is_settled(&b->owed) && b->n_cancels == 0 && b->session == NULL);
	}
}

static void
turn(struct world *w)
{
	loop_turn(w->proxy->loop, 0);
	check_proxy(w->proxy);
}

static bool
do_everything_once(struct world *w)
{
	bool did = false;

	for (int i = 0; i < N_CLIENTS; i++)
		did |= push_client(&w->clients[i], 0);
	turn(w);
	while (accept_server(w))
		did = true;
	for (int i = 0; i < N_SERVERS; i++) {
		did |= receive_server(&w->sides[i]);
		while (handle_message(w, &w->sides[i]))
			did = true;
		did |= answer(&w->sides[i], 0);
	}
	turn(w);
	for (int i = 0; i < N_CLIENTS; i++)
		did |= hear_client(&w->clients[i]);
	return did;
}

/* Until nobody has anything to do. */
static void
settle(struct world *w)
{
	for (int quiet = 0; quiet < QUIET_ROUNDS; quiet++)
		if (do_everything_once(w))
			quiet = -1;
}

static void
move_clock(struct world *w, uint64_t us)
{
	w->now_us += us;
	clock_set_fake(w->now_us);
	turn(w);
}

/* ---- the input ---- */

static struct config *
make_config(struct fake_input *in)
{
	struct config *c = config_new();
	struct database_conf *d = database_conf_new("d");
	uint8_t how = fake_input_byte(in);
	const char *const settings[][2] = {
		{"pool_mode", how & 0x20 && how & 0x40 ? "session" : "transaction"},
		{"max_prepared_statements", how & 4   ? how & 8 ? "3" : "1"
	                                    : how & 8 ? "2"
	                                              : "100"},
		{"server_reset_query_always", (how & 0x30) == 0x30 ? "1" : "0"},
		{"server_check_query", (how & 0x60) == 0x40 ? "select 1" : ""},
		{"server_check_delay", "0"},
		{"server_round_robin", how & 0x80 ? "1" : "0"},
		{"session_state", "ignore"}, /* the model has no catalogs to be asked */
		{"auth_type", "trust"},
		{"query_wait_timeout", "0"},
		{"client_login_timeout", "0"},
	};
	char why[256];

	invariant(c != NULL && d != NULL);
	d->host = strdup(server_dir);
	/* where a client may keep its connection, each needs its own */
	d->pool_size = (how & 0x60) == 0x60 ? N_CLIENTS : 1 + (how & 1);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		invariant(config_set(c, settings[i][0], settings[i][1], why, sizeof(why)) == STATUS_OK);
	invariant(config_add_database(c, &d) == STATUS_OK);
	return c;
}

static void
do_part(struct world *w, uint8_t op)
{
	struct fake_client *c = &w->clients[op & 1];
	struct side *x = &w->sides[(op >> 1) & 3];
	uint8_t n = fake_input_byte(&w->in);

	switch (op >> 3) {
	case 0:
		(void)push_client(c, n % 64);
		break;
	case 1:
		turn(w);
		break;
	case 2:
		(void)accept_server(w);
		(void)receive_server(x);
		break;
	case 3:
		for (int i = n % 8; i >= 0; i--)
			(void)handle_message(w, x);
		break;
	case 4:
		(void)answer(x, n % 64);
		break;
	case 5:
		(void)hear_client(c);
		break;
	case 6:
		(void)do_everything_once(w);
		break;
	default:
		settle(w);
		break;
	}
}

static void
do_rare(struct world *w, uint8_t op)
{
	struct fake_client *c = &w->clients[op & 1];

	switch (op >> 1) {
	case 0:
		hang_up(c);
		break;
	case 1:
		if (c->state == FAKE_TALKING)
			fake_client_say_goodbye(c);
		break;
	case 2:
		half_close(c);
		break;
	case 3:
		if (w->n_steps++ < CLOCK_STEPS_MAX)
			move_clock(w, CLOCK_STEP_US);
		break;
	default:
		connect_client(w, c);
		break;
	}
}

static void
do_next(struct world *w)
{
	uint8_t op = fake_input_byte(&w->in);

	if (op < 160)
		fake_client_say(&w->clients[op & 1], &w->in);
	else if (op < 224)
		do_part(w, op - 160);
	else if (op < 246)
		(void)do_everything_once(w);
	else
		do_rare(w, op - 246);
}

/* ---- the end ---- */

/* Each client ends what it has under way, and must then have all its answers. */
static void
finish_clients(struct world *w)
{
	for (int i = 0; i < N_CLIENTS; i++) {
		struct fake_client *c = &w->clients[i];

		/* one who broke the protocol may keep his connection until he goes; so does one who is half gone */
		if (c->state == FAKE_TALKING)
			fake_client_say_end(c);
		else if (c->state != FAKE_LEAVING)
			hang_up(c);
	}
	settle(w);
	/* the one that has a backend first, then the one that waited for it */
	for (int round = 0; round < N_CLIENTS; round++) {
		for (int i = 0; i < N_CLIENTS; i++)
			if (w->clients[i].state == FAKE_TALKING && !fake_client_must_wait(&w->clients[i]))
				fake_client_say_rollback(&w->clients[i]);
		settle(w);
	}
	for (int i = 0; i < N_CLIENTS; i++) {
		struct fake_client *c = &w->clients[i];

		invariant(c->state == FAKE_TALKING || c->state == FAKE_ABSENT);
		if (c->state == FAKE_ABSENT)
			continue;
		invariant(c->n_seen == c->private.out.len);
		if (fake_input_byte(&w->in) & 1)
			fake_client_say_goodbye(c);
		settle(w);
		hang_up(c);
	}
	settle(w);
}

static void
check_end(struct world *w)
{
	struct proxy *p = w->proxy;
	struct group *g, *next;
	struct backend *b;
	unsigned n_backends = 0;

	invariant(TAILQ_EMPTY(&p->sessions) && TAILQ_EMPTY(&p->cancels));
	invariant(atomic_load(&w->weir->n_clients) == 0);
	invariant(counter_get(&p->n_sessions) == 0 && counter_get(&p->n_waiting) == 0);
	invariant(counter_get(&p->n_pinned) == 0);
	TAILQ_FOREACH (b, &p->backends, link) {
		invariant(b->state == BACKEND_IDLE);
		n_backends++;
	}
	invariant(counter_get(&p->n_backends) == n_backends && counter_get(&p->n_idle_backends) == n_backends);
	HASH_ITER (hh, w->weir->shared.groups, g, next)
		invariant(group_n_backends(g) == n_backends && group_n_clients(g) == 0 &&
		          group_n_live(g) == n_backends);
}

static void
finish(struct world *w)
{
	struct group *g, *next;

	settle(w);
	finish_clients(w);
	check_end(w);
	proxy_drain(w->proxy);
	HASH_ITER (hh, w->weir->shared.groups, g, next)
		invariant(group_n_backends(g) == 0);
	invariant(statement_totals().n_statements == 0);
	proxy_free(&w->proxy);
	weir_free(&w->weir);
	while (accept_server(w))
		;
	for (int i = 0; i < N_SERVERS; i++)
		if (w->sides[i].fd >= 0)
			close_side(&w->sides[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct world *w = &world;

	if (listener < 0)
		open_listener();
	memset(w, 0, sizeof(*w));
	w->in = (struct fake_input){data, data + size};
	w->now_us = CLOCK_START_US;
	clock_set_fake(w->now_us);
	for (int i = 0; i < N_SERVERS; i++)
		w->sides[i].fd = -1;
	w->weir = weir_new(make_config(&w->in), 1);
	invariant(w->weir != NULL && (w->proxy = proxy_new(w->weir, 0)) != NULL);
	w->weir->proxies[0] = w->proxy;
	for (int i = 0; i < N_CLIENTS; i++)
		connect_client(w, &w->clients[i]);
	settle(w);
	while (w->in.p < w->in.end)
		do_next(w);
	finish(w);
	return 0;
}
