/* SPDX-License-Identifier: ISC */
#include "core/close.h"

#include "base/str.h"

#include <string.h>

static const struct close_row rows[CLOSE_N] = {
	[CLOSE_NONE] = {"CLOSE_NONE", "XX000", LOG_ERROR_, true, "no reason"},
#define CLOSE(name, sqlstate, level, tells, text) [name] = {#name, sqlstate, level, tells, text},
#include "core/closes.def"
};

void
said_set(struct said *out, const char *sqlstate, const char *message)
{
	memset(out, 0, sizeof(*out));
	str_copy(out->severity, sizeof(out->severity), "FATAL");
	str_copy(out->sqlstate, sizeof(out->sqlstate), sqlstate);
	str_copy(out->message, sizeof(out->message), message);
}

const struct close_row *
close_row(enum close_reason reason)
{
	return &rows[reason];
}
