/* SPDX-License-Identifier: ISC */
#include "core/cancel.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/obj.h"
#include "core/backend.h"
#include "core/proxy.h"
#include "wire/build.h"

#include <stdlib.h>
#include <string.h>

#define CANCEL_MAGIC 0x63616e63u

/*
 * A server ignores a request that comes before it has begun with the statement. To one that has just been busy with a hidden
 * unit it is sent again, as long as the statement runs, after pauses that grow. Not to others: who catches query_canceled
 * in a function expects one.
 */
#define EARLY_US 50000u /* so long after the hidden unit it may not have begun */
#define PAUSE_US 50000u
#define SENDS_MAX 5u

enum cancel_state {
	CANCEL_HELD, /* no connection: a hidden unit is in front, which must not be hit, or it is a pause */
	CANCEL_CONNECTING,
	CANCEL_SENT,
	CANCEL_OVER
};

struct cancel {
	uint32_t magic;
	enum cancel_state state;
	struct stream stream;
	struct proxy *proxy;
	struct backend *backend;       /* NULL: closed meanwhile */
	struct mail_cancel *requester; /* NULL: told already, or it is ours */
	uint64_t unit;                 /* backend.n_units_done while it is under way */
	unsigned n_sends;
	bool is_early; /* the server may not have begun with the unit when it was sent */
	struct loop_timer timer;
	struct loop_grave grave;
	TAILQ_ENTRY(cancel) link;
};

static void
bury(struct loop_grave *g)
{
	struct cancel *c = container_of(g, struct cancel, grave);

	c->magic = 0;
	free(c->requester);
	free(c);
}

void
cancel_answer(struct proxy *p, const struct mail_cancel *requester)
{
	struct mail_cancel *m = malloc(sizeof(*m));

	if (m == NULL)
		return; /* the requester's own timeout ends it */
	*m = *requester;
	m->mail.type = MAIL_CANCEL_DONE;
	mailbox_post(p->weir->proxies[requester->from]->mailbox, &m->mail);
}

/* The server has acted: by then the client may count on it. */
static void
tell_requester(struct cancel *c)
{
	if (c->requester != NULL)
		cancel_answer(c->proxy, c->requester);
	free(c->requester);
	c->requester = NULL;
}

static void
finish(struct cancel *c)
{
	struct backend *b = c->backend;
	bool was_sent = c->state == CANCEL_SENT;

	if (c->state == CANCEL_OVER)
		return;
	c->state = CANCEL_OVER;
	c->backend = NULL;
	stream_close(&c->stream);
	loop_timer_remove(c->proxy->loop, &c->timer);
	TAILQ_REMOVE(&c->proxy->cancels, c, link);
	counter_add(&c->proxy->n_cancels, (uint64_t)-1);
	tell_requester(c);
	loop_bury(c->proxy->loop, &c->grave, bury);
	if (b != NULL && was_sent)
		backend_cancel_finished(b);
}

/* What it was meant for is answered. Of a backend whose client has gone nothing is meant for anybody. */
static bool
is_over(const struct cancel *c)
{
	const struct backend *b = c->backend;

	if (b == NULL)
		return true;
	if (b->state == BACKEND_TUNNEL)
		return false;
	return !replyq_is_open(&b->owed) || (b->n_units_done != c->unit && b->state != BACKEND_ABANDONED);
}

static void
hold(struct cancel *c)
{
	stream_close(&c->stream);
	loop_timer_clear(&c->timer);
	c->state = CANCEL_HELD;
	c->is_early = true;
}

/* Its connection is closed. */
static void
sent(struct cancel *c)
{
	struct backend *b = c->backend;

	if (is_over(c) || !c->is_early || c->n_sends == SENDS_MAX || b->owed.mode == REPLYQ_SKIPPING) {
		finish(c);
		return;
	}
	tell_requester(c);
	hold(c);
	loop_timer_set(c->proxy->loop, &c->timer, clock_cached_us() + ((uint64_t)PAUSE_US << (2 * (c->n_sends - 1))));
	backend_cancel_finished(b);
}

static struct cancel *
from_stream(struct stream *st)
{
	struct cancel *c = container_of(st, struct cancel, stream);

	obj_check(c, CANCEL_MAGIC);
	return c;
}

static void
send_request(struct cancel *c)
{
	struct buf out;

	buf_init(&out);
	build_cancel(&out, c->backend->server_pid, c->backend->key, c->backend->key_len);
	if (out.failed) {
		finish(c);
	} else {
		c->state = CANCEL_SENT;
		c->n_sends++;
		c->backend->n_cancels++;
		(void)stream_send(&c->stream, buf_head(&out), out.len);
	}
	buf_wipe(&out);
}

