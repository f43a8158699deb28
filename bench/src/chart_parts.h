/* SPDX-License-Identifier: ISC */
/* What the kinds of charts share: each appends its part of the script for gnuplot. */
#ifndef PGWEIR_BENCH_CHART_PARTS_H
#define PGWEIR_BENCH_CHART_PARTS_H

#include "charts.h"

struct plot {
	struct buf *script;
	const struct grid *grid;
	const struct grid_panel *panel;
	size_t panel_index;
	struct charts *charts;
};

enum chart_scale { CHART_LINEAR, CHART_LOGARITHMIC };

/* Begins a file of its own, 440 wide; `what` tells it from the panel's others in its name. */
void chart_begin(struct plot *p, const char *title, const char *what, unsigned height);
/* In gnuplot's single quotes, where nothing is expanded. */
void chart_append_quoted(struct buf *b, const char *text);
/* Where a cell is on the axis of clients: their number or, if the threads vary too, its place among the pairs. */
double chart_position(const struct grid_panel *panel, const struct grid_cell *cell);

/* Whether a series has the figure for two numbers of clients or more. */
bool chart_has_line(const struct grid_panel *panel, enum metric metric);
/* A line for each series over clients, with the range of the runs. */
void chart_draw_lines(struct plot *p, enum metric metric, enum chart_scale scale);
/* A bar for each series at the clients (and threads) of `at`, the first on top, with the range of the runs. */
void chart_draw_bars(struct plot *p, enum metric metric, const struct grid_cell *at, const char *end);

#endif
