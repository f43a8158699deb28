/* SPDX-License-Identifier: ISC */
#include "charts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "style.h"
#include "text.h"

extern char **environ;

#define SCRIPT_NAME "charts.gnuplot"
#define LOG_NAME "gnuplot.log"

/* Over clients. Times are compared by factors, so on a logarithmic axis; everything else from zero. */
enum scale_kind { LINEAR, LOGARITHMIC };

static const struct {
	enum metric metric;
	enum scale_kind scale;
	enum metric unless; /* the panel has this, which says more; METRIC_N: never */
} over_clients[] = {
	{METRIC_TPS, LINEAR, METRIC_N},
	{METRIC_MB_PER_S, LINEAR, METRIC_N},
	{METRIC_P50_MS, LOGARITHMIC, METRIC_N},
	{METRIC_P99_MS, LOGARITHMIC, METRIC_N},
	{METRIC_AVG_MS, LOGARITHMIC, METRIC_P50_MS},
	{METRIC_POOLER_US, LINEAR, METRIC_N},
	{METRIC_RSS_PEAK_MIB, LINEAR, METRIC_N},
	{METRIC_RSS_CLIENT_KIB, LINEAR, METRIC_TPS},
	{METRIC_RSS_AFTER_MIB, LINEAR, METRIC_TPS},
	{METRIC_CONNECT_MS, LINEAR, METRIC_TPS},
};

struct plot {
	struct buf *script;
	const struct grid *grid;
	const struct grid_panel *panel;
	size_t panel_index;
	struct charts *charts;
};

/* --- pieces of script --- */

static void
append_quoted(struct buf *b, const char *text)
{
	buf_append_u8(b, '\'');
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\'')
			buf_append_u8(b, '\'');
		buf_append_u8(b, (uint8_t)((unsigned char)*p < ' ' ? ' ' : *p));
	}
	buf_append_u8(b, '\'');
}

/* Letters, digits and single dashes of the panel's title. */
static char *
file_name(const struct plot *p, const char *what)
{
	char *name = text_fmt("%02zu-%s-%s", p->panel_index + 1, p->panel->title, what), *out = name;

	for (const char *in = name; *in != '\0'; in++) {
		if (isalnum((unsigned char)*in) || *in == '.')
			*out++ = (char)tolower((unsigned char)*in);
		else if (out > name && out[-1] != '-')
			*out++ = '-';
	}
	*out = '\0';
	char *file = text_fmt("%.120s.svg", name);
	free(name);
	return file;
}

static void
begin_chart(struct plot *p, const char *title, const char *what, unsigned height)
{
	struct charts *charts = p->charts;
	struct chart *grown = text_alloc((charts->n + 1) * sizeof(*grown));

	if (charts->n > 0)
		memcpy(grown, charts->items, charts->n * sizeof(*grown));
	free(charts->items);
	charts->items = grown;
	charts->items[charts->n] = (struct chart){p->panel_index, text_dup(title), file_name(p, what)};
	buf_printf(
		p->script,
		"\nreset\nset encoding utf8\nset terminal svg noenhanced size 440,%u dynamic background rgb '#ffffff' "
		"font 'sans-serif,12' name 'chart%zu'\nset output ",
		height, charts->n);
	append_quoted(p->script, charts->items[charts->n].file);
	buf_append_str(p->script, "\nset title ");
	append_quoted(p->script, title);
	buf_append_str(p->script, "\nset border 3 lc rgb '#808080'\nset tics nomirror scale 0.5 textcolor rgb 'black'\n"
	                          "set grid lt 1 lc rgb '#c8c8c8' lw 0.5\n");
	charts->n++;
}

/* --- lines over clients --- */

/* Where a cell is on the axis: its clients or, if the threads vary too, its place among the pairs. */
static double
position(const struct grid_panel *panel, const struct grid_cell *cell)
{
	double place = 1;

	if (!grid_shows_threads(panel))
		return (double)cell->key->clients;
	for (size_t i = 1; i < panel->n_cells && &panel->cells[i] <= cell; i++) {
		const struct result *a = panel->cells[i - 1].key, *b = panel->cells[i].key;
		place += a->clients != b->clients || a->threads != b->threads;
	}
	return place;
}

