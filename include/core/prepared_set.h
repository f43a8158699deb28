/* SPDX-License-Identifier: ISC */
/* Which interned statements are prepared on a backend, the most recently used first. Belongs to the backend. */
#ifndef PGWEIR_CORE_PREPARED_SET_H
#define PGWEIR_CORE_PREPARED_SET_H

#include "core/statement.h"

struct prepared_set;

enum prepared_state {
	PREPARED_MISSING,
	PREPARED_READY,
	PREPARED_STALE,     /* to be parsed anew: its plan failed */
	PREPARED_UNCHECKED, /* parsed anew: whether its result is still the same is to be asked */
	PREPARED_CHECKING,  /* ... has been asked */
	PREPARED_CHANGED,   /* ... is not: it must not be executed */
};

/* NULL set: empty. */
enum prepared_state prepared_set_state(const struct prepared_set *set, const struct statement *st);
static inline bool
prepared_set_has(const struct prepared_set *set, const struct statement *st)
{
	return prepared_set_state(set, st) != PREPARED_MISSING;
}

/* Takes a reference; ready; false: no memory. */
bool prepared_set_add(struct prepared_set **set, struct statement *st);
/* Harmless when it is not in. A large one, which can't be parsed anew, stays ready. */
void prepared_set_mark(struct prepared_set *set, const struct statement *st, enum prepared_state state);
void prepared_set_remove(struct prepared_set *set, const struct statement *st); /* harmless when it is not in */
/* By that unit; answers its state. */
enum prepared_state prepared_set_use(struct prepared_set *set, const struct statement *st, uint64_t unit);
/* The least recently used one that no unit from `first_open_unit` on uses; never a large one; NULL: none. */
struct statement *prepared_set_victim(const struct prepared_set *set, uint64_t first_open_unit);
void prepared_set_stale(struct prepared_set *set, uint64_t from_unit); /* those used by that unit or later ones */
void prepared_set_free(struct prepared_set **set);
size_t prepared_set_n(const struct prepared_set *set);

#endif
