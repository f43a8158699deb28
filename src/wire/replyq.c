/* SPDX-License-Identifier: ISC */
#include "wire/replyq.h"

#include "base/obj.h"
#include "wire/pgmsg.h"

#include <stdlib.h>
#include <string.h>

void
replyq_init(struct replyq *q, char tx_status)
{
	memset(q, 0, sizeof(*q));
	q->ring = q->inline_ring;
	q->cap = REPLYQ_INLINE;
	q->tx = tx_status;
}

static struct replyq_entry *
entry_at(struct replyq *q, uint32_t i)
{
	return &q->ring[(q->head + i) & (q->cap - 1)];
}

static void
settle(struct replyq *q, struct replyq_entry *e, enum replyq_outcome outcome)
{
	void *what = e->what;

	e->what = NULL;
	if (what != NULL)
		q->settle(what, outcome);
}

void
replyq_fini(struct replyq *q)
{
	if (q->ring == NULL)
		return;
	for (uint32_t i = q->n; i > 0; i--)
		settle(q, entry_at(q, i - 1), REPLYQ_SKIPPED);
	q->n = 0;
	if (q->ring != q->inline_ring)
		free(q->ring);
	q->ring = NULL;
}

static bool
grow(struct replyq *q)
{
	struct replyq_entry *ring = malloc(2 * q->cap * sizeof(*ring));

	if (ring == NULL)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		ring[i] = *entry_at(q, i);
	if (q->ring != q->inline_ring)
		free(q->ring);
	q->ring = ring;
	q->cap *= 2;
	q->head = 0;
	return true;
}

static bool
is_statement(const struct replyq_entry *e)
{
	return e->kind == REPLYQ_PARSE || e->kind == REPLYQ_CLOSE || e->kind == REPLYQ_DESCRIBE;
}

static bool
push_entry(struct replyq *q, struct replyq_entry e)
{
	if (q->n >= REPLYQ_MAX || (q->n == q->cap && !grow(q)))
		return false;
	e.n_ext = q->n_ext;
	if (e.kind != REPLYQ_COPY_END)
		q->in_unit = is_statement(&e);
	*entry_at(q, q->n++) = e;
	q->n_ext = 0;
	return true;
}

static bool
push(struct replyq *q, enum replyq_kind kind, bool hidden)
{
	return push_entry(q, (struct replyq_entry){.kind = (uint8_t)kind, .hidden = hidden});
}

static void
pop(struct replyq *q)
{
	q->head = (q->head + 1) & (q->cap - 1);
	q->n--;
}

/* Takes out entry i, keeping the order of the rest. */
static void
remove_at(struct replyq *q, uint32_t i)
{
	for (; i > 0; i--)
		*entry_at(q, i) = *entry_at(q, i - 1);
	pop(q);
}

/* Ends for which no COPY was open: all that was sent before them is answered. */
static void
drop_stray_ends(struct replyq *q)
{
	while (q->n > 0 && q->mode != REPLYQ_COPY_IN && entry_at(q, 0)->kind == REPLYQ_COPY_END &&
	       q->n_done >= entry_at(q, 0)->n_ext) {
		pop(q);
		q->n_done = 0;
	}
}

/* Extended messages sent in the group whose replies come now. */
static uint32_t
head_n_ext(struct replyq *q)
{
	return q->n > 0 ? entry_at(q, 0)->n_ext : q->n_ext;
}

/* ---- to the server ---- */

static bool
is_copy_type(char fe_type)
{
	return fe_type == FE_COPY_DATA || fe_type == FE_COPY_DONE || fe_type == FE_COPY_FAIL;
}

static bool
sent_while_skipping(struct replyq *q, char fe_type, bool hidden)
{
	if (fe_type == FE_SYNC) {
		q->mode = REPLYQ_NORMAL;
		return push(q, REPLYQ_SYNC, hidden);
	}
	/* a maybe-Sync could have ended the skipping already: then this is executed */
	if (q->n_maybe > 0 && !is_copy_type(fe_type) && fe_type != FE_FLUSH)
		q->in_doubt = true;
	return true;
}

