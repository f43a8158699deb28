/* SPDX-License-Identifier: ISC */
/*
 * The reply queue against a server that keeps the rules of the protocol. The input decides what is sent, when the
 * server handles the next message and how that ends, and when the next of its replies arrives. After each step: no
 * reply is unexpected, each is known for whose it is, each note is told what became of its message, once, and the
 * queue is settled only when everything has been handled and answered.
 *
 * A client that sends anything but copy data, Sync and Flush before it has ended a COPY FROM STDIN or has heard that it
 * failed breaks the protocol. What becomes of such messages depends on timing, and only the barrier tells where the
 * server stands: from there on nothing but crashes is looked for.
 */
#include "wire/replyq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/obj.h"
#include "wire/pgmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_MAX 512

enum fate { FATE_UNKNOWN, FATE_DONE, FATE_FAILED, FATE_SKIPPED };

struct note {
	enum fate real; /* what the server did */
	enum fate told; /* what the queue said */
};

/* A message on its way to the server. */
struct sent {
	char type;
	bool hidden;
	enum replyq_answer answer;
	struct note *note;
	bool is_barrier;
};

/* A reply on its way back. */
struct reply {
	char type, tx;
	enum replyq_fate fate;
	bool is_barrier;
};

enum server_mode { SERVER_NORMAL, SERVER_SKIPPING, SERVER_COPY_SIMPLE, SERVER_COPY_EXTENDED };

struct world {
	const uint8_t *p, *end;
	struct replyq q;
	struct sent sent[N_MAX];
	size_t n_sent, n_handled;
	struct reply replies[8 * N_MAX];
	size_t n_replies, n_delivered;
	struct note notes[N_MAX];
	size_t n_notes;
	enum server_mode mode;
	struct sent copying; /* the message that began the COPY */
	char tx;
	bool in_unit;         /* of the server: extended messages were handled, and no Sync after them */
	bool ends_copy;       /* a COPY has failed, which the client has not heard: it must still end it */
	size_t n_until_heard; /* replies up to that error */
	bool in_doubt;        /* the protocol was broken: see above */
};

/* With FUZZ_TRACE set: the conversation, for whoever looks into a crash. "|" is the server that takes a message. */
static void
trace(const char *what, char type, int detail)
{
	static int wanted = -1;

	if (wanted < 0)
		wanted = getenv("FUZZ_TRACE") != NULL;
	if (wanted)
		fprintf(stderr, "%s%c%d ", what, type, detail);
}

static uint8_t
next_byte(struct world *w)
{
	return w->p < w->end ? *w->p++ : 0;
}

/* ---- the server ---- */

static void
reply(struct world *w, char type, const struct sent *to)
{
	struct reply *r = &w->replies[w->n_replies++];

	invariant(w->n_replies < 8 * N_MAX);
	*r = (struct reply){.type = type, .tx = w->tx, .is_barrier = to->is_barrier};
	trace("reply ", type, to->hidden);
	r->fate = to->hidden ? REPLYQ_HIDE : REPLYQ_FORWARD;
	if (type == BE_PARSE_COMPLETE || type == BE_CLOSE_COMPLETE)
		r->fate = to->hidden || to->answer == REPLYQ_SWALLOW ? REPLYQ_HIDE
		          : to->answer == REPLYQ_AS_PARSE            ? REPLYQ_PARSED
		                                                     : REPLYQ_FORWARD;
}

static void
ready(struct world *w, const struct sent *to)
{
	static const char statuses[] = {TX_IDLE, TX_IDLE, TX_OPEN, TX_FAILED};

	w->tx = statuses[next_byte(w) % 4];
	reply(w, BE_READY, to);
}

static void
real(struct world *w, const struct sent *m, enum fate fate)
{
	(void)w;
	if (m->note == NULL)
		return;
	invariant(m->note->real == FATE_UNKNOWN);
	m->note->real = fate;
}

static void
fail(struct world *w, const struct sent *m, bool extended)
{
	reply(w, BE_ERROR, m);
	real(w, m, FATE_FAILED);
	if (extended)
		w->mode = SERVER_SKIPPING;
}

