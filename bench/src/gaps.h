/* SPDX-License-Identifier: ISC */
/* What a folder of results has no figures of, and why: failures and absences are results too. Pure. */
#ifndef PGWEIR_BENCH_GAPS_H
#define PGWEIR_BENCH_GAPS_H

#include "grid.h"

struct gap {
	const struct grid_panel *panel;
	size_t series;
	const char *problem; /* the status of the runs */
	char *clients;       /* "10, 50, 1000" */
	size_t n_bad;        /* runs without figures */
	size_t n_good;       /* other runs of the same cells, which have them */
};

struct gaps {
	struct gap *items; /* cells of one series with the same problem are one */
	size_t n;
};

void gaps_find(const struct grid *grid, struct gaps *out);
void gaps_fini(struct gaps *gaps);

#endif
