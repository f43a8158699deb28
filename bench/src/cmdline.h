/* SPDX-License-Identifier: ISC */
/* pgweir-bench's command line. Pure. */
#ifndef PGWEIR_BENCH_CMDLINE_H
#define PGWEIR_BENCH_CMDLINE_H

#include "measure.h"
#include "plan.h"
#include "text.h"

#include <stdbool.h>
#include <stdio.h>

enum command {
	COMMAND_RUN,
	COMMAND_LIST,
	COMMAND_DOCTOR,
	COMMAND_REPORT,
	COMMAND_COMPARE,
	COMMAND_HELP,
	COMMAND_VERSION,
	COMMAND_CROWD, /* our own clients: crowd.h */
};

struct options {
	enum command command;
	const char *suite;   /* of run; NULL with --resume */
	const char *args[3]; /* of report, compare, --crowd */
	const char *systems; /* NULL: the suite's */
	const char *out;     /* NULL: a new folder */
	const char *resume;  /* folder of an interrupted run */
	const char *baseline;
	const char *pgbouncer, *odyssey, *pgweir, *haproxy, *pgbench; /* programs; NULL: found */
	struct text_list datadirs;
	struct text_list settings; /* of the scratch server: "name = value" */
	struct plan_changes changes;
	int max_direct; /* clients above which systems that do not pool are left out */
	enum measure_logs logs;
	bool quick;
};

/* Points into argv. False: what is wrong with it. */
bool cmdline_parse(int argc, char **argv, struct options *out, struct why *why);
void cmdline_fini(struct options *options);
void cmdline_usage(FILE *out);

#endif
