/* SPDX-License-Identifier: ISC */
/* The report on the terminal. */
#include "report_parts.h"

#include <math.h>
#include <string.h>

#include "published.h"
#include "textgrid.h"

/* Columns that are left out where no cell has a figure; the main one comes before them. */
static const enum metric columns[] = {
	METRIC_TPS,          METRIC_MB_PER_S,       METRIC_P50_MS,        METRIC_P99_MS,          METRIC_CONNECT_MS,
	METRIC_POOLER_US,    METRIC_POOLER_CALLS,   METRIC_POOLER_SENDS,  METRIC_POOLER_RECEIVES, METRIC_POOLER_WAITS,
	METRIC_RSS_PEAK_MIB, METRIC_RSS_CLIENT_KIB, METRIC_RSS_AFTER_MIB, METRIC_SKIPPED,
};
enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* Memory of a moment says little under load; of idle clients it is all there is. */
static bool
shows(const struct grid_panel *panel, enum metric metric)
{
	bool idle = report_main_metric(panel) == METRIC_RSS_PEAK_MIB;

	if (metric == report_main_metric(panel) || !grid_has(panel, metric))
		return false;
	if (metric == METRIC_RSS_CLIENT_KIB || metric == METRIC_RSS_AFTER_MIB || metric == METRIC_CONNECT_MS)
		return idle;
	return true;
}

static double
sum_of(const struct grid_cell *cell, enum metric metric)
{
	struct stats_summary s = grid_summary(cell, metric);

	return s.n == 0 ? NAN : s.mean * (double)s.n;
}

static bool
has_failures(const struct grid_panel *panel)
{
	for (size_t i = 0; i < panel->n_cells; i++)
		if (sum_of(&panel->cells[i], METRIC_FAILURES) > 0)
			return true;
	return false;
}

static void
add_headings(struct textgrid *t, const struct grid_panel *panel)
{
	textgrid_add(t, grid_shows_threads(panel) ? "clients/threads" : "clients");
	textgrid_add(t, "system");
	textgrid_add(t, "runs");
	textgrid_add(t, metric_infos[report_main_metric(panel)].heading);
	if (grid_has_repeats(panel))
		textgrid_add(t, "+-");
	textgrid_add(t, "ratio");
	if (report_shows_variants(panel))
		textgrid_add(t, "own");
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (shows(panel, columns[i]))
			textgrid_add(t, metric_infos[columns[i]].heading);
	}
	if (has_failures(panel))
		textgrid_add(t, "failures");
	textgrid_end_headings(t);
}

static void
add_ratio(struct textgrid *t, const struct grid_cell *cell, const struct grid_cell *base, enum metric metric)
{
	double ratio = base == NULL ? NAN : grid_ratio(cell, base, metric);

	if (base == cell && cell->n_runs > 0)
		textgrid_add(t, "=");
	else if (isnan(ratio))
		textgrid_add(t, "-");
	else
		textgrid_addf(t, "%.2f", ratio);
}

static void
add_row(struct textgrid *t, const struct grid *grid, const struct grid_panel *panel, const struct grid_cell *cell)
{
	enum metric main_metric = report_main_metric(panel);
	struct stats_summary s = grid_summary(cell, main_metric);
	char text[METRIC_TEXT], clients[48];

	textgrid_add(t, report_clients(clients, panel, cell->key));
	textgrid_add(t, panel->series[cell->series].label);
	textgrid_addf(t, "%zu", cell->n_runs);
	textgrid_add(t, cell->n_runs == 0 && cell->problem != NULL ? "none" : metric_format(text, s.median));
	if (grid_has_repeats(panel))
		textgrid_add(t, metric_format(text, s.sd));
	add_ratio(t, cell, grid_baseline(grid, panel, cell), main_metric);
	if (report_shows_variants(panel))
		add_ratio(t, cell, grid_first_variant(panel, cell), main_metric);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (shows(panel, columns[i]))
			textgrid_add(t, metric_format(text, grid_median(cell, columns[i])));
	}
	if (has_failures(panel))
		textgrid_add(t, metric_format(text, sum_of(cell, METRIC_FAILURES)));
}

