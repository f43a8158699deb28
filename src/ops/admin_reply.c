/* SPDX-License-Identifier: ISC */
#include "ops/admin_reply.h"

#include "base/obj.h"
#include "wire/build.h"
#include "wire/pgmsg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
reply_begin(struct reply *r, struct buf *out, const struct reply_column *columns, size_t n)
{
	const char *names[REPLY_COLUMNS_MAX];
	uint32_t oids[REPLY_COLUMNS_MAX];

	invariant(n > 0 && n <= REPLY_COLUMNS_MAX);
	for (size_t i = 0; i < n; i++) {
		names[i] = columns[i].name;
		oids[i] = (uint32_t)columns[i].type;
	}
	*r = (struct reply){.out = out, .n_columns = n};
	build_row_description(out, names, oids, n);
}

void
reply_text(struct reply *r, const char *value)
{
	size_t len = value != NULL ? strlen(value) : 0;

	if (r->at == 0) {
		r->mark = msg_begin(r->out, BE_DATA_ROW);
		buf_append_u16(r->out, (uint16_t)r->n_columns);
	}
	buf_append_u32(r->out, value != NULL ? (uint32_t)len : UINT32_MAX);
	buf_append(r->out, value != NULL ? value : "", len);
	if (++r->at < r->n_columns)
		return;
	msg_end(r->out, r->mark);
	r->at = 0;
}

void
reply_printf(struct reply *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_text(r, text);
}

void
reply_int(struct reply *r, int64_t value)
{
	reply_printf(r, "%" PRId64, value);
}

void
reply_uint(struct reply *r, uint64_t value)
{
	reply_printf(r, "%" PRIu64, value);
}

void
reply_end(struct reply *r)
{
	invariant(r->at == 0); /* no row was left incomplete */
	build_command_complete(r->out, "SHOW");
}

void
reply_error(struct buf *out, const char *sqlstate, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	build_error(out, "ERROR", sqlstate, text, NULL, NULL);
}