static void
result(struct world *w, const struct sent *m)
{
	switch (next_byte(w) % 4) {
	case 0:
		reply(w, BE_DATA_ROW, m);
		break;
	case 1:
		reply(w, BE_COPY_OUT, m);
		reply(w, BE_COPY_DATA, m);
		reply(w, BE_COPY_DONE, m);
		break;
	case 2:
		reply(w, BE_NOTICE, m);
		break;
	default:
		break;
	}
	reply(w, BE_COMMAND_COMPLETE, m);
}

/* The rest of a Query, from its begin or after a COPY. */
static void
run_query(struct world *w, const struct sent *m)
{
	uint8_t how = next_byte(w) % 8;

	if (how == 0) {
		reply(w, BE_ERROR, m);
	} else if (how == 1) {
		reply(w, BE_EMPTY_QUERY, m);
	} else {
		if (how == 2)
			reply(w, BE_ROW_DESCRIPTION, m);
		if (how < 5)
			result(w, m);
		if ((how == 4 || how == 5) && !m->hidden) {
			reply(w, BE_COPY_IN, m);
			w->mode = SERVER_COPY_SIMPLE;
			w->copying = *m;
			return;
		}
		if (how > 5)
			result(w, m);
	}
	w->mode = SERVER_NORMAL;
	w->in_unit = false;
	real(w, m, FATE_DONE);
	ready(w, m);
}

static void
run_execute(struct world *w, const struct sent *m)
{
	switch (m->hidden ? 1 : next_byte(w) % 6) {
	case 0:
		fail(w, m, true);
		break;
	case 1:
		reply(w, BE_EMPTY_QUERY, m);
		break;
	case 2:
		reply(w, BE_DATA_ROW, m);
		reply(w, BE_PORTAL_SUSPENDED, m);
		break;
	case 3:
		reply(w, BE_COPY_IN, m);
		w->mode = SERVER_COPY_EXTENDED;
		w->copying = *m;
		break;
	default:
		result(w, m);
		break;
	}
}

static void
run_extended(struct world *w, const struct sent *m)
{
	if (m->type == FE_EXECUTE) {
		run_execute(w, m);
		return;
	}
	if (!m->is_barrier && next_byte(w) % 6 == 0) {
		fail(w, m, true);
		return;
	}
	real(w, m, FATE_DONE);
	switch (m->type) {
	case FE_PARSE:
		reply(w, BE_PARSE_COMPLETE, m);
		break;
	case FE_CLOSE:
		reply(w, BE_CLOSE_COMPLETE, m);
		break;
	case FE_BIND:
		reply(w, BE_BIND_COMPLETE, m);
		break;
	default:
		if (next_byte(w) & 1)
			reply(w, BE_PARAMETER_DESCRIPTION, m);
		reply(w, next_byte(w) & 1 ? BE_NO_DATA : BE_ROW_DESCRIPTION, m);
		break;
	}
}

/* A message behind the data at which the server gave up. */
static void
note_during_copy(struct world *w, char type)
{
	if (type == FE_COPY_DONE || type == FE_COPY_FAIL)
		w->ends_copy = false;
	else if (w->ends_copy && type != FE_COPY_DATA && type != FE_SYNC && type != FE_FLUSH)
		w->in_doubt = true;
}

static void
copy_failed(struct world *w, const struct sent *m)
{
	bool simple = w->mode == SERVER_COPY_SIMPLE;

	w->mode = SERVER_NORMAL;
	w->ends_copy = m->type != FE_COPY_FAIL && m->type != FE_COPY_DONE;
	for (size_t i = w->n_handled; i < w->n_sent; i++)
		note_during_copy(w, w->sent[i].type);
	reply(w, BE_ERROR, &w->copying);
	w->n_until_heard = w->n_replies;
	if (!simple)
		w->mode = SERVER_SKIPPING;
	if (m->note != NULL)
		real(w, m, FATE_FAILED);
	if (simple) {
		w->in_unit = false;
		real(w, &w->copying, FATE_DONE); /* a Query that fails has been executed */
		ready(w, &w->copying);
	}
}

