/* SPDX-License-Identifier: ISC */
#include "ops/admin_console.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/obj.h"
#include "base/str.h"
#include "core/config.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/pgmsg.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct console *
console_of(struct stream *s)
{
	struct console *c = container_of(s, struct console, stream);

	obj_check(c, CONSOLE_MAGIC);
	return c;
}

/* ---- the end ---- */

static void
bury(struct loop_grave *g)
{
	struct console *c = container_of(g, struct console, grave);

	c->magic = 0;
	free(c);
}

static void
log_close(const struct console *c, const char *why)
{
	char msg[256];

	if (!c->admin->weir->config->log_disconnections)
		return;
	snprintf(msg, sizeof(msg), "closing because: %s (age=%llus)", why,
	         (unsigned long long)((clock_cached_us() - c->connected_us) / 1000000));
	log_event(LOG_INFO_, "client_close", LOG_U("client", c->id), LOG_S("db", ADMIN_DATABASE),
	          LOG_S("user", c->user), LOG_S("msg", msg));
}

/* Unread bytes would turn our close into a reset, which can overtake the error that was just sent. */
static void
drain_socket(int fd)
{
	uint8_t scratch[4096];

	for (int i = 0; i < 16; i++)
		if (recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) <= 0)
			return;
}

void
console_close(struct console *c, const char *sqlstate, const char *why)
{
	struct admin *a = c->admin;
	struct buf out;

	if (c->state == CONSOLE_CLOSED)
		return;
	if (sqlstate != NULL) {
		buf_init(&out);
		build_error(&out, "FATAL", sqlstate, why, NULL, NULL);
		if (!out.failed)
			(void)stream_send(&c->stream, buf_head(&out), out.len);
		buf_fini(&out);
		drain_socket(c->stream.fd);
	}
	log_close(c, why);
	c->state = CONSOLE_CLOSED;
	ask_free(&a->asks, &c->ask);
	stream_close(&c->stream);
	TAILQ_REMOVE(&a->consoles, c, link);
	a->n_consoles--;
	atomic_fetch_sub(&a->weir->n_clients, 1);
	loop_bury(a->loop, &c->grave, bury);
}

/* ---- replies ---- */

/* Sends what was built and decides whether the next query may be read. Consumes out. */
static void
send_reply(struct console *c, struct buf *out)
{
	if (out->failed) {
		buf_fini(out);
		console_close(c, "53200", "out of memory");
		return;
	}
	(void)stream_send(&c->stream, buf_head(out), out->len); /* if it is dead, `broken` follows */
	buf_fini(out);
	if (c->state == CONSOLE_ASKING)
		stream_resume(&c->stream);
	c->state = CONSOLE_READY;
	if (stream_is_blocked(&c->stream)) {
		c->state = CONSOLE_BLOCKED;
		stream_pause(&c->stream);
	}
}

static void
send_error(struct console *c, const char *sqlstate, const char *message)
{
	struct buf out;

	buf_init(&out);
	reply_error(&out, sqlstate, "%s", message);
	build_ready(&out, TX_IDLE);
	send_reply(c, &out);
}

static void
greet(struct console *c)
{
	uint8_t key[8];
	struct buf out;

	if (RAND_bytes(key, sizeof(key)) != 1)
		memset(key, 0, sizeof(key)); /* it opens nothing: the console has nothing to cancel */
	buf_init(&out);
	build_auth(&out, AUTH_OK, NULL, 0);
	admin_build_parameters(&out);
	build_key_data(&out, (frame_get_u32(key) & 0x7fffffffu) | 1u, key + 4, 4);
	build_ready(&out, TX_IDLE);
	send_reply(c, &out);
}

/* ---- commands ---- */

static void
run(struct console *c, const struct admin_command *command, struct admin_words *w, size_t n_words)
{
	struct admin *a = c->admin;
	enum weir_phase before = weir_phase(a->weir);
	struct buf out;
	struct admin_call call = {
		.weir = a->weir,
		.ask = c->ask,
		.stats = a->stats,
		.n_consoles = a->n_consoles,
		.may_change = c->may_change,
		.n_args = w != NULL ? w->n - n_words : 0,
		.args = w != NULL ? w->word + n_words : NULL,
		.out = &out,
		.phase = before,
	};

	buf_init(&out);
	command->run(&call);
	if (out.len > 0) {
		build_ready(&out, TX_IDLE);
		send_reply(c, &out);
	}
	if (call.phase != before)
		a->shutdown(call.phase, a->shutdown_arg);
}

