/* SPDX-License-Identifier: ISC */
/* How records are put in order, compared and judged. */
#include "grid.h"

#include <math.h>
#include <string.h>

#include "bench_results.h"
#include "duels.h"
#include "gaps.h"
#include "published.h"

static const struct grid_cell *
cell(const struct grid *grid, const char *system, int64_t clients)
{
	for (size_t i = 0; i < grid->panels[0].n_cells; i++) {
		const struct grid_cell *c = &grid->panels[0].cells[i];
		if (strcmp(c->key->system, system) == 0 && c->key->clients == clients)
			return c;
	}
	ck_abort_msg("no cell of %s with %d clients", system, (int)clients);
	return NULL;
}

static void
end(struct grid *grid)
{
	grid_fini(grid);
	result_set_fini(&set);
}

START_TEST(cells_are_ordered_by_clients_then_as_measured)
{
	struct grid grid;

	begin();
	add("pgweir:16/1", 100, 1, 5);
	add("direct", 100, 1, 5);
	add("pgweir:16/1", 16, 1, 5);
	add("direct", 16, 1, 5);
	grid_init(&grid, &set, NULL);
	ck_assert_uint_eq(grid.n_panels, 1);
	ck_assert_str_eq(grid.panels[0].title, "overhead: select1, simple, scale 10");
	ck_assert_uint_eq(grid.panels[0].n_cells, 4);
	ck_assert_int_eq(grid.panels[0].cells[0].key->clients, 16);
	ck_assert_str_eq(grid.panels[0].cells[0].key->system, "pgweir:16/1");
	ck_assert_str_eq(grid.panels[0].cells[3].key->system, "direct");
	end(&grid);
}
END_TEST

START_TEST(discarded_and_failed_runs_have_no_part_in_figures)
{
	struct grid grid;
	struct result warm_up = run_of("direct", 16, 1, 1), failed = run_of("direct", 16, 4, 1);

	begin();
	warm_up.discarded = 1;
	result_set_status(&failed, "failed", "%s", "pgbench: exit code 2");
	keep(&warm_up);
	add("direct", 16, 2, 100);
	add("direct", 16, 3, 300);
	keep(&failed);
	grid_init(&grid, &set, NULL);
	const struct grid_cell *c = cell(&grid, "direct", 16);
	ck_assert_uint_eq(c->n_runs, 2);
	ck_assert_uint_eq(c->n_discarded, 1);
	ck_assert_uint_eq(c->n_bad, 1);
	ck_assert_str_eq(c->problem, "failed: pgbench: exit code 2");
	ck_assert_double_eq(grid_median(c, METRIC_TPS), 200);
	end(&grid);
}
END_TEST

START_TEST(a_repeated_run_replaces_the_first_try)
{
	struct grid grid;
	struct result failed = run_of("direct", 16, 1, NAN);

	begin();
	result_set_status(&failed, "failed", "%s", "interrupted");
	keep(&failed);
	add("direct", 16, 1, 100);
	grid_init(&grid, &set, NULL);
	const struct grid_cell *c = cell(&grid, "direct", 16);
	ck_assert_uint_eq(c->n_bad, 0);
	ck_assert_uint_eq(c->n_runs, 1);
	end(&grid);
}
END_TEST

START_TEST(ratios_are_to_pgbouncer_run_by_run)
{
	struct grid grid;

	begin();
	for (int64_t n = 1; n <= 3; n++) { /* the machine slows down: the medians alone would say 200 / 200 */
		add("direct", 16, n, 1);
		add("pgbouncer:16", 16, n, 400.0 / (double)n);
		add("pgweir:16/1", 16, n, 440.0 / (double)n);
	}
	grid_init(&grid, &set, NULL);
	ck_assert_str_eq(grid.baseline, "pgbouncer:16");
	const struct grid_cell *c = cell(&grid, "pgweir:16/1", 16);
	const struct grid_cell *base = grid_baseline(&grid, &grid.panels[0], c);
	ck_assert_str_eq(base->key->system, "pgbouncer:16");
	ck_assert_double_eq_tol(grid_ratio(c, base, METRIC_TPS), 1.1, 1e-9);
	end(&grid);
}
END_TEST

