/* SPDX-License-Identifier: ISC */
/* What measure.c and measure_crowd.c share: watching a run. */
#ifndef PGWEIR_BENCH_MEASURE_PARTS_H
#define PGWEIR_BENCH_MEASURE_PARTS_H

#include "measure.h"
#include "samples.h"
#include "trace.h"

struct watch {
	const struct measure_how *how;
	struct samples samples;
	struct trace *trace; /* NULL: none */
	double begin, end;   /* child_now(); the end is set by whoever waits */
	double limit;        /* when the run has to be over */
	double next_count;
	int connections; /* highest number of server connections seen; -1: none counted */
	struct why why;  /* set when a tick says to stop */
};

void watch_begin(struct watch *w, const struct measure_how *how, double limit_s);
bool watch_tick(void *watch); /* for child_wait() */
/* Stores what was used between the two times, and the samples beside the run's other files. */
void watch_end(struct watch *w, double from, double to, struct result *out);

/* Clients that do nothing beside others. */
struct beside {
	struct crowd *crowd; /* NULL: none */
};

/* Returns when `n` of them are connected and have run a query. False: why; beside_stop() all the same. */
bool beside_start(struct beside *b, const struct measure_how *how, const char *conninfo, int n, struct why *why);
/* They leave. False: some had been closed by the other side. */
bool beside_stop(struct beside *b, struct why *why);

bool measure_idle(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why);
bool measure_storm(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why);
bool measure_copy(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why);

#endif
