/* SPDX-License-Identifier: ISC */
#include "grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* --- building --- */

static void *
grow(void *items, size_t n, size_t size)
{
	void *grown = text_alloc((n + 1) * size);

	if (n > 0)
		memcpy(grown, items, n * size);
	free(items);
	return grown;
}

static bool
same_panel(const struct result *a, const struct result *b)
{
	return strcmp(a->suite, b->suite) == 0 && strcmp(a->workload, b->workload) == 0 &&
	       strcmp(a->mode, b->mode) == 0 && a->scale == b->scale;
}

static bool
same_circumstances(const struct result *a, const struct result *b)
{
	return strcmp(a->topology, b->topology) == 0 && strcmp(a->variant, b->variant) == 0;
}

static bool
same_series(const struct result *a, const struct result *b)
{
	return strcmp(a->system, b->system) == 0 && same_circumstances(a, b);
}

static struct grid_panel *
panel_of(struct grid *grid, const struct result *r)
{
	for (size_t i = 0; i < grid->n_panels; i++) {
		if (same_panel(grid->panels[i].key, r))
			return &grid->panels[i];
	}
	grid->panels = grow(grid->panels, grid->n_panels, sizeof(*grid->panels));
	grid->panels[grid->n_panels].key = r;
	return &grid->panels[grid->n_panels++];
}

static size_t
series_of(struct grid_panel *panel, const struct result *r)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (same_series(panel->series[i].key, r))
			return i;
	}
	panel->series = grow(panel->series, panel->n_series, sizeof(*panel->series));
	panel->series[panel->n_series].key = r;
	return panel->n_series++;
}

static struct grid_cell *
cell_of(struct grid_panel *panel, const struct result *r)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (result_same_cell(panel->cells[i].key, r))
			return &panel->cells[i];
	}
	panel->cells = grow(panel->cells, panel->n_cells, sizeof(*panel->cells));
	panel->cells[panel->n_cells].key = r;
	panel->cells[panel->n_cells].series = series_of(panel, r);
	return &panel->cells[panel->n_cells++];
}

static void
add_system(struct grid *grid, const char *system)
{
	for (size_t i = 0; i < grid->n_systems; i++) {
		if (strcmp(grid->systems[i], system) == 0)
			return;
	}
	grid->systems = grow(grid->systems, grid->n_systems, sizeof(*grid->systems));
	grid->systems[grid->n_systems++] = system;
}

static void
add_run(struct grid *grid, const struct result *r)
{
	struct grid_cell *cell = cell_of(panel_of(grid, r), r);

	add_system(grid, r->system);
	if (result_counts(r)) {
		cell->runs = grow(cell->runs, cell->n_runs, sizeof(struct result *));
		cell->runs[cell->n_runs++] = r;
	} else if (strcmp(r->status, "ok") == 0) {
		cell->n_discarded++;
	} else {
		cell->n_bad++;
		cell->problem = r->status;
	}
}

static int
compare_runs(const void *a, const void *b)
{
	const struct result *x = *(const struct result *const *)a, *y = *(const struct result *const *)b;

	return (x->run > y->run) - (x->run < y->run);
}

static int
compare_cells(const void *a, const void *b)
{
	const struct grid_cell *x = a, *y = b;

	if (x->key->clients != y->key->clients)
		return x->key->clients < y->key->clients ? -1 : 1;
	if (x->key->threads != y->key->threads)
		return x->key->threads < y->key->threads ? -1 : 1;
	return (x->series > y->series) - (x->series < y->series);
}

static char *
series_label(const struct grid_panel *panel, const struct result *r)
{
	bool topologies = false, variants = false;

	for (size_t i = 0; i < panel->n_series; i++) {
		topologies |= strcmp(panel->series[i].key->topology, r->topology) != 0;
		variants |= strcmp(panel->series[i].key->variant, r->variant) != 0;
	}
	variants &= r->variant[0] != '\0';
	/* One server is what a variant is of, unless it says otherwise. */
	topologies &= r->topology[0] != '\0' && !(variants && strcmp(r->topology, "single") == 0);
	return text_fmt("%s%s%s%s%s", r->system[0] == '\0' ? "(all systems)" : r->system, topologies ? ", " : "",
	                topologies ? r->topology : "", variants ? ", " : "", variants ? r->variant : "");
}

static bool
all_alike(const struct grid_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (!same_circumstances(panel->series[i].key, panel->key))
			return false;
	}
	return true;
}

