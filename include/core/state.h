/* SPDX-License-Identifier: ISC */
/*
 * What a session's statements leave behind on its backend, in transaction and statement
 * pooling: texts are suspected (wire/suspect.h), and when a suspect unit has ended outside
 * a transaction the server is asked, in a hidden unit, before anybody else may have the
 * backend. Settings become the session's settings, which any backend can be given;
 * whatever can't be had elsewhere pins the session to this backend until the server says
 * that it is over.
 *
 * The client does not wait for that: it has its reply already. What it sends meanwhile
 * goes behind the question.
 *
 * RESET and its like go back to what the backend logged in with. The session's startup
 * settings are put back by a hidden unit behind each unit that may have reset them, also
 * inside a transaction. For that the client waits: it is told of them before the end of
 * its unit, as by PostgreSQL.
 */
#ifndef PGWEIR_CORE_STATE_H
#define PGWEIR_CORE_STATE_H

#include "base/buf.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend;
struct session;
struct settings;
struct suspicion;

/* Why a session keeps its backend. */
enum pin {
	PIN_STATEMENT = 1 << 0, /* a prepared statement of the protocol that can't be prepared elsewhere */
	PIN_TEMP = 1 << 1,      /* temporary objects */
	PIN_LISTEN = 1 << 2,
	PIN_LOCK = 1 << 3,     /* advisory locks of the session */
	PIN_PREPARED = 1 << 4, /* PREPARE */
	PIN_CURSOR = 1 << 5,   /* WITH HOLD */
	PIN_LOADED = 1 << 6,   /* LOAD */
	PIN_SEED = 1 << 7,     /* setseed() */
	PIN_SEQUENCE = 1 << 8, /* currval(), lastval() */
	PIN_PRIVATE = 1 << 9,  /* dblink's connections, replication slots ... */
	PIN_UNKNOWN = 1 << 10, /* the server could not be asked: it is, after the next unit */
	PIN_N = 11
};
const char *pin_text(unsigned bit); /* for the console: "temp", "listen" ...; NULL: no such bit */

struct state_touched; /* names of settings that the transaction's texts touch */
struct state_probe;   /* a question under way */

#define STATE_TEXT_MAX 200u

/* Texts that may be why a session is pinned, or those of a transaction that is watched. */
struct state_text {
	uint64_t fingerprint; /* wire/sql_fingerprint.h; of several together */
	uint32_t n_texts;
	uint32_t n; /* bytes of `text`, which is cut */
	char text[STATE_TEXT_MAX];
};

/* What is known and suspected of one session. */
struct state_marks {
	uint32_t suspects;          /* SUSPECT_... of the transaction's texts so far */
	uint32_t prepared_suspects; /* of what it has prepared by SQL */
	uint32_t n_sets, n_resets;  /* in the unit: SET and RESET were executed so many times */
	bool failed;                /* ... something failed */
	bool was_in_transaction;    /* ... a unit ended inside a transaction */
	uint64_t restored_unit;     /* ... of the backend, + 1: behind it startup settings were put back */
	bool reads_alone;           /* ... currval() or lastval() came first in its transaction */
	bool has_literals;          /* some settings are spelled as a lone SET did */
	uint8_t n_unanswered;       /* questions in a row that failed */
	struct state_touched *touched;
	struct state_text *text;  /* NULL: none is suspect, or not known */
	struct settings *startup; /* its settings as of login */
	struct settings *told;    /* reported ones as the client knows them, while some are withheld; else NULL */
	uint64_t pinned_since_us;
	uint64_t asked_unit; /* of the backend: after which unit it was asked last */
};

/* Policy and mode want it; false: nothing of this file happens to the session. */
bool state_is_kept(const struct session *s);
/* Its texts are to be suspected: for that, or because in session pooling, too, RESET must find the startup settings. */
bool state_looks_at_texts(const struct session *s);

