/* SPDX-License-Identifier: ISC */
/*
 * Fingerprints of SQL texts. The first byte's lowest bit is standard_conforming_strings. What must hold besides no overrun:
 * the room for the shape does not matter to the number, a smaller room cuts the shape, blanks and semicolons around a text
 * that is not cut change nothing.
 */
#include "wire/sql_fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/obj.h"
#include "wire/sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
is_cut(const uint8_t *p, size_t n, bool is_standard)
{
	struct sql_lexer lx;
	struct sql_token t;
	enum sql_token_kind kind;

	sql_lexer_init(&lx, p, n, is_standard);
	while ((kind = sql_next(&lx, &t)) != SQL_END)
		if (kind == SQL_CUT)
			return true;
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char shape[4096], small[16];
	bool is_standard;
	uint64_t print;
	uint8_t *around;

	if (size == 0 || size > 2000)
		return 0;
	is_standard = (data[0] & 1) != 0;
	data++;
	size--;
	print = sql_fingerprint(data, size, is_standard, shape, sizeof(shape));
	invariant(print == sql_fingerprint(data, size, is_standard, NULL, 0));
	invariant(print == sql_fingerprint(data, size, is_standard, small, sizeof(small)));
	invariant(strncmp(shape, small, sizeof(small) - 1) == 0);
	if (is_cut(data, size, is_standard))
		return 0;
	around = malloc(size + 5);
	invariant(around != NULL);
	memcpy(around, ";\n", 2);
	memcpy(around + 2, data, size);
	memcpy(around + 2 + size, "\n;;", 3);
	invariant(print == sql_fingerprint(around, size + 5, is_standard, NULL, 0));
	free(around);
	return 0;
}
