/* SPDX-License-Identifier: ISC */
#include "ops/admin_command.h"

#include "unit.h"

#include <string.h>

/* The name of the command, or "". */
static const char *
name_of(const char *query, size_t *n_args)
{
	static struct admin_words w;
	const struct admin_command *c;
	size_t n_words;

	if (!admin_split(query, &w))
		return "";
	c = admin_find(&w, &n_words);
	*n_args = w.n - n_words;
	return c != NULL ? c->words : "";
}

static void
check(const char *query, const char *name, size_t n_args)
{
	size_t n = 0;

	ck_assert_str_eq(name_of(query, &n), name);
	if (name[0] != '\0')
		ck_assert_uint_eq(n, n_args);
}

START_TEST(finds_commands_in_any_spelling)
{
	check("SHOW POOLS", "SHOW POOLS", 0);
	check("show pools;", "SHOW POOLS", 0);
	check("  Show \t\n pOOls  ;  ", "SHOW POOLS", 0);
	check("select pools", "SHOW POOLS", 0);
	check("show stats_totals", "SHOW STATS_TOTALS", 0);
	check("SHUTDOWN", "SHUTDOWN", 0);
	check("shutdown wait_for_clients;", "SHUTDOWN WAIT_FOR_CLIENTS", 0);
}
END_TEST

START_TEST(tells_arguments_from_names)
{
	check("pause", "PAUSE", 0);
	check("pause app", "PAUSE", 1);
	check("enable app", "ENABLE", 1);
	check("set x = 1", "SET", 3);
	check("set x=1", "SET", 3);
	check("set datestyle to ISO, MDY", "SET", 4);
	check("show client_encoding", "SHOW", 1);
}
END_TEST

START_TEST(refuses_what_is_no_command)
{
	check("show", "", 0);
	check("show pools now", "", 0);
	check("showpools", "", 0);
	check("enable", "", 0);
	check("enable a b", "", 0);
	check("pause a b", "", 0);
	check("shutdown now", "", 0);
	check("reload;;", "RELOAD", 0);
	check("reload; reload", "", 0);
	check("select 1 + 1", "", 0);
	check("'show' pools'", "", 0);
	check("kill \"app", "", 0);
}
END_TEST

START_TEST(takes_quotes_off)
{
	struct admin_words w;

	ck_assert(admin_split("set key = 'it''s; =\"' \"a\"\"b\"'c' '' ;", &w));
	ck_assert_uint_eq(w.n, 7);
	ck_assert_str_eq(w.word[1], "key");
	ck_assert_str_eq(w.word[2], "=");
	ck_assert_str_eq(w.word[3], "it's; =\"");
	ck_assert_str_eq(w.word[4], "a\"b");
	ck_assert_str_eq(w.word[5], "c");
	ck_assert_str_eq(w.word[6], "");
}
END_TEST

START_TEST(sees_empty_queries)
{
	static const char *const queries[] = {"", " ", ";", " \n;; ; "};
	struct admin_words w;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		ck_assert(admin_split(queries[i], &w));
		ck_assert_uint_eq(w.n, 0);
	}
}
END_TEST

START_TEST(bounds_words_and_length)
{
	static char query[ADMIN_QUERY_MAX + 2];
	static struct admin_words w;
	size_t n = 0;

	for (unsigned i = 0; i < ADMIN_WORDS_MAX; i++)
		query[n++] = '=';
	ck_assert(admin_split(query, &w));
	ck_assert_uint_eq(w.n, ADMIN_WORDS_MAX);
	query[n] = '=';
	ck_assert(!admin_split(query, &w));

	memset(query, 'x', ADMIN_QUERY_MAX - 1);
	ck_assert(admin_split(query, &w));
	ck_assert_uint_eq(strlen(w.word[0]), ADMIN_QUERY_MAX - 1);
	query[ADMIN_QUERY_MAX - 1] = 'x';
	ck_assert(!admin_split(query, &w));
}
END_TEST

/* Rows of proxies come later, when the query's words are gone; and a name must be found by its own words. */
START_TEST(table_is_sound)
{
	size_t n, n_words;
	const struct admin_command *c = admin_commands(&n);

	for (size_t i = 0; i < n; i++) {
		static struct admin_words w;
		char query[128];

		ck_assert(c[i].asks == 0 || (c[i].argument[0] == '\0' && c[i].run != NULL));
		strcpy(query, c[i].words); /* lint: sized for it */
		if (c[i].argument[0] != '\0')
			strcat(query, " x"); /* lint: sized for it */
		ck_assert(admin_split(query, &w));
		ck_assert_ptr_eq(admin_find(&w, &n_words), &c[i]);
	}
}
END_TEST

START_TEST(help_lists_what_works)
{
	struct buf b;

	buf_init(&b);
	admin_help(&b);
	buf_append_u8(&b, 0);
	ck_assert(!b.failed);
	ck_assert_ptr_nonnull(strstr((const char *)buf_head(&b), "\n\tSHOW POOLS\n"));
	ck_assert_ptr_nonnull(strstr((const char *)buf_head(&b), "\n\tSHUTDOWN WAIT_FOR_CLIENTS"));
	buf_fini(&b);
}
END_TEST

UNIT_MAIN("admin_command", finds_commands_in_any_spelling, tells_arguments_from_names, refuses_what_is_no_command,
          takes_quotes_off, sees_empty_queries, bounds_words_and_length, table_is_sound, help_lists_what_works)
