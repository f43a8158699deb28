/* SPDX-License-Identifier: ISC */
#include "rawconn.h"

#include "proc.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct rawconn *
raw_from_fd(int fd)
{
	struct rawconn *c = calloc(1, sizeof(*c));
	int one = 1;

	ck_assert(c != NULL);
	c->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

struct rawconn *
raw_try_tcp(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
	                         .sin_port = htons(port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0) {
		close(fd);
		return NULL;
	}
	return raw_from_fd(fd);
}

struct rawconn *
raw_tcp(uint16_t port)
{
	struct rawconn *c = raw_try_tcp(port);

	ck_assert_msg(c != NULL, "connect to port %d: %s", port, strerror(errno));
	return c;
}

struct rawconn *
raw_unix(const char *dir, uint16_t port)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/.s.PGSQL.%d", dir, port);
	ck_assert_msg(connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0, "connect to %s: %s", un.sun_path,
	              strerror(errno));
	return raw_from_fd(fd);
}

struct rawconn *
raw_login(uint16_t port, const char *user, const char *database)
{
	struct rawconn *c = raw_tcp(port);

	packet_login(&c->out, user, database);
	raw_flush(c);
	ck_assert_msg(raw_finish_login(c), "login: %s %s", c->sqlstate, c->message);
	return c;
}

void
raw_close(struct rawconn *c)
{
	if (c == NULL)
		return;
	close(c->fd);
	packet_free(&c->out);
	free(c->in);
	free(c);
}

bool
raw_try_send(struct rawconn *c, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		struct pollfd pfd = {.fd = c->fd, .events = POLLOUT};
		ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EAGAIN)
			ck_assert_msg(poll(&pfd, 1, RAW_TIMEOUT_MS) == 1, "the peer does not read");
		else if (sent < 0 && errno != EINTR)
			return false;
		else if (sent > 0)
			p += sent, n -= (size_t)sent;
	}
	return true;
}

void
raw_send(struct rawconn *c, const void *data, size_t n)
{
	ck_assert_msg(raw_try_send(c, data, n), "send: %s", strerror(errno));
}

void
raw_flush(struct rawconn *c)
{
	raw_send(c, c->out.data, c->out.n);
	packet_clear(&c->out);
}

void
raw_query(struct rawconn *c, const char *sql)
{
	packet_query(&c->out, sql);
	raw_flush(c);
}

/* Bytes there at the read position; 0 after the end of file. */
static bool
fill(struct rawconn *c, size_t want, int timeout_ms)
{
	int64_t deadline = proc_now_ms() + timeout_ms;

	while (c->n_in - c->used < want) {
		struct pollfd pfd = {.fd = c->fd, .events = POLLIN};
		int64_t left = deadline - proc_now_ms();
		ssize_t got;

		if (c->used > 0) {
			memmove(c->in, c->in + c->used, c->n_in - c->used);
			c->n_in -= c->used;
			c->used = 0;
		}
		if (c->cap_in < want + 8192) {
			c->cap_in = want + 65536;
			c->in = realloc(c->in, c->cap_in);
			ck_assert(c->in != NULL);
		}
		if (poll(&pfd, 1, left > 0 ? (int)left : 0) == 0)
			return false;
		got = recv(c->fd, c->in + c->n_in, c->cap_in - c->n_in - 1, 0);
		if (got <= 0) {
			ck_assert_msg(got == 0 || errno == ECONNRESET || errno == EPIPE, "recv: %s", strerror(errno));
			errno = 0;
			return true;
		}
		c->n_in += (size_t)got;
	}
	return true;
}

bool
raw_wait_message(struct rawconn *c, int timeout_ms)
{
	int64_t deadline = proc_now_ms() + timeout_ms;

	if (!fill(c, 5, timeout_ms))
		return false;
	if (c->n_in - c->used < 5)
		return true;
	return fill(c, 1 + (size_t)packet_read_u32(c->in + c->used + 1), (int)(deadline - proc_now_ms()));
}

static void
note_error(struct rawconn *c, const struct rawmsg *m)
{
	const char *state = raw_error_field(m, 'C'), *text = raw_error_field(m, 'M');

	snprintf(c->sqlstate, sizeof(c->sqlstate), "%s", state != NULL ? state : "");
	snprintf(c->message, sizeof(c->message), "%s", text != NULL ? text : "");
}

