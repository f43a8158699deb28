/* SPDX-License-Identifier: ISC */
/*
 * A model of one PostgreSQL server process, without a database behind it: what a connection keeps (transaction, prepared
 * statements, portals, settings, an open COPY) and what it answers. Bytes in, bytes out; the same messages are always
 * answered the same. It is written from the protocol's documentation, apart from the code it judges.
 *
 * Its SQL. Statements are separated by ";", words by one blank; $1 .. $9 are parameters, all of type text:
 *   rows N WORDS         N rows of one column: WORDS and the values of all parameters
 *   show WORDS           a row: WORDS and the settings
 *   begin, commit, rollback
 *   fail WORDS           an error
 *   wrong WORDS          an error that is found when it is parsed
 *   defer WORDS          an error when the transaction commits
 *   notice WORDS         a notice
 *   copyin WORDS         COPY FROM STDIN; data that begins with "!" fails
 *   copyout N WORDS      COPY TO STDOUT
 *   set NAME VALUE       NAME: application_name or DateStyle
 *   deallocate all, discard all
 */
#ifndef PGWEIR_TESTS_FUZZ_FAKE_SERVER_H
#define PGWEIR_TESTS_FUZZ_FAKE_SERVER_H

#include "base/buf.h"
#include "wire/frame.h"

#include <stdbool.h>

enum fake_mode {
	FAKE_NORMAL,
	FAKE_SKIPPING,      /* after an error in the extended protocol, up to the next Sync */
	FAKE_COPY_SIMPLE,   /* a Query's COPY FROM STDIN is open */
	FAKE_COPY_EXTENDED, /* an Execute's */
};

#define FAKE_N_SETTINGS 2
#define FAKE_VALUE_MAX 32

struct fake_statement;
struct fake_portal;

struct fake_server {
	struct buf out;     /* all it ever said */
	uint32_t n_flushed; /* of it: what a client is sure to get although he asks nothing more */
	enum fake_mode mode;
	char tx;                 /* TX_IDLE, TX_OPEN, TX_FAILED */
	bool in_unit;            /* extended messages came, and no Sync after them */
	bool is_deferred;        /* the transaction will fail when it commits */
	uint32_t copy_failed_at; /* length of `out` behind the latest error of a COPY FROM STDIN */
	struct fake_statement *statements;
	struct fake_portal *portals;
	char *rest;    /* of the Query whose COPY is open */
	char *copying; /* its statement */
	unsigned n_copied;
	char values[FAKE_N_SETTINGS][FAKE_VALUE_MAX], committed[FAKE_N_SETTINGS][FAKE_VALUE_MAX];
	char reported[FAKE_N_SETTINGS][FAKE_VALUE_MAX];
};

void fake_server_init(struct fake_server *s);
void fake_server_fini(struct fake_server *s);
void fake_server_greet(struct fake_server *s,
                       uint32_t pid); /* the answer to a startup packet, without authentication */
/* f: whole, at p. Terminate is the caller's. */
void fake_server_message(struct fake_server *s, const struct frame *f, const uint8_t *p);

/* Whether it could be given to another session. */
bool fake_server_is_settled(const struct fake_server *s);
int fake_server_n_parameters(const struct fake_server *s, const char *statement); /* -1: no such statement */

#endif
