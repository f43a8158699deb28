/* SPDX-License-Identifier: ISC */
/*
 * Which session state can this SQL text change? A look at its words only: it suspects too much rather than too little,
 * and the server is asked afterwards. What a function does inside stays unseen: `session_state = strict` is for that.
 * Pure, allocates nothing.
 *
 * For a caller to know:
 * - A text of a simple query is looked at when it is sent; a text of Parse, when it is executed. What a transaction's
 *   texts are suspected of adds up until it ends (FETCH runs what its DECLARE said).
 * - SUSPECT_EXECUTES stands for no more than EXECUTE: what the named statement is suspected of is to be added.
 * - With SUSPECT_CREATES a text is harmless, unless search_path begins with pg_temp.
 * - A text in an unsafe client_encoding (sql.h) that has both bytes beyond ASCII and backslashes is not whole.
 */
#ifndef PGWEIR_WIRE_SUSPECT_H
#define PGWEIR_WIRE_SUSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sql.h"

#define SUSPECT_NAMES_MAX 8
#define SUSPECT_VALUE_MAX 256

enum suspect_flag {
	/* Settings that outlive the transaction. */
	SUSPECT_SETTINGS = 1 << 0,    /* those named in the suspicion */
	SUSPECT_ANY_SETTING = 1 << 1, /* with SUSPECT_SETTINGS: the text doesn't tell which, no names are given */
	SUSPECT_RESETS = 1 << 2,      /* may return to what the backend logged in with: it must be the session's own */
	SUSPECT_LONE_SET = 1 << 3,    /* all that the text does is to set names[0] to `value` */

	/* What the server can be asked for. */
	SUSPECT_TEMP = 1 << 4,      /* temporary objects; also the mere mention of pg_temp */
	SUSPECT_DROPS = 1 << 5,     /* DROP, DISCARD: temporary objects may be gone */
	SUSPECT_CREATES = 1 << 6,   /* CREATE, SELECT INTO, IMPORT: temporary only if search_path makes it so */
	SUSPECT_LISTENS = 1 << 7,   /* LISTEN, UNLISTEN */
	SUSPECT_LOCKS = 1 << 8,     /* advisory locks of the session, taken or given back */
	SUSPECT_PREPARES = 1 << 9,  /* PREPARE, DEALLOCATE */
	SUSPECT_EXECUTES = 1 << 10, /* EXECUTE */
	SUSPECT_HOLDS = 1 << 11,    /* WITH HOLD, CLOSE */

	/* What it can't be asked for. */
	SUSPECT_LOADS = 1 << 12,     /* LOAD */
	SUSPECT_SEEDS = 1 << 13,     /* setseed(), SET seed */
	SUSPECT_SEQUENCES = 1 << 14, /* nextval(), currval(), lastval(), setval() */
	SUSPECT_PRIVATE = 1 << 15,   /* connections of dblink, temporary slots, replication origins, backups */

	/* Why. */
	SUSPECT_OPAQUE = 1 << 16, /* DO, CALL, CREATE EXTENSION: can do all that the server can be asked for */
	SUSPECT_UNSEEN = 1 << 17, /* the text is cut, or hides a name in U&"": can do anything */

	SUSPECT_READS_SEQUENCE = 1 << 18, /* with SUSPECT_SEQUENCES: currval(), lastval() */
	SUSPECT_TAKES =
		1
		<< 19, /* it may leave something behind; without it UNLISTEN, DEALLOCATE, CLOSE and the like only end it */
};

#define SUSPECT_UNASKABLE (SUSPECT_LOADS | SUSPECT_SEEDS | SUSPECT_SEQUENCES | SUSPECT_PRIVATE)

struct suspicion {
	uint32_t flags;
	uint32_t n_names;
	/*
	 * Settings, each once, in lower case (to the server case means nothing there) and under their own names:
	 * "timezone" for SET TIME ZONE. Only names[0..n_names) are filled in.
	 */
	char names[SUSPECT_NAMES_MAX][SQL_NAME_MAX];
	char value[SUSPECT_VALUE_MAX]; /* with SUSPECT_LONE_SET, as given: the server may spell it otherwise */
};

/*
 * A lone SET is SET [SESSION] name {=|TO} with a single word, string or number, or such a value in SET TIME ZONE, NAMES,
 * ROLE or XML OPTION. Settings whose value depends on the one before, or that the server quotes, are left out.
 *
 * is_whole: sql[0..n) is the whole text. standard_strings: the session's standard_conforming_strings at that time.
 * The transaction's own settings (SET LOCAL, SET TRANSACTION, set_config(.., .., true)) are not suspected.
 */
void suspect_scan(const uint8_t *sql, size_t n, bool is_whole, bool standard_strings, struct suspicion *out);

/* Suspected of everything: what is said of a text that can't be seen. */
void suspect_everything(struct suspicion *out);

#endif