struct rawmsg
raw_read(struct rawconn *c)
{
	struct rawmsg m = {0};

	ck_assert_msg(fill(c, 5, RAW_TIMEOUT_MS), "no message within %d ms", RAW_TIMEOUT_MS);
	if (c->n_in - c->used < 5)
		return m;
	m.n = packet_read_u32(c->in + c->used + 1);
	ck_assert_msg(m.n >= 4 && m.n < 0x7fffffff, "message '%c' with length %u", c->in[c->used], m.n);
	m.n -= 4;
	ck_assert_msg(fill(c, 5 + (size_t)m.n, RAW_TIMEOUT_MS), "half a message '%c'", c->in[c->used]);
	if (c->n_in - c->used < 5 + (size_t)m.n)
		return (struct rawmsg){0};
	m.type = (char)c->in[c->used];
	m.body = c->in + c->used + 5;
	c->used += 5 + (size_t)m.n;
	if (m.type == 'K' && m.n >= 8) {
		c->cancel_pid = packet_read_u32(m.body);
		c->cancel_key = packet_read_u32(m.body + 4);
	}
	if (m.type == 'E')
		note_error(c, &m);
	return m;
}

int
raw_read_byte(struct rawconn *c)
{
	ck_assert_msg(fill(c, 1, RAW_TIMEOUT_MS), "no byte within %d ms", RAW_TIMEOUT_MS);
	return c->n_in > c->used ? c->in[c->used++] : -1;
}

struct rawmsg
raw_read_type(struct rawconn *c, char type)
{
	struct rawmsg m;

	do {
		m = raw_read(c);
		ck_assert_msg(m.type != 0, "connection closed before '%c': %s %s", type, c->sqlstate, c->message);
	} while (m.type != type);
	return m;
}

static void
append(char *to, size_t cap, const void *text, size_t n)
{
	size_t at = strlen(to);

	if (at + n < cap) {
		memcpy(to + at, text, n);
		to[at + n] = '\0';
	}
}

static void
note_row(struct rawconn *c, const struct rawmsg *m)
{
	const uint8_t *p = m->body + 2;

	for (int i = 0, n = packet_read_i16(m->body); i < n; i++) {
		uint32_t len = packet_read_u32(p);

		p += 4;
		if (i > 0)
			append(c->rows, sizeof(c->rows), ",", 1);
		if (len == UINT32_MAX)
			continue;
		append(c->rows, sizeof(c->rows), p, len);
		p += len;
	}
	append(c->rows, sizeof(c->rows), ";", 1);
}

char
raw_until_ready(struct rawconn *c)
{
	c->sqlstate[0] = c->rows[0] = c->tags[0] = c->message[0] = '\0';
	for (;;) {
		struct rawmsg m = raw_read(c);

		if (m.type == 0)
			return 0;
		if (m.type == 'Z')
			return (char)m.body[0];
		if (m.type == 'D')
			note_row(c, &m);
		if (m.type == 'C') {
			append(c->tags, sizeof(c->tags), m.body, strnlen((char *)m.body, m.n));
			append(c->tags, sizeof(c->tags), ";", 1);
		}
	}
}

void
raw_expect_eof(struct rawconn *c)
{
	while (raw_read(c).type != 0)
		;
}

bool
raw_finish_login(struct rawconn *c)
{
	return raw_until_ready(c) != 0;
}

void
raw_cancel(uint16_t port, uint32_t pid, uint32_t key)
{
	struct rawconn *c = raw_send_cancel(port, pid, key);

	ck_assert_int_eq(raw_read_byte(c), -1);
	raw_close(c);
}

struct rawconn *
raw_send_cancel(uint16_t port, uint32_t pid, uint32_t key)
{
	struct rawconn *c = raw_tcp(port);

	packet_begin(&c->out, 0);
	packet_i32(&c->out, 80877102);
	packet_i32(&c->out, pid);
	packet_i32(&c->out, key);
	packet_end(&c->out);
	raw_flush(c);
	return c;
}

const char *
raw_error_field(const struct rawmsg *m, char field)
{
	const char *p = (const char *)m->body, *end = p + m->n;

	while (p < end && *p != '\0') {
		const char *text = p + 1;

		if (*p == field)
			return text;
		p = text + strnlen(text, (size_t)(end - text)) + 1;
	}
	return NULL;
}
