/* SPDX-License-Identifier: ISC */
/* Small helpers on NUL-terminated text. Any thread. */
#ifndef PGWEIR_BASE_STR_H
#define PGWEIR_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_parse_int(const char *s, int64_t min, int64_t max, int64_t *out); /* whole text, decimal; false: out unchanged */
bool str_parse_seconds_us(const char *s, uint64_t *out_us);                 /* "1", "0.5" seconds, not negative */
bool str_copy(char *dst, size_t cap, const char *src);                      /* always terminates; false: truncated */
char *str_dup(const char *s);                                               /* NULL in, NULL out; NULL also: no memory */
char *str_trim(char *s);                                                    /* in place, returns the new start */
bool str_equal_nocase(const char *a, const char *b);                        /* ASCII only */
int str_distance(const char *a, const char *b);                             /* Damerau-Levenshtein, for "did you mean" */

#endif