bool
replyq_sent(struct replyq *q, char fe_type, bool hidden)
{
	if (q->mode == REPLYQ_SKIPPING)
		return sent_while_skipping(q, fe_type, hidden);
	switch (fe_type) {
	case FE_QUERY:
	case FE_FUNCTION_CALL:
		return push(q, REPLYQ_QUERY, hidden);
	case FE_SYNC:
		return push(q, REPLYQ_SYNC, hidden);
	case FE_PARSE:
	case FE_BIND:
	case FE_DESCRIBE:
	case FE_EXECUTE:
	case FE_CLOSE:
		if (q->n_ext == UINT32_MAX)
			return false;
		q->n_ext++;
		q->in_unit = true;
		return true;
	case FE_COPY_DONE:
	case FE_COPY_FAIL: {
		/* the end of a COPY, or stray: then the server ignores it and the next Z drops the entry */
		uint32_t n_ext = q->n_ext;

		if (q->n == 0 && n_ext == 0)
			return true;
		if (!push(q, REPLYQ_COPY_END, hidden))
			return false;
		entry_at(q, q->n - 1)->n_ext = n_ext;
		return true;
	}
	default:
		return true;
	}
}

bool
replyq_sent_statement(struct replyq *q, enum replyq_kind kind, enum replyq_answer answer, void *what)
{
	struct replyq_entry e = {.kind = (uint8_t)kind, .answer = (uint8_t)answer, .what = what};

	if (q->mode == REPLYQ_SKIPPING) {
		settle(q, &e, REPLYQ_SKIPPED);
		q->in_doubt = q->in_doubt || q->n_maybe > 0;
		return true;
	}
	return push_entry(q, e);
}

bool
replyq_sent_query(struct replyq *q, void *what)
{
	struct replyq_entry e = {.kind = REPLYQ_QUERY, .what = what};

	if (q->mode != REPLYQ_SKIPPING)
		return push_entry(q, e);
	settle(q, &e, REPLYQ_SKIPPED);
	return replyq_sent(q, FE_QUERY, false);
}

bool
replyq_sent_barrier(struct replyq *q)
{
	return push(q, REPLYQ_BARRIER, true);
}

/* ---- from the server ---- */

/*
 * Index of the first entry behind what the open COPY belongs to: 1 for a Query at the head (its Z comes after the
 * COPY), 0 for the extended protocol (a Sync at the head was read while the COPY was open).
 */
static uint32_t
copy_begin(struct replyq *q)
{
	return q->n > 0 && entry_at(q, 0)->kind == REPLYQ_QUERY && q->n_done >= entry_at(q, 0)->n_ext;
}

/*
 * Takes out what was sent between the begin of the open COPY and its end. Answers how many units it was.
 *
 * What has an answer has no place there: it makes the COPY fail, unless that has failed before it. Then it is executed,
 * if nothing is skipped: behind a Query's COPY, or behind one of the Syncs.
 */
static uint32_t
take_copy_entries(struct replyq *q)
{
	uint32_t at = copy_begin(q), n_units = 0;

	q->mode = REPLYQ_NORMAL;
	while (q->n > at) {
		const struct replyq_entry *e = entry_at(q, at);
		enum replyq_kind kind = e->kind;
		bool is_ours = e->n_ext > 0 && at == 0;
		bool may_run = at == 1 || n_units > 0;

		q->in_doubt = q->in_doubt || (may_run && (is_statement(e) || kind == REPLYQ_QUERY || e->n_ext > 0));
		/* an error inside the COPY if it is no Sync; how much of it was read is not known */
		settle(q, entry_at(q, at), REPLYQ_SKIPPED);
		remove_at(q, at);
		if (is_ours)
			q->n_done = 0;
		if (kind == REPLYQ_COPY_END)
			return n_units;
		n_units += kind == REPLYQ_SYNC || kind == REPLYQ_QUERY;
	}
	q->in_doubt = q->in_doubt || ((at == 1 || n_units > 0) && q->n_ext > 0);
	return n_units;
}