/* At the measured numbers of clients, those left out that would run into the one before or into the last. */
static void
append_ticks(struct plot *p)
{
	const struct grid_panel *panel = p->panel;
	const struct grid_cell *first = &panel->cells[0], *last = &panel->cells[panel->n_cells - 1];
	bool threads = grid_shows_threads(panel);
	double width = log(position(panel, last) / position(panel, first)), at = -1;

	buf_append_str(p->script, "set xtics (");
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		double x = position(panel, c);
		bool ends = x >= position(panel, last);
		if (x <= at || (!threads && at > 0 && log(x / at) < 0.06 * width) ||
		    (!threads && !ends && log(position(panel, last) / x) < 0.08 * width))
			continue;
		buf_printf(p->script, "%s'%lld", at < 0 ? "" : ", ", (long long)c->key->clients);
		if (threads)
			buf_printf(p->script, "/%lld", (long long)c->key->threads);
		buf_printf(p->script, "' %g", x);
		at = x;
	}
	buf_append_str(p->script, ")\n");
}

static void
append_axes(struct plot *p, enum scale_kind scale)
{
	const struct grid_panel *panel = p->panel;
	double first = position(panel, &panel->cells[0]), last = position(panel, &panel->cells[panel->n_cells - 1]);

	append_ticks(p);
	if (grid_shows_threads(panel))
		buf_printf(p->script, "set xlabel 'clients/threads'\nset xrange [%g:%g]\n", first - 0.3, last + 0.3);
	else
		buf_printf(p->script, "set xlabel 'clients'\nset logscale x\nset xrange [%g:%g]\n",
		           first / pow(last / first, 0.04), last * pow(last / first, 0.04));
	if (scale == LOGARITHMIC)
		buf_append_str(p->script, "set logscale y\nset format y '%g'\nset mytics default\n");
	else
		buf_append_str(p->script, "set yrange [0:*]\nset format y '%.10g'\n");
	buf_append_str(p->script, "set key outside bottom center horizontal noopaque samplen 2.5 spacing 1.1\n");
}

static bool
has_points(const struct grid_panel *panel, size_t series, enum metric metric)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (panel->cells[i].series == series && !isnan(grid_median(&panel->cells[i], metric)))
			return true;
	}
	return false;
}

