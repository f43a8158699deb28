/* SPDX-License-Identifier: ISC */
/*
 * A non-blocking byte stream with back-pressure: sockets now, TLS later. The owner
 * gives bytes to send and is given bytes that came; it never sees readiness, so an
 * engine that completes instead of polling can stand behind the same calls. One
 * thread: the loop's.
 *
 * Reading. `bytes` is offered what has arrived and answers how much it used; the
 * rest is kept and offered again in front of what comes next. A paused stream reads
 * nothing and keeps what it has. Pausing costs no system call.
 * Writing. What the socket refuses is kept (`stream_is_blocked`), then `drained` is
 * called once all is out. The owner stops its source meanwhile: that bounds memory.
 * Ends. `eof`: the peer sends no more, all its bytes were offered. `broken`: the
 * connection is dead. Both are called from the loop, never from inside a call of
 * the owner's; broken at most once and nothing after it.
 */
#ifndef PGWEIR_NET_STREAM_H
#define PGWEIR_NET_STREAM_H

#include "base/buf.h"
#include "base/status.h"
#include "net/addr.h"
#include "net/loop.h"

struct stream;

struct stream_ops {
	size_t (*bytes)(struct stream *s, const uint8_t *p, size_t n);
	void (*drained)(struct stream *s);
	void (*eof)(struct stream *s);
	/* errno value; ETIMEDOUT, ECONNRESET, EPIPE ... */
	void (*broken)(struct stream *s, int err);
	void (*connected)(struct stream *s); /* after stream_connect; may be NULL else */
	/* A paused stream's peer ended its sending side (both: the connection is dead as well); may be NULL. */
	void (*hangup)(struct stream *s, bool both);
};

struct stream {
	struct loop_source src; /* first */
	int fd;                 /* -1: closed or not opened */
	struct loop *loop;
	const struct stream_ops *ops;
	struct loop_task task;
	struct buf in;   /* came, not used yet */
	struct buf out;  /* to be sent when the socket takes it */
	uint32_t events; /* epoll interest */
	int error;       /* errno that ended it, until `broken` has been called; then -1 */
	bool paused;
	bool readable; /* the socket may have more than was received */
	bool hung_up;  /* a hang-up was seen: read on to the end */
	bool got_eof;
	bool connecting;
	bool ending;   /* no more is sent once `out` is empty */
	bool offering; /* `bytes` is running */
};

void stream_init(struct stream *s, struct loop *loop, const struct stream_ops *ops, bool urgent);
enum status stream_open_fd(struct stream *s,
                           int fd) must_check; /* takes a connected socket; on error the fd is closed */
/* Begins to connect; `connected` or `broken` follows, from the loop. STATUS_REFUSED: errno says why, nothing follows. */
enum status stream_connect(struct stream *s, const struct addr *to) must_check;
void stream_close(struct stream *s); /* at once; frees the buffers; harmless when closed */

/*
 * Sends or keeps p[0..n). STATUS_CLOSED: the connection is known to be dead and nothing of these bytes was sent
 * (`broken` still follows from the loop).
 */
enum status stream_send(struct stream *s, const void *p, size_t n);
/* Puts bytes in front of the next stream_send, to go out with it in one system call. */
void stream_queue(struct stream *s, const void *p, size_t n);
enum status stream_flush(struct stream *s); /* sends what is queued */
/* Ends the sending side when everything has been sent; the other one goes on. */
void stream_end(struct stream *s);

static inline bool
stream_is_blocked(const struct stream *s)
{
	return s->out.len > 0;
}

/* An idle connection holds no buffer. */
static inline void
stream_trim(struct stream *s)
{
	if (s->out.cap > 0 && s->out.len == 0)
		buf_fini(&s->out);
}

void stream_pause(struct stream *s);
void stream_resume(struct stream *s); /* what was kept is offered, and reading goes on, from the loop */
/* Offers what was kept at once, inside this call, without receiving. Not from inside `bytes`. */
void stream_offer(struct stream *s);
void stream_receive(struct stream *s); /* takes what has come, without waiting for the loop to say so */
/* Moves an open stream with empty buffers between loops: detach in the old thread, attach in the new one. */
void stream_detach(struct stream *s);
enum status stream_attach(struct stream *s, struct loop *loop) must_check;

/* Gives up the socket without closing it (hand-over to another owner); buffers must be empty. */
int stream_release_fd(struct stream *s);

#endif
