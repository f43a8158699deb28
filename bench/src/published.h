/* SPDX-License-Identifier: ISC */
/* The figures that the sources of the suites gave, to stand beside what is measured. */
#ifndef PGWEIR_BENCH_PUBLISHED_H
#define PGWEIR_BENCH_PUBLISHED_H

#include "grid.h"

struct published {
	const char *suite;
	const char *workload;
	const char *topology; /* how that of the runs begins that answer it; "": whichever */
	const char *variant;  /* theirs; NULL: whichever */
	const char *subject;  /* what the source measured, in its words as far as they are names */
	int64_t clients;      /* RESULT_UNKNOWN: the source does not say */
	int64_t threads;
	enum metric metric;
	double value;
	double sd; /* NAN: not given */
};

extern const struct published published_figures[];
extern const size_t n_published_figures;

/* Whether the cell is what the figure is about, on another machine. */
bool published_matches(const struct published *p, const struct result *r);

#endif
