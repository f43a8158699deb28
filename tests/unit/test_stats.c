/* SPDX-License-Identifier: ISC */
#include "ops/stats.h"

#include "unit.h"

#define SECOND 1000000u

/* A reading of one pool: n transactions of 3 queries that took 10 us each, in transactions of 40 us. */
static void
add(struct stats *st, const char *database, uint64_t n)
{
	uint64_t counts[STAT_N] = {0};

	counts[STAT_XACTS] = n;
	counts[STAT_QUERIES] = 3 * n;
	counts[STAT_XACT_US] = 40 * n;
	counts[STAT_QUERY_US] = 30 * n;
	counts[STAT_WAIT_US] = 500 * n;
	counts[STAT_RECEIVED] = 100 * n;
	ck_assert(stats_add(st, database, counts));
}

static uint64_t
average(const struct stats *st, const struct stats_database *d, enum stat stat)
{
	uint64_t out[STAT_N];

	stats_average(st, d, out);
	return out[stat];
}

START_TEST(sums_pools_of_a_database)
{
	struct stats *st = stats_new(0);
	const struct stats_database *d;
	uint64_t sum[STAT_N];

	stats_begin(st);
	add(st, "b", 5);
	add(st, "a", 1);
	add(st, "b", 7);
	d = stats_next(st, NULL);
	ck_assert_str_eq(stats_name(d), "a");
	ck_assert_uint_eq(stats_total(d)[STAT_XACTS], 1);
	d = stats_next(st, d);
	ck_assert_str_eq(stats_name(d), "b");
	ck_assert_uint_eq(stats_total(d)[STAT_XACTS], 12);
	ck_assert_ptr_null(stats_next(st, d));
	stats_sum(st, sum);
	ck_assert_uint_eq(sum[STAT_QUERIES], 39);
	stats_free(&st);
	ck_assert_ptr_null(st);
}
END_TEST

START_TEST(a_new_reading_replaces_the_last)
{
	struct stats *st = stats_new(0);

	stats_begin(st);
	add(st, "a", 5);
	stats_begin(st);
	add(st, "a", 6);
	ck_assert_uint_eq(stats_total(stats_next(st, NULL))[STAT_XACTS], 6);
	stats_free(&st);
}
END_TEST

START_TEST(averages_are_of_the_last_finished_period)
{
	struct stats *st = stats_new(10 * SECOND);
	const struct stats_database *d;

	stats_begin(st);
	add(st, "a", 100);
	d = stats_next(st, NULL);
	ck_assert_uint_eq(average(st, d, STAT_XACTS), 0); /* none has finished */
	stats_end_period(st, 20 * SECOND);
	ck_assert_uint_eq(average(st, d, STAT_XACTS), 10);
	ck_assert_uint_eq(average(st, d, STAT_QUERIES), 30);
	ck_assert_uint_eq(average(st, d, STAT_RECEIVED), 1000);

	stats_begin(st);
	add(st, "a", 150);
	ck_assert_uint_eq(average(st, d, STAT_XACTS), 10); /* a reading alone moves nothing */
	stats_end_period(st, 25 * SECOND);
	ck_assert_uint_eq(average(st, d, STAT_XACTS), 10);
	stats_begin(st);
	add(st, "a", 150);
	stats_end_period(st, 30 * SECOND);
	ck_assert_uint_eq(average(st, d, STAT_XACTS), 0);
	stats_free(&st);
}
END_TEST

START_TEST(times_are_per_transaction_and_query_but_waiting_is_per_second)
{
	struct stats *st = stats_new(0);
	const struct stats_database *d;

	stats_begin(st);
	add(st, "a", 1000);
	stats_end_period(st, 5 * SECOND);
	d = stats_next(st, NULL);
	ck_assert_uint_eq(average(st, d, STAT_XACT_US), 40);
	ck_assert_uint_eq(average(st, d, STAT_QUERY_US), 10);
	ck_assert_uint_eq(average(st, d, STAT_WAIT_US), 100000);
	stats_free(&st);
}
END_TEST

START_TEST(a_database_that_comes_later_counts_from_zero)
{
	struct stats *st = stats_new(0);
	const struct stats_database *b;

	stats_begin(st);
	add(st, "a", 10);
	stats_end_period(st, SECOND);
	stats_begin(st);
	add(st, "a", 10);
	add(st, "b", 20);
	stats_end_period(st, 2 * SECOND);
	b = stats_next(st, stats_next(st, NULL));
	ck_assert_uint_eq(average(st, b, STAT_XACTS), 20);
	ck_assert_uint_eq(average(st, NULL, STAT_XACTS), 20);
	stats_free(&st);
}
END_TEST

/* Counters of a busy year must not overflow on the way to an average. */
START_TEST(large_counters_do_not_overflow)
{
	struct stats *st = stats_new(0);
	uint64_t counts[STAT_N] = {[STAT_SENT] = UINT64_C(1) << 62};

	stats_begin(st);
	ck_assert(stats_add(st, "a", counts));
	stats_end_period(st, 1024 * SECOND);
	ck_assert_uint_eq(average(st, NULL, STAT_SENT), UINT64_C(1) << 52);
	stats_free(&st);
}
END_TEST

UNIT_MAIN("stats", sums_pools_of_a_database, a_new_reading_replaces_the_last, averages_are_of_the_last_finished_period,
          times_are_per_transaction_and_query_but_waiting_is_per_second, a_database_that_comes_later_counts_from_zero,
          large_counters_do_not_overflow)
