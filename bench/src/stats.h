/* SPDX-License-Identifier: ISC */
/* Statistics of runs, and of pgbench's logs of every transaction. Pure, but for the reading of logs. */
#ifndef PGWEIR_BENCH_STATS_H
#define PGWEIR_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct stats_summary {
	size_t n; /* numbers that were not NAN; with 0 everything below is NAN */
	double median;
	double mean;
	double sd; /* of a sample (n - 1); NAN if n is 1 */
	double min;
	double max;
};

/* NAN among the values is left out. */
struct stats_summary stats_summarize(const double *values, size_t n);
double stats_median(const double *values, size_t n); /* NAN: no value */
/* Of n sorted values, the smallest that at least `percent` of them do not exceed (nearest rank); NAN: no value. */
double stats_percentile(const double *sorted, size_t n, double percent);
/* The median of a[i] / b[i], pairs where one is NAN or b is 0 left out; NAN: no pair. */
double stats_ratio(const double *a, const double *b, size_t n);

/* What pgbench's logs of every transaction (-l without --aggregate-interval) hold. */
struct stats_latency {
	uint64_t n;       /* transactions that were executed */
	uint64_t failed;  /* "failed": serialization or deadlock, after all tries */
	uint64_t skipped; /* "skipped": too late under --rate --latency-limit */
	double avg_ms, sd_ms;
	double p50_ms, p90_ms, p99_ms, p999_ms, max_ms; /* NAN if n is 0; of an open loop they hold the schedule lag */
};

/* Sorts the latencies, in milliseconds, and fills in all but failed and skipped. */
void stats_latency_from(double *ms, size_t n, struct stats_latency *out);

/*
 * Reads PREFIX.PID and PREFIX.PID.N (pgbench's --log-prefix), all of them. Only transactions that ended between
 * `from_us` and `to_us` (microseconds since 1970; 0 and UINT64_MAX: everything) count. A malformed line, as an interrupted pgbench leaves it,
 * is left out with a warning that names file:line. False: no such file, not readable, or no memory; why is on `errors`.
 */
bool stats_read_log(const char *prefix, uint64_t from_us, uint64_t to_us, struct stats_latency *out, FILE *errors)
	__attribute__((warn_unused_result));

#endif