/* SHOW CLIENTS lists the console's connections as well: what a proxy says of sessions, said of them. */
static bool
add_consoles(struct admin *a, struct ask *ask)
{
	struct mail_snapshot *m = ask_add(ask, SNAPSHOT_CLIENTS, a->n_consoles);
	const struct console *c;
	size_t i = 0;

	if (m == NULL)
		return false;
	TAILQ_FOREACH (c, &a->consoles, link) {
		struct snapshot_link *row = &m->links[i++];

		str_copy(row->database, sizeof(row->database), ADMIN_DATABASE);
		str_copy(row->user, sizeof(row->user), c->user);
		row->state = c->state == CONSOLE_ASKING ? "active" : "idle";
		snapshot_take_socket(row, c->stream.fd);
		row->connect_us = c->connected_us;
		row->request_us = c->request_us;
		row->id = c->id;
	}
	return true;
}

static void
on_rows(struct ask *ask, void *owner)
{
	struct console *c = obj_from(owner, console, CONSOLE_MAGIC);
	struct admin *a = c->admin;

	invariant(c->state == CONSOLE_ASKING && c->ask == ask);
	if (ask->failed || ((c->command->asks & ASK_CLIENTS) != 0 && !add_consoles(a, ask)))
		send_error(c, "53200", "out of memory");
	else
		run(c, c->command, NULL, 0);
	ask_free(&a->asks, &c->ask);
}

static void
begin_ask(struct console *c, const struct admin_command *command)
{
	c->ask = ask_begin(&c->admin->asks, command->asks, on_rows, c);
	if (c->ask == NULL) {
		send_error(c, "53200", "out of memory");
		return;
	}
	c->command = command;
	c->state = CONSOLE_ASKING;
	stream_pause(&c->stream);
}

static void
send_empty(struct console *c)
{
	struct buf out;

	buf_init(&out);
	build_empty_query(&out);
	build_ready(&out, TX_IDLE);
	send_reply(c, &out);
}

static void
on_query(struct console *c, const char *query)
{
	struct admin_words words;
	const struct admin_command *command;
	size_t n_words = 0;
	bool is_whole = admin_split(query, &words);
	char text[512];

	c->request_us = clock_cached_us();
	if (weir_phase(c->admin->weir) == WEIR_STOPPING) { /* the proxies may have gone */
		console_close(c, "57P01", "pooler is shutting down");
		return;
	}
	if (is_whole && words.n == 0) {
		send_empty(c);
		return;
	}
	command = is_whole ? admin_find(&words, &n_words) : NULL;
	if (command == NULL) {
		snprintf(text, sizeof(text), "invalid command '%.400s', use SHOW HELP;", query);
		send_error(c, "08P01", text);
	} else if (command->rights == ADMIN_MAY_CHANGE && !c->may_change) {
		send_error(c, "08P01", "admin access needed");
	} else if (command->run == NULL) {
		snprintf(text, sizeof(text), "%s is not supported yet", command->words);
		send_error(c, "0A000", text);
	} else if (command->asks != 0) {
		begin_ask(c, command);
	} else {
		run(c, command, &words, n_words);
	}
}

/* ---- messages ---- */

static void
on_message(struct console *c, char type, const uint8_t *body, size_t n)
{
	struct buf out;
	char text[64];

	switch (type) {
	case FE_QUERY:
		if (n == 0 || memchr(body, '\0', n) != body + n - 1)
			console_close(c, "08P01", "invalid message format");
		else
			on_query(c, (const char *)body);
		return;
	case FE_TERMINATE:
		console_close(c, NULL, "client close request");
		return;
	case FE_SYNC:
		buf_init(&out);
		build_ready(&out, TX_IDLE);
		send_reply(c, &out);
		return;
	case FE_FLUSH:
	case FE_COPY_DATA: /* left over from a COPY that failed, as the server takes them */
	case FE_COPY_DONE:
	case FE_COPY_FAIL:
		return;
	case FE_PARSE:
	case FE_BIND:
	case FE_DESCRIBE:
	case FE_EXECUTE:
	case FE_CLOSE:
	case FE_FUNCTION_CALL:
		console_close(c, "08P01", "extended query protocol not supported by admin console");
		return;
	default:
		snprintf(text, sizeof(text), "invalid frontend message type %d", (unsigned char)type);
		console_close(c, "08P01", text);
		return;
	}
}

