/* SPDX-License-Identifier: ISC */
/* Records made up for the tests of what is made of results: those of one set, which a test begins. */
#ifndef PGWEIR_TESTS_BENCH_RESULTS_H
#define PGWEIR_TESTS_BENCH_RESULTS_H

#include "result.h"

#include <stdio.h>

#include "unit.h"

static struct result_set set;

static inline void
begin(void)
{
	set = (struct result_set){0};
}

static inline struct result
run_of(const char *system, int64_t clients, int64_t number, double tps)
{
	struct result r;

	result_init(&r);
	snprintf(r.suite, sizeof(r.suite), "overhead");
	snprintf(r.workload, sizeof(r.workload), "select1");
	snprintf(r.mode, sizeof(r.mode), "simple");
	snprintf(r.topology, sizeof(r.topology), "single");
	snprintf(r.system, sizeof(r.system), "%s", system);
	r.scale = 10;
	r.clients = clients;
	r.threads = 2;
	r.run = number;
	r.tps = tps;
	return r;
}

static inline void
keep(const struct result *r)
{
	ck_assert(result_set_add(&set, r));
}

static inline void
add(const char *system, int64_t clients, int64_t number, double tps)
{
	struct result r = run_of(system, clients, number, tps);

	keep(&r);
}

#endif
