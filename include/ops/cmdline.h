/* SPDX-License-Identifier: ISC */
/* The command line, with pgbouncer's options and --check. Main thread, before anything else. */
#ifndef PGWEIR_OPS_CMDLINE_H
#define PGWEIR_OPS_CMDLINE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cmdline_action { CMDLINE_RUN, CMDLINE_CHECK, CMDLINE_VERSION, CMDLINE_HELP };

struct cmdline {
	enum cmdline_action action;
	bool daemon;        /* -d */
	bool quiet;         /* -q: nothing to stderr once the log is open */
	bool reboot;        /* -R: asked for, not supported yet; to be said in a warning */
	int n_verbose;      /* how many -v */
	const char *user;   /* -u; NULL: the setting counts */
	const char *config; /* the file or conninfo; NULL for version and help only */
};

/* Points into argv. STATUS_BAD: what is wrong with it is in why. */
enum status cmdline_parse(int argc, char **argv, struct cmdline *out, char *why, size_t why_cap) must_check;

const char *cmdline_version(void); /* "pgweir 0.1.0": the first line of -V and what SHOW VERSION answers */
void cmdline_print_version(FILE *to);
void cmdline_print_help(FILE *to);

#endif
