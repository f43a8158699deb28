/* SPDX-License-Identifier: ISC */
#include "chart_parts.h"

#include <math.h>
#include <string.h>

#include "style.h"

/* What logs of latency are exact to, in ms: a logarithm needs something above zero. And which round number that is. */
#define LEAST 0.001
#define LEAST_STEP (-9)

/* The first place on the axis; runs of an unknown number of clients, of systems that are missing, have none. */
static double
first_place(const struct grid_panel *panel)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (chart_position(panel, &panel->cells[i]) >= 1)
			return chart_position(panel, &panel->cells[i]);
	}
	return 1;
}

static double
last_place(const struct grid_panel *panel)
{
	return chart_position(panel, &panel->cells[panel->n_cells - 1]);
}

/* Whether the labels of two numbers of clients stand clear of each other on the logarithmic axis. */
static bool
stand_clear(const struct grid_panel *panel, double left, double right)
{
	char label[32];
	int n = snprintf(label, sizeof(label), "%.0f", right);

	return log(right / left) > (0.02 + 0.022 * n) * log(last_place(panel) / first_place(panel));
}

static bool
has_tick(const struct grid_panel *panel, double x, double before)
{
	double last = last_place(panel);

	if (x < 1 || x <= before)
		return false;
	if (grid_shows_threads(panel) || before < 1 || x == last)
		return true;
	return stand_clear(panel, before, x) && stand_clear(panel, x, last);
}

/* At the measured numbers of clients, those left out that would run into the one before or into the last. */
static void
append_ticks(struct plot *p)
{
	const struct grid_panel *panel = p->panel;
	double before = 0;

	buf_append_str(p->script, "set xtics (");
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct result *r = panel->cells[i].key;
		double x = chart_position(panel, &panel->cells[i]);
		if (!has_tick(panel, x, before))
			continue;
		buf_printf(p->script, "%s'%lld", before < 1 ? "" : ", ", (long long)r->clients);
		if (grid_shows_threads(panel))
			buf_printf(p->script, "/%lld", (long long)r->threads);
		buf_printf(p->script, "' %g", x);
		before = x;
	}
	buf_append_str(p->script, ")\n");
}

/* 1, 2, 5, 10, 20, 50, ...: the number so many steps above 1, or below. */
static double
round_number(int step)
{
	static const double digits[] = {1, 2, 5};
	int decade = step >= 0 ? step / 3 : -((2 - step) / 3);

	return digits[step - 3 * decade] * pow(10, decade);
}

/* Powers of ten alone would leave an axis of less than two decades almost bare. */
static void
append_logarithmic(struct plot *p, enum metric metric)
{
	double low = INFINITY, high = LEAST;
	int first = LEAST_STEP, last;

	for (size_t i = 0; i < p->panel->n_cells; i++) {
		struct stats_summary s = grid_summary(&p->panel->cells[i], metric);
		low = s.n > 0 ? fmin(low, fmax(s.min, LEAST)) : low;
		high = s.n > 0 ? fmax(high, s.max) : high;
	}
	while (round_number(first + 1) <= low && round_number(first + 1) < high)
		first++;
	for (last = first + 1; round_number(last) < high;)
		last++;
	buf_append_str(p->script, "set logscale y\nset format y '%g'\nset mytics default\n");
	if (last - first > 6)
		return;
	/* A little more than from tick to tick: gnuplot's logarithms may put one at the very end beyond it. */
	buf_printf(p->script, "set yrange [%g:%g]\nset ytics (", round_number(first) * 0.999,
	           round_number(last) * 1.001);
	for (int step = first; step <= last; step++)
		buf_printf(p->script, "%s%g", step > first ? ", " : "", round_number(step));
	buf_append_str(p->script, ")\n");
}

