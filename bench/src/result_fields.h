/* SPDX-License-Identifier: ISC */
/* The rows of result.def as a table, for what reads and writes them all. */
#ifndef PGWEIR_BENCH_RESULT_FIELDS_H
#define PGWEIR_BENCH_RESULT_FIELDS_H

#include "result.h"

#include "base/buf.h"

enum result_kind { RESULT_TEXT, RESULT_COUNT, RESULT_REAL };

struct result_field {
	const char *name;
	enum result_kind kind;
	size_t offset; /* in struct result */
	size_t size;   /* of a text, with its terminator */
};

enum {
#define TEXT(name, size, meaning) RESULT_FIELD_##name,
#define COUNT(name, meaning) RESULT_FIELD_##name,
#define REAL(name, meaning) RESULT_FIELD_##name,
#include "result.def"
#undef TEXT
#undef COUNT
#undef REAL
	RESULT_N_FIELDS
};

extern const struct result_field result_fields[RESULT_N_FIELDS];

const struct result_field *result_field_find(const char *name); /* NULL: nobody knows it */

static inline const char *
result_text(const struct result *r, const struct result_field *f)
{
	return (const char *)r + f->offset;
}

static inline int64_t
result_count(const struct result *r, const struct result_field *f)
{
	return *(const int64_t *)((const char *)r + f->offset);
}

static inline double
result_real(const struct result *r, const struct result_field *f)
{
	return *(const double *)((const char *)r + f->offset);
}

/* Appends the run to DIR/results.json, which is written anew from DIR/results.csv if its end is not what it should be. */
bool result_json_append(const char *dir, const struct result *r, FILE *errors) __attribute__((warn_unused_result));

/* Used by both files: all of it at `offset`, and nothing behind it. False: errno, the file as it was up to `offset`. */
bool result_write_at(int fd, const struct buf *b, off_t offset) __attribute__((warn_unused_result));

#endif
