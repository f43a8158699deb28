/* SPDX-License-Identifier: ISC */
#include "crowd.h"

#include "proc.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void
set_state(struct crowd *c, struct crowd_client *client, enum crowd_state state)
{
	size_t *const counters[] = {[CROWD_NEW] = NULL,
	                            [CROWD_LOGIN] = &c->n_login,
	                            [CROWD_READY] = &c->n_ready,
	                            [CROWD_BUSY] = &c->n_busy,
	                            [CROWD_GONE] = &c->n_gone};

	if (counters[client->state] != NULL)
		--*counters[client->state];
	client->state = state;
	if (counters[state] != NULL)
		++*counters[state];
}

void
crowd_close_client(struct crowd *c, struct crowd_client *client)
{
	if (client->state == CROWD_GONE)
		return;
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	free(client->in);
	client->in = NULL;
	client->n_in = client->cap_in = 0;
	set_state(c, client, CROWD_GONE);
}

/*
 * Statements are small and one at a time: they always fit the socket's buffer. Where the other side has closed, reading tells
 * so, behind its last words.
 */
static void
send_packet(const struct crowd_client *client, struct packet *p)
{
	ssize_t sent = send(client->fd, p->data, p->n, MSG_NOSIGNAL);

	ck_assert_msg(sent == (ssize_t)p->n || (sent < 0 && (errno == EPIPE || errno == ECONNRESET)), "send: %s",
	              strerror(errno));
	packet_free(p);
}

static void
start_login(struct crowd *c, struct crowd_client *client)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
	                         .sin_port = htons(c->port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = client};
	struct packet p = {0};
	int one = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_msg(client->fd >= 0, "socket: %s", strerror(errno));
	set_state(c, client, CROWD_LOGIN);
	if (connect(client->fd, (struct sockaddr *)&in, sizeof(in)) != 0) {
		crowd_close_client(c, client);
		return;
	}
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, client->fd, &ev);
	packet_login(&p, c->user, c->database);
	send_packet(client, &p);
}

static void
start_statement(struct crowd *c, struct crowd_client *client)
{
	const char *sql = c->next != NULL ? c->next(c, client) : NULL;
	struct packet p = {0};

	if (sql == NULL || client->state != CROWD_READY)
		return;
	client->value[0] = '\0';
	if (!client->is_told_off)
		client->sqlstate[0] = '\0';
	client->sent_us = now_us();
	set_state(c, client, CROWD_BUSY);
	packet_query(&p, sql);
	send_packet(client, &p);
}

static void
note_error(struct crowd *c, struct crowd_client *client, const uint8_t *body, uint32_t n)
{
	for (const uint8_t *p = body; p < body + n && *p != 0; p += strlen((const char *)p) + 1)
		if (*p == 'C') {
			memcpy(client->sqlstate, p + 1, 5);
			client->sqlstate[5] = '\0';
		}
	client->is_told_off = client->state == CROWD_READY;
	client->n_errors++;
	c->n_errors++;
}

static void
note_row(struct crowd_client *client, const uint8_t *body)
{
	uint32_t len = packet_read_i16(body) > 0 ? packet_read_u32(body + 2) : UINT32_MAX;

	if (len == UINT32_MAX)
		len = 0;
	if (len >= sizeof(client->value))
		len = sizeof(client->value) - 1;
	memcpy(client->value, body + 6, len);
	client->value[len] = '\0';
}

static void
note_ready(struct crowd *c, struct crowd_client *client, char status)
{
	bool was_busy = client->state == CROWD_BUSY;

	client->status = status;
	set_state(c, client, CROWD_READY);
	if (!was_busy)
		return;
	client->wait_us = now_us() - client->sent_us;
	client->total_wait_us += client->wait_us;
	if (client->wait_us > client->max_wait_us)
		client->max_wait_us = client->wait_us;
	client->n_done++;
	c->n_done++;
	if (c->done != NULL)
		c->done(c, client);
}

static void
handle_message(struct crowd *c, struct crowd_client *client, char type, const uint8_t *body, uint32_t n)
{
	switch (type) {
	case 'E':
		note_error(c, client, body, n);
		break;
	case 'D':
		note_row(client, body);
		break;
	case 'K':
		client->cancel_pid = packet_read_u32(body);
		client->cancel_key = packet_read_u32(body + 4);
		break;
	case 'Z':
		note_ready(c, client, (char)body[0]);
		break;
	default:
		break;
	}
}

static void
read_client(struct crowd *c, struct crowd_client *client)
{
	ssize_t got;
	size_t used = 0;

	if (client->cap_in - client->n_in < 4096) {
		client->cap_in = client->n_in + 8192;
		client->in = realloc(client->in, client->cap_in);
		ck_assert(client->in != NULL);
	}
	got = recv(client->fd, client->in + client->n_in, client->cap_in - client->n_in, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		crowd_close_client(c, client);
		if (c->done != NULL)
			c->done(c, client);
		return;
	}
	client->n_in += (size_t)got;
	while (client->n_in - used >= 5) {
		uint32_t n = packet_read_u32(client->in + used + 1);

		if (client->n_in - used < 1 + (size_t)n)
			break;
		handle_message(c, client, (char)client->in[used], client->in + used + 5, n - 4);
		if (client->state == CROWD_GONE)
			return;
		used += 1 + (size_t)n;
	}
	memmove(client->in, client->in + used, client->n_in - used);
	client->n_in -= used;
}

static void
turn(struct crowd *c)
{
	struct epoll_event ev[256];
	int n = epoll_wait(c->epoll_fd, ev, 256, 5);

	for (int i = 0; i < n; i++) {
		struct crowd_client *client = ev[i].data.ptr;

		if (client->state != CROWD_GONE)
			read_client(c, client);
	}
}

bool
crowd_open(struct crowd *c, int timeout_ms)
{
	int64_t deadline = proc_now_ms() + timeout_ms;
	size_t started = 0, max = c->max_logins != 0 ? c->max_logins : 100;

	c->clients = calloc(c->n, sizeof(*c->clients));
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ck_assert(c->clients != NULL && c->epoll_fd >= 0);
	while (c->n_ready + c->n_gone < c->n && proc_now_ms() < deadline) {
		for (; started < c->n && c->n_login < max; started++) {
			c->clients[started].index = started;
			start_login(c, &c->clients[started]);
		}
		turn(c);
	}
	return c->n_ready == c->n;
}

bool
crowd_run(struct crowd *c, int timeout_ms)
{
	int64_t deadline = proc_now_ms() + timeout_ms, next_tick = 0;

	for (;;) {
		for (size_t i = 0; i < c->n; i++)
			if (c->clients[i].state == CROWD_READY)
				start_statement(c, &c->clients[i]);
		if (c->n_busy == 0)
			return true;
		if (proc_now_ms() >= deadline)
			return false;
		turn(c);
		if (c->tick != NULL && proc_now_ms() >= next_tick) {
			c->tick(c);
			next_tick = proc_now_ms() + 3;
		}
	}
}

void
crowd_close(struct crowd *c)
{
	for (size_t i = 0; i < c->n; i++)
		crowd_close_client(c, &c->clients[i]);
	close(c->epoll_fd);
	free(c->clients);
	c->clients = NULL;
}
