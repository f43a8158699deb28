/* SPDX-License-Identifier: ISC */
/* Reasons to close, from closes.def: one place for SQLSTATE, log level and text. */
#ifndef PGWEIR_CORE_CLOSE_H
#define PGWEIR_CORE_CLOSE_H

#include "base/log.h"

#include <stdbool.h>

enum close_reason {
	CLOSE_NONE,
#define CLOSE(name, ...) name,
#include "core/closes.def"
	CLOSE_N
};

struct close_row {
	const char *name;
	const char *sqlstate;
	enum log_level level;
	bool tells; /* the client is told */
	const char *text;
};

const struct close_row *close_row(enum close_reason reason);

#endif
