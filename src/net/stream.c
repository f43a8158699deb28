/* SPDX-License-Identifier: ISC */
#include "net/stream.h"

#include "base/obj.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_PER_WAKE 4 /* receives of LOOP_RECV bytes that one stream may take of a turn */
#define READ_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

static void stream_pump(struct stream *s);

static void
note_error(struct stream *s, int err)
{
	if (s->error != 0)
		return;
	s->error = err;
	loop_defer(s->loop, &s->task);
}

/* ---- writing ---- */

static void
want_write(struct stream *s, bool on)
{
	uint32_t events = READ_EVENTS | (on ? (uint32_t)EPOLLOUT : 0);

	if (events == s->events || s->fd < 0)
		return;
	s->events = events;
	loop_change(s->loop, &s->src, s->fd, events);
}

/* Bytes taken by the socket; 0 when it is full or broken. */
static size_t
send_some(struct stream *s, const uint8_t *p, size_t n)
{
	ssize_t r;

	do {
		r = send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r >= 0)
		return (size_t)r;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		note_error(s, errno);
	return 0;
}

static void
keep_output(struct stream *s, const uint8_t *p, size_t n)
{
	buf_append(&s->out, p, n);
	if (s->out.failed)
		note_error(s, ENOMEM);
	else
		want_write(s, true);
}

enum status
stream_send(struct stream *s, const void *p, size_t n)
{
	size_t sent;

	if (s->error != 0 || s->fd < 0)
		return STATUS_CLOSED;
	if (s->out.len > 0) {
		buf_append(&s->out, p, n);
		if (s->out.failed) {
			note_error(s, ENOMEM);
			return STATUS_NO_MEM;
		}
		return s->events & EPOLLOUT ? STATUS_OK : stream_flush(s);
	}
	if (s->connecting) {
		keep_output(s, p, n);
		return STATUS_OK;
	}
	sent = send_some(s, p, n);
	if (s->error != 0)
		return STATUS_CLOSED;
	if (sent < n)
		keep_output(s, (const uint8_t *)p + sent, n - sent);
	return STATUS_OK;
}

void
stream_queue(struct stream *s, const void *p, size_t n)
{
	buf_append(&s->out, p, n);
	if (s->out.failed)
		note_error(s, ENOMEM);
}

enum status
stream_flush(struct stream *s)
{
	size_t queued = s->out.len, sent;

	if (s->error != 0 || s->fd < 0)
		return STATUS_CLOSED;
	if (queued == 0 || s->connecting)
		return STATUS_OK;
	sent = send_some(s, buf_head(&s->out), queued);
	if (s->error != 0)
		return STATUS_CLOSED;
	buf_consume(&s->out, sent);
	if (s->out.len == 0)
		buf_reset(&s->out);
	want_write(s, s->out.len > 0);
	if (s->out.len == 0 && s->ending)
		(void)shutdown(s->fd, SHUT_WR);
	return STATUS_OK;
}

void
stream_end(struct stream *s)
{
	s->ending = true;
	if (s->fd >= 0 && s->out.len == 0)
		(void)shutdown(s->fd, SHUT_WR);
}

/* ---- reading ---- */

/* Offers p[0..n) and keeps what was not used. `p` is the loop's buffer or s->in itself. */
static void
offer(struct stream *s, const uint8_t *p, size_t n, bool is_kept)
{
	size_t used;

	invariant(!s->offering);
	s->offering = true;
	used = s->ops->bytes(s, p, n);
	s->offering = false;
	if (s->fd < 0)
		return; /* closed meanwhile, buffers are gone */
	invariant(used <= n);
	if (is_kept) {
		buf_consume(&s->in, used);
	} else {
		s->in.off = s->in.len = 0;
		if (used < n)
			buf_append(&s->in, p + used, n - used);
	}
	if (s->in.len == 0)
		buf_fini(&s->in); /* an idle connection holds no buffer */
	if (s->in.failed)
		note_error(s, ENOMEM);
}

void
stream_offer(struct stream *s)
{
	if (s->fd >= 0 && s->in.len > 0)
		offer(s, buf_head(&s->in), s->in.len, true);
}