static void
run_in_copy(struct world *w, const struct sent *m)
{
	switch (m->type) {
	case FE_COPY_DATA:
		if (next_byte(w) % 4 == 0)
			copy_failed(w, m);
		return;
	case FE_COPY_DONE:
		if (next_byte(w) % 4 == 0) {
			copy_failed(w, m);
			return;
		}
		reply(w, BE_COMMAND_COMPLETE, &w->copying);
		if (w->mode == SERVER_COPY_SIMPLE)
			run_query(w, &w->copying);
		else
			w->mode = SERVER_NORMAL;
		return;
	case FE_SYNC:
	case FE_FLUSH:
		return;
	default:
		copy_failed(w, m);
		if (m->type != FE_COPY_FAIL)
			w->in_doubt = true;
		return;
	}
}

/* The server takes the next message. */
static void
handle(struct world *w)
{
	struct sent m;

	if (w->n_handled == w->n_sent)
		return;
	m = w->sent[w->n_handled++];
	trace("| ", m.type, (int)w->mode);
	if (w->mode == SERVER_COPY_SIMPLE || w->mode == SERVER_COPY_EXTENDED) {
		run_in_copy(w, &m);
		return;
	}
	if (m.type == FE_SYNC) {
		if (w->mode == SERVER_NORMAL && w->in_unit && !m.is_barrier && next_byte(w) % 8 == 0)
			reply(w, BE_ERROR, &m); /* at commit */
		w->mode = SERVER_NORMAL;
		w->in_unit = false;
		ready(w, &m);
		return;
	}
	if (w->mode == SERVER_SKIPPING) {
		real(w, &m, FATE_SKIPPED);
		return;
	}
	switch (m.type) {
	case FE_QUERY:
		run_query(w, &m);
		break;
	case FE_FUNCTION_CALL:
		reply(w, next_byte(w) & 1 ? BE_FUNCTION_RESULT : BE_ERROR, &m);
		w->in_unit = false;
		ready(w, &m);
		break;
	case FE_COPY_DATA:
	case FE_COPY_DONE:
	case FE_COPY_FAIL:
	case FE_FLUSH:
		break;
	default:
		w->in_unit = true;
		run_extended(w, &m);
		break;
	}
}

/* ---- what is sent ---- */

static void
on_settle(void *what, enum replyq_outcome outcome)
{
	struct note *n = what;

	invariant(n->told == FATE_UNKNOWN);
	n->told = outcome == REPLYQ_DONE ? FATE_DONE : outcome == REPLYQ_FAILED ? FATE_FAILED : FATE_SKIPPED;
}

static void
put(struct world *w, struct sent m)
{
	trace(m.hidden ? "!" : ">", m.type, (int)m.answer);
	w->sent[w->n_sent++] = m;
	note_during_copy(w, m.type);
	w->in_doubt = w->in_doubt || w->q.in_doubt;
}

static struct note *
new_note(struct world *w)
{
	return &w->notes[w->n_notes++];
}

static void
send_statement(struct world *w, char type, enum replyq_answer answer)
{
	struct sent m = {.type = type, .answer = answer, .note = new_note(w)};

	put(w, m);
	invariant(replyq_sent_statement(&w->q, type == FE_PARSE ? REPLYQ_PARSE : REPLYQ_CLOSE, answer, m.note));
}

static void
send_noted_query(struct world *w)
{
	struct sent m = {.type = FE_QUERY, .note = new_note(w)};

	put(w, m);
	invariant(replyq_sent_query(&w->q, m.note));
}

/* As the daemon does: in front of the first unit of a session, and nothing else is owed. */
static void
send_hidden(struct world *w)
{
	if (replyq_is_open(&w->q))
		return;
	if (next_byte(w) & 1) {
		put(w, (struct sent){.type = FE_QUERY, .hidden = true});
		invariant(replyq_sent(&w->q, FE_QUERY, true));
		return;
	}
	for (const char *p = "PBES"; *p != '\0'; p++) {
		put(w, (struct sent){.type = *p, .hidden = true});
		invariant(replyq_sent(&w->q, *p, true));
	}
}

static void
send_plain(struct world *w, char type)
{
	put(w, (struct sent){.type = type});
	invariant(replyq_sent(&w->q, type, false));
}