/* The rows "position median min max" of one series. */
static void
append_points(struct plot *p, size_t series, enum metric metric)
{
	buf_printf(p->script, "$s%zu << END_OF_DATA\n", series);
	for (size_t i = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		struct stats_summary s = grid_summary(c, metric);
		if (c->series == series && s.n > 0)
			buf_printf(p->script, "%g %.10g %.10g %.10g\n", position(p->panel, c), s.median, s.min, s.max);
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

static bool
has_line(const struct grid_panel *panel, enum metric metric)
{
	const struct grid_cell *first = NULL;

	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		if (isnan(grid_median(c, metric)) || c->key->clients < 1)
			continue;
		if (first != NULL && position(panel, c) > position(panel, first))
			return true;
		first = first == NULL ? c : first;
	}
	return false;
}

static void
draw_lines(struct plot *p, enum metric metric, enum scale_kind scale)
{
	const struct grid_panel *panel = p->panel;
	const char *comma = "plot ";

	begin_chart(p, metric_infos[metric].title, metric_infos[metric].heading, 290 + key_height(panel));
	append_axes(p, scale);
	for (size_t i = 0; i < panel->n_series; i++) {
		if (has_points(panel, i, metric))
			append_points(p, i, metric);
	}
	for (size_t i = 0; i < panel->n_series; i++) {
		if (!has_points(panel, i, metric))
			continue;
		struct style style = style_choose(p->grid, panel, i);
		buf_printf(p->script,
		           "%s$s%zu using 1:2:3:4 with yerrorlines lc rgb '#%06x' lw 2 dt %s pt %u ps 0.6 title ",
		           comma, i, style_colours[style.colour].light, style.dash, style.point);
		append_quoted(p->script, panel->series[i].label);
		comma = ", \\\n     ";
	}
	buf_append_str(p->script, "\nunset output\n");
}

/* --- bars --- */

static bool
has_bar(const struct plot *p, const struct grid_cell *c, const struct grid_cell *at, enum metric metric)
{
	return position(p->panel, c) == position(p->panel, at) && !isnan(grid_median(c, metric));
}

/* The blocks $b0, $b1, ... of one row "median place min max figure", and the labels of the axis. */
static void
append_bars(struct plot *p, enum metric metric, const struct grid_cell *at)
{
	char text[METRIC_TEXT];
	size_t n = 0;

	for (size_t i = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		if (!has_bar(p, c, at, metric))
			continue;
		struct stats_summary s = grid_summary(c, metric);
		buf_printf(p->script, "$b%zu << END_OF_DATA\n%.10g %zu %.10g %.10g ", n, s.median, n, s.min, s.max);
		append_quoted(p->script, metric_format(text, s.median));
		buf_append_str(p->script, "\nEND_OF_DATA\n");
		n++;
	}
	buf_append_str(p->script, "set ytics (");
	for (size_t i = 0, k = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		if (!has_bar(p, c, at, metric))
			continue;
		buf_append_str(p->script, k == 0 ? "" : ", ");
		append_quoted(p->script, p->panel->series[c->series].label);
		buf_printf(p->script, " %zu", k++);
	}
	buf_append_str(p->script, ") scale 0\n");
}

static void
plot_bars(struct plot *p, enum metric metric, const struct grid_cell *at)
{
	const char *comma = "plot ";
	size_t n = 0;

	for (size_t i = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		if (!has_bar(p, c, at, metric))
			continue;
		struct style style = style_choose(p->grid, p->panel, c->series);
		buf_printf(p->script,
		           "%s$b%zu using 1:2:(0):1:($2-0.36):($2+0.36) with boxxyerror fs solid 1.0 noborder lc rgb "
		           "'#%06x' "
		           "notitle",
		           comma, n, style_colours[style.colour].light);
		if (c->n_runs > 1)
			buf_printf(p->script,
			           ", $b%zu using 1:2:3:4 with xerrorbars lc rgb '#808080' lw 1.5 pt -1 notitle", n);
		buf_printf(p->script, ", $b%zu using 4:2:5 with labels left offset 0.6,0 notitle", n);
		comma = ", \\\n     ";
		n++;
	}
	buf_append_str(p->script, "\nunset output\n");
}

/* A bar for each series at one place of the clients' axis, the first on top, with the range of its runs and its figure. */
static void
draw_bars(struct plot *p, enum metric metric, const struct grid_cell *at, const char *end)
{
	unsigned n = 0;
	double most = 0;
	char *title = text_fmt("%s, %lld client%s", metric_infos[metric].title, (long long)at->key->clients,
	                       at->key->clients == 1 ? "" : "s");
	char *what = text_fmt("%s-%s", metric_infos[metric].heading, end);

	for (size_t i = 0; i < p->panel->n_cells; i++) {
		const struct grid_cell *c = &p->panel->cells[i];
		if (!has_bar(p, c, at, metric))
			continue;
		struct stats_summary s = grid_summary(c, metric);
		most = s.max > most ? s.max : most;
		n++;
	}
	if (n > 0 && most > 0) {
		begin_chart(p, title, what, 70 + 26 * n);
		append_bars(p, metric, at);
		buf_printf(p->script, "set border 2\nunset xtics\nset grid noxtics noytics\nset xrange [0:%.10g]\n",
		           most * 1.2);
		buf_printf(p->script, "set yrange [%u.5:-0.5]\n", n - 1);
		plot_bars(p, metric, at);
	}
	free(title);
	free(what);
}

/* --- a panel --- */

/* The main figure at both ends of the clients' axis; where there is only one place on it, all figures there. */
static void
draw_ends(struct plot *p)
{
	const struct grid_cell *first = &p->panel->cells[0], *last = &p->panel->cells[p->panel->n_cells - 1];
	enum metric metric = grid_has(p->panel, METRIC_TPS)        ? METRIC_TPS
	                     : grid_has(p->panel, METRIC_MB_PER_S) ? METRIC_MB_PER_S
	                                                           : METRIC_RSS_PEAK_MIB;

	if (position(p->panel, first) < position(p->panel, last)) {
		draw_bars(p, metric, first, "first");
		draw_bars(p, metric, last, "last");
		return;
	}
	for (size_t i = 0; i < sizeof(over_clients) / sizeof(over_clients[0]); i++) {
		enum metric unless = over_clients[i].unless;
		if (unless == METRIC_N || !grid_has(p->panel, unless))
			draw_bars(p, over_clients[i].metric, first, "bars");
	}
}

static void
draw_panel(struct plot *p)
{
	for (size_t i = 0; i < sizeof(over_clients) / sizeof(over_clients[0]); i++) {
		enum metric unless = over_clients[i].unless;
		if ((unless == METRIC_N || !grid_has(p->panel, unless)) && has_line(p->panel, over_clients[i].metric))
			draw_lines(p, over_clients[i].metric, over_clients[i].scale);
	}
	draw_ends(p);
}

/* --- running gnuplot --- */

/* Its exit code, or -1: it could not be started (errno). It works in `folder`, so that names need no path. */
static int
run_gnuplot(const char *folder)
{
	char *argv[] = {(char *)"gnuplot", (char *)SCRIPT_NAME, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = 0, rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addchdir_np(&actions, folder);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, LOG_NAME, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool
write_script(const char *folder, const struct buf *script, FILE *errors)
{
	char *path = text_fmt("%s/" SCRIPT_NAME, folder);
	FILE *file = NULL;
	bool done = false;

	if (mkdir(folder, 0777) == 0 || errno == EEXIST)
		file = fopen(path, "we");
	if (file != NULL) {
		done = fwrite(buf_head(script), 1, script->len, file) == script->len;
		done = fclose(file) == 0 && done;
	}
	if (!done)
		fprintf(errors, "%s: %s\n", path, strerror(errno));
	free(path);
	return done;
}

/* Without what an earlier report left, which might be taken for this one's. */
static void
remove_old(const char *folder, const struct charts *charts)
{
	for (size_t i = 0; i < charts->n; i++) {
		char *path = text_fmt("%s/%s", folder, charts->items[i].file);
		remove(path);
		free(path);
	}
}

static void
draw(const char *folder, struct charts *out)
{
	int code;

	remove_old(folder, out);
	code = run_gnuplot(folder);

	if (code == -1 && errno == ENOENT)
		out->problem = text_dup("gnuplot is not installed (package gnuplot-nox), so there are no charts");
	else if (code == -1)
		out->problem = text_fmt("gnuplot: %s, so there are no charts", strerror(errno));
	else if (code != 0)
		out->problem =
			text_fmt("gnuplot failed (exit code %d), so charts are missing: see charts/" LOG_NAME, code);
}

bool
charts_draw(const char *dir, const struct grid *grid, struct charts *out, FILE *errors)
{
	char *folder = text_fmt("%s/charts", dir);
	struct buf script;
	bool done;

	*out = (struct charts){0};
	buf_init(&script);
	buf_append_str(&script, "# What the charts beside this file were drawn from: gnuplot " SCRIPT_NAME "\n");
	for (size_t i = 0; i < grid->n_panels; i++) {
		struct plot p = {&script, grid, &grid->panels[i], i, out};
		draw_panel(&p);
	}
	done = !script.failed && write_script(folder, &script, errors);
	if (done && out->n > 0)
		draw(folder, out);
	buf_fini(&script);
	free(folder);
	return done;
}

void
charts_fini(struct charts *charts)
{
	for (size_t i = 0; i < charts->n; i++) {
		free(charts->items[i].title);
		free(charts->items[i].file);
	}
	free(charts->items);
	free(charts->problem);
	*charts = (struct charts){0};
}
