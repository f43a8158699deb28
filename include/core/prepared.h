/* SPDX-License-Identifier: ISC */
/*
 * Protocol-level prepared statements over changing backends: a session's names and
 * its unnamed statement are mapped to interned statements, each backend knows which
 * of them are prepared on it, and what is missing is parsed ahead in the same write.
 *
 * Every change is made when the message is sent, since the next message of a pipeline
 * builds on it, and undone when the server turns out not to have executed it: each
 * Parse and Close carries a note in the reply queue, which is settled by the server's
 * answer, by an error, or by the end of the connection.
 */
#ifndef PGWEIR_CORE_PREPARED_H
#define PGWEIR_CORE_PREPARED_H

#include "base/buf.h"
#include "wire/frame.h"
#include "wire/replyq.h"

struct backend;
struct session;
struct statement;
struct unnamed;

/* One run of client bytes on its way to the backend: [from, pos) is looked at and still to be sent. */
struct relay {
	struct session *session;
	const uint8_t *p;
	size_t from, pos;
};

enum prepared_verdict {
	PREPARED_PASS, /* `n_replaced` bytes at its beginning (0: none) are replaced by what was queued; the rest goes as it is */
	PREPARED_MORE,  /* more of the message must be seen */
	PREPARED_WAIT,  /* an earlier unit must be answered first */
	PREPARED_FAILED /* no memory, or too much is under way */
};

/* Whether statements of this session are mapped; else its messages go as they are and it keeps its backend. */
bool prepared_is_on(const struct session *s);

/* Handles a Parse, Bind, Describe or Close at r->p + r->pos and notes it in the reply queue. */
enum prepared_verdict prepared_client_message(struct relay *r, const struct frame *f, size_t *n_replaced);
/* Notes a Query, which ends the unnamed statement. False: no memory. */
bool prepared_client_query(struct session *s);
/* An SQL text that is about to be executed executes it. */
void prepared_suspect(struct session *s, struct statement *st);
/* A Query that may end all statements (DISCARD, DEALLOCATE): nothing may be sent behind it before it is answered. */
bool prepared_may_discard(const uint8_t *sql, size_t n);
/* The unit that is being sent holds such a statement: nor behind its Sync. */
bool prepared_is_discarding(const struct backend *b);

/* body[0..n) of a ParameterDescription, RowDescription or NoData. */
void prepared_described(struct backend *b, char type, const uint8_t *body, size_t n);
/* CommandComplete of DISCARD ALL or DEALLOCATE ALL. */
void prepared_discarded(struct backend *b);
/* An error of the unit under way says that a plan is stale: its statements are parsed anew next time. */
void prepared_plan_failed(struct backend *b);
/*
 * The ErrorResponse body[0..n) in the client's words, where it names a statement as the server knows it: appended to out
 * as a whole message; nothing, if there is nothing to be changed.
 */
void prepared_reword_error(struct backend *b, const uint8_t *body, size_t n, struct buf *out);

void prepared_settle(void *note, enum replyq_outcome outcome); /* for replyq.settle */
void prepared_session_gone(struct backend *b);                 /* notes of its session change nothing in it any more */
void unnamed_free(struct unnamed **u);

#endif
