/* SPDX-License-Identifier: ISC */
/* The suites, as tables. Pure. */
#ifndef PGWEIR_BENCH_SUITE_H
#define PGWEIR_BENCH_SUITE_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>

enum suite_data { DATA_KEPT, DATA_AFRESH }; /* AFRESH: loaded anew before each run */

enum suite_hosts { HOSTS_PRIMARY, HOSTS_ALL }; /* where poolers send what only reads, if there are standbys */

/* Every combination of a line's lists is a cell. */
struct suite_line {
	const char *workloads;
	const char *modes;   /* pgbench's query modes; NULL: simple */
	const char *setups;  /* "TOPOLOGY" or "TOPOLOGY SETTING=VALUE" of the server; NULL: single */
	const char *clients; /* CLIENTS or CLIENTS/THREADS of pgbench */
	const char *idle;    /* numbers of clients that do nothing beside pgbench's; NULL: 0 */
	int scale;
	int seconds;      /* of each run, or ... */
	int transactions; /* ... of each client */
	int runs;         /* in all; the first `discard` of them do not count */
	int discard;
	enum suite_data data;
	enum suite_hosts hosts;
	double rate; /* open loop, transactions per second; 0: as fast as it goes */
	int copy_mb; /* copy-in, copy-out: MiB of each client */
};

struct suite {
	const char *name;
	const char *meaning;
	const char *systems;
	const struct suite_line *lines; /* up to one without workloads */
	const struct suite_line *quick; /* under three minutes on two cores */
};

const struct suite *suite_find(const char *name);     /* NULL: none of that name; "all" is no suite */
const struct suite *suite_at(size_t i);               /* NULL: past the end */
bool suite_refuse(const char *name, struct why *why); /* always false: no suite of that name */

#endif
