/* SPDX-License-Identifier: ISC */
/*
 * Result sets of the console: columns, then values in their order; a row ends with
 * its last value. Errors are the buffer's.
 */
#ifndef PGWEIR_OPS_ADMIN_REPLY_H
#define PGWEIR_OPS_ADMIN_REPLY_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define REPLY_COLUMNS_MAX 40u

enum reply_type { REPLY_TEXT = 25, REPLY_INT4 = 23, REPLY_INT8 = 20, REPLY_NUMERIC = 1700 }; /* type OIDs */

struct reply_column {
	const char *name;
	enum reply_type type;
};

struct reply {
	struct buf *out;
	size_t n_columns;
	size_t at;     /* the next value's column */
	uint32_t mark; /* of the open row */
};

void reply_begin(struct reply *r, struct buf *out, const struct reply_column *columns, size_t n);
void reply_text(struct reply *r, const char *value); /* NULL: SQL NULL */
void reply_int(struct reply *r, int64_t value);
void reply_uint(struct reply *r, uint64_t value);
void reply_printf(struct reply *r, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* up to 255 bytes */
void reply_end(struct reply *r);

void reply_error(struct buf *out, const char *sqlstate, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define REPLY_BEGIN(r, out, columns) reply_begin((r), (out), (columns), sizeof(columns) / sizeof((columns)[0]))

#endif
