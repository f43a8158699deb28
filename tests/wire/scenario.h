/* SPDX-License-Identifier: ISC */
/* A file of the corpus, read: what to send, when to wait. See README.md for the words. */
#ifndef PGWEIR_TEST_SCENARIO_H
#define PGWEIR_TEST_SCENARIO_H

#include "packet.h"

#include <stdbool.h>
#include <stddef.h>

enum step_kind {
	STEP_SEND,     /* bytes of one message */
	STEP_WAIT,     /* until n more messages of this type have come */
	STEP_WAIT_EOF, /* until the peer closes */
	STEP_BYTE,     /* until one byte without framing has come: the answer to SSLRequest */
	STEP_UNTIL,    /* until this SQL, run directly on the server, says true */
	STEP_CANCEL,   /* a CancelRequest with the session's key, on a connection of its own */
	STEP_HALF_CLOSE,
	STEP_CLOSE,
};

struct step {
	enum step_kind kind;
	struct packet bytes;
	char type;
	int n;
	char *sql;
};

#define SCENARIO_STARTUP_MAX 160

struct scenario {
	char *path, *title;
	struct step *steps;
	size_t n_steps;
	bool over_unix;                          /* else TCP */
	bool logs_in;                            /* the player logs in before the first step */
	bool compares_error_text;                /* else only severity and SQLSTATE */
	char ignored[8];                         /* message types left out */
	bool compares_login;                     /* else the replies to the login are left out */
	char *startup[SCENARIO_STARTUP_MAX + 1]; /* more startup parameters: name, value ... NULL */
	char *setup, *check;                     /* SQL for a direct connection, or NULL */
};

/* NULL: *error says where and why. */
struct scenario *scenario_read(const char *path, char **error);

#endif
