/* SPDX-License-Identifier: ISC */
#include "stats.h"

#include <math.h>
#include <string.h>

#include "bench_folder.h"

#define CLOSE(a, b) ck_assert_double_eq_tol((a), (b), 1e-9)

/* --- summaries --- */

START_TEST(summarizes_an_even_number)
{
	const double values[] = {4, 1, 3, 2};
	struct stats_summary s = stats_summarize(values, 4);

	ck_assert_uint_eq(s.n, 4);
	CLOSE(s.median, 2.5);
	CLOSE(s.mean, 2.5);
	CLOSE(s.sd, sqrt(5.0 / 3)); /* of a sample: divided by n - 1 */
	CLOSE(s.min, 1);
	CLOSE(s.max, 4);
}
END_TEST

START_TEST(median_of_an_odd_number_is_the_middle_one)
{
	const double values[] = {1000, 1, 3};

	CLOSE(stats_median(values, 3), 3);
}
END_TEST

START_TEST(leaves_out_what_was_not_measured)
{
	const double values[] = {NAN, 5, NAN, 7};
	struct stats_summary s = stats_summarize(values, 4);

	ck_assert_uint_eq(s.n, 2);
	CLOSE(s.median, 6);
	CLOSE(s.min, 5);
}
END_TEST

START_TEST(nothing_has_no_statistics)
{
	const double values[] = {NAN};
	struct stats_summary none = stats_summarize(values, 1), empty = stats_summarize(NULL, 0);

	ck_assert_uint_eq(none.n, 0);
	ck_assert(isnan(none.median) && isnan(none.mean) && isnan(none.sd) && isnan(none.min) && isnan(none.max));
	ck_assert_uint_eq(empty.n, 0);
	ck_assert(isnan(empty.median));
}
END_TEST

START_TEST(one_value_has_no_deviation)
{
	const double value = 42;
	struct stats_summary s = stats_summarize(&value, 1);

	CLOSE(s.median, 42);
	ck_assert(isnan(s.sd));
}
END_TEST

/* The textbook's shortcut, the mean of the squares less the square of the mean, gives nonsense here. */
START_TEST(deviation_of_large_values_with_a_small_spread)
{
	const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};

	ck_assert_double_eq_tol(stats_summarize(values, 4).sd, sqrt(30), 1e-6);
}
END_TEST

/* --- percentiles and ratios --- */

START_TEST(percentiles_are_values_that_occurred)
{
	double sorted[1000];

	for (int i = 0; i < 1000; i++)
		sorted[i] = i + 1;
	CLOSE(stats_percentile(sorted, 1000, 50), 500);
	CLOSE(stats_percentile(sorted, 1000, 90), 900);
	CLOSE(stats_percentile(sorted, 1000, 99), 990);
	CLOSE(stats_percentile(sorted, 1000, 99.9), 999);
	CLOSE(stats_percentile(sorted, 1000, 99.91), 1000);
	CLOSE(stats_percentile(sorted, 1000, 0), 1);
	CLOSE(stats_percentile(sorted, 1000, 100), 1000);
	CLOSE(stats_percentile(sorted, 1, 99.9), 1);
	CLOSE(stats_percentile(sorted, 10, 99), 10);
	ck_assert(isnan(stats_percentile(sorted, 0, 50)));
}
END_TEST

/* Run by run: what slows the machine down for a while slows both of a pair. */
START_TEST(ratios_are_taken_pair_by_pair)
{
	const double a[] = {100, 50, 400, 30}, b[] = {50, 25, 200, 60};

	CLOSE(stats_ratio(a, b, 4), 2);
}
END_TEST

START_TEST(pairs_without_a_figure_do_not_count)
{
	const double a[] = {1, NAN, 3, 10}, b[] = {2, 1, NAN, 0};

	CLOSE(stats_ratio(a, b, 4), 0.5);
	ck_assert(isnan(stats_ratio(a + 1, b + 1, 2)));
	ck_assert(isnan(stats_ratio(a, b, 0)));
}
END_TEST

/* --- pgbench's logs --- */

struct outcome {
	struct stats_latency latency;
	bool done;
	char warnings[1024];
};

static struct outcome
read_logs(uint64_t from_us)
{
	struct outcome o = {0};
	char prefix[128];
	FILE *errors = fmemopen(o.warnings, sizeof(o.warnings), "w");

	snprintf(prefix, sizeof(prefix), "%s/log", folder);
	o.done = stats_read_log(prefix, from_us, UINT64_MAX, &o.latency, errors);
	fclose(errors);
	return o;
}

