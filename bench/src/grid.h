/* SPDX-License-Identifier: ISC */
/*
 * Runs put in order for showing. A cell is what repeated runs measure; a series is one system under one topology and
 * variant; a panel (suite, workload, mode, scale) has the series side by side over clients. Pure.
 */
#ifndef PGWEIR_BENCH_GRID_H
#define PGWEIR_BENCH_GRID_H

#include "metric.h"
#include "result.h"
#include "stats.h"

struct grid_cell {
	const struct result *key;   /* any of its runs */
	const struct result **runs; /* those that count, in the order of their numbers */
	size_t n_runs;
	size_t n_discarded;
	size_t n_bad;        /* failed, not installed, skipped */
	const char *problem; /* the status of the last of them; NULL: none */
	size_t series;       /* in its panel */
};

struct grid_series {
	const struct result *key;
	char *label; /* the system, and what of topology and variant differs in the panel */
};

struct grid_panel {
	const struct result *key;
	char *title;
	struct grid_series *series;
	size_t n_series;
	struct grid_cell *cells; /* by clients, threads, series */
	size_t n_cells;
};

struct grid {
	struct grid_panel *panels; /* in the order in which they were first measured */
	size_t n_panels;
	const char **systems; /* all of them, likewise */
	size_t n_systems;
	const char *baseline;
	struct result_set kept; /* owns what the keys and runs point to */
};

/* Of a run that was repeated (--resume), the last counts. `baseline` as in report.h. */
void grid_init(struct grid *grid, const struct result_set *set, const char *baseline);
void grid_fini(struct grid *grid);

struct stats_summary grid_summary(const struct grid_cell *cell, enum metric metric);
double grid_median(const struct grid_cell *cell, enum metric metric); /* NAN: not measured */

/* What the ratios of the panel are to: the baseline if the panel has it, else direct, else its first system; of one system
   alone, its first series. NULL: there is nothing to compare. */
const char *grid_baseline_name(const struct grid *grid, const struct grid_panel *panel);
/* The cell of that one under the same circumstances, perhaps this cell itself; NULL: there is none. */
const struct grid_cell *grid_baseline(const struct grid *grid, const struct grid_panel *panel,
                                      const struct grid_cell *cell);
const struct grid_cell *grid_find(const struct grid_panel *panel, size_t series, int64_t clients, int64_t threads);
/* The cell of another system with everything else the same; NULL: there is none. */
const struct grid_cell *grid_find_system(const struct grid_panel *panel, const struct grid_cell *like,
                                         const char *system);

/* The cell of the same system, clients and threads in the panel's first topology and variant of that system; NULL: it is
   this cell, or there is none. */
const struct grid_cell *grid_first_variant(const struct grid_panel *panel, const struct grid_cell *cell);

/* The median of the ratios run by run (a / b); without runs of the same number, of the medians. NAN: unknown. */
double grid_ratio(const struct grid_cell *a, const struct grid_cell *b, enum metric metric);

/*
 * Whether a is better than b. Even: within GRID_EVEN of each other, or GRID_EVEN_ALONE if only one run can be compared, or
 * the runs do not agree on which is better.
 */
#define GRID_EVEN 0.03
#define GRID_EVEN_ALONE 0.10
enum grid_verdict { VERDICT_UNKNOWN, VERDICT_BETTER, VERDICT_EVEN, VERDICT_WORSE };
enum grid_verdict grid_judge(const struct grid_cell *a, const struct grid_cell *b, enum metric metric);

bool grid_has(const struct grid_panel *panel, enum metric metric); /* whether any cell has it */
bool grid_has_repeats(const struct grid_panel *panel);             /* whether several runs of any cell count */
bool grid_has_one_system(const struct grid_panel *panel);
bool grid_has_variants(const struct grid_panel *panel);  /* some system comes in several topologies or variants */
bool grid_shows_threads(const struct grid_panel *panel); /* some clients come with several numbers of threads */
bool grid_is_pgweir(const char *system);

#endif
