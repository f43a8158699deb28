/* SPDX-License-Identifier: ISC */
#include "fake_server.h"

#include "proc.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SSL_REQUEST 80877103
#define GSSENC_REQUEST 80877104

struct fake_server *
fake_server_new(void)
{
	struct fake_server *s = calloc(1, sizeof(*s));
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	ck_assert(s != NULL);
	s->port = proc_free_port();
	in.sin_port = htons(s->port);
	s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ck_assert_int_eq(bind(s->listen_fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(s->listen_fd, 64), 0);
	return s;
}

void
fake_server_free(struct fake_server *s)
{
	close(s->listen_fd);
	free(s);
}

const char *
fake_server_databases(const struct fake_server *s)
{
	return proc_fmt("* = host=127.0.0.1 port=%d\n", s->port);
}

/* A packet without a type byte, read from the raw bytes. */
static uint32_t
read_first_packet(struct fake_server *s, struct rawconn *c)
{
	uint8_t head[8];
	uint32_t n;

	for (int i = 0; i < 8; i++) {
		int b = raw_read_byte(c);

		ck_assert_msg(b >= 0, "the daemon closed before its first packet was whole");
		head[i] = (uint8_t)b;
	}
	n = packet_read_u32(head);
	ck_assert_msg(n >= 8 && n <= 10000, "first packet of length %u", n);
	s->n_first = n - 8;
	for (uint32_t i = 0; i < s->n_first; i++) {
		int b = raw_read_byte(c);

		ck_assert_int_ge(b, 0);
		s->first[i] = (uint8_t)b;
	}
	return packet_read_u32(head + 4);
}

struct rawconn *
fake_server_accept(struct fake_server *s, int timeout_ms, uint32_t *code)
{
	struct pollfd pfd = {.fd = s->listen_fd, .events = POLLIN};
	struct rawconn *c;
	int fd;

	if (poll(&pfd, 1, timeout_ms) != 1)
		return NULL;
	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_msg(fd >= 0, "accept: %s", strerror(errno));
	c = raw_from_fd(fd);
	while ((*code = read_first_packet(s, c)) == SSL_REQUEST || *code == GSSENC_REQUEST)
		raw_send(c, "N", 1);
	return c;
}

static void
parameter(struct rawconn *c, const char *name, const char *value)
{
	packet_begin(&c->out, 'S');
	packet_str(&c->out, name);
	packet_str(&c->out, value);
	packet_end(&c->out);
}

void
fake_server_welcome(struct rawconn *c, uint32_t pid, uint32_t key)
{
	packet_begin(&c->out, 'R');
	packet_i32(&c->out, 0);
	packet_end(&c->out);
	parameter(c, "server_version", "15.0");
	parameter(c, "client_encoding", "UTF8");
	parameter(c, "DateStyle", "ISO, MDY");
	parameter(c, "TimeZone", "UTC");
	parameter(c, "standard_conforming_strings", "on");
	parameter(c, "integer_datetimes", "on");
	packet_begin(&c->out, 'K');
	packet_i32(&c->out, pid);
	packet_i32(&c->out, key);
	packet_end(&c->out);
	fake_reply_ready(c, 'I');
	raw_flush(c);
}

struct rawconn *
fake_server_login(struct fake_server *s)
{
	static uint32_t n_logins;
	uint32_t code;
	struct rawconn *c = fake_server_accept(s, RAW_TIMEOUT_MS, &code);

	ck_assert_msg(c != NULL, "the daemon opens no backend");
	ck_assert_uint_eq(code >> 16, 3);
	n_logins++;
	fake_server_welcome(c, 1000 + n_logins, 7000 + n_logins);
	c->cancel_pid = 1000 + n_logins;
	c->cancel_key = 7000 + n_logins;
	return c;
}

void
fake_reply_row(struct rawconn *c, const char *value)
{
	packet_begin(&c->out, 'T');
	packet_i16(&c->out, 1);
	packet_str(&c->out, "v");
	packet_i32(&c->out, 0);
	packet_i16(&c->out, 0);
	packet_i32(&c->out, 25);
	packet_i16(&c->out, -1);
	packet_i32(&c->out, -1);
	packet_i16(&c->out, 0);
	packet_end(&c->out);
	packet_begin(&c->out, 'D');
	packet_i16(&c->out, 1);
	packet_i32(&c->out, (int64_t)strlen(value));
	packet_bytes(&c->out, value, strlen(value));
	packet_end(&c->out);
}

void
fake_reply_complete(struct rawconn *c, const char *tag)
{
	packet_begin(&c->out, 'C');
	packet_str(&c->out, tag);
	packet_end(&c->out);
}

void
fake_reply_ready(struct rawconn *c, char status)
{
	packet_begin(&c->out, 'Z');
	packet_i8(&c->out, status);
	packet_end(&c->out);
}

void
fake_reply_error(struct rawconn *c, const char *severity, const char *sqlstate, const char *message)
{
	packet_begin(&c->out, 'E');
	packet_i8(&c->out, 'S');
	packet_str(&c->out, severity);
	packet_i8(&c->out, 'V');
	packet_str(&c->out, severity);
	packet_i8(&c->out, 'C');
	packet_str(&c->out, sqlstate);
	packet_i8(&c->out, 'M');
	packet_str(&c->out, message);
	packet_i8(&c->out, 0);
	packet_end(&c->out);
}