START_TEST(reads_the_logs_of_all_threads_and_no_others)
{
	bench_folder_write("log.71", "0 1 1000 0 1700000000 100\n0 2 2000 0 1700000000 200\n");
	bench_folder_write("log.71.1", "1 1 3000 0 1700000001 5 17\n");
	bench_folder_write("log.71.2", "2 1 10000 1 1700000002 999999 0 3\n");
	bench_folder_write("log.72x", "nonsense\n");
	bench_folder_write("log.txt", "nonsense\n");
	bench_folder_write("log2.71", "nonsense\n");
	bench_folder_write("log.71.1.1", "nonsense\n");
	struct outcome o = read_logs(0);
	ck_assert(o.done);
	ck_assert_str_eq(o.warnings, "");
	ck_assert_uint_eq(o.latency.n, 4);
	CLOSE(o.latency.avg_ms, 4);
	CLOSE(o.latency.p50_ms, 2);
	CLOSE(o.latency.p90_ms, 10);
	CLOSE(o.latency.max_ms, 10);
	CLOSE(o.latency.sd_ms, sqrt(50.0 / 3));
}
END_TEST

START_TEST(counts_failed_and_skipped_apart)
{
	bench_folder_write("log.71",
	                   "0 1 skipped 0 1700000000 1 5000\n0 2 failed 0 1700000000 2\n0 3 500 0 1700000000 3\n"
	                   "0 4 serialization 0 1700000000 4\n0 5 deadlock 0 1700000000 5 0 3\n");
	struct outcome o = read_logs(0);
	ck_assert_str_eq(o.warnings, "");
	ck_assert_uint_eq(o.latency.n, 1);
	ck_assert_uint_eq(o.latency.failed, 3);
	ck_assert_uint_eq(o.latency.skipped, 1);
	CLOSE(o.latency.max_ms, 0.5);
}
END_TEST

START_TEST(what_ended_before_the_beginning_does_not_count)
{
	bench_folder_write("log.71",
	                   "0 1 9000 0 1700000000 999999\n0 2 failed 0 1700000000 7\n0 3 1000 0 1700000001 0\n");
	struct outcome o = read_logs(UINT64_C(1700000001000000));
	ck_assert_uint_eq(o.latency.n, 1);
	ck_assert_uint_eq(o.latency.failed, 0);
	CLOSE(o.latency.max_ms, 1);
}
END_TEST

/* As a pgbench that was killed leaves it. The number would have been 12000, perhaps. */
START_TEST(malformed_lines_are_named_and_left_out)
{
	bench_folder_write("log.71", "0 1 1000 0 1700000000 1\n0 2 oops 0 1700000000 2\n\n0 3 12 0 1700000000 3");
	struct outcome o = read_logs(0);
	ck_assert(o.done);
	ck_assert_uint_eq(o.latency.n, 1);
	ck_assert_ptr_nonnull(strstr(o.warnings, "/log.71:2: malformed"));
	ck_assert_ptr_nonnull(strstr(o.warnings, "/log.71:3: malformed"));
	ck_assert_ptr_nonnull(strstr(o.warnings, "/log.71:4: malformed"));
}
END_TEST

START_TEST(no_log_is_an_error)
{
	struct outcome o = read_logs(0);

	ck_assert(!o.done);
	ck_assert_ptr_nonnull(strstr(o.warnings, "/log.*: no log of pgbench"));
	ck_assert_uint_eq(o.latency.n, 0);
	ck_assert(isnan(o.latency.p99_ms));
}
END_TEST

START_TEST(an_empty_log_has_no_latency)
{
	bench_folder_write("log.71", "");
	struct outcome o = read_logs(0);
	ck_assert(o.done);
	ck_assert_uint_eq(o.latency.n, 0);
	ck_assert(isnan(o.latency.avg_ms) && isnan(o.latency.max_ms));
}
END_TEST

BENCH_FOLDER_MAIN("bench_stats", summarizes_an_even_number, median_of_an_odd_number_is_the_middle_one,
                  leaves_out_what_was_not_measured, nothing_has_no_statistics, one_value_has_no_deviation,
                  deviation_of_large_values_with_a_small_spread, percentiles_are_values_that_occurred,
                  ratios_are_taken_pair_by_pair, pairs_without_a_figure_do_not_count,
                  reads_the_logs_of_all_threads_and_no_others, counts_failed_and_skipped_apart,
                  what_ended_before_the_beginning_does_not_count, malformed_lines_are_named_and_left_out,
                  no_log_is_an_error, an_empty_log_has_no_latency)