static void
print_panel(const struct grid *grid, const struct grid_panel *panel, FILE *out)
{
	const char *base = grid_baseline_name(grid, panel);
	struct textgrid t;

	fprintf(out, "%s%s%s%s\n", panel->title, base != NULL ? " (ratio to " : "", base != NULL ? base : "",
	        base != NULL ? ")" : "");
	textgrid_init(&t, 2);
	add_headings(&t, panel);
	for (size_t i = 0; i < panel->n_cells; i++)
		add_row(&t, grid, panel, &panel->cells[i]);
	textgrid_print(&t, out);
	textgrid_fini(&t);
}

static void
print_published(const struct grid_panel *panel, FILE *out)
{
	struct textgrid t;
	char text[METRIC_TEXT], clients[48];

	textgrid_init(&t, 3);
	textgrid_add(&t, "published");
	textgrid_add(&t, "measured here");
	textgrid_add(&t, "clients");
	textgrid_add(&t, "published");
	textgrid_add(&t, "here");
	textgrid_end_headings(&t);
	for (size_t i = 0; i < n_published_figures; i++) {
		const struct published *p = &published_figures[i];
		for (size_t k = 0; k < panel->n_cells; k++) {
			const struct grid_cell *cell = &panel->cells[k];
			if (!published_matches(p, cell->key))
				continue;
			textgrid_add(&t, p->subject);
			textgrid_add(&t, panel->series[cell->series].label);
			textgrid_add(&t, report_clients(clients, panel, cell->key));
			textgrid_add(&t, metric_format(text, p->value));
			textgrid_add(&t, metric_format(text, grid_median(cell, p->metric)));
		}
	}
	if (t.n > t.n_columns)
		textgrid_print(&t, out);
	textgrid_fini(&t);
}

static void
print_duels(const struct duels *duels, FILE *out)
{
	struct textgrid t;

	if (duels->n_pairs == 0)
		return;
	fputs("\npgweir against the others, cells better / even / worse:\n", out);
	textgrid_init(&t, 2);
	textgrid_add(&t, "");
	textgrid_add(&t, "against");
	for (size_t m = 0; m < DUEL_N_METRICS; m++)
		textgrid_add(&t, metric_infos[duel_metrics[m]].heading);
	textgrid_end_headings(&t);
	for (size_t i = 0; i < duels->n_pairs; i++) {
		const struct duel *d = &duels->pairs[i];
		textgrid_add(&t, d->ours);
		textgrid_add(&t, d->theirs);
		for (size_t m = 0; m < DUEL_N_METRICS; m++)
			textgrid_addf(&t, "%u / %u / %u", d->better[m], d->even[m], d->worse[m]);
	}
	textgrid_print(&t, out);
	textgrid_fini(&t);
}

static void
print_gaps(const struct gaps *gaps, FILE *out)
{
	if (gaps->n > 0)
		fputs("\nNot measured:\n", out);
	for (size_t i = 0; i < gaps->n; i++) {
		const struct gap *g = &gaps->items[i];
		fprintf(out, "  %s: %s%s%s: %s", g->panel->title, g->panel->series[g->series].label,
		        g->clients == NULL ? "" : ", clients ", g->clients == NULL ? "" : g->clients, g->problem);
		if (g->n_good > 0)
			fprintf(out, " (%zu of %zu runs)", g->n_bad, g->n_bad + g->n_good);
		fputc('\n', out);
	}
}

static void
print_legend(const struct grid *grid, FILE *out)
{
	bool repeats = false, variants = false;

	for (size_t i = 0; i < grid->n_panels; i++) {
		repeats |= grid_has_repeats(&grid->panels[i]);
		variants |= report_shows_variants(&grid->panels[i]);
	}
	fputs(repeats ? "\nMedians of the runs that count, +- their standard deviation; ratios are medians too,\n"
	                "run by run.\n"
	              : "\nOf one run each.\n",
	      out);
	if (variants)
		fputs("own: the ratio to the same system in its first line.\n", out);
}

void
report_text_print(const struct report *report, FILE *out)
{
	const struct grid *grid = &report->grid;

	for (size_t i = 0; i < grid->n_panels; i++) {
		if (i > 0)
			fputc('\n', out);
		print_panel(grid, &grid->panels[i], out);
		print_published(&grid->panels[i], out);
	}
	print_legend(grid, out);
	print_duels(&report->duels, out);
	print_gaps(&report->gaps, out);
}