START_TEST(another_baseline_can_be_asked_for)
{
	struct grid grid;

	begin();
	add("pgbouncer:16", 16, 1, 50);
	add("direct", 16, 1, 100);
	grid_init(&grid, &set, "direct");
	const struct grid_cell *base = grid_baseline(&grid, &grid.panels[0], cell(&grid, "pgbouncer:16", 16));
	ck_assert_str_eq(base->key->system, "direct");
	end(&grid);
}
END_TEST

START_TEST(of_one_system_the_first_variant_is_the_baseline)
{
	struct grid grid;
	struct result ext4 = run_of("direct", 20, 1, 100), xfs = run_of("direct", 20, 1, 150);

	begin();
	snprintf(ext4.variant, sizeof(ext4.variant), "/mnt/ext4");
	snprintf(xfs.variant, sizeof(xfs.variant), "/mnt/xfs");
	keep(&ext4);
	keep(&xfs);
	grid_init(&grid, &set, NULL);
	const struct grid_panel *p = &grid.panels[0];
	ck_assert_uint_eq(p->n_series, 2);
	ck_assert_str_eq(p->series[1].label, "direct, /mnt/xfs");
	const struct grid_cell *base = grid_baseline(&grid, p, &p->cells[1]);
	ck_assert_str_eq(base->key->variant, "/mnt/ext4");
	ck_assert_double_eq(grid_ratio(&p->cells[1], base, METRIC_TPS), 1.5);
	end(&grid);
}
END_TEST

static enum grid_verdict
verdict(const double ours[3], const double theirs[3])
{
	struct grid grid;
	enum grid_verdict v;

	begin();
	for (int i = 0; i < 3; i++) {
		add("a", 16, i + 1, ours[i]);
		add("b", 16, i + 1, theirs[i]);
	}
	grid_init(&grid, &set, NULL);
	v = grid_judge(cell(&grid, "a", 16), cell(&grid, "b", 16), METRIC_TPS);
	end(&grid);
	return v;
}

START_TEST(a_verdict_needs_a_difference_and_runs_that_agree)
{
	const double base[3] = {100, 100, 100};

	ck_assert_int_eq(verdict((const double[3]){110, 112, 109}, base), VERDICT_BETTER);
	ck_assert_int_eq(verdict((const double[3]){90, 92, 89}, base), VERDICT_WORSE);
	ck_assert_int_eq(verdict((const double[3]){101, 102, 101}, base), VERDICT_EVEN);
	ck_assert_int_eq(verdict((const double[3]){120, 110, 99}, base), VERDICT_EVEN);
	ck_assert_int_eq(verdict((const double[3]){80, 85, 101}, base), VERDICT_EVEN);
	ck_assert_int_eq(verdict((const double[3]){NAN, NAN, NAN}, base), VERDICT_UNKNOWN);
}
END_TEST

/* One run of each says little. */
START_TEST(a_single_run_must_differ_by_more)
{
	struct grid grid;

	begin();
	add("a", 16, 1, 107);
	add("b", 16, 1, 100);
	add("a", 64, 1, 112);
	add("b", 64, 1, 100);
	grid_init(&grid, &set, NULL);
	ck_assert_int_eq(grid_judge(cell(&grid, "a", 16), cell(&grid, "b", 16), METRIC_TPS), VERDICT_EVEN);
	ck_assert_int_eq(grid_judge(cell(&grid, "a", 64), cell(&grid, "b", 64), METRIC_TPS), VERDICT_BETTER);
	end(&grid);
}
END_TEST

START_TEST(less_latency_is_better)
{
	struct grid grid;
	struct result a = run_of("a", 16, 1, 1), b = run_of("b", 16, 1, 1);

	begin();
	a.latency_p99_ms = 2;
	b.latency_p99_ms = 4;
	keep(&a);
	keep(&b);
	grid_init(&grid, &set, NULL);
	ck_assert_int_eq(grid_judge(cell(&grid, "a", 16), cell(&grid, "b", 16), METRIC_P99_MS), VERDICT_BETTER);
	end(&grid);
}
END_TEST

