/* SPDX-License-Identifier: ISC */
#include "chart_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "style.h"
#include "text.h"

/* Long names (folders, settings) would leave no room for bars beside them. */
enum names { NAMES_BESIDE, NAMES_ABOVE };
enum { LONGEST_BESIDE = 20 };

struct bars {
	struct plot *plot;
	enum metric metric;
	const struct grid_cell **cells; /* from the top */
	size_t n;
	double longest; /* the axis must hold it */
	enum names names;
};

static const char *
name_of(const struct bars *b, size_t i)
{
	return b->plot->panel->series[b->cells[i]->series].label;
}

/* The cells at that place which have a figure or were to have one. */
static void
collect(struct bars *b, const struct grid_cell *at)
{
	const struct grid_panel *panel = b->plot->panel;

	b->cells = text_alloc((panel->n_cells + 1) * sizeof(*b->cells));
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		double max = grid_summary(c, b->metric).max;
		if (chart_position(panel, c) != chart_position(panel, at))
			continue;
		if (isnan(max) && (c->n_runs > 0 || c->problem == NULL))
			continue;
		b->cells[b->n++] = c;
		b->longest = max > b->longest ? max : b->longest; /* not if it is NAN */
		if (strlen(name_of(b, b->n - 1)) > LONGEST_BESIDE)
			b->names = NAMES_ABOVE;
	}
}

/* A block $b0, $b1, ... of one row "median place min max figure" each; a failure is a bar of no length that says so. */
static void
append_data(const struct bars *b)
{
	struct buf *script = b->plot->script;
	char text[METRIC_TEXT];

	for (size_t i = 0; i < b->n; i++) {
		const struct grid_cell *c = b->cells[i];
		struct stats_summary s = grid_summary(c, b->metric);
		buf_printf(script, "$b%zu << END_OF_DATA\n", i);
		if (s.n > 0)
			buf_printf(script, "%.10g %zu %.10g %.10g %s", s.median, i, s.min, s.max,
			           metric_format(text, s.median));
		else
			buf_printf(script, "0 %zu 0 0 %.*s", i, (int)strcspn(c->problem, ": "), c->problem);
		buf_append_str(script, "\nEND_OF_DATA\n");
	}
}

static void
append_names(const struct bars *b)
{
	struct buf *script = b->plot->script;

	if (b->names == NAMES_ABOVE) {
		buf_append_str(script, "unset ytics\n");
		for (size_t i = 0; i < b->n; i++) {
			buf_append_str(script, "set label ");
			chart_append_quoted(script, name_of(b, i));
			buf_printf(script, " at first 0, first %g left offset 0.4,0\n", (double)i - 0.24);
		}
		return;
	}
	buf_append_str(script, "set ytics (");
	for (size_t i = 0; i < b->n; i++) {
		buf_append_str(script, i == 0 ? "" : ", ");
		chart_append_quoted(script, name_of(b, i));
		buf_printf(script, " %zu", i);
	}
	buf_append_str(script, ") scale 0\n");
}

static void
append_plot(const struct bars *b)
{
	struct buf *script = b->plot->script;
	double top = b->names == NAMES_ABOVE ? 0 : -0.36, bottom = 0.36;

	for (size_t i = 0; i < b->n; i++) {
		struct style style = style_choose(b->plot->grid, b->plot->panel, b->cells[i]->series);
		buf_printf(script, "%s$b%zu using 1:2:(0):1:($2+%g):($2+%g) with boxxyerror fs solid 1.0 noborder",
		           i == 0 ? "plot " : ", \\\n     ", i, top, bottom);
		buf_printf(script, " lc rgb '#%06x' notitle", style_colours[style.colour].light);
		if (b->cells[i]->n_runs > 1)
			buf_printf(
				script,
				", $b%zu using 3:($2+%g):($4-$3):(0) with vectors nohead lc rgb '#808080' lw 3 notitle",
				i, (top + bottom) / 2);
		buf_printf(script, ", $b%zu using 4:($2+%g):5 with labels left offset 0.6,0 notitle", i,
		           (top + bottom) / 2);
	}
	buf_append_str(script, "\nunset output\n");
}

static char *
title_of(const struct bars *b, const struct grid_cell *at)
{
	const char *title = metric_infos[b->metric].title;
	long long clients = at->key->clients, threads = at->key->threads;

	if (grid_shows_threads(b->plot->panel))
		return text_fmt("%s, %lld clients, %lld threads", title, clients, threads);
	return text_fmt("%s, %lld client%s", title, clients, clients == 1 ? "" : "s");
}

void
chart_draw_bars(struct plot *p, enum metric metric, const struct grid_cell *at, const char *end)
{
	struct bars b = {.plot = p, .metric = metric};

	collect(&b, at);
	if (b.longest > 0) {
		char *title = title_of(&b, at), *what = text_fmt("%s-%s", metric_infos[metric].heading, end);
		chart_begin(p, title, what, 50 + (b.names == NAMES_ABOVE ? 40 : 26) * (unsigned)b.n);
		free(title);
		free(what);
		append_data(&b);
		append_names(&b);
		buf_printf(p->script, "set border 2\nunset xtics\nset grid noxtics noytics\nset xrange [0:%.10g]\n",
		           b.longest * 1.2);
		buf_printf(p->script, "set yrange [%zu.5:-0.5]\n", b.n - 1);
		append_plot(&b);
	}
	free(b.cells);
}
