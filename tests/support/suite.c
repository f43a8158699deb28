/* SPDX-License-Identifier: ISC */
#include "suite.h"

struct cluster *pg;

int
suite_run(const char *name, const TTest **tests, size_t n_tests, int timeout_s)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	const char *only = getenv("TEST");
	SRunner *runner;
	int n_failed;

	proc_init();
	pg = cluster_new();
	tcase_set_timeout(tcase, timeout_s);
	for (size_t i = 0; i < n_tests; i++)
		if (only == NULL || strcmp(only, tests[i]->name) == 0)
			tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	cluster_stop(pg);
	return n_failed == 0 ? 0 : 1;
}
