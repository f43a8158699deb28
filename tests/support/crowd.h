/* SPDX-License-Identifier: ISC */
/*
 * Many clients in one thread: raw sockets on epoll, each logs in (trust) and
 * then sends one statement after the other.
 */
#ifndef PGWEIR_TEST_CROWD_H
#define PGWEIR_TEST_CROWD_H

#include "packet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum crowd_state { CROWD_NEW, CROWD_LOGIN, CROWD_READY, CROWD_BUSY, CROWD_GONE };

struct crowd_client {
	size_t index;
	enum crowd_state state;
	int fd;
	char status;      /* of the last ReadyForQuery */
	char sqlstate[6]; /* of the last error; "" when the last statement had none */
	bool is_told_off; /* ... which came between two statements: last words, kept */
	char value[64];   /* first column of the statement's last row */
	unsigned n_done;  /* statements answered */
	unsigned n_errors;
	int64_t sent_us, wait_us, max_wait_us, total_wait_us; /* from sending a statement to its ReadyForQuery */
	uint32_t cancel_pid, cancel_key;
	long tag; /* for the test */
	uint8_t *in;
	size_t n_in, cap_in;
};

struct crowd {
	uint16_t port;
	const char *user, *database;
	size_t n;
	size_t max_logins; /* at a time; 0: 100 */
	/* The next statement of a ready client; NULL: none, it stays connected. The text is sent at once. */
	const char *(*next)(struct crowd *c, struct crowd_client *client);
	/* Called after each ReadyForQuery of a statement and after a close; may be NULL. */
	void (*done)(struct crowd *c, struct crowd_client *client);
	/* Called every few milliseconds while running; may be NULL. */
	void (*tick)(struct crowd *c);
	void *arg;

	struct crowd_client *clients;
	size_t n_ready, n_busy, n_gone, n_login;
	unsigned long n_done, n_errors;
	int epoll_fd;
};

/* Logs everyone in: true if all n are ready. Clients refused are CROWD_GONE with their sqlstate. */
bool crowd_open(struct crowd *c, int timeout_ms);
/* Runs until nobody has a next statement and all are answered; false: timeout. */
bool crowd_run(struct crowd *c, int timeout_ms);
void crowd_close_client(struct crowd *c, struct crowd_client *client); /* abruptly */
void crowd_close(struct crowd *c);

#endif
