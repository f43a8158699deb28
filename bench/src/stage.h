/* SPDX-License-Identifier: ISC */
/*
 * Where the runs take place: the scratch folder, the programs, the servers. Servers are started when the first run wants
 * them, stay up side by side while runs alternate between them, and are stopped after the last run that wants them.
 */
#ifndef PGWEIR_BENCH_STAGE_H
#define PGWEIR_BENCH_STAGE_H

#include "cmdline.h"
#include "plan.h"
#include "server.h"
#include "spec.h"
#include "system.h"
#include "tables.h"

#include <stdbool.h>

struct stage_system {
	struct system_spec spec;
	char *program; /* NULL: none of ours, or missing */
	char *missing; /* why it cannot be run; NULL: it can */
	char *version;
	struct tables_state tables; /* of SYSTEM_OTHER: in its own database */
	bool noted;                 /* its configuration is in environment.txt */
};

struct stage_server {
	struct server *server; /* NULL: not started */
	struct tables_state tables;
	size_t last_cell; /* that wants it */
	int max_connections;
};

struct stage {
	const struct options *options;
	char *out;     /* folder of results */
	char *scratch; /* removed at the end */
	char *bindir;  /* of the server; NULL: --server, or none */
	char *pgbench;
	char *strace; /* NULL: not installed */
	char *workloads;
	char *self;
	char *cert, *key;
	long file_limit;
	struct stage_system *systems;
	size_t n_systems;
	struct stage_server *servers; /* as many as the plan has setups */
	size_t n_servers;
};

/* Programs and the scratch folder. False: why; stage_fini() all the same. */
bool stage_init(struct stage *s, const struct options *options, struct why *why);
void stage_fini(struct stage *s); /* stops what runs, removes the scratch folder */

/* Adds a system, unless it is there; its index. */
size_t stage_add_system(struct stage *s, const struct system_spec *spec);
/* Once the plan is made: what each server is for. False: there is no space, no such folder. */
bool stage_plan(struct stage *s, const struct plan *plan, struct why *why);
/* The server of that setup, started if need be. NULL: why. */
struct server *stage_server(struct stage *s, const struct plan *plan, size_t setup, struct why *why);
/* Stops servers that no cell from `next` on wants. */
void stage_release(struct stage *s, size_t next);

#endif