START_TEST(losses_are_listed_the_worst_first)
{
	struct grid grid;
	struct duels duels;

	begin();
	add("pgweir:16/1", 16, 1, 80);
	add("pgbouncer:16", 16, 1, 100);
	add("pgweir:16/1", 64, 1, 50);
	add("pgbouncer:16", 64, 1, 100);
	add("pgweir:16/1", 250, 1, 200);
	add("pgbouncer:16", 250, 1, 100);
	grid_init(&grid, &set, NULL);
	duels_find(&grid, &duels);
	ck_assert_uint_eq(duels.n_pairs, 1);
	ck_assert_uint_eq(duels.pairs[0].better[0], 1);
	ck_assert_uint_eq(duels.pairs[0].worse[0], 2);
	ck_assert_uint_eq(duels.n_losses, 2);
	ck_assert_int_eq(duels.losses[0].ours->key->clients, 64);
	ck_assert_double_eq(duels.losses[0].ratio, 0.5);
	duels_fini(&duels);
	end(&grid);
}
END_TEST

START_TEST(cells_with_the_same_problem_are_one_gap)
{
	struct grid grid;
	struct gaps gaps;

	begin();
	for (int64_t clients = 16; clients <= 64; clients *= 2) {
		struct result r = run_of("odyssey:32/2", clients, 1, NAN);
		result_set_status(&r, "not installed", "%s", "odyssey is in no package");
		keep(&r);
		add("direct", clients, 1, 10);
	}
	grid_init(&grid, &set, NULL);
	gaps_find(&grid, &gaps);
	ck_assert_uint_eq(gaps.n, 1);
	ck_assert_str_eq(gaps.items[0].clients, "16, 32, 64");
	ck_assert_str_eq(gaps.items[0].problem, "not installed: odyssey is in no package");
	ck_assert_uint_eq(gaps.items[0].n_bad, 3);
	ck_assert_uint_eq(gaps.items[0].n_good, 0);
	gaps_fini(&gaps);
	end(&grid);
}
END_TEST

START_TEST(published_figures_find_their_cells)
{
	struct result r = run_of("direct", 104, 1, 1);
	double sum = 0;

	snprintf(r.suite, sizeof(r.suite), "postgres-xc-2013");
	snprintf(r.workload, sizeof(r.workload), "tpcb");
	r.threads = 8;
	for (size_t i = 0; i < n_published_figures; i++)
		sum += published_matches(&published_figures[i], &r) ? published_figures[i].value : 0;
	ck_assert_double_eq(sum, 542);
	r.threads = 16;
	for (size_t i = 0; i < n_published_figures; i++)
		ck_assert(!published_matches(&published_figures[i], &r));
}
END_TEST

START_TEST(local_storage_is_not_the_one_without_synchronous_commit)
{
	struct result r = run_of("direct", 100, 1, 1);
	size_t n = 0;

	snprintf(r.suite, sizeof(r.suite), "replicated-storage-2007");
	snprintf(r.workload, sizeof(r.workload), "tpcb");
	for (size_t i = 0; i < n_published_figures; i++)
		n += published_matches(&published_figures[i], &r);
	ck_assert_uint_eq(n, 1);
	snprintf(r.variant, sizeof(r.variant), "synchronous_commit=off");
	for (size_t i = 0; i < n_published_figures; i++)
		ck_assert(!published_matches(&published_figures[i], &r));
}
END_TEST

UNIT_MAIN("bench grid", cells_are_ordered_by_clients_then_as_measured,
          discarded_and_failed_runs_have_no_part_in_figures, a_repeated_run_replaces_the_first_try,
          ratios_are_to_pgbouncer_run_by_run, another_baseline_can_be_asked_for,
          of_one_system_the_first_variant_is_the_baseline, a_verdict_needs_a_difference_and_runs_that_agree,
          a_single_run_must_differ_by_more, less_latency_is_better, losses_are_listed_the_worst_first,
          cells_with_the_same_problem_are_one_gap, published_figures_find_their_cells,
          local_storage_is_not_the_one_without_synchronous_commit)
