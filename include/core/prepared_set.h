/* SPDX-License-Identifier: ISC */
/* Which interned statements are prepared on a backend, the most recently used first. Belongs to the backend. */
#ifndef PGWEIR_CORE_PREPARED_SET_H
#define PGWEIR_CORE_PREPARED_SET_H

#include "core/statement.h"

struct prepared_set;

/* NULL set: empty. */
bool prepared_set_has(const struct prepared_set *set, const struct statement *st);
bool prepared_set_is_stale(const struct prepared_set *set, const struct statement *st);
bool prepared_set_add(struct prepared_set **set, struct statement *st); /* takes a reference; false: no memory */
void prepared_set_remove(struct prepared_set *set, const struct statement *st); /* harmless when it is not in */
void prepared_set_use(struct prepared_set *set, const struct statement *st, uint64_t unit); /* by that unit */
/* The least recently used one that no unit from `first_open_unit` on uses; never a large one; NULL: none. */
struct statement *prepared_set_victim(const struct prepared_set *set, uint64_t first_open_unit);
/* Those used by that unit or later ones must be parsed anew; large ones can't be. */
void prepared_set_stale(struct prepared_set *set, uint64_t from_unit);
void prepared_set_stale_one(struct prepared_set *set, const struct statement *st);
void prepared_set_free(struct prepared_set **set);
size_t prepared_set_n(const struct prepared_set *set);

#endif
