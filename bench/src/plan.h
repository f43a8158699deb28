/* SPDX-License-Identifier: ISC */
/*
 * The runs in the order in which they are made. The systems take turns, A B C A B C ..., so that whatever else happens on
 * the machine happens to all of them. Pure.
 */
#ifndef PGWEIR_BENCH_PLAN_H
#define PGWEIR_BENCH_PLAN_H

#include "result.h"
#include "spec.h"
#include "suite.h"
#include "text.h"
#include "workload.h"

enum plan_sockets { SOCKETS_TCP, SOCKETS_UNIX };   /* of clients and servers */
enum plan_trace { TRACE_NOTHING, TRACE_SYSCALLS }; /* of poolers; slows them, so nothing else is measured then */

/* What a suite's lines are overridden with. NULL and 0: not. */
struct plan_changes {
	const char *workloads, *modes, *setups, *clients, *idle;
	int scale, seconds, transactions, copy_mb;
	int threads;
	int runs;
	int discard; /* -1: not */
	double rate;
	enum suite_hosts hosts;
	enum plan_sockets sockets;
	enum plan_trace trace;
	const struct text_list *datadirs; /* each one a setup of its own */
	const char *server;               /* the topology is "server", of a conninfo that was given */
};

/* A server that has to be there for some runs. */
struct setup {
	char topology[32];
	char setting[96];  /* "name=value"; "" : none */
	char datadir[160]; /* "" : the scratch folder */
};

struct cell {
	const char *suite;
	const struct workload *workload;
	char mode[16];
	size_t system; /* index into the systems */
	size_t setup;  /* index into the setups of the plan */
	int scale, clients, threads, seconds, transactions, copy_mb;
	int idle; /* clients beside those, which do nothing */
	double rate;
	enum suite_data data;
	enum suite_hosts hosts;
	enum plan_sockets sockets;
	enum plan_trace trace;
	int run; /* from 1 */
	bool discarded;
};

struct plan {
	struct setup *setups;
	size_t n_setups;
	struct cell *cells;
	size_t n_cells;
};

/* Adds a suite's runs with so many systems. False: a list does not parse. */
bool plan_add(struct plan *plan, const struct suite *suite, bool quick, const struct plan_changes *changes,
              size_t n_systems, int n_cpus, struct why *why);
void plan_fini(struct plan *plan);

/* The cell's part of a record: what result_same_cell() compares, and which run it is. */
void plan_describe(const struct plan *plan, const struct cell *cell, const struct system_spec *system,
                   struct result *out);
/* Whether the set has the run already, whatever came of it. */
bool plan_is_done(const struct result_set *done, const struct result *described);
double plan_seconds(const struct cell *cell); /* how long the run will take, a guess */
double plan_total_seconds(
	const struct plan *plan); /* all of them, with starting the servers and loading their tables */
/* How long the suite takes with all of its systems, as text. Allocated. */
char *plan_duration(const struct suite *suite, bool quick, int n_cpus);

#endif
