/* SPDX-License-Identifier: ISC */
/* One run: load on a system that is up, watched, and what came of it. */
#ifndef PGWEIR_BENCH_MEASURE_H
#define PGWEIR_BENCH_MEASURE_H

#include "plan.h"
#include "result.h"
#include "server.h"
#include "system.h"

#include <stdbool.h>

enum measure_logs { LOGS_KEPT, LOGS_DROPPED, LOGS_NONE }; /* pgbench's log of each transaction */

struct measure_how {
	const char *pgbench;
	const char *workloads;
	const char *strace; /* of a cell that is traced */
	const char *self;   /* this program, for its own clients */
	const char *raw;    /* path that the names of the run's files begin with */
	enum measure_logs logs;
	const struct cell *cell;
	struct system *system;
	struct server *server;
};

/*
 * Fills in what it measured. False: the run has failed, why is told; what was measured until then stays in `out`. Whether
 * the server or the system is still alive is for the caller to see.
 */
bool measure_run(const struct measure_how *how, struct result *out, struct why *why);

#endif
