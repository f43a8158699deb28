/* SPDX-License-Identifier: ISC */
#include "core/close.h"

static const struct close_row rows[CLOSE_N] = {
	[CLOSE_NONE] = {"CLOSE_NONE", "XX000", LOG_ERROR_, true, "no reason"},
#define CLOSE(name, sqlstate, level, tells, text) [name] = {#name, sqlstate, level, tells, text},
#include "core/closes.def"
};

const struct close_row *
close_row(enum close_reason reason)
{
	return &rows[reason];
}