static char *
panel_title(const struct grid_panel *panel)
{
	const struct result *r = panel->key;
	bool same = all_alike(panel); /* then no label tells them */
	const char *topology = same && strcmp(r->topology, "single") != 0 ? r->topology : "";
	const char *variant = same ? r->variant : "";
	char scale[32] = "";

	if (r->scale > 0)
		snprintf(scale, sizeof(scale), ", scale %lld", (long long)r->scale);
	return text_fmt("%s: %s%s%s%s%s%s%s%s", r->suite, r->workload, r->mode[0] == '\0' ? "" : ", ", r->mode, scale,
	                topology[0] == '\0' ? "" : ", ", topology, variant[0] == '\0' ? "" : ", ", variant);
}

static void
finish_panel(struct grid_panel *panel)
{
	qsort(panel->cells, panel->n_cells, sizeof(*panel->cells), compare_cells);
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (panel->cells[i].n_runs > 0)
			qsort(panel->cells[i].runs, panel->cells[i].n_runs, sizeof(struct result *), compare_runs);
	}
	for (size_t i = 0; i < panel->n_series; i++)
		panel->series[i].label = series_label(panel, panel->series[i].key);
	panel->title = panel_title(panel);
}

static const char *
choose_baseline(const struct grid *grid, const char *asked)
{
	const char *direct = NULL;

	if (asked != NULL)
		return asked;
	for (size_t i = 0; i < grid->n_systems; i++) {
		if (strncmp(grid->systems[i], "pgbouncer", strlen("pgbouncer")) == 0)
			return grid->systems[i];
		if (strcmp(grid->systems[i], "direct") == 0)
			direct = grid->systems[i];
	}
	return direct != NULL || grid->n_systems == 0 ? direct : grid->systems[0];
}

/* Whether a later row is the same run again. */
static bool
repeated(const struct result_set *set, size_t i)
{
	const struct result *r = &set->rows[i];

	for (size_t k = i + 1; r->run != RESULT_UNKNOWN && k < set->n; k++) {
		if (set->rows[k].run == r->run && result_same_cell(&set->rows[k], r))
			return true;
	}
	return false;
}

void
grid_init(struct grid *grid, const struct result_set *set, const char *baseline)
{
	*grid = (struct grid){0};
	grid->kept.rows = text_alloc((set->n + 1) * sizeof(*grid->kept.rows));
	for (size_t i = 0; i < set->n; i++) {
		if (!repeated(set, i))
			grid->kept.rows[grid->kept.n++] = set->rows[i];
	}
	for (size_t i = 0; i < grid->kept.n; i++)
		add_run(grid, &grid->kept.rows[i]);
	for (size_t i = 0; i < grid->n_panels; i++)
		finish_panel(&grid->panels[i]);
	grid->baseline = choose_baseline(grid, baseline);
}

void
grid_fini(struct grid *grid)
{
	for (size_t i = 0; i < grid->n_panels; i++) {
		struct grid_panel *panel = &grid->panels[i];
		for (size_t k = 0; k < panel->n_series; k++)
			free(panel->series[k].label);
		for (size_t k = 0; k < panel->n_cells; k++)
			free(panel->cells[k].runs);
		free(panel->series);
		free(panel->cells);
		free(panel->title);
	}
	free(grid->panels);
	free(grid->systems);
	result_set_fini(&grid->kept);
	*grid = (struct grid){0};
}

/* --- asking --- */

struct stats_summary
grid_summary(const struct grid_cell *cell, enum metric metric)
{
	double *values = text_alloc((cell->n_runs + 1) * sizeof(*values));

	for (size_t i = 0; i < cell->n_runs; i++)
		values[i] = metric_infos[metric].get(cell->runs[i]);
	struct stats_summary s = stats_summarize(values, cell->n_runs);
	free(values);
	return s;
}

double
grid_median(const struct grid_cell *cell, enum metric metric)
{
	return grid_summary(cell, metric).median;
}

const struct grid_cell *
grid_find(const struct grid_panel *panel, size_t series, int64_t clients, int64_t threads)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		if (c->series == series && c->key->clients == clients && c->key->threads == threads)
			return c;
	}
	return NULL;
}

const struct grid_cell *
grid_find_system(const struct grid_panel *panel, const struct grid_cell *like, const char *system)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		const struct grid_cell *c = &panel->cells[i];
		if (strcmp(c->key->system, system) == 0 && result_same_setup(c->key, like->key))
			return c;
	}
	return NULL;
}

bool
grid_has_one_system(const struct grid_panel *panel)
{
	for (size_t i = 1; i < panel->n_series; i++) {
		if (strcmp(panel->series[i].key->system, panel->series[0].key->system) != 0)
			return false;
	}
	return true;
}

static bool
panel_has_system(const struct grid_panel *panel, const char *system)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (strcmp(panel->series[i].key->system, system) == 0)
			return true;
	}
	return false;
}

const char *
grid_baseline_name(const struct grid *grid, const struct grid_panel *panel)
{
	if (panel->n_series < 2)
		return NULL;
	if (grid_has_one_system(panel))
		return panel->series[0].label;
	if (grid->baseline != NULL && panel_has_system(panel, grid->baseline))
		return grid->baseline;
	return panel_has_system(panel, "direct") ? "direct" : panel->series[0].key->system;
}