/* Nothing of a message over ADMIN_QUERY_MAX is kept. */
static void
on_long_message(struct console *c, const struct frame *f)
{
	uint32_t limit = frame_client_limit(f->type);

	if (limit > 0 && f->len - 1 > limit)
		console_close(c, NULL, "broken client packet"); /* without a word, as the server does */
	else if (f->type == FE_QUERY)
		send_error(c, "08P01", "query is too long for the admin console");
	else
		on_message(c, f->type, NULL, 0);
}

/* The message at p; answers how much of p was used, 0: it is not whole yet. */
static size_t
take_message(struct console *c, const uint8_t *p, size_t n)
{
	struct frame f;
	enum status status = frame_next(p, n, &f);

	if (status == STATUS_MORE)
		return 0;
	if (status != STATUS_OK) {
		console_close(c, NULL, "broken client packet");
		return 0;
	}
	if (f.len - MSG_HEADER > ADMIN_QUERY_MAX) {
		c->skip = f.len - f.avail;
		on_long_message(c, &f);
		return f.avail;
	}
	if (f.avail < f.len)
		return 0;
	on_message(c, f.type, p + MSG_HEADER, f.len - MSG_HEADER);
	return f.len;
}

static size_t
skip_some(struct console *c, size_t n)
{
	size_t used = n < c->skip ? n : c->skip;

	c->skip -= (uint32_t)used;
	return used;
}

/* ---- the stream ---- */

static size_t
on_bytes(struct stream *s, const uint8_t *p, size_t n)
{
	struct console *c = console_of(s);
	size_t used = 0, more = 1;

	while (c->state == CONSOLE_READY && used < n && more > 0) {
		more = c->skip > 0 ? skip_some(c, n - used) : take_message(c, p + used, n - used);
		used += more;
	}
	return used;
}

static void
on_drained(struct stream *s)
{
	struct console *c = console_of(s);

	if (c->state != CONSOLE_BLOCKED)
		return;
	c->state = CONSOLE_READY;
	stream_resume(s);
}

static void
on_eof(struct stream *s)
{
	console_close(console_of(s), NULL, "client unexpected eof");
}

static void
on_broken(struct stream *s, int err)
{
	console_close(console_of(s), NULL, strerror(err));
}

static void
on_hangup(struct stream *s, bool both)
{
	if (both)
		console_close(console_of(s), NULL, "client unexpected eof");
}

static const struct stream_ops ops = {
	.bytes = on_bytes,
	.drained = on_drained,
	.eof = on_eof,
	.broken = on_broken,
	.hangup = on_hangup,
};

/* ---- the beginning ---- */

static void
log_login(const struct console *c)
{
	char msg[256];

	if (!c->admin->weir->config->log_connections)
		return;
	snprintf(msg, sizeof(msg), "login attempt: db=%s user=%s tls=no", ADMIN_DATABASE, c->user);
	log_event(LOG_INFO_, "login", LOG_U("client", c->id), LOG_S("db", ADMIN_DATABASE), LOG_S("user", c->user),
	          LOG_S("msg", msg));
}

bool
console_new(struct admin *a, const struct mail_admin *m)
{
	struct console *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		close(m->fd);
		return false;
	}
	c->magic = CONSOLE_MAGIC;
	c->admin = a;
	c->state = CONSOLE_READY;
	c->id = m->id;
	c->may_change = m->may_change;
	c->connected_us = c->request_us = clock_cached_us();
	str_copy(c->user, sizeof(c->user), m->user);
	stream_init(&c->stream, a->loop, &ops, false);
	if (stream_open_fd(&c->stream, m->fd) != STATUS_OK) {
		free(c);
		return false;
	}
	TAILQ_INSERT_TAIL(&a->consoles, c, link);
	a->n_consoles++;
	log_login(c);
	greet(c);
	return true;
}