static void
on_connected(struct stream *st)
{
	struct cancel *c = from_stream(st);

	if (is_over(c))
		finish(c);
	else if (replyq_is_hidden(&c->backend->owed))
		hold(c);
	else
		send_request(c);
}

static size_t
on_bytes(struct stream *st, const uint8_t *p, size_t n)
{
	(void)st;
	(void)p;
	return n; /* a server never answers a CancelRequest */
}

static void
gone(struct cancel *c)
{
	if (c->state == CANCEL_SENT)
		sent(c);
	else
		finish(c);
}

static void
on_eof(struct stream *st)
{
	gone(from_stream(st));
}

static void
on_broken(struct stream *st, int err)
{
	struct cancel *c = from_stream(st);

	if (c->state == CANCEL_CONNECTING)
		log_event(LOG_WARN_, "cancel", LOG_U("server", c->backend ? c->backend->id : 0),
		          LOG_S("reason", strerror(err)), LOG_S("msg", "could not connect to the server to cancel"));
	gone(c);
}

static void
on_drained(struct stream *st)
{
	(void)st;
}

static const struct stream_ops cancel_ops = {
	.bytes = on_bytes, .drained = on_drained, .eof = on_eof, .broken = on_broken, .connected = on_connected};

static void
begin_connect(struct cancel *c)
{
	uint64_t limit_us = (uint64_t)c->proxy->weir->config->cancel_wait_timeout_us;

	c->state = CANCEL_CONNECTING;
	loop_timer_clear(&c->timer);
	if (limit_us > 0)
		loop_timer_set(c->proxy->loop, &c->timer, clock_cached_us() + limit_us);
	stream_init(&c->stream, c->proxy->loop, &cancel_ops, true);
	if (stream_connect(&c->stream, &c->backend->peer) != STATUS_OK)
		finish(c);
}

static void
on_timeout(struct loop_timer *t)
{
	struct cancel *c = container_of(t, struct cancel, timer);

	obj_check(c, CANCEL_MAGIC);
	if (c->state == CANCEL_HELD && !is_over(c))
		begin_connect(c);
	else
		finish(c);
}

/* NULL: no memory. */
static struct cancel *
cancel_new(struct backend *b, const struct mail_cancel *requester)
{
	struct cancel *c = calloc(1, sizeof(*c));

	if (c == NULL || (requester != NULL && (c->requester = malloc(sizeof(*requester))) == NULL)) {
		free(c);
		return NULL;
	}
	if (requester != NULL)
		*c->requester = *requester;
	c->magic = CANCEL_MAGIC;
	c->state = CANCEL_HELD;
	c->proxy = b->pool->proxy;
	c->backend = b;
	c->unit = b->n_units_done;
	c->is_early = clock_cached_us() < b->hidden_ended_us + EARLY_US;
	c->timer.fire = on_timeout;
	c->timer.deadline_us = LOOP_NEVER;
	stream_init(&c->stream, c->proxy->loop, &cancel_ops, true);
	TAILQ_INSERT_TAIL(&c->proxy->cancels, c, link);
	counter_add(&c->proxy->n_cancels, 1);
	return c;
}

void
cancel_begin(struct backend *b, const struct mail_cancel *requester)
{
	struct cancel *c = cancel_new(b, requester);

	if (c == NULL && requester != NULL)
		cancel_answer(b->pool->proxy, requester);
	if (c == NULL)
		return;
	if (replyq_is_hidden(&b->owed))
		hold(c);
	else
		begin_connect(c);
}

void
cancel_hidden_unit_over(struct backend *b)
{
	struct cancel *c, *next;

	b->hidden_ended_us = clock_cached_us();
	if (counter_get(&b->pool->proxy->n_cancels) == 0 || replyq_is_hidden(&b->owed))
		return;
	for (c = TAILQ_FIRST(&b->pool->proxy->cancels); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->backend == b && c->state == CANCEL_HELD && c->timer.deadline_us == LOOP_NEVER)
			begin_connect(c);
	}
}

void
cancel_withdraw(struct backend *b)
{
	struct cancel *c, *next;

	if (counter_get(&b->pool->proxy->n_cancels) == 0)
		return;
	for (c = TAILQ_FIRST(&b->pool->proxy->cancels); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->backend == b && (c->state == CANCEL_CONNECTING || c->state == CANCEL_HELD))
			finish(c);
	}
}

void
cancel_forget_backend(struct backend *b)
{
	struct cancel *c;

	TAILQ_FOREACH (c, &b->pool->proxy->cancels, link)
		if (c->backend == b)
			c->backend = NULL;
}

void
cancel_free_all(struct proxy *p)
{
	while (!TAILQ_EMPTY(&p->cancels))
		finish(TAILQ_FIRST(&p->cancels));
}
