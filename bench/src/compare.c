/* SPDX-License-Identifier: ISC */
/* `compare DIR1 DIR2`: the same cells of two folders, side by side. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "report_parts.h"
#include "textgrid.h"

/* Those of them that both folders have for a cell are compared; the first is shown in any case. */
static const enum metric columns[] = {
	METRIC_TPS, METRIC_MB_PER_S, METRIC_P50_MS, METRIC_P99_MS, METRIC_POOLER_US, METRIC_RSS_PEAK_MIB,
};
enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

struct side {
	const char *dir;
	struct result_set set;
	struct grid grid;
};

static const struct grid_panel *
find_panel(const struct grid *grid, const struct grid_panel *like)
{
	for (size_t i = 0; i < grid->n_panels; i++) {
		if (strcmp(grid->panels[i].title, like->title) == 0)
			return &grid->panels[i];
	}
	return NULL;
}

static const struct grid_cell *
find_cell(const struct grid *grid, const struct grid_panel *like, const struct grid_cell *cell)
{
	const struct grid_panel *panel = find_panel(grid, like);

	return panel == NULL ? NULL : grid_find_system(panel, cell, cell->key->system);
}

static const char *
word_for(enum grid_verdict verdict)
{
	switch (verdict) {
	case VERDICT_BETTER:
		return "better";
	case VERDICT_WORSE:
		return "worse";
	case VERDICT_EVEN:
		return "";
	case VERDICT_UNKNOWN:
		break;
	}
	return "?";
}

/* Runs of the same number in two folders have nothing in common, so it is the medians that are compared. */
static enum grid_verdict
judge(const struct grid_cell *before, const struct grid_cell *after, enum metric metric)
{
	struct stats_summary a = grid_summary(before, metric), b = grid_summary(after, metric);
	double ratio = b.median / a.median, even = a.n == 1 || b.n == 1 ? GRID_EVEN_ALONE : GRID_EVEN;
	bool apart = b.min > a.max || b.max < a.min;

	if (isnan(ratio))
		return VERDICT_UNKNOWN;
	if (!apart || (ratio < 1 + even && ratio > 1 / (1 + even)))
		return VERDICT_EVEN;
	return (ratio > 1) == (metric_infos[metric].better == BETTER_MORE) ? VERDICT_BETTER : VERDICT_WORSE;
}

static size_t
add_rows(struct textgrid *t, const struct grid_panel *panel, const struct grid_cell *before,
         const struct grid_cell *after)
{
	char text[METRIC_TEXT], clients[48];
	size_t n = 0;

	for (size_t i = 0; i < N_COLUMNS; i++) {
		double a = grid_median(before, columns[i]), b = grid_median(after, columns[i]);
		if (isnan(a) || isnan(b))
			continue;
		textgrid_add(t, report_clients(clients, panel, before->key));
		textgrid_add(t, panel->series[before->series].label);
		textgrid_add(t, metric_infos[columns[i]].heading);
		textgrid_add(t, metric_format(text, a));
		textgrid_add(t, metric_format(text, b));
		if (a == 0)
			textgrid_add(t, "-");
		else
			textgrid_addf(t, "%.2f", b / a);
		textgrid_add(t, word_for(judge(before, after, columns[i])));
		n++;
	}
	return n;
}

/* How many cells of the panel could be compared. */
static size_t
compare_panel(const struct grid_panel *panel, const struct side *other, FILE *out)
{
	struct textgrid t;
	size_t n = 0;

	textgrid_init(&t, 3);
	textgrid_add(&t, "clients");
	textgrid_add(&t, "system");
	textgrid_add(&t, "figure");
	textgrid_add(&t, "first");
	textgrid_add(&t, "second");
	textgrid_add(&t, "second/first");
	textgrid_add(&t, "");
	textgrid_end_headings(&t);
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *after = find_cell(&other->grid, panel, &panel->cells[i]);
		if (after != NULL)
			n += add_rows(&t, panel, &panel->cells[i], after) > 0;
	}
	if (n > 0) {
		fprintf(out, "%s\n", panel->title);
		textgrid_print(&t, out);
		fputc('\n', out);
	}
	textgrid_fini(&t);
	return n;
}

/* Whether any figure of the cell is in the other folder too. */
static bool
is_comparable(const struct grid_cell *cell, const struct grid_cell *other)
{
	for (size_t i = 0; other != NULL && i < N_COLUMNS; i++) {
		if (!isnan(grid_median(cell, columns[i])) && !isnan(grid_median(other, columns[i])))
			return true;
	}
	return false;
}

static void
print_missing(const struct side *side, const struct side *other, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < side->grid.n_panels; i++) {
		const struct grid_panel *panel = &side->grid.panels[i];
		for (size_t k = 0; k < panel->n_cells; k++) {
			const struct grid_cell *cell = &panel->cells[k];
			if (is_comparable(cell, find_cell(&other->grid, panel, cell)))
				continue;
			if (n++ == 0)
				fprintf(out, "Of %s, without counterpart in the other:\n", side->dir);
			fprintf(out, "  %s, %lld clients, %s%s%s\n", panel->title, (long long)cell->key->clients,
			        panel->series[cell->series].label, cell->problem == NULL ? "" : ": ",
			        cell->problem == NULL ? "" : cell->problem);
		}
	}
}

static bool
side_init(struct side *side, const char *dir, FILE *errors)
{
	*side = (struct side){.dir = dir};
	if (!result_read(dir, &side->set, errors))
		return false;
	grid_init(&side->grid, &side->set, NULL);
	return true;
}

static void
side_fini(struct side *side)
{
	grid_fini(&side->grid);
	result_set_fini(&side->set);
}

int
compare_run(const char *dir1, const char *dir2, FILE *out, FILE *errors)
{
	struct side first = {0}, second = {0};
	bool done = side_init(&first, dir1, errors) && side_init(&second, dir2, errors);
	size_t n = 0;

	if (done) {
		fprintf(out,
		        "first: %s\nsecond: %s\nMedians; better and worse are the second's, where no run of one is "
		        "among "
		        "those of the other.\n\n",
		        dir1, dir2);
		for (size_t i = 0; i < first.grid.n_panels; i++)
			n += compare_panel(&first.grid.panels[i], &second, out);
		print_missing(&first, &second, out);
		print_missing(&second, &first, out);
		if (n == 0)
			fprintf(errors, "%s and %s have no cell in common\n", dir1, dir2);
	}
	side_fini(&first);
	side_fini(&second);
	return done && n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