/* What a text of this session is suspected of. */
void state_scan(const struct session *s, const uint8_t *sql, size_t n, bool is_whole, struct suspicion *out);
/* False: it may pin the session, and too many are pinned: it is to be refused. */
bool state_may_execute(const struct session *s, const struct suspicion *x);
/* A text that is about to be executed. */
void state_suspect(struct session *s, const struct suspicion *x);
void state_suspect_text(struct session *s, const uint8_t *sql, size_t n, const struct suspicion *x);
/*
 * After a suspicion of any setting: the dotted names in a text or in a Bind's values are looked at, since the server lists
 * no such settings.
 */
void state_touch_mentioned(struct session *s, const uint8_t *p, size_t n);
/* The name of a prepared statement that never exists: to be used instead, so that the server fails at the right place. */
#define STATE_REFUSED_STATEMENT "pgweir_0_pin"
#define STATE_REFUSED_SQLSTATE "53300"
#define STATE_REFUSED_TEXT "too many sessions keep a server connection to themselves"
#define STATE_REFUSED_HINT                                                                                             \
	"This statement may leave behind what only its own server connection has (a temporary table, LISTEN, an "      \
	"advisory lock, ...). Raise pool_size or max_pinned, or end what other sessions keep: SHOW PINS."

/* ---- sequences ---- */
/*
 * currval() and lastval() answer what nextval() gave last on this backend, to whomever. As soon as a text of the group has
 * asked for them, a backend forgets such values (DISCARD SEQUENCES) before it serves another session.
 */
void state_sequences_attached(struct backend *b, const struct session *s);
bool state_must_discard_sequences(const struct backend *b, const struct session *s);
/* Of a Parse that may be the group's first such text; a glance at its bytes. */
void state_glance_at_parse(struct session *s, const uint8_t *p, size_t n);

/* ---- a unit is over ---- */
enum state_verdict {
	STATE_CLEAR,  /* nothing is to be asked, or not now */
	STATE_ASKING, /* a hidden unit has been sent, its end is awaited */
	STATE_FAILED, /* no memory: the backend can't be trusted any more */
};
/*
 * The unit's texts may reset what the client gave at startup: nothing is sent behind it, and its ReadyForQuery is held back
 * (backend.ready_is_held), until that is put back.
 */
bool state_may_reset_startup(const struct session *s);
bool state_must_restore(const struct session *s); /* ... and that was not done yet, and can be */
/* All that was sent is answered. */
enum state_verdict state_unit_over(struct session *s);
void state_discarded(struct session *s); /* CommandComplete DISCARD ALL */
/* The session may not give its backend up yet: something is to be asked. */
bool state_is_open(const struct session *s);

/* ---- the hidden unit's replies ---- */
void state_got_row(struct backend *b, const uint8_t *body, size_t n);
void state_got_complete(struct backend *b);
void state_probe_over(struct backend *b);
/*
 * The server is being asked, and the session could go on without the answer: nothing made it doubtful (state_sample.h), and
 * the client waits for nothing.
 */
bool state_is_only_watched(const struct backend *b);
void state_parameter_was_restored(struct backend *b, const char *name, const char *value);

/* ---- reports ---- */
/*
 * In a unit that may have reset startup settings the server reports what they were reset to. Nothing of that is for the
 * client: what has changed is told when all is put back.
 */
bool state_withholds(struct session *s, const char *name); /* this ParameterStatus, which came just now */
void state_withhold(struct session *s);                    /* from now on */
void state_tell(struct session *s, struct buf *out);       /* ... up to here, in front of the unit's end */

/* ---- marks.text ---- */
/* What was just suspected is to be told by its text; state_suspect_text does so itself. */
bool state_wants_text(const struct session *s, const struct suspicion *x);
void state_text_note(struct session *s, const uint8_t *sql, size_t n); /* one more */
void state_text_forget(struct session *s);

void state_free(struct session *s);
void state_probe_free(struct state_probe **p); /* nulls; NULL is a no-op */

#endif
