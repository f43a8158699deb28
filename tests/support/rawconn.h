/* SPDX-License-Identifier: ISC */
/*
 * A connection that speaks the protocol message by message: a client of the
 * daemon or the server, or the server's end of a backend (fake_server.h).
 * Everything waits at most RAW_TIMEOUT_MS and asserts.
 */
#ifndef PGWEIR_TEST_RAWCONN_H
#define PGWEIR_TEST_RAWCONN_H

#include "packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_TIMEOUT_MS 20000

struct rawmsg {
	char type;     /* 0: end of file or reset */
	uint8_t *body; /* valid until the next read */
	uint32_t n;
};

struct rawconn {
	int fd;
	struct packet out; /* build here, then raw_flush() */
	uint8_t *in;
	size_t n_in, cap_in, used;
	uint32_t cancel_pid, cancel_key; /* from BackendKeyData */
	char sqlstate[6];                /* of the last ErrorResponse, "" before the first */
	char message[512];
	char rows[4096]; /* raw_until_ready: values of DataRows, columns by ",", rows by ";" */
	char tags[1024]; /* raw_until_ready: command tags by ";" */
};

struct rawconn *raw_tcp(uint16_t port);     /* 127.0.0.1, not logged in */
struct rawconn *raw_try_tcp(uint16_t port); /* NULL: refused */
struct rawconn *raw_unix(const char *dir, uint16_t port);
struct rawconn *raw_from_fd(int fd);
struct rawconn *raw_login(uint16_t port, const char *user, const char *database); /* trust; asserts */
void raw_close(struct rawconn *c);                                                /* abruptly; NULL is fine */

void raw_flush(struct rawconn *c); /* sends out, whole */
void raw_send(struct rawconn *c, const void *data, size_t n);
bool raw_try_send(struct rawconn *c, const void *data, size_t n); /* false: the peer is gone */
void raw_query(struct rawconn *c, const char *sql);               /* sends a Query at once */

struct rawmsg raw_read(struct rawconn *c);
int raw_read_byte(struct rawconn *c);                      /* -1: end of file */
struct rawmsg raw_read_type(struct rawconn *c, char type); /* skips others; asserts on end of file */
bool raw_wait_message(struct rawconn *c, int timeout_ms);  /* a whole message (or end of file) is there to read */
/* Reads to the next ReadyForQuery: its status, or 0 at end of file. */
char raw_until_ready(struct rawconn *c);
void raw_expect_eof(struct rawconn *c); /* skips messages up to the end of file */
/* Startup answered up to ReadyForQuery or the end: true if logged in; sqlstate and message tell else. */
bool raw_finish_login(struct rawconn *c);

void raw_cancel(uint16_t port, uint32_t pid, uint32_t key);                 /* sends it and waits for the close */
struct rawconn *raw_send_cancel(uint16_t port, uint32_t pid, uint32_t key); /* sends it */
const char *raw_error_field(const struct rawmsg *m, char field);            /* NULL: none */

#endif
