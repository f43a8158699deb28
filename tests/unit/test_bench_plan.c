/* SPDX-License-Identifier: ISC */
#include "plan.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static const struct suite_line lines[] = {
	{.workloads = "select-only,idle",
         .modes = "simple,prepared",
         .setups = "single,replicas:1 synchronous_commit=off",
         .clients = "4/2,100",
         .scale = 3,
         .seconds = 5,
         .runs = 3,
         .discard = 1},
	{.workloads = NULL},
};
static const struct suite_line quick[] = {
	{.workloads = "select1", .modes = "simple", .setups = "single", .clients = "1", .seconds = 1, .runs = 1},
	{.workloads = NULL},
};
static const struct suite suite = {"tried", "", "direct", lines, quick};
static const struct plan_changes none = {.discard = -1};

static struct plan
made(bool is_quick, const struct plan_changes *changes, size_t n_systems)
{
	struct plan plan = {0};
	struct why why = {""};

	ck_assert_msg(plan_add(&plan, &suite, is_quick, changes, n_systems, 2, &why), "%s", why.text);
	return plan;
}

START_TEST(every_combination_is_a_run)
{
	struct plan plan = made(false, &none, 2);

	/* 3 runs, 2 setups, 2 numbers of clients, 2 systems; select-only in 2 modes, idle has none */
	ck_assert_uint_eq(plan.n_cells, 3 * 2 * 2 * 2 * 3);
	ck_assert_uint_eq(plan.n_setups, 2);
	ck_assert_str_eq(plan.setups[1].topology, "replicas:1");
	ck_assert_str_eq(plan.setups[1].setting, "synchronous_commit=off");
	plan_fini(&plan);
}
END_TEST

START_TEST(systems_take_turns)
{
	struct plan plan = made(false, &none, 3);

	for (size_t i = 0; i < plan.n_cells; i++)
		ck_assert_uint_eq(plan.cells[i].system, i % 3);
	/* A whole round before the next one. */
	for (size_t i = 0; i < plan.n_cells; i++)
		ck_assert_int_eq(plan.cells[i].run, (int)(i / (plan.n_cells / 3)) + 1);
	plan_fini(&plan);
}
END_TEST

START_TEST(the_first_runs_are_discarded)
{
	struct plan_changes changes = none;
	struct plan plan = made(false, &none, 1);

	for (size_t i = 0; i < plan.n_cells; i++)
		ck_assert_int_eq(plan.cells[i].discarded, plan.cells[i].run == 1);
	plan_fini(&plan);
	/* Fewer runs than the suite discards: at least one counts. */
	changes.runs = 1;
	plan = made(false, &changes, 1);
	ck_assert(!plan.cells[0].discarded);
	plan_fini(&plan);
}
END_TEST

START_TEST(threads_are_as_many_as_cpus_and_never_more_than_clients)
{
	struct plan_changes changes = none;
	struct plan plan;

	changes.clients = "4/3,4,1,2/9";
	plan = made(true, &changes, 1);
	ck_assert_uint_eq(plan.n_cells, 4);
	ck_assert_int_eq(plan.cells[0].threads, 3);
	ck_assert_int_eq(plan.cells[1].threads, 2);
	ck_assert_int_eq(plan.cells[2].threads, 1);
	ck_assert_int_eq(plan.cells[3].threads, 2);
	plan_fini(&plan);
}
END_TEST

START_TEST(changes_go_before_the_suite)
{
	struct text_list dirs = {0};
	struct plan_changes changes = {.workloads = "tpcb",
	                               .setups = "sync",
	                               .scale = 7,
	                               .transactions = 9,
	                               .runs = 2,
	                               .discard = 0,
	                               .datadirs = &dirs};
	struct plan plan;

	text_list_split(&dirs, "/a:/b", ':');
	plan = made(true, &changes, 1);
	ck_assert_uint_eq(plan.n_cells, 4);
	ck_assert_str_eq(plan.cells[0].workload->name, "tpcb");
	ck_assert_int_eq(plan.cells[0].scale, 7);
	ck_assert_int_eq(plan.cells[0].seconds, 0);
	ck_assert_int_eq(plan.cells[0].transactions, 9);
	ck_assert_str_eq(plan.setups[plan.cells[0].setup].datadir, "/a");
	ck_assert_str_eq(plan.setups[plan.cells[1].setup].datadir, "/b");
	plan_fini(&plan);
	text_list_fini(&dirs);
}
END_TEST

