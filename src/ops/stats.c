/* SPDX-License-Identifier: ISC */
#include "ops/stats.h"

#include "base/hash.h"
#include "base/obj.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct stats_database {
	char *name;
	uint64_t total[STAT_N];                /* of the latest reading */
	uint64_t begun[STAT_N], ended[STAT_N]; /* when the last finished period began and ended */
	UT_hash_handle hh;
};

struct stats {
	struct stats_database *databases;
	uint64_t begun_us, ended_us; /* of the last finished period */
};

struct stats *
stats_new(uint64_t now_us)
{
	struct stats *st = calloc(1, sizeof(*st));

	if (st != NULL)
		st->begun_us = st->ended_us = now_us;
	return st;
}

void
stats_free(struct stats **st)
{
	struct stats_database *d, *next;

	if (*st == NULL)
		return;
	HASH_ITER (hh, (*st)->databases, d, next) {
		HASH_DEL((*st)->databases, d);
		free(d->name);
		free(d);
	}
	free(*st);
	*st = NULL;
}

static int
compare_names(const struct stats_database *a, const struct stats_database *b)
{
	return strcmp(a->name, b->name);
}

static struct stats_database *
database_get(struct stats *st, const char *name)
{
	struct stats_database *d;

	HASH_FIND_STR(st->databases, name, d);
	if (d != NULL)
		return d;
	d = calloc(1, sizeof(*d));
	if (d == NULL || (d->name = str_dup(name)) == NULL) {
		free(d);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, st->databases, d->name, strlen(d->name), d);
	if (d->hh.tbl == NULL) {
		free(d->name);
		free(d);
		return NULL;
	}
	HASH_SORT(st->databases, compare_names);
	return d;
}

void
stats_begin(struct stats *st)
{
	for (struct stats_database *d = st->databases; d != NULL; d = d->hh.next)
		memset(d->total, 0, sizeof(d->total));
}

bool
stats_add(struct stats *st, const char *database, const uint64_t counts[STAT_N])
{
	struct stats_database *d = database_get(st, database);

	if (d == NULL)
		return false;
	for (int i = 0; i < STAT_N; i++)
		d->total[i] += counts[i];
	return true;
}

void
stats_end_period(struct stats *st, uint64_t now_us)
{
	st->begun_us = st->ended_us;
	st->ended_us = now_us;
	for (struct stats_database *d = st->databases; d != NULL; d = d->hh.next) {
		memcpy(d->begun, d->ended, sizeof(d->begun));
		memcpy(d->ended, d->total, sizeof(d->ended));
	}
}

const struct stats_database *
stats_next(struct stats *st, const struct stats_database *d)
{
	return d == NULL ? st->databases : d->hh.next;
}

const char *
stats_name(const struct stats_database *d)
{
	return d->name;
}

const uint64_t *
stats_total(const struct stats_database *d)
{
	return d->total;
}

void
stats_sum(const struct stats *st, uint64_t out[STAT_N])
{
	memset(out, 0, STAT_N * sizeof(out[0]));
	for (const struct stats_database *d = st->databases; d != NULL; d = d->hh.next)
		for (int i = 0; i < STAT_N; i++)
			out[i] += d->total[i];
}

/* What the last finished period added. */
static void
add_growth(const struct stats_database *d, uint64_t out[STAT_N])
{
	for (int i = 0; i < STAT_N; i++)
		out[i] += d->ended[i] - d->begun[i];
}

static uint64_t
per_second(uint64_t n, uint64_t span_us)
{
	return span_us > 0 ? (uint64_t)((long double)n * 1000000 / span_us) : 0;
}

void
stats_average(const struct stats *st, const struct stats_database *d, uint64_t out[STAT_N])
{
	uint64_t growth[STAT_N] = {0}, span_us = st->ended_us - st->begun_us;

	if (d != NULL)
		add_growth(d, growth);
	else
		for (d = st->databases; d != NULL; d = d->hh.next)
			add_growth(d, growth);
	for (int i = 0; i < STAT_N; i++)
		out[i] = per_second(growth[i], span_us);
	out[STAT_XACT_US] = growth[STAT_XACTS] > 0 ? growth[STAT_XACT_US] / growth[STAT_XACTS] : 0;
	out[STAT_QUERY_US] = growth[STAT_QUERIES] > 0 ? growth[STAT_QUERY_US] / growth[STAT_QUERIES] : 0;
}
