/* SPDX-License-Identifier: ISC */
/* pgbench's command line and what it prints at its end. Pure. */
#ifndef PGWEIR_BENCH_PGBENCH_H
#define PGWEIR_BENCH_PGBENCH_H

#include "plan.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>

struct pgbench_how {
	const char *program;
	const char *workloads; /* folder of the scripts */
	const char *conninfo;
	const struct cell *cell;
	int clients, threads;
	int seconds; /* -T; 0: transactions of each client */
	int transactions;
	double rate;            /* 0: as fast as it goes */
	const char *log_prefix; /* NULL: no log of each transaction */
};

/* Ends with NULL. */
void pgbench_arguments(const struct pgbench_how *how, struct text_list *argv);

struct pgbench_report {
	int64_t transactions, failed, skipped; /* skipped: -1 without a rate */
	double tps;                            /* without the time to connect */
	double tps_connecting;                 /* with it */
	double connect_ms;                     /* all clients, or one connection if each transaction has its own */
	double latency_ms;
};

/* False: not what pgbench prints when a run was completed. `clients` is what it ran with. */
bool pgbench_parse(const char *text, int clients, struct pgbench_report *out);

#endif