static void
send_next(struct world *w, uint8_t op)
{
	static const char plain[] = {FE_QUERY,     FE_FUNCTION_CALL, FE_BIND,     FE_DESCRIBE, FE_EXECUTE,
	                             FE_EXECUTE,   FE_SYNC,          FE_SYNC,     FE_FLUSH,    FE_PARSE,
	                             FE_COPY_DATA, FE_COPY_DONE,     FE_COPY_FAIL};

	if (w->n_sent > N_MAX - 8 || w->n_notes > N_MAX - 8)
		return;
	if (replyq_must_wait(&w->q) && (op < 7 || strchr("dcfH", plain[(op - 7) % sizeof(plain)]) == NULL))
		return;
	switch (op) {
	case 0:
		send_statement(w, FE_PARSE, REPLYQ_PASS);
		break;
	case 1:
		send_statement(w, FE_PARSE, REPLYQ_SWALLOW);
		break;
	case 2:
		send_statement(w, FE_CLOSE, REPLYQ_PASS);
		break;
	case 3:
		send_statement(w, FE_CLOSE, REPLYQ_SWALLOW);
		break;
	case 4:
		send_statement(w, FE_CLOSE, REPLYQ_AS_PARSE);
		break;
	case 5:
		send_noted_query(w);
		break;
	case 6:
		send_hidden(w);
		break;
	default:
		send_plain(w, plain[(op - 7) % sizeof(plain)]);
		break;
	}
}

/* ---- what arrives, and what must hold then ---- */

static void
deliver(struct world *w)
{
	struct reply r;
	enum replyq_fate fate;

	if (w->n_delivered == w->n_replies)
		return;
	r = w->replies[w->n_delivered++];
	fate = replyq_got(&w->q, r.type, r.type == BE_READY ? r.tx : 0);
	trace("<", r.type, (int)fate);
	if (w->n_delivered == w->n_until_heard)
		w->ends_copy = false;
	if (w->in_doubt)
		return;
	invariant(fate != REPLYQ_UNEXPECTED);
	if (r.type != BE_ERROR && r.type != BE_NOTICE)
		invariant(fate == r.fate);
	if (replyq_wants_barrier(&w->q) && w->n_sent < N_MAX - 8) {
		invariant(replyq_sent_barrier(&w->q));
		put(w, (struct sent){.type = FE_CLOSE, .hidden = true, .is_barrier = true});
		put(w, (struct sent){.type = FE_SYNC, .hidden = true, .is_barrier = true});
	}
}

static void
check(struct world *w)
{
	w->in_doubt = w->in_doubt || w->q.in_doubt;
	if (w->q.in_doubt)
		invariant(!replyq_is_settled(&w->q));
	if (w->in_doubt)
		return;
	for (size_t i = 0; i < w->n_notes; i++) {
		const struct note *n = &w->notes[i];

		if (n->told != FATE_UNKNOWN && n->real != FATE_UNKNOWN)
			invariant(n->told == n->real);
	}
	if (!replyq_is_settled(&w->q))
		return;
	/* stray ends of no COPY are all that may still be on the way */
	for (size_t i = w->n_handled; i < w->n_sent; i++)
		invariant(w->sent[i].type == FE_COPY_DATA || w->sent[i].type == FE_COPY_DONE ||
		          w->sent[i].type == FE_COPY_FAIL || w->sent[i].type == FE_FLUSH);
	invariant(w->n_delivered == w->n_replies);
	invariant(w->mode == SERVER_NORMAL && !w->in_unit && w->tx == TX_IDLE);
	for (size_t i = 0; i < w->n_notes; i++)
		invariant(w->notes[i].told != FATE_UNKNOWN);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->p = data;
	w->end = data + size;
	w->tx = TX_IDLE;
	replyq_init(&w->q, TX_IDLE);
	w->q.settle = on_settle;
	while (w->p < w->end && w->n_replies < 7 * N_MAX) {
		uint8_t op = next_byte(w) % 40;

		if (op < 20)
			send_next(w, op);
		else if (op < 30)
			handle(w);
		else
			deliver(w);
		check(w);
	}
	replyq_fini(&w->q);
	for (size_t i = 0; i < w->n_notes; i++)
		invariant(w->notes[i].told != FATE_UNKNOWN);
	return 0;
}
