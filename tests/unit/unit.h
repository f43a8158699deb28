/* SPDX-License-Identifier: ISC */
/*
 * One test program per source file:
 *
 *   START_TEST(appends_at_end) { ... } END_TEST
 *   UNIT_MAIN("buf", appends_at_end, ...)
 *
 * Check runs each test in a process of its own and prints the totals that tools/run-tests adds up. Nothing here
 * sleeps or opens a socket; time comes from clock_set_fake().
 */
#ifndef PGWEIR_TESTS_UNIT_H
#define PGWEIR_TESTS_UNIT_H

#include <check.h>
#include <stdlib.h>

/* For a test case with fixtures or tests that end by a signal; UNIT_MAIN needs only names. */
static inline int
unit_run_tcase(const char *name, TCase *tcase)
{
	Suite *suite = suite_create(name);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int
unit_run(const char *name, const TTest *const *tests, size_t n)
{
	TCase *tcase = tcase_create(name);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_run_tcase(name, tcase);
}

#define UNIT_MAIN(name, ...)                                                                                           \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                                                            \
		return unit_run((name), tests, sizeof(tests) / sizeof(tests[0]));                                      \
	}

#endif
