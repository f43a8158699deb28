/* SPDX-License-Identifier: ISC */
#include "core/description.h"

#include "base/buf.h"
#include "wire/parse.h"

#include <stdlib.h>
#include <string.h>

struct description {
	size_t n_types, n_columns; /* bytes */
	uint8_t bytes[];           /* types, then columns */
};

/* Appends of each column what the server compares. False: malformed. */
static bool
append_columns(struct buf *out, const uint8_t *row, size_t n)
{
	struct reader r;
	uint16_t n_columns;

	reader_init(&r, row, n);
	n_columns = reader_u16(&r);
	buf_append_u16(out, n_columns);
	for (uint16_t i = 0; i < n_columns && !r.bad; i++) {
		const char *name = reader_str(&r);

		buf_append(out, name, strlen(name) + 1);
		reader_bytes(&r, 4 + 2); /* table and attribute */
		buf_append_u32(out, reader_u32(&r));
		reader_bytes(&r, 2); /* the type's length */
		buf_append_u32(out, reader_u32(&r));
		reader_bytes(&r, 2); /* format: not known yet */
	}
	return !r.bad && r.left == 0;
}

static bool
are_types(const uint8_t *params, size_t n)
{
	struct reader r;

	reader_init(&r, params, n);
	return reader_u16(&r) * 4u == n - 2 && !r.bad;
}

struct description *
description_new(const uint8_t *params, size_t n_params, const uint8_t *row, size_t n_row)
{
	struct description *d = NULL;
	struct buf columns;
	bool ok = n_params >= 2 && are_types(params, n_params);

	buf_init(&columns);
	if (ok && row != NULL)
		ok = append_columns(&columns, row, n_row);
	if (ok && !columns.failed)
		d = malloc(sizeof(*d) + n_params + columns.len);
	if (d != NULL) {
		d->n_types = n_params;
		d->n_columns = columns.len;
		memcpy(d->bytes, params, n_params);
		if (columns.len > 0)
			memcpy(d->bytes + n_params, buf_head(&columns), columns.len);
	}
	buf_fini(&columns);
	return d;
}

void
description_free(struct description **d)
{
	free(*d);
	*d = NULL;
}

bool
description_has_same_result(const struct description *a, const struct description *b)
{
	return a->n_columns == b->n_columns && memcmp(a->bytes + a->n_types, b->bytes + b->n_types, a->n_columns) == 0;
}

const uint8_t *
description_types(const struct description *d, size_t *n)
{
	*n = d->n_types;
	return d->bytes;
}
