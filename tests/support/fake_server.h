/* SPDX-License-Identifier: ISC */
/*
 * A server that does what the test says, so that races are ordered instead of
 * repeated: the test accepts each backend connection, reads what the daemon
 * sent and decides what to answer and when. A "* = host=127.0.0.1 port=..." line
 * points the daemon at it.
 */
#ifndef PGWEIR_TEST_FAKE_SERVER_H
#define PGWEIR_TEST_FAKE_SERVER_H

#include "rawconn.h"

struct fake_server {
	int listen_fd;
	uint16_t port;
	uint8_t first[10000]; /* the latest connection's first packet, behind the code */
	uint32_t n_first;
};

struct fake_server *fake_server_new(void);
void fake_server_free(struct fake_server *s);
const char *fake_server_databases(const struct fake_server *s); /* for daemon_conf.databases */

/* The next connection with its first packet read. code: protocol version or request code. NULL: none in time. */
struct rawconn *fake_server_accept(struct fake_server *s, int timeout_ms, uint32_t *code);
/* The next backend, answered "logged in" (SSLRequest answered N before). Asserts. */
struct rawconn *fake_server_login(struct fake_server *s);
void fake_server_welcome(struct rawconn *c, uint32_t pid, uint32_t key); /* AuthenticationOk ... ReadyForQuery */

/* Replies; raw_flush() sends them. */
void fake_reply_row(struct rawconn *c, const char *value); /* RowDescription and DataRow of one text column */
void fake_reply_complete(struct rawconn *c, const char *tag);
void fake_reply_ready(struct rawconn *c, char status);
void fake_reply_error(struct rawconn *c, const char *severity, const char *sqlstate, const char *message);

#endif
