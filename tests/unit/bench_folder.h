/* SPDX-License-Identifier: ISC */
/*
 * A temporary folder for the tests of what bench/ writes: made and removed, with all that is in it, by the process that
 * runs the tests, so that a test which fails leaves nothing behind. Each test finds it empty.
 */
#ifndef PGWEIR_TESTS_BENCH_FOLDER_H
#define PGWEIR_TESTS_BENCH_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char folder[64];

static inline int
bench_folder_remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	return where->level == 0 ? 0 : remove(path);
}

static inline void
bench_folder_empty(void)
{
	ck_assert_int_eq(nftw(folder, bench_folder_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void
bench_folder_make(void)
{
	snprintf(folder, sizeof(folder), "/tmp/pgweir-bench-XXXXXX");
	if (mkdtemp(folder) == NULL) {
		perror(folder);
		exit(EXIT_FAILURE);
	}
}

static inline void
bench_folder_remove(void)
{
	nftw(folder, bench_folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rmdir(folder);
}

static inline const char *
bench_folder_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static inline void
bench_folder_write(const char *name, const char *text)
{
	FILE *f = fopen(bench_folder_path(name), "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* To be freed. */
static inline char *
bench_folder_read(const char *name)
{
	FILE *f = fopen(bench_folder_path(name), "r");
	char *text = NULL;
	size_t cap = 0;

	ck_assert_msg(f != NULL, "no %s", name);
	if (getdelim(&text, &cap, '\0', f) < 0 && text != NULL)
		text[0] = '\0';
	fclose(f);
	return text;
}

static inline int
bench_folder_run(const char *name, const TTest *const *tests, size_t n)
{
	TCase *tcase = tcase_create(name);

	tcase_add_unchecked_fixture(tcase, bench_folder_make, bench_folder_remove);
	tcase_add_checked_fixture(tcase, bench_folder_empty, NULL);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_run_tcase(name, tcase);
}

/* As UNIT_MAIN. */
#define BENCH_FOLDER_MAIN(name, ...)                                                                                   \
	int main(void)                                                                                                 \
	{                                                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                                                            \
		return bench_folder_run((name), tests, sizeof(tests) / sizeof(tests[0]));                              \
	}

#endif
