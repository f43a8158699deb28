/* SPDX-License-Identifier: ISC */
#include "style.h"

#include <string.h>

enum { PER_FAMILY = 3 };

/* Three for each of: pgweir, pgbouncer, odyssey, the systems without a pool, all others. */
const struct style_colour style_colours[STYLE_N_COLOURS] = {
	{0x0b62b8, 0x4dabf7}, {0x12a3b4, 0x3bc9db}, {0x6f4fd8, 0xb197fc}, /* blues */
	{0xd9480f, 0xff8a3c}, {0xe8a200, 0xffd43b}, {0x8f5a12, 0xc98f4a}, /* oranges */
	{0x2b8a3e, 0x51cf66}, {0x82b80f, 0xc0eb75}, {0x0b6b58, 0x38b29a}, /* greens */
	{0x495057, 0xced4da}, {0xc2255c, 0xf06595}, {0x8d99a6, 0x8d99a6}, /* direct, haproxy */
	{0xbe2edd, 0xe599f7}, {0xe03131, 0xff8787}, {0xa61e4d, 0xfaa2c1}, /* others */
};

struct family {
	const char *prefix;
	size_t colour; /* the first */
	unsigned point;
};

static const struct family families[] = {
	{"pgweir", 0, 7},  {"pgbouncer", 3, 5}, {"odyssey", 6, 9},
	{"direct", 9, 13}, {"haproxy", 10, 11}, {"", 12, 15}, /* the last fits all */
};

static const char *const dashes[] = {"solid", "(10,5)", "(2,4)", "(10,4,2,4)"};

static const char *
dash(size_t i)
{
	return dashes[i % (sizeof(dashes) / sizeof(dashes[0]))];
}

static const struct family *
family_of(const char *system)
{
	const struct family *f = families;

	while (strncmp(system, f->prefix, strlen(f->prefix)) != 0)
		f++;
	return f;
}

/* How many of its kind come before it, in the whole report: a system looks the same in all charts. */
static size_t
rank_in_family(const struct grid *grid, const char *system)
{
	const struct family *f = family_of(system);
	size_t rank = 0;

	for (size_t i = 0; i < grid->n_systems && strcmp(grid->systems[i], system) != 0; i++)
		rank += family_of(grid->systems[i]) == f;
	return rank;
}

/* Which of the panel's topologies and variants it is, and how many systems there are. */
static size_t
rank_of_circumstances(const struct grid_panel *panel, size_t series, size_t *n_systems)
{
	const char *system = panel->series[series].key->system;
	size_t rank = 0;

	*n_systems = 1;
	for (size_t i = 0; i < panel->n_series; i++) {
		bool same = strcmp(panel->series[i].key->system, system) == 0;
		rank += same && i < series;
		*n_systems += !same;
	}
	return rank;
}

struct style
style_choose(const struct grid *grid, const struct grid_panel *panel, size_t series)
{
	const char *system = panel->series[series].key->system;
	const struct family *f = family_of(system);
	size_t n_systems, variant = rank_of_circumstances(panel, series, &n_systems);
	size_t rank = rank_in_family(grid, system);

	if (n_systems == 1 && panel->n_series > 1) /* one system: colours tell the variants apart */
		return (struct style){(PER_FAMILY * series) % (STYLE_N_COLOURS - 1), f->point, dash(series)};
	return (struct style){f->colour + rank % PER_FAMILY, f->point, dash(variant > 0 ? variant : rank)};
}