static void
append_axes(struct plot *p, enum metric metric, enum chart_scale scale)
{
	const struct grid_panel *panel = p->panel;
	double first = first_place(panel), last = last_place(panel);

	append_ticks(p);
	if (grid_shows_threads(panel))
		buf_printf(p->script, "set xlabel 'clients/threads' offset 0,0.4\nset xrange [%g:%g]\n", first - 0.3,
		           last + 0.3);
	else
		buf_printf(p->script, "set xlabel 'clients' offset 0,0.4\nset logscale x\nset xrange [%g:%g]\n",
		           first / pow(last / first, 0.04), last * pow(last / first, 0.04));
	if (scale == CHART_LOGARITHMIC)
		append_logarithmic(p, metric);
	else
		buf_append_str(p->script, "set yrange [0:*]\nset format y '%.10g'\n");
	buf_append_str(
		p->script,
		"set key outside bottom center horizontal Left reverse noopaque samplen 2.5 spacing 1.1 height 0.7\n");
}

static bool
has_points(const struct grid_panel *panel, size_t series, enum metric metric)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (panel->cells[i].series == series && panel->cells[i].key->clients >= 1 &&
		    !isnan(grid_median(&panel->cells[i], metric)))
			return true;
	}
	return false;
}

/* The rows "position median min max" of one series. */
static void
append_points(struct plot *p, size_t series, enum metric metric, enum chart_scale scale)
{
	double least = scale == CHART_LOGARITHMIC ? LEAST : 0;

	buf_printf(p->script, "$s%zu << END_OF_DATA\n", series);
	for (size_t i = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		struct stats_summary s = grid_summary(c, metric);
		if (c->series == series && s.n > 0 && chart_position(p->panel, c) >= 1)
			buf_printf(p->script, "%g %.10g %.10g %.10g\n", chart_position(p->panel, c),
			           fmax(s.median, least), fmax(s.min, least), fmax(s.max, least));
	}
	buf_append_str(p->script, "END_OF_DATA\n");
}

/* How high the key will be, which gnuplot lays out in columns as wide as the longest label. */
static unsigned
key_height(const struct grid_panel *panel)
{
	size_t longest = 0, columns;

	for (size_t i = 0; i < panel->n_series; i++) {
		size_t n = strlen(panel->series[i].label);
		longest = n > longest ? n : longest;
	}
	columns = 400 / (longest * 7 + 55);
	columns = columns == 0 ? 1 : columns;
	return 16 * (unsigned)((panel->n_series + columns - 1) / columns);
}

bool
chart_has_line(const struct grid_panel *panel, enum metric metric)
{
	const struct grid_cell *first = NULL;

	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		if (isnan(grid_median(c, metric)) || c->key->clients < 1)
			continue;
		if (first != NULL && chart_position(panel, c) > chart_position(panel, first))
			return true;
		first = first == NULL ? c : first;
	}
	return false;
}

/* The range of the runs, then the line, which alone is in the key. */
static void
plot_line(struct plot *p, size_t series, const char *comma)
{
	struct style style = style_choose(p->grid, p->panel, series);
	uint32_t colour = style_colours[style.colour].light;

	buf_printf(p->script,
	           "%s$s%zu using 1:3:(0):($4-$3) with vectors nohead lc rgb '#%06x' lw 1.5 notitle, \\\n     ", comma,
	           series, colour);
	buf_printf(p->script, "$s%zu using 1:2 with linespoints lc rgb '#%06x' lw 2 dt %s pt %u ps 0.6 title ", series,
	           colour, style.dash, style.point);
	chart_append_quoted(p->script, p->panel->series[series].label);
}

void
chart_draw_lines(struct plot *p, enum metric metric, enum chart_scale scale)
{
	const struct grid_panel *panel = p->panel;
	const char *comma = "plot ";

	chart_begin(p, metric_infos[metric].title, metric_infos[metric].heading, 310 + key_height(panel));
	append_axes(p, metric, scale);
	for (size_t i = 0; i < panel->n_series; i++) {
		if (has_points(panel, i, metric))
			append_points(p, i, metric, scale);
	}
	for (size_t i = 0; i < panel->n_series; i++) {
		if (!has_points(panel, i, metric))
			continue;
		plot_line(p, i, comma);
		comma = ", \\\n     ";
	}
	buf_append_str(p->script, "\nunset output\n");
}
