/* SPDX-License-Identifier: ISC */
#include "gaps.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

static struct gap *
gap_of(struct gaps *gaps, const struct grid_panel *panel, const struct grid_cell *cell)
{
	struct gap *grown;

	for (size_t i = 0; i < gaps->n; i++) {
		struct gap *g = &gaps->items[i];
		if (g->panel == panel && g->series == cell->series && strcmp(g->problem, cell->problem) == 0)
			return g;
	}
	grown = text_alloc((gaps->n + 1) * sizeof(*grown));
	if (gaps->n > 0)
		memcpy(grown, gaps->items, gaps->n * sizeof(*grown));
	free(gaps->items);
	gaps->items = grown;
	gaps->items[gaps->n] = (struct gap){.panel = panel, .series = cell->series, .problem = cell->problem};
	return &gaps->items[gaps->n++];
}

static void
add_clients(struct gap *gap, const struct grid_cell *cell, bool with_threads)
{
	char threads[32] = "", *longer;

	if (cell->key->clients == RESULT_UNKNOWN)
		return;
	if (with_threads)
		snprintf(threads, sizeof(threads), "/%lld", (long long)cell->key->threads);
	longer = text_fmt("%s%s%lld%s", gap->clients == NULL ? "" : gap->clients, gap->clients == NULL ? "" : ", ",
	                  (long long)cell->key->clients, threads);
	free(gap->clients);
	gap->clients = longer;
}

void
gaps_find(const struct grid *grid, struct gaps *out)
{
	*out = (struct gaps){0};
	for (size_t i = 0; i < grid->n_panels; i++) {
		const struct grid_panel *panel = &grid->panels[i];
		for (size_t k = 0; k < panel->n_cells; k++) {
			const struct grid_cell *cell = &panel->cells[k];
			if (cell->n_bad == 0)
				continue;
			struct gap *gap = gap_of(out, panel, cell);
			add_clients(gap, cell, grid_shows_threads(panel));
			gap->n_bad += cell->n_bad;
			gap->n_good += cell->n_runs;
		}
	}
}

void
gaps_fini(struct gaps *gaps)
{
	for (size_t i = 0; i < gaps->n; i++)
		free(gaps->items[i].clients);
	free(gaps->items);
	*gaps = (struct gaps){0};
}
