/* SPDX-License-Identifier: ISC */
/*
 * System calls of a pooler, counted by strace for two seconds in the middle of a run. strace slows the pooler to a fraction,
 * so a wait returns more events than it would, and nothing else of such a run is worth a figure.
 */
#ifndef PGWEIR_BENCH_TRACE_H
#define PGWEIR_BENCH_TRACE_H

#include "result.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum trace_state { TRACE_WAITS, TRACE_ATTACHES, TRACE_COUNTS, TRACE_DONE };

struct trace {
	enum trace_state state;
	const char *program; /* strace */
	const char *prefix;  /* of pgbench's logs: it begins when there is something in them */
	const pid_t *pids;
	int n_pids;
	char *summary, *errors; /* what strace writes */
	pid_t tracer;
	double until;            /* child_now() */
	uint64_t from_us, to_us; /* since 1970, when it counted */
};

/* Counts of strace -c by kind. */
struct trace_counts {
	uint64_t all, sends, receives, waits;
};

/* `raw` is what the names of its files begin with. */
void trace_init(struct trace *t, const char *program, const char *raw, const char *prefix, const pid_t *pids,
                int n_pids);
void trace_fini(struct trace *t);
/* Moves it on. False: strace does not work; its words are in `why`. */
bool trace_tick(struct trace *t, struct why *why);
/* Once the run is over: calls per transaction, by pgbench's logs. */
bool trace_store(const struct trace *t, struct result *out, struct why *why);

/* The table that strace -c writes. Pure. */
void trace_parse(const char *summary, struct trace_counts *out);

#endif
