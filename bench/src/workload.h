/* SPDX-License-Identifier: ISC */
/* The workloads: a table here, pgbench's scripts in bench/workloads. Pure, but for finding the folder. */
#ifndef PGWEIR_BENCH_WORKLOAD_H
#define PGWEIR_BENCH_WORKLOAD_H

#include "text.h"

#include <stdbool.h>
#include <stdio.h>

enum workload_kind { WORKLOAD_PGBENCH, WORKLOAD_IDLE, WORKLOAD_STORM, WORKLOAD_COPY_IN, WORKLOAD_COPY_OUT };
enum workload_tables { TABLES_NONE, TABLES_PGBENCH, TABLES_YCSB };
enum workload_client { CLIENT_STAYS, CLIENT_RECONNECTS }; /* a login for each transaction? */

struct workload {
	const char *name;
	const char *meaning;
	enum workload_kind kind;
	const char *scripts; /* with commas, weights after @: files of the folder, or pgbench's own as builtin:NAME */
	enum workload_tables tables;
	enum workload_client client;
	bool tls;    /* clients use TLS */
	bool writes; /* tables are tidied up before a run */
};

const struct workload *workload_find(const char *name);  /* NULL: none of that name */
bool workload_refuse(const char *name, struct why *why); /* always false: no workload of that name */
void workload_list(FILE *out);
const struct workload *workload_at(size_t i); /* NULL: i is past the end */

/*
 * Adds pgbench's arguments that choose the scripts and their variables. `rows`: of the table that the keys are of.
 */
void workload_arguments(const struct workload *w, const char *folder, long rows, struct text_list *argv);
/* All files it needs are in the folder. */
bool workload_check(const struct workload *w, const char *folder, struct why *why);

/* Rows of the tables that keys are drawn from at that scale; 0: none. */
long workload_rows(const struct workload *w, int scale);

/*
 * What draws ranks from 1 to n with a probability of 1/rank^theta out of a uniform u in [0, 1): 1 if u * zetan < 1, 2 if
 * it is below `second`, else 1 + n * (eta * u - eta + 1)^alpha (Gray et al., "Quickly generating billion-record
 * synthetic databases", 1994, which YCSB uses). pgbench's own random_zipfian() does not go below 1.001.
 */
struct zipf {
	double zetan, second, eta, alpha;
};
struct zipf zipf_constants(long n, double theta);

/* The folder of the scripts: PGWEIR_BENCH_WORKLOADS, beside this program, installed. NULL: none. Allocated. */
char *workload_find_folder(void);

#endif
