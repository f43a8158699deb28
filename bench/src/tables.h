/* SPDX-License-Identifier: ISC */
/* The tables that workloads want, in whatever database: of our server or of a system that we were only given. */
#ifndef PGWEIR_BENCH_TABLES_H
#define PGWEIR_BENCH_TABLES_H

#include "plan.h"
#include "text.h"

#include <stdbool.h>

struct tables_state {
	int pgbench_scale, ycsb_scale; /* loaded; 0: not yet */
	bool copied;
};

/* Loads what the cell wants and is not there yet, or anew if the suite says so. */
bool tables_prepare(struct tables_state *state, const struct cell *cell, const char *pgbench, const char *conninfo,
                    const char *log, struct why *why);
/* Before each run that writes: dead rows and what runs before have left go; then a checkpoint, if we may. */
bool tables_tidy(const struct cell *cell, const char *admin_conninfo, struct why *why);

#endif
