/* SPDX-License-Identifier: ISC */
/*
 * Which statement is it, whatever its values are? A 64-bit number and a readable shape that leave out what changes
 * from one execution to the next, and what may be somebody's data: strings, numbers and parameters are all ?, a list
 * of them is one. Comments, blanks, the case of unquoted words and semicolons at the end make no difference. Pure,
 * allocates nothing.
 */
#ifndef PGWEIR_WIRE_SQL_FINGERPRINT_H
#define PGWEIR_WIRE_SQL_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * shape: terminated, cut where it gets longer than cap - 1 bytes; cap 0: none is wanted. A text that ends inside a
 * string, a quoted name or a comment ends with a ?.
 */
uint64_t sql_fingerprint(const uint8_t *sql, size_t n, bool standard_strings, char *shape, size_t cap);

#endif
