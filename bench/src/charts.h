/* SPDX-License-Identifier: ISC */
/* Pictures of a grid: SVG files that gnuplot draws into DIR/charts, beside the script that it drew them from. */
#ifndef PGWEIR_BENCH_CHARTS_H
#define PGWEIR_BENCH_CHARTS_H

#include "grid.h"

#include "base/buf.h"

#include <stdio.h>

struct chart {
	size_t panel;
	char *title;
	char *file; /* in DIR/charts */
};

struct charts {
	struct chart *items; /* panel by panel */
	size_t n;
	char *problem; /* why there are no pictures, or not all; NULL: there are */
};

/* Draws. Without gnuplot there is a problem and nothing else. False: the folder cannot be written; why is on `errors`. */
bool charts_draw(const char *dir, const struct grid *grid, struct charts *out, FILE *errors)
	__attribute__((warn_unused_result));
void charts_fini(struct charts *charts);

/* Appends the picture as it goes into HTML: without its prologue, its colours as classes, its ids unique. False: there is
   no such file. */
bool charts_inline(struct buf *html, const char *dir, const struct charts *charts, size_t i)
	__attribute__((warn_unused_result));

/* The style sheet for inlined charts. */
void charts_append_css(struct buf *html);

#endif