/* One receive behind what was kept; true: there may be more. */
static bool
receive(struct stream *s)
{
	uint8_t *buffer = loop_buffer(s->loop);
	size_t kept = s->in.len;
	ssize_t r;

	invariant(kept <= LOOP_CARRY); /* owners never leave more than that unused */
	do {
		r = recv(s->fd, buffer + kept, LOOP_RECV, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		s->readable = false;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			note_error(s, errno);
		return false;
	}
	if (r == 0) {
		s->readable = false;
		s->got_eof = true;
		s->ops->eof(s);
		return false;
	}
	/* a short read has emptied the socket: the next byte raises a new edge */
	s->readable = (size_t)r == LOOP_RECV || s->hung_up;
	if (kept > 0)
		memcpy(buffer, buf_head(&s->in), kept);
	offer(s, buffer, kept + (size_t)r, false);
	return s->fd >= 0 && s->readable;
}

static void
stream_pump(struct stream *s)
{
	for (int i = 0; i < READS_PER_WAKE; i++) {
		if (s->fd < 0 || s->paused || s->got_eof || s->error != 0 || !s->readable)
			return;
		if (s->task.queued)
			return; /* just resumed: the task offers what was kept before more is received behind it */
		if (!receive(s))
			return;
	}
	loop_defer(s->loop, &s->task);
}

void
stream_receive(struct stream *s)
{
	s->readable = true;
	stream_pump(s);
}

/* Deferred: an error is told, kept bytes are offered again, reading goes on. */
static void
stream_task(struct loop_task *t)
{
	struct stream *s = container_of(t, struct stream, task);

	if (s->fd < 0)
		return;
	if (s->error > 0) {
		int err = s->error;

		s->error = -1;
		s->ops->broken(s, err);
		return;
	}
	if (s->error != 0 || s->paused)
		return;
	if (s->in.len > 0)
		stream_offer(s);
	stream_pump(s);
}

void
stream_pause(struct stream *s)
{
	s->paused = true;
}

void
stream_resume(struct stream *s)
{
	s->paused = false;
	if (s->fd >= 0 && (s->in.len > 0 || s->readable))
		loop_defer(s->loop, &s->task);
}

/* ---- events ---- */

static void
finish_connect(struct stream *s)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		err = errno;
	if (err == 0 && stream_is_blocked(s) == false)
		want_write(s, false);
	s->connecting = false;
	if (err != 0) {
		note_error(s, err);
		return;
	}
	s->ops->connected(s);
}

static void
stream_ready(struct loop_source *src, uint32_t events)
{
	struct stream *s = container_of(src, struct stream, src);

	if (s->error != 0)
		return;
	if (s->connecting) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			finish_connect(s);
		if (s->fd < 0 || s->connecting || s->error != 0)
			return;
	}
	if (events & EPOLLOUT && s->out.len > 0) {
		stream_flush(s);
		if (s->error == 0 && s->out.len == 0)
			s->ops->drained(s);
		if (s->fd < 0)
			return;
	}
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->hung_up = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		s->readable = true;
		if (!s->paused)
			stream_pump(s);
		else if (s->hung_up && s->ops->hangup != NULL)
			s->ops->hangup(s, (events & (EPOLLHUP | EPOLLERR)) != 0);
	}
}

/* ---- life ---- */

void
stream_init(struct stream *s, struct loop *loop, const struct stream_ops *ops, bool urgent)
{
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->loop = loop;
	s->ops = ops;
	s->src.urgent = urgent;
	s->task.run = stream_task;
	buf_init(&s->in);
	buf_init(&s->out);
}

enum status
stream_open_fd(struct stream *s, int fd)
{
	s->fd = fd;
	s->src.ready = stream_ready;
	s->events = READ_EVENTS | (s->connecting ? (uint32_t)EPOLLOUT : 0);
	if (loop_add(s->loop, &s->src, fd, s->events))
		return STATUS_OK;
	s->src.ready = NULL;
	s->fd = -1;
	close(fd);
	return STATUS_NO_MEM;
}

enum status
stream_connect(struct stream *s, const struct addr *to)
{
	int fd = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	int err;

	if (fd < 0)
		return STATUS_REFUSED;
	if (!addr_is_unix(to))
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, &to->sa, to->len) < 0 && errno != EINPROGRESS) {
		err = errno;
		close(fd);
		errno = err;
		return STATUS_REFUSED;
	}
	s->connecting = true;
	return stream_open_fd(s, fd);
}

void
stream_close(struct stream *s)
{
	if (s->fd >= 0) {
		loop_remove(s->loop, &s->src, s->fd);
		close(s->fd);
	}
	s->fd = -1;
	s->src.ready = NULL;
	loop_cancel_task(s->loop, &s->task);
	buf_fini(&s->in);
	buf_fini(&s->out);
}

void
stream_detach(struct stream *s)
{
	invariant(s->fd >= 0 && s->in.len == 0 && s->out.len == 0 && s->error == 0);
	loop_remove(s->loop, &s->src, s->fd);
	loop_cancel_task(s->loop, &s->task);
	s->loop = NULL;
}

enum status
stream_attach(struct stream *s, struct loop *loop)
{
	s->loop = loop;
	s->events = READ_EVENTS;
	/* an event that came between the loops is reported again on adding */
	if (loop_add(loop, &s->src, s->fd, s->events))
		return STATUS_OK;
	close(s->fd);
	s->fd = -1;
	s->src.ready = NULL;
	return STATUS_NO_MEM;
}

int
stream_release_fd(struct stream *s)
{
	int fd = s->fd;

	stream_detach(s);
	s->fd = -1;
	s->src.ready = NULL;
	return fd;
}
