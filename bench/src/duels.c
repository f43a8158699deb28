/* SPDX-License-Identifier: ISC */
#include "duels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

const enum metric duel_metrics[DUEL_N_METRICS] = {METRIC_TPS, METRIC_P99_MS, METRIC_POOLER_US, METRIC_RSS_PEAK_MIB};

static void
add_loss(struct duels *out, const struct duel_loss *loss)
{
	if (out->n_losses % 64 == 0) {
		struct duel_loss *grown = text_alloc((out->n_losses + 64) * sizeof(*grown));
		if (out->n_losses > 0)
			memcpy(grown, out->losses, out->n_losses * sizeof(*grown));
		free(out->losses);
		out->losses = grown;
	}
	out->losses[out->n_losses++] = *loss;
}

static void
fight_cell(struct duels *out, struct duel *duel, const struct grid_panel *panel, const struct grid_cell *ours)
{
	const struct grid_cell *theirs = grid_find_system(panel, ours, duel->theirs);

	for (size_t m = 0; theirs != NULL && m < DUEL_N_METRICS; m++) {
		enum metric metric = duel_metrics[m];
		switch (grid_judge(ours, theirs, metric)) {
		case VERDICT_UNKNOWN:
			break;
		case VERDICT_BETTER:
			duel->better[m]++;
			break;
		case VERDICT_EVEN:
			duel->even[m]++;
			break;
		case VERDICT_WORSE:
			duel->worse[m]++;
			add_loss(out,
			         &(struct duel_loss){panel, ours, theirs, metric, grid_ratio(ours, theirs, metric)});
			break;
		}
	}
}

static bool
has_met(const struct duel *d)
{
	unsigned n = 0;

	for (size_t m = 0; m < DUEL_N_METRICS; m++)
		n += d->better[m] + d->even[m] + d->worse[m];
	return n > 0;
}

static void
fight(const struct grid *grid, struct duels *out, const char *ours, const char *theirs)
{
	struct duel *duel = &out->pairs[out->n_pairs];

	*duel = (struct duel){.ours = ours, .theirs = theirs};
	for (size_t i = 0; i < grid->n_panels; i++) {
		const struct grid_panel *panel = &grid->panels[i];
		for (size_t k = 0; k < panel->n_cells; k++) {
			if (strcmp(panel->cells[k].key->system, ours) == 0)
				fight_cell(out, duel, panel, &panel->cells[k]);
		}
	}
	out->n_pairs += has_met(duel);
}

/* By factor, whichever way is the better one. */
static int
compare_losses(const void *a, const void *b)
{
	double x = fabs(log(((const struct duel_loss *)a)->ratio)), y = fabs(log(((const struct duel_loss *)b)->ratio));

	return (x < y) - (x > y);
}

void
duels_find(const struct grid *grid, struct duels *out)
{
	*out = (struct duels){.pairs = text_alloc((grid->n_systems * grid->n_systems + 1) * sizeof(struct duel))};
	for (size_t i = 0; i < grid->n_systems; i++) {
		for (size_t k = 0; k < grid->n_systems && grid_is_pgweir(grid->systems[i]); k++) {
			if (!grid_is_pgweir(grid->systems[k]))
				fight(grid, out, grid->systems[i], grid->systems[k]);
		}
	}
	if (out->n_losses > 0)
		qsort(out->losses, out->n_losses, sizeof(*out->losses), compare_losses);
}

void
duels_fini(struct duels *duels)
{
	free(duels->pairs);
	free(duels->losses);
	*duels = (struct duels){0};
}
