/* SPDX-License-Identifier: ISC */
/*
 * What a Describe of a prepared statement has answered: the types of its parameters
 * and its result's columns, as far as the server compares them before it says
 * "cached plan must not change result type" (names, types, type modifiers).
 */
#ifndef PGWEIR_CORE_DESCRIPTION_H
#define PGWEIR_CORE_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct description;

/* params: body of a ParameterDescription; row: body of a RowDescription, NULL for NoData. NULL: malformed, or no memory. */
struct description *description_new(const uint8_t *params, size_t n_params, const uint8_t *row, size_t n_row);
void description_free(struct description **d); /* nulls; NULL is a no-op */

/* Same columns; the types of parameters don't count. */
bool description_has_same_result(const struct description *a, const struct description *b);
/* The parameters' types as they stand in a Parse: their number and their OIDs, in network order. */
const uint8_t *description_types(const struct description *d, size_t *n);

#endif
