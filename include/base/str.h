/* SPDX-License-Identifier: ISC */
/* Small helpers on NUL-terminated text. Any thread. */
#ifndef PGWEIR_BASE_STR_H
#define PGWEIR_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole text as a decimal number within min..max; false: out unchanged. */
bool str_parse_int(const char *s, int64_t min, int64_t max, int64_t *out);
/* The whole text as seconds, "1" or "0.5", not negative; false: out unchanged. */
bool str_parse_seconds_us(const char *s, uint64_t *out_us);
bool str_copy(char *dst, size_t cap, const char *src); /* always terminates if cap > 0; false: truncated */
char *str_dup(const char *s);                          /* NULL in, NULL out; NULL also: no memory */
char *str_trim(char *s);                               /* in place, returns the new start */
bool str_equal_nocase(const char *a, const char *b);   /* ASCII only */
/* Insertions, deletions, changes and swaps of neighbours between the two, for "did you mean"; 64 if one is that long. */
int str_distance(const char *a, const char *b);

#endif
