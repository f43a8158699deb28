/* SPDX-License-Identifier: ISC */
#include "core/prepared_set.h"

#include <stdio.h>

#include "unit.h"

enum { N = 5 };
static struct statement *st[N];
static struct prepared_set *set;

static void
setup(void)
{
	struct settings *none = settings_empty();

	for (int i = 0; i < N; i++) {
		char body[32];
		int n = snprintf(body, sizeof(body), "select %d", i) + 1;

		st[i] = statement_get(none, 1, (const uint8_t *)body, (size_t)n);
		ck_assert_ptr_nonnull(st[i]);
	}
	settings_unref(&none);
	set = NULL;
}

static void
teardown(void)
{
	prepared_set_free(&set);
	ck_assert_ptr_null(set);
	for (int i = 0; i < N; i++)
		statement_unref(&st[i]);
	ck_assert_uint_eq(statement_totals().n_statements, 0);
}

static void
add(int i, uint64_t unit)
{
	ck_assert(prepared_set_add(&set, st[i]));
	prepared_set_use(set, st[i], unit);
}

START_TEST(empty)
{
	ck_assert(!prepared_set_has(NULL, st[0]));
	ck_assert_int_eq(prepared_set_state(NULL, st[0]), PREPARED_MISSING);
	ck_assert_ptr_null(prepared_set_victim(NULL, 9));
	ck_assert_uint_eq(prepared_set_n(NULL), 0);
	prepared_set_remove(NULL, st[0]);
	prepared_set_use(NULL, st[0], 1);
	prepared_set_stale(NULL, 0);
	prepared_set_mark(NULL, st[0], PREPARED_STALE);
}
END_TEST

START_TEST(the_victim_is_the_least_recently_used)
{
	for (int i = 0; i < 3; i++)
		add(i, (uint64_t)i);
	ck_assert_uint_eq(prepared_set_n(set), 3);
	ck_assert_ptr_eq(prepared_set_victim(set, 10), st[0]);
	prepared_set_use(set, st[0], 3);
	ck_assert_ptr_eq(prepared_set_victim(set, 10), st[1]);
	prepared_set_remove(set, st[1]);
	prepared_set_remove(set, st[1]); /* harmless */
	ck_assert(!prepared_set_has(set, st[1]));
	ck_assert_ptr_eq(prepared_set_victim(set, 10), st[2]);
}
END_TEST

/* A unit that is not answered yet may use it: not even the last resort. */
START_TEST(what_is_in_use_is_no_victim)
{
	add(0, 4);
	add(1, 5);
	ck_assert_ptr_null(prepared_set_victim(set, 4));
	ck_assert_ptr_eq(prepared_set_victim(set, 5), st[0]);
}
END_TEST

START_TEST(a_large_one_is_no_victim_and_never_stale)
{
	struct statement *large = statement_new_large();

	ck_assert(prepared_set_add(&set, large));
	prepared_set_use(set, large, 1);
	ck_assert_ptr_null(prepared_set_victim(set, 10));
	add(0, 2);
	ck_assert_ptr_eq(prepared_set_victim(set, 10), st[0]);
	prepared_set_stale(set, 0);
	prepared_set_mark(set, large, PREPARED_STALE);
	ck_assert_int_eq(prepared_set_state(set, large), PREPARED_READY);
	ck_assert_int_eq(prepared_set_state(set, st[0]), PREPARED_STALE);
	statement_unref(&large);
}
END_TEST

START_TEST(stale_are_those_of_the_unit_and_later_ones)
{
	for (int i = 0; i < N; i++)
		add(i, (uint64_t)i);
	prepared_set_stale(set, 3);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(prepared_set_state(set, st[i]), i >= 3 ? PREPARED_STALE : PREPARED_READY);
	/* parsed anew */
	prepared_set_remove(set, st[3]);
	add(3, 7);
	ck_assert_int_eq(prepared_set_state(set, st[3]), PREPARED_READY);
	prepared_set_mark(set, st[0], PREPARED_STALE);
	ck_assert_int_eq(prepared_set_state(set, st[0]), PREPARED_STALE);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("prepared_set");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, empty);
	tcase_add_test(tcase, the_victim_is_the_least_recently_used);
	tcase_add_test(tcase, what_is_in_use_is_no_victim);
	tcase_add_test(tcase, a_large_one_is_no_victim_and_never_stale);
	tcase_add_test(tcase, stale_are_those_of_the_unit_and_later_ones);
	return unit_run_tcase("prepared_set", tcase);
}
