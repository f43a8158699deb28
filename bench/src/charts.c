/* SPDX-License-Identifier: ISC */
#include "charts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chart_parts.h"
#include "text.h"

extern char **environ;

#define SCRIPT_NAME "charts.gnuplot"
#define LOG_NAME "gnuplot.log"

/* Times are compared by factors, so on a logarithmic axis; everything else from zero. */
static const struct {
	enum metric metric;
	enum chart_scale scale;
	enum metric unless; /* the panel has this, which says more; METRIC_N: never */
} over_clients[] = {
	{METRIC_TPS, CHART_LINEAR, METRIC_N},
	{METRIC_MB_PER_S, CHART_LINEAR, METRIC_N},
	{METRIC_P50_MS, CHART_LOGARITHMIC, METRIC_N},
	{METRIC_P99_MS, CHART_LOGARITHMIC, METRIC_N},
	{METRIC_AVG_MS, CHART_LOGARITHMIC, METRIC_P50_MS},
	{METRIC_POOLER_US, CHART_LINEAR, METRIC_N},
	{METRIC_POOLER_CALLS, CHART_LINEAR, METRIC_N},
	{METRIC_RSS_PEAK_MIB, CHART_LINEAR, METRIC_N},
	{METRIC_RSS_CLIENT_KIB, CHART_LINEAR, METRIC_TPS},
	{METRIC_RSS_AFTER_MIB, CHART_LINEAR, METRIC_TPS},
	{METRIC_CONNECT_MS, CHART_LINEAR, METRIC_TPS},
};

/* --- pieces of script --- */

void
chart_append_quoted(struct buf *b, const char *text)
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

void
chart_begin(struct plot *p, const char *title, const char *what, unsigned height)
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
	chart_append_quoted(p->script, charts->items[charts->n].file);
	buf_append_str(p->script, "\nset title ");
	chart_append_quoted(p->script, title);
	buf_append_str(p->script, " offset 0,-0.4\nset tmargin 2\nset border 3 lc rgb '#808080'\nset tics nomirror "
	                          "scale 0.5 textcolor rgb 'black'\n"
	                          "set grid lt 1 lc rgb '#c8c8c8' lw 0.5\n");
	charts->n++;
}

/* Where a cell is on the axis: its clients or, if the threads vary too, its place among the pairs. */
double
chart_position(const struct grid_panel *panel, const struct grid_cell *cell)
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

/* --- a panel --- */

/* The main figure at both ends of the clients' axis; where there is only one place on it, all figures there. */
static void
draw_ends(struct plot *p)
{
	const struct grid_cell *first = &p->panel->cells[0], *last = &p->panel->cells[p->panel->n_cells - 1];
	enum metric metric = grid_has(p->panel, METRIC_TPS)            ? METRIC_TPS
	                     : grid_has(p->panel, METRIC_MB_PER_S)     ? METRIC_MB_PER_S
	                     : grid_has(p->panel, METRIC_POOLER_CALLS) ? METRIC_POOLER_CALLS
	                                                               : METRIC_RSS_PEAK_MIB;

	while (first < last && first->key->clients < 1)
		first++;
	if (chart_position(p->panel, first) < chart_position(p->panel, last)) {
		chart_draw_bars(p, metric, first, "first");
		chart_draw_bars(p, metric, last, "last");
		return;
	}
	for (size_t i = 0; i < sizeof(over_clients) / sizeof(over_clients[0]); i++) {
		enum metric unless = over_clients[i].unless;
		if (unless == METRIC_N || !grid_has(p->panel, unless))
			chart_draw_bars(p, over_clients[i].metric, first, "bars");
	}
}

static void
draw_panel(struct plot *p)
{
	for (size_t i = 0; i < sizeof(over_clients) / sizeof(over_clients[0]); i++) {
		enum metric unless = over_clients[i].unless;
		if ((unless == METRIC_N || !grid_has(p->panel, unless)) &&
		    chart_has_line(p->panel, over_clients[i].metric))
			chart_draw_lines(p, over_clients[i].metric, over_clients[i].scale);
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