START_TEST(idle_clients_are_beside_those_of_pgbench_only)
{
	struct system_spec spec = {.name = "direct"};
	struct plan_changes changes = none;
	struct plan plan;
	struct result r;

	changes.workloads = "select1,idle";
	changes.idle = "0,70";
	changes.sockets = SOCKETS_UNIX;
	plan = made(true, &changes, 1);
	ck_assert_uint_eq(plan.n_cells, 3);
	ck_assert_int_eq(plan.cells[0].idle, 0);
	ck_assert_int_eq(plan.cells[1].idle, 70);
	ck_assert_str_eq(plan.cells[2].workload->name, "idle");
	ck_assert_int_eq(plan.cells[2].idle, 0);
	plan_describe(&plan, &plan.cells[1], &spec, &r);
	ck_assert_str_eq(r.variant, "beside 70 idle, Unix sockets");
	plan_fini(&plan);
}
END_TEST

/* What is loaded once is counted once, a server is for all runs in front of it. */
START_TEST(the_time_it_takes_has_servers_and_tables)
{
	struct plan_changes changes = none;
	struct plan plan;
	double one, two, runs = 0;

	changes.workloads = "select-only";
	changes.scale = 50;
	plan = made(true, &changes, 1);
	one = plan_total_seconds(&plan) - plan_seconds(&plan.cells[0]);
	plan_fini(&plan);
	changes.runs = 5;
	changes.discard = 0;
	plan = made(true, &changes, 3);
	for (size_t i = 0; i < plan.n_cells; i++)
		runs += plan_seconds(&plan.cells[i]);
	ck_assert_double_gt(one, 10);
	ck_assert_double_eq_tol(plan_total_seconds(&plan) - runs, one, 1e-6);
	plan_fini(&plan);
	changes.setups = "single,replicas:2";
	plan = made(true, &changes, 3);
	two = plan_total_seconds(&plan);
	for (size_t i = 0; i < plan.n_cells; i++)
		two -= plan_seconds(&plan.cells[i]);
	ck_assert_double_gt(two, 2 * one);
	plan_fini(&plan);
}
END_TEST

START_TEST(refuses_lists_that_do_not_parse)
{
	static const struct plan_changes bad[] = {
		{.workloads = "tcpb", .discard = -1},
		{.idle = "-1", .discard = -1},
		{.idle = "few", .discard = -1},
		{.modes = "fast", .discard = -1},
		{.clients = "0", .discard = -1},
		{.clients = "4/", .discard = -1},
		{.clients = "4x", .discard = -1},
		{.clients = "1/0", .discard = -1},
		{.runs = 2, .discard = 2},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct plan plan = {0};
		struct why why = {""};

		ck_assert_msg(!plan_add(&plan, &suite, true, &bad[i], 1, 2, &why), "%zu was taken", i);
		ck_assert_str_ne(why.text, "");
		plan_fini(&plan);
	}
}
END_TEST

START_TEST(what_is_recorded_tells_cells_apart)
{
	struct system_spec spec = {.name = "direct"};
	struct result_set done = {0};
	struct plan plan = made(false, &none, 1);

	for (size_t i = 0; i < plan.n_cells; i++) {
		struct result r;

		plan_describe(&plan, &plan.cells[i], &spec, &r);
		ck_assert_msg(!plan_is_done(&done, &r), "run %zu is the same as one before", i);
		ck_assert(result_set_add(&done, &r));
		ck_assert(plan_is_done(&done, &r));
	}
	result_set_fini(&done);
	plan_fini(&plan);
}
END_TEST

/* A suite that names a workload or a mode that is not there would fail at the user's. */
START_TEST(all_suites_can_be_planned)
{
	const struct suite *s;
	size_t n_suites = 0;

	for (size_t i = 0; (s = suite_at(i)) != NULL; i++, n_suites++)
		for (int is_quick = 0; is_quick <= 1; is_quick++) {
			struct system_spec *specs;
			struct plan plan = {0};
			struct why why = {""};
			double seconds;
			size_t n;

			ck_assert_msg(system_spec_parse_list(s->systems, &specs, &n, &why), "%s: %s", s->name,
			              why.text);
			ck_assert_msg(plan_add(&plan, s, is_quick, &none, n, 2, &why), "%s: %s", s->name, why.text);
			seconds = plan_total_seconds(&plan);
			ck_assert_msg(!is_quick || seconds < 180, "%s --quick: %.0f s", s->name, seconds);
			plan_fini(&plan);
			free(specs);
		}
	ck_assert_uint_ge(n_suites, 7);
	ck_assert_ptr_nonnull(suite_find("poolers-2019"));
	ck_assert_ptr_null(suite_find("poolers"));
}
END_TEST

UNIT_MAIN("bench plan", every_combination_is_a_run, systems_take_turns, the_first_runs_are_discarded,
          threads_are_as_many_as_cpus_and_never_more_than_clients, changes_go_before_the_suite,
          idle_clients_are_beside_those_of_pgbench_only, the_time_it_takes_has_servers_and_tables,
          refuses_lists_that_do_not_parse, what_is_recorded_tells_cells_apart, all_suites_can_be_planned)
