/* SPDX-License-Identifier: ISC */
/* pgweir against each other system, cell by cell: how often it is better, and every case where it is not. Pure. */
#ifndef PGWEIR_BENCH_DUELS_H
#define PGWEIR_BENCH_DUELS_H

#include "grid.h"

#define DUEL_N_METRICS 4
extern const enum metric duel_metrics[DUEL_N_METRICS];

struct duel {
	const char *ours;
	const char *theirs;
	unsigned better[DUEL_N_METRICS];
	unsigned even[DUEL_N_METRICS];
	unsigned worse[DUEL_N_METRICS];
};

struct duel_loss {
	const struct grid_panel *panel;
	const struct grid_cell *ours;
	const struct grid_cell *theirs;
	enum metric metric;
	double ratio; /* ours / theirs */
};

struct duels {
	struct duel *pairs; /* those that met in some cell */
	size_t n_pairs;
	struct duel_loss *losses; /* the worst first */
	size_t n_losses;
};

void duels_find(const struct grid *grid, struct duels *out);
void duels_fini(struct duels *duels);

#endif