/* Whether the one that failed is the entry at the head: all before it were answered, and it was no COPY. */
static void
skip_to_sync(struct replyq *q, bool is_head)
{
	uint32_t n = 0;

	while (n < q->n && entry_at(q, n)->kind != REPLYQ_SYNC)
		n++;
	for (uint32_t i = n; i > 0; i--)
		settle(q, entry_at(q, i - 1), i == 1 && is_head ? REPLYQ_FAILED : REPLYQ_SKIPPED);
	for (; n > 0; n--)
		pop(q);
	q->n_done = 0;
	if (q->n > 0) {
		entry_at(q, 0)->n_ext = 0;
	} else {
		q->n_ext = 0;
		q->in_unit = false;
		q->mode = REPLYQ_SKIPPING;
	}
}

/* Answers of all else than Syncs can't be told apart while it is not known which Syncs are answered. */
static bool
is_more_than_syncs(struct replyq *q, uint32_t from)
{
	for (uint32_t i = from; i < q->n; i++) {
		const struct replyq_entry *e = entry_at(q, i);

		if ((e->kind != REPLYQ_SYNC && e->kind != REPLYQ_COPY_END) || e->n_ext > 0)
			return true;
	}
	return q->n_ext > 0;
}

static void
got_error(struct replyq *q)
{
	bool is_head = q->n > 0 && q->n_done >= entry_at(q, 0)->n_ext;
	bool in_extended = q->n_done < head_n_ext(q) || (q->n > 0 && is_statement(entry_at(q, 0)));

	if (q->mode == REPLYQ_COPY_IN) {
		is_head = false;
		in_extended = copy_begin(q) == 0;
		q->n_maybe += take_copy_entries(q);
		q->in_doubt = q->in_doubt || (q->n_maybe > 0 && is_more_than_syncs(q, in_extended ? 0 : 1));
	}
	if (in_extended)
		skip_to_sync(q, is_head);
}

/* What comes in front of the barrier's own answer is the client's, though nobody knew that it would come. */
static bool
is_hidden(struct replyq *q)
{
	return replyq_is_hidden(q) && (entry_at(q, 0)->kind != REPLYQ_BARRIER || q->n_done > 0);
}

/* A ParseComplete or CloseComplete, or the last answer to a Describe. */
static enum replyq_fate
got_statement(struct replyq *q, enum replyq_kind kind)
{
	struct replyq_entry e;

	if (q->n == 0 || entry_at(q, 0)->kind != kind || q->n_done < entry_at(q, 0)->n_ext) {
		if (q->n_done < head_n_ext(q))
			q->n_done++;
		return is_hidden(q) ? REPLYQ_HIDE : REPLYQ_FORWARD;
	}
	e = *entry_at(q, 0);
	pop(q);
	q->n_done = 0;
	settle(q, &e, REPLYQ_DONE);
	switch ((enum replyq_answer)e.answer) {
	case REPLYQ_SWALLOW:
		return REPLYQ_HIDE;
	case REPLYQ_AS_PARSE:
		return REPLYQ_PARSED;
	case REPLYQ_PASS:
		break;
	}
	return REPLYQ_FORWARD;
}

static bool
has_only_ends(struct replyq *q)
{
	uint32_t i = 0;

	while (i < q->n && entry_at(q, i)->kind == REPLYQ_COPY_END)
		i++;
	return i == q->n;
}

static void
got_complete(struct replyq *q)
{
	if (q->mode == REPLYQ_COPY_IN) {
		bool was_extended = copy_begin(q) == 0;
		uint32_t n_before = q->n;

		(void)take_copy_entries(q); /* all read while the COPY was open: ignored by the server */
		/* a Sync that was ignored does not end the unit: one is still to come */
		if (was_extended && has_only_ends(q))
			q->in_unit = true;
		if (!was_extended || q->n != n_before)
			return;
	}
	if (q->n_done < head_n_ext(q))
		q->n_done++;
}

/* A ReadyForQuery is due for the entry at the head: else it ends a unit that the server may or may not have answered. */
static bool
is_ready_due(struct replyq *q)
{
	const struct replyq_entry *e = entry_at(q, 0);

	if (q->n == 0 || is_statement(e) || (q->n_maybe > 0 && q->n_done < e->n_ext))
		return false;
	return e->kind != REPLYQ_BARRIER || q->n_done > 0;
}