const struct grid_cell *
grid_baseline(const struct grid *grid, const struct grid_panel *panel, const struct grid_cell *cell)
{
	const char *name = grid_baseline_name(grid, panel);

	if (name == NULL)
		return NULL;
	if (grid_has_one_system(panel))
		return grid_find(panel, 0, cell->key->clients, cell->key->threads);
	return grid_find_system(panel, cell, name);
}

/* The first series of the system. */
static size_t
first_series(const struct grid_panel *panel, const char *system)
{
	size_t i = 0;

	while (strcmp(panel->series[i].key->system, system) != 0)
		i++;
	return i;
}

const struct grid_cell *
grid_first_variant(const struct grid_panel *panel, const struct grid_cell *cell)
{
	size_t first = first_series(panel, cell->key->system);

	return first == cell->series ? NULL : grid_find(panel, first, cell->key->clients, cell->key->threads);
}

bool
grid_has_repeats(const struct grid_panel *panel)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (panel->cells[i].n_runs > 1)
			return true;
	}
	return false;
}

bool
grid_has_variants(const struct grid_panel *panel)
{
	for (size_t i = 0; i < panel->n_series; i++) {
		if (first_series(panel, panel->series[i].key->system) != i)
			return true;
	}
	return false;
}

/* The figures of both in the runs that both have. */
static size_t
pair_runs(const struct grid_cell *a, const struct grid_cell *b, enum metric metric, double *of_a, double *of_b)
{
	double (*get)(const struct result *) = metric_infos[metric].get;
	size_t n = 0;

	for (size_t i = 0; i < a->n_runs; i++) {
		for (size_t k = 0; k < b->n_runs; k++) {
			if (a->runs[i]->run != b->runs[k]->run)
				continue;
			of_a[n] = get(a->runs[i]);
			of_b[n] = get(b->runs[k]);
			n += !isnan(of_a[n]) && !isnan(of_b[n]) && of_b[n] != 0;
			break;
		}
	}
	return n;
}

/* The ratios run by run, or the one of the medians. To be freed. */
static double *
ratios(const struct grid_cell *a, const struct grid_cell *b, enum metric metric, size_t *n)
{
	double *of_a = text_alloc((a->n_runs + 1) * sizeof(*of_a)), *of_b = text_alloc((a->n_runs + 1) * sizeof(*of_b));

	*n = pair_runs(a, b, metric, of_a, of_b);
	if (*n == 0) {
		of_a[0] = grid_median(a, metric);
		of_b[0] = grid_median(b, metric);
		*n = !isnan(of_a[0]) && !isnan(of_b[0]) && of_b[0] != 0;
	}
	for (size_t i = 0; i < *n; i++)
		of_a[i] /= of_b[i];
	free(of_b);
	return of_a;
}

double
grid_ratio(const struct grid_cell *a, const struct grid_cell *b, enum metric metric)
{
	size_t n;
	double *values = ratios(a, b, metric, &n);
	double median = stats_median(values, n);

	free(values);
	return median;
}

enum grid_verdict
grid_judge(const struct grid_cell *a, const struct grid_cell *b, enum metric metric)
{
	size_t n;
	double *values = ratios(a, b, metric, &n);
	struct stats_summary s = stats_summarize(values, n);
	double even;
	bool more, less;

	free(values);
	if (s.n == 0 || metric_infos[metric].better == BETTER_NEITHER)
		return VERDICT_UNKNOWN;
	even = s.n == 1 ? GRID_EVEN_ALONE : GRID_EVEN;
	more = s.median > 1 + even && s.min > 1;
	less = s.median < 1 / (1 + even) && s.max < 1;
	if (!more && !less)
		return VERDICT_EVEN;
	return more == (metric_infos[metric].better == BETTER_MORE) ? VERDICT_BETTER : VERDICT_WORSE;
}

bool
grid_has(const struct grid_panel *panel, enum metric metric)
{
	for (size_t i = 0; i < panel->n_cells; i++) {
		if (!isnan(grid_median(&panel->cells[i], metric)))
			return true;
	}
	return false;
}

bool
grid_shows_threads(const struct grid_panel *panel)
{
	for (size_t i = 1; i < panel->n_cells; i++) {
		const struct result *a = panel->cells[i - 1].key, *b = panel->cells[i].key;
		if (a->clients == b->clients && a->threads != b->threads)
			return true;
	}
	return false;
}

bool
grid_is_pgweir(const char *system)
{
	size_t n = strlen("pgweir");

	return strncmp(system, "pgweir", n) == 0 && (system[n] == '\0' || system[n] == ':');
}
