/* SPDX-License-Identifier: ISC */
/*
 * Notes in the reply queue: what a Parse or Close that is under way has changed already,
 * and what is to be undone should the server not have executed it. Private to the
 * files of prepared statements.
 */
#ifndef PGWEIR_CORE_PREPARED_NOTE_H
#define PGWEIR_CORE_PREPARED_NOTE_H

#include "core/prepared.h"
#include "core/statement.h"

#define NEVER_PREPARED STATEMENT_PREFIX "0" /* numbers begin at 1 */

/* The last unnamed Parse of a session: its body behind the empty name; or another message's body that is kept. */
struct unnamed {
	size_t n;
	uint8_t body[];
};

enum note_kind {
	NOTE_NAMED, /* the client's Parse of a name: in the session's names, and st on the backend if `on_backend` */
	NOTE_DUPLICATE, /* the client's Parse of a name in use: under the name of `st`, which is there, so it fails */
	NOTE_UNNAMED, /* the client's Parse of the unnamed statement, or a Query that ends it; `old` was there before */
	NOTE_NAME_CLOSED,  /* the client's Close of a name: taken from the session's names */
	NOTE_PARSED_AHEAD, /* our Parse: on the backend */
	NOTE_REPARSED,     /* our Parse of the session's unnamed statement */
	NOTE_EVICTED,      /* our Close: no more on the backend */
	NOTE_DESCRIBED,    /* the client's Describe: the answer is what it goes by from now on */
	NOTE_CHECKED,      /* our Describe: is the answer still the one that a client was given? */
	NOTE_NOTHING,
};

struct note {
	enum note_kind kind;
	bool on_backend;
	struct backend *backend;
	struct session *session; /* NULL: gone, or not concerned */
	struct statement *st;    /* a reference, or NULL */
	struct statement *want;  /* DUPLICATE: what is prepared should it not fail; a reference, or NULL */
	struct unnamed *old;
	struct unnamed *types; /* DESCRIBED, CHECKED: body of the ParameterDescription */
	struct description *told;
	uint64_t unit; /* of the backend: when it was sent */
	char name[];
};

struct unnamed *unnamed_new(const uint8_t *body, size_t n); /* NULL: no memory */

/* On behalf of b: NULL session: the client is not concerned; NULL: no memory. */
struct note *note_new(enum note_kind kind, struct backend *b, struct session *s, const char *name);
void note_free(struct note *x);
/* The client has been told that a result has changed: its statements are made afresh, where no client goes by the old result. */
void prepared_result_changed(struct backend *b);

/* ---- sending; all but relay_queue() consume the note; false: no memory, or too much is under way ---- */
/* Queues messages of ours in front of the client's message at r->pos. Empties out. */
bool relay_queue(struct relay *r, struct buf *out);
bool note_sent(struct relay *r, enum replyq_kind kind, enum replyq_answer answer, struct note *note);
/* A Close of ours, or one in place of a client's message. */
bool note_send_close(struct relay *r, const char *server_name, enum replyq_answer answer, struct note *note);
/* A Parse of ours, or one in place of the client's; body: what follows the name in it. */
bool note_send_parse(struct relay *r, const char *server_name, const uint8_t *body, size_t n, enum replyq_answer answer,
                     struct note *note);

#endif
