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

/* An ErrorResponse, kept to be told later or to somebody else. Longer texts are cut. "" where the field is missing. */
struct said {
	char severity[8];
	char sqlstate[6];
	char message[256];
	char detail[256];
	char hint[128];
};
/* With what we say ourselves: severity FATAL, no detail and no hint. */
void said_set(struct said *out, const char *sqlstate, const char *message);

const struct close_row *close_row(enum close_reason reason);

#endif