static enum replyq_fate
got_ready(struct replyq *q, char tx_status)
{
	bool hidden;

	if (!is_ready_due(q)) {
		if (q->n_maybe == 0 && !q->in_doubt)
			return REPLYQ_UNEXPECTED;
		q->n_maybe -= q->n_maybe > 0;
		q->mode = REPLYQ_NORMAL;
		q->tx = tx_status;
		return REPLYQ_FORWARD;
	}
	hidden = entry_at(q, 0)->hidden;
	settle(q, entry_at(q, 0), REPLYQ_DONE);
	q->mode = q->mode == REPLYQ_SKIPPING ? REPLYQ_SKIPPING : REPLYQ_NORMAL;
	q->tx = tx_status;
	q->n_done = 0;
	pop(q);
	drop_stray_ends(q); /* nothing is owed for them */
	return hidden ? REPLYQ_HIDE : REPLYQ_FORWARD;
}

/* The answer that comes now is to a message of ours inside a unit of the client's. */
static bool
is_swallowed(struct replyq *q)
{
	return q->n > 0 && is_statement(entry_at(q, 0)) && q->n_done >= entry_at(q, 0)->n_ext &&
	       entry_at(q, 0)->answer == REPLYQ_SWALLOW;
}

enum replyq_fate
replyq_got(struct replyq *q, char be_type, char tx_status)
{
	enum replyq_fate fate;

	drop_stray_ends(q);
	fate = is_hidden(q) ? REPLYQ_HIDE : REPLYQ_FORWARD;
	switch (be_type) {
	case BE_READY:
		return got_ready(q, tx_status);
	case BE_ERROR:
		got_error(q);
		break;
	case BE_COPY_IN:
		q->mode = REPLYQ_COPY_IN;
		break;
	case BE_CLOSE_COMPLETE:
		if (q->n > 0 && entry_at(q, 0)->kind == REPLYQ_BARRIER) {
			q->n_done = 1;
			q->n_maybe = 0;
			q->in_doubt = false;
			return REPLYQ_HIDE;
		}
		return got_statement(q, REPLYQ_CLOSE);
	case BE_PARSE_COMPLETE:
		return got_statement(q, REPLYQ_PARSE);
	case BE_PARAMETER_DESCRIPTION:
		return is_swallowed(q) ? REPLYQ_HIDE : fate;
	case BE_NO_DATA:
	case BE_ROW_DESCRIPTION: /* of a Describe, where one is due; else of a Query, and then nothing is due */
		return got_statement(q, REPLYQ_DESCRIBE);
	case BE_BIND_COMPLETE:
		if (q->n_done < head_n_ext(q))
			q->n_done++;
		break;
	case BE_COMMAND_COMPLETE:
	case BE_EMPTY_QUERY:
	case BE_PORTAL_SUSPENDED:
		got_complete(q);
		break;
	default:
		break;
	}
	return fate;
}

bool
replyq_copy_wants_data(const struct replyq *q)
{
	if (q->mode != REPLYQ_COPY_IN)
		return false;
	for (uint32_t i = 0; i < q->n; i++)
		if (q->ring[(q->head + i) & (q->cap - 1)].kind == REPLYQ_COPY_END)
			return false;
	return true;
}

bool
replyq_is_half_sent(const struct replyq *q)
{
	bool is_ended = false, is_simple;

	if (q->mode != REPLYQ_COPY_IN)
		return q->in_unit || q->mode == REPLYQ_SKIPPING;
	is_simple = copy_begin((struct replyq *)(uintptr_t)q) == 1;
	for (uint32_t i = 0; i < q->n; i++) {
		enum replyq_kind kind = q->ring[(q->head + i) & (q->cap - 1)].kind;

		if (kind == REPLYQ_COPY_END)
			is_ended = true;
		else if (is_ended && kind != REPLYQ_PARSE && kind != REPLYQ_CLOSE)
			return q->in_unit;
	}
	return !is_ended || !is_simple || q->in_unit;
}

void *
replyq_current(const struct replyq *q)
{
	const struct replyq_entry *e = &q->ring[q->head];

	return q->n > 0 && q->n_done >= e->n_ext ? e->what : NULL;
}
