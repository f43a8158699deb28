/* SPDX-License-Identifier: ISC */
/*
 * What one server connection still owes, in order. Fed with the type of every
 * message that goes to the server and comes from it; answers whose reply a message
 * is, and whether the connection may change hands. Pure: no sockets, no bytes.
 *
 * The rules behind it (documentation: "Message Flow"; they hold for the server
 * versions 9.6 to 18):
 * - A Query, a FunctionCall and a Sync are answered by one ReadyForQuery each.
 * - After an error in an extended-protocol message the server skips everything up
 *   to the next Sync, queries and function calls included: those are never answered.
 *   To know whether an error was one, the replies of extended messages are counted
 *   against those sent before the query.
 * - While a COPY FROM STDIN is open the server ignores Sync and Flush. If the COPY
 *   fails it depends on timing which Syncs it had read by then; such Syncs are
 *   counted as "maybe", and the connection is settled again only after a barrier
 *   (a hidden Close + Sync, whose CloseComplete can come from nowhere else).
 */
#ifndef PGWEIR_WIRE_REPLYQ_H
#define PGWEIR_WIRE_REPLYQ_H

#include <stdbool.h>
#include <stdint.h>

enum replyq_kind {
	REPLYQ_QUERY,    /* Query or FunctionCall: answered by a Z */
	REPLYQ_SYNC,     /* answered by a Z */
	REPLYQ_COPY_END, /* CopyDone or CopyFail: ends the COPY of the entry before it */
	REPLYQ_BARRIER,  /* hidden Close + Sync */
	REPLYQ_PARSE,    /* answered by a ParseComplete */
	REPLYQ_CLOSE,    /* answered by a CloseComplete */
	REPLYQ_DESCRIBE, /* of a statement: answered by a ParameterDescription, then a RowDescription or NoData */
};

/*
 * What becomes of the answer to a Parse, Close or Describe. AS_PARSE: a Close that stands for the client's Parse of a statement
 * that is prepared already; so the server places the answer, and skips it after an error, exactly as it would have.
 */
enum replyq_answer { REPLYQ_PASS, REPLYQ_SWALLOW, REPLYQ_AS_PARSE };

enum replyq_outcome {
	REPLYQ_DONE,    /* answered */
	REPLYQ_FAILED,  /* the error was its */
	REPLYQ_SKIPPED, /* never executed: an earlier message failed, or the connection is gone */
};

struct replyq_entry {
	uint8_t kind;   /* enum replyq_kind */
	uint8_t answer; /* enum replyq_answer; PARSE, CLOSE and DESCRIBE */
	bool hidden;    /* a whole unit of ours: its replies are not the client's */
	uint32_t n_ext; /* other extended-protocol messages between the entry before and this one */
	void *what;     /* the owner's: told to `settle`, if not NULL */
};

enum replyq_mode {
	REPLYQ_NORMAL,
	REPLYQ_COPY_IN,  /* the server reads copy data */
	REPLYQ_SKIPPING, /* the server skips to a Sync that has not been sent yet */
};

#define REPLYQ_INLINE 4
#define REPLYQ_MAX (1u << 20) /* entries; more messages in one unit are refused */

struct replyq {
	struct replyq_entry *ring; /* capacity is a power of two; `inline_ring` until it grows */
	uint32_t head, n, cap;
	uint32_t n_ext;   /* extended messages sent after the last entry */
	uint32_t n_done;  /* of the extended messages at the head: answered */
	uint32_t n_maybe; /* units the server may or may not answer */
	uint8_t mode;     /* enum replyq_mode */
	bool in_unit;     /* extended messages were sent, and no Sync or query after them */
	bool in_doubt; /* something was sent of which only the server knows whether it is skipped: a barrier tells when all is over */
	char tx; /* status of the last ReadyForQuery */
	/* Tells what became of an entry with a `what`; after an error the latest first, so that changes can be undone. */
	void (*settle)(void *what, enum replyq_outcome outcome);
	struct replyq_entry inline_ring[REPLYQ_INLINE];
};

void replyq_init(struct replyq *q, char tx_status);
void replyq_fini(struct replyq *q); /* what is left is skipped */

/*
 * Notes that a message of this type (FE_...) goes to the server. hidden: it is ours. False: REPLYQ_MAX or memory; the
 * message must not be sent. Types that are never answered (CopyData, Flush) may be left out.
 */
bool replyq_sent(struct replyq *q, char fe_type, bool hidden);
/* The same for Parse, Close and Describe of a statement, with what becomes of the answer. */
bool replyq_sent_statement(struct replyq *q, enum replyq_kind kind, enum replyq_answer answer, void *what);
/* A Query that undoes something when it is skipped. */
bool replyq_sent_query(struct replyq *q, void *what);
/* Notes the barrier: Close of a statement that never exists, and a Sync. */
bool replyq_sent_barrier(struct replyq *q);

enum replyq_fate {
	REPLYQ_FORWARD,    /* the client's */
	REPLYQ_HIDE,       /* answers a hidden unit, or a message of ours inside a unit of the client's */
	REPLYQ_PARSED,     /* a CloseComplete that the client is to see as a ParseComplete */
	REPLYQ_UNEXPECTED, /* a ReadyForQuery that nothing asked for: the connection can't be trusted any more */
};
/* Notes a message from the server (BE_...); tx_status only for ReadyForQuery. */
enum replyq_fate replyq_got(struct replyq *q, char be_type, char tx_status);

/* Whose reply would a message be that comes now? */
static inline bool
replyq_is_hidden(const struct replyq *q)
{
	return q->n > 0 && q->ring[q->head].hidden;
}

/* Something sent has not been answered, or a unit is only half sent. */
static inline bool
replyq_is_open(const struct replyq *q)
{
	return q->n > 0 || q->in_unit || q->mode != REPLYQ_NORMAL || q->n_maybe > 0 || q->in_doubt;
}

/* Owes nothing and is outside a transaction: may change hands. */
static inline bool
replyq_is_settled(const struct replyq *q)
{
	return !replyq_is_open(q) && q->tx == 'I';
}

/* All that was sent ends a unit: the next Query, FunctionCall or extended message begins a new one. */
static inline bool
replyq_at_boundary(const struct replyq *q)
{
	return !q->in_unit && q->mode == REPLYQ_NORMAL;
}

/* Nor may the next unit be sent before it is known whether all that was sent into a COPY that failed is answered. */
static inline bool
replyq_must_wait(const struct replyq *q)
{
	return (q->n_maybe > 0 || q->in_doubt) && replyq_at_boundary(q);
}

/* In an open COPY FROM STDIN whose end has not been sent. */
bool replyq_copy_wants_data(const struct replyq *q);

/*
 * If nothing more is sent, not all of it will be answered: a unit without its end, or an open COPY FROM STDIN without its
 * end, or (extended protocol) without a Sync behind that.
 */
bool replyq_is_half_sent(const struct replyq *q);

/* The `what` of entry i, from the oldest; NULL: none. */
static inline void *
replyq_what(const struct replyq *q, uint32_t i)
{
	return q->ring[(q->head + i) & (q->cap - 1)].what;
}

/* The `what` of the message whose reply would come now; NULL: none. */
void *replyq_current(const struct replyq *q);

/* Only what may or may not be answered is left: send a barrier. */
static inline bool
replyq_wants_barrier(const struct replyq *q)
{
	return q->n == 0 && !q->in_unit && q->mode == REPLYQ_NORMAL && (q->n_maybe > 0 || q->in_doubt);
}

#endif
