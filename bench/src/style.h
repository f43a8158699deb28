/* SPDX-License-Identifier: ISC */
/* Colours, points and dashes: a hue for each kind of system, a shade for each of its configurations. Pure. */
#ifndef PGWEIR_BENCH_STYLE_H
#define PGWEIR_BENCH_STYLE_H

#include "grid.h"

#define STYLE_N_COLOURS 15

struct style_colour {
	uint32_t light; /* on white, as in the files of the charts */
	uint32_t dark;  /* on the dark page */
};

extern const struct style_colour style_colours[STYLE_N_COLOURS];

struct style {
	size_t colour;    /* in style_colours */
	unsigned point;   /* gnuplot's pt */
	const char *dash; /* gnuplot's dt */
};

struct style style_choose(const struct grid *grid, const struct grid_panel *panel, size_t series);

#endif
