/* SPDX-License-Identifier: ISC */
/*
 * Counters per database and their averages over the last finished period. A reading
 * is made anew each time: stats_begin(), stats_add() for every pool; stats_end_period()
 * makes it the end of one period and the beginning of the next. Counters only grow.
 * Not locked: the main thread's.
 */
#ifndef PGWEIR_OPS_STATS_H
#define PGWEIR_OPS_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of the columns. */
enum stat {
	STAT_ASSIGNMENTS,
	STAT_XACTS,
	STAT_QUERIES,
	STAT_RECEIVED,
	STAT_SENT,
	STAT_XACT_US,
	STAT_QUERY_US,
	STAT_WAIT_US,
	STAT_CLIENT_PARSES,
	STAT_SERVER_PARSES,
	STAT_BINDS,
	STAT_LOGINS,
	STAT_N
};

struct stats;
struct stats_database;

struct stats *stats_new(uint64_t now_us); /* the first period begins; NULL: no memory */
void stats_free(struct stats **st);

void stats_begin(struct stats *st);
bool stats_add(struct stats *st, const char *database, const uint64_t counts[STAT_N]); /* false: no memory */
void stats_end_period(struct stats *st, uint64_t now_us);

/* Databases by name: NULL begins, NULL ends. */
const struct stats_database *stats_next(struct stats *st, const struct stats_database *d);
const char *stats_name(const struct stats_database *d);
const uint64_t *stats_total(const struct stats_database *d); /* of the latest reading */

/*
 * Of the last finished period, 0 before there is one: times of transactions and queries are averages of one of them, the
 * others (time spent waiting among them) are per second. d NULL: of all databases together.
 */
void stats_average(const struct stats *st, const struct stats_database *d, uint64_t out[STAT_N]);
void stats_sum(const struct stats *st, uint64_t out[STAT_N]); /* of the latest reading, all databases */

#endif
