/* SPDX-License-Identifier: ISC */
/* The figures that are shown of a run: where they come from, what they are called, which way is better. */
#ifndef PGWEIR_BENCH_METRIC_H
#define PGWEIR_BENCH_METRIC_H

#include "result.h"

enum metric {
	METRIC_TPS,
	METRIC_TPS_CONNECTING,
	METRIC_MB_PER_S,
	METRIC_CONNECT_MS,
	METRIC_AVG_MS,
	METRIC_P50_MS,
	METRIC_P90_MS,
	METRIC_P99_MS,
	METRIC_P999_MS,
	METRIC_MAX_MS,
	METRIC_POOLER_US,
	METRIC_SERVER_US,
	METRIC_PGBENCH_US,
	METRIC_POOLER_SWITCHES, /* a transaction */
	METRIC_POOLER_CALLS,    /* a transaction; and of these: */
	METRIC_POOLER_SENDS,
	METRIC_POOLER_RECEIVES,
	METRIC_POOLER_WAITS,
	METRIC_RSS_BEFORE_MIB,
	METRIC_RSS_PEAK_MIB,
	METRIC_RSS_CLIENT_KIB, /* peak less before, divided by the clients */
	METRIC_RSS_AFTER_MIB,
	METRIC_SERVER_CONNECTIONS,
	METRIC_FAILURES,
	METRIC_SKIPPED,
	METRIC_N
};

enum metric_better { BETTER_MORE, BETTER_LESS, BETTER_NEITHER };

struct metric_info {
	const char *heading; /* of a column */
	const char *title;   /* of a chart */
	enum metric_better better;
	double (*get)(const struct result *r); /* NAN: not measured */
};

extern const struct metric_info metric_infos[METRIC_N];

#define METRIC_TEXT 32
/* With about three significant digits; "-" for NAN. Returns `text`. */
const char *metric_format(char text[METRIC_TEXT], double value);

#endif
