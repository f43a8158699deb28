/* SPDX-License-Identifier: ISC */
#include "core/prepared_set.h"

#include "base/hash.h"

#include <stdlib.h>
#include <sys/queue.h>

struct prepared {
	struct statement *st;
	uint64_t last_unit;
	enum prepared_state state;
	TAILQ_ENTRY(prepared) link;
	UT_hash_handle hh;
};

struct prepared_set {
	struct prepared *by_statement;
	TAILQ_HEAD(prepared_list, prepared) recent;
};

static struct prepared *
find(const struct prepared_set *set, const struct statement *st)
{
	struct prepared *x = NULL;

	if (set != NULL)
		HASH_FIND_PTR(set->by_statement, &st, x);
	return x;
}

enum prepared_state
prepared_set_state(const struct prepared_set *set, const struct statement *st)
{
	const struct prepared *x = find(set, st);

	return x ? x->state : PREPARED_MISSING;
}

bool
prepared_set_add(struct prepared_set **setp, struct statement *st)
{
	struct prepared *x;

	if (*setp == NULL) {
		if ((*setp = calloc(1, sizeof(**setp))) == NULL)
			return false;
		TAILQ_INIT(&(*setp)->recent);
	}
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return false;
	x->st = st;
	x->state = PREPARED_READY;
	HASH_ADD_PTR((*setp)->by_statement, st, x);
	if (x->hh.tbl == NULL) {
		free(x);
		return false;
	}
	(void)statement_ref(st);
	TAILQ_INSERT_HEAD(&(*setp)->recent, x, link);
	return true;
}

static void
drop(struct prepared_set *set, struct prepared *x)
{
	HASH_DEL(set->by_statement, x);
	TAILQ_REMOVE(&set->recent, x, link);
	statement_unref(&x->st);
	free(x);
}

void
prepared_set_remove(struct prepared_set *set, const struct statement *st)
{
	struct prepared *x = find(set, st);

	if (x != NULL)
		drop(set, x);
}

static void
mark(struct prepared *x, enum prepared_state state)
{
	if (!statement_is_large(x->st))
		x->state = state;
}

void
prepared_set_mark(struct prepared_set *set, const struct statement *st, enum prepared_state state)
{
	struct prepared *x = find(set, st);

	if (x != NULL)
		mark(x, state);
}

enum prepared_state
prepared_set_use(struct prepared_set *set, const struct statement *st, uint64_t unit)
{
	struct prepared *x = find(set, st);

	if (x == NULL)
		return PREPARED_MISSING;
	x->last_unit = unit;
	if (TAILQ_FIRST(&set->recent) != x) {
		TAILQ_REMOVE(&set->recent, x, link);
		TAILQ_INSERT_HEAD(&set->recent, x, link);
	}
	return x->state;
}

struct statement *
prepared_set_victim(const struct prepared_set *set, uint64_t first_open_unit)
{
	const struct prepared *x = set ? TAILQ_LAST(&set->recent, prepared_list) : NULL;

	while (x != NULL && statement_is_large(x->st))
		x = TAILQ_PREV(x, prepared_list, link);
	return x != NULL && x->last_unit < first_open_unit ? x->st : NULL;
}

void
prepared_set_stale(struct prepared_set *set, uint64_t from_unit)
{
	struct prepared *x;

	if (set == NULL)
		return;
	TAILQ_FOREACH (x, &set->recent, link) {
		if (x->last_unit < from_unit)
			return;
		mark(x, PREPARED_STALE);
	}
}

void
prepared_set_free(struct prepared_set **setp)
{
	if (*setp == NULL)
		return;
	while (!TAILQ_EMPTY(&(*setp)->recent))
		drop(*setp, TAILQ_FIRST(&(*setp)->recent));
	free(*setp);
	*setp = NULL;
}

size_t
prepared_set_n(const struct prepared_set *set)
{
	return set ? HASH_COUNT(set->by_statement) : 0;
}
