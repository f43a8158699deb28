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

/* READY: connected, but the backend runs a hidden unit that must not be hit */
enum cancel_state { CANCEL_CONNECTING, CANCEL_READY, CANCEL_SENT, CANCEL_OVER };

struct cancel {
	uint32_t magic;
	enum cancel_state state;
	struct stream stream;
	struct proxy *proxy;
	struct backend *backend; /* NULL: closed meanwhile */
	struct mail_cancel *requester;
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
	if (c->requester != NULL)
		cancel_answer(c->proxy, c->requester);
	loop_bury(c->proxy->loop, &c->grave, bury);
	if (b != NULL && was_sent)
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
		c->backend->n_cancels++;
		(void)stream_send(&c->stream, buf_head(&out), out.len);
	}
	buf_wipe(&out);
}

static void
on_connected(struct stream *st)
{
	struct cancel *c = from_stream(st);

	if (c->backend == NULL)
		finish(c);
	else if (replyq_is_hidden(&c->backend->owed))
		c->state = CANCEL_READY;
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
on_eof(struct stream *st)
{
	finish(from_stream(st));
}

static void
on_broken(struct stream *st, int err)
{
	struct cancel *c = from_stream(st);

	if (c->state == CANCEL_CONNECTING)
		log_event(LOG_WARN_, "cancel", LOG_U("server", c->backend ? c->backend->id : 0),
		          LOG_S("reason", strerror(err)), LOG_S("msg", "could not connect to the server to cancel"));
	finish(c);
}

static void
on_drained(struct stream *st)
{
	(void)st;
}

static const struct stream_ops cancel_ops = {
	.bytes = on_bytes, .drained = on_drained, .eof = on_eof, .broken = on_broken, .connected = on_connected};

static void
on_timeout(struct loop_timer *t)
{
	struct cancel *c = container_of(t, struct cancel, timer);

	obj_check(c, CANCEL_MAGIC);
	finish(c);
}

void
cancel_begin(struct backend *b, const struct mail_cancel *requester)
{
	struct proxy *p = b->pool->proxy;
	struct cancel *c = calloc(1, sizeof(*c));

	if (c == NULL || (requester != NULL && (c->requester = malloc(sizeof(*requester))) == NULL)) {
		free(c);
		if (requester != NULL)
			cancel_answer(p, requester);
		return;
	}
	if (requester != NULL)
		*c->requester = *requester;
	c->magic = CANCEL_MAGIC;
	c->proxy = p;
	c->backend = b;
	c->timer.fire = on_timeout;
	stream_init(&c->stream, p->loop, &cancel_ops, true);
	TAILQ_INSERT_TAIL(&p->cancels, c, link);
	counter_add(&p->n_cancels, 1);
	loop_timer_set(p->loop, &c->timer, clock_cached_us() + (uint64_t)p->weir->config->cancel_wait_timeout_us);
	if (stream_connect(&c->stream, &b->peer) != STATUS_OK)
		finish(c);
}

void
cancel_send_ready(struct backend *b)
{
	struct cancel *c, *next;

	for (c = TAILQ_FIRST(&b->pool->proxy->cancels); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->backend == b && c->state == CANCEL_READY)
			send_request(c);
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
		if (c->backend == b && (c->state == CANCEL_CONNECTING || c->state == CANCEL_READY))
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
