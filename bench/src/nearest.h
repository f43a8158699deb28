/* SPDX-License-Identifier: ISC */
/* What somebody who mistyped a name may have meant. Pure. */
#ifndef PGWEIR_BENCH_NEAREST_H
#define PGWEIR_BENCH_NEAREST_H

#include "text.h"

typedef const char *nearest_names(size_t i); /* NULL: past the end */

/* The name that needs the fewest changes; NULL: none is near enough to be meant. */
const char *nearest_find(const char *word, nearest_names *names);

/* Always false. "unknown WHAT WORD", with the nearest name if there is one, and in brackets where all of them are. */
bool nearest_refuse(struct why *why, const char *what, const char *word, nearest_names *names, const char *all);

#endif
