/* SPDX-License-Identifier: ISC */
#include "wire/sql_fingerprint.h"

#include <string.h>

#include "unit.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* From a copy of exact size, so that a byte read behind the end is found. */
static uint64_t
print_of(const char *text, bool standard_strings, char *shape, size_t cap)
{
	size_t n = strlen(text);
	uint8_t *copy = malloc(n > 0 ? n : 1);
	uint64_t print;

	memcpy(copy, text, n);
	print = sql_fingerprint(copy, n, standard_strings, shape, cap);
	free(copy);
	return print;
}

static uint64_t
number_of(const char *text)
{
	return print_of(text, true, NULL, 0);
}

START_TEST(shapes_leave_values_out)
{
	static const char *const cases[][2] = {
		{"", ""},
		{" ; ;", ""},
		{"SELECT pg_advisory_lock(42)", "select pg_advisory_lock(?)"},
		{"select 'it''s', 1.5e3, $1, E'\\'', $$x$$ from \"T\";", "select ? from \"T\""},
		{"select a , 1 , b, 2,3", "select a, ?, b, ?"},
		{"select f(1), g(2,-3)", "select f(?), g(?, - ?)"},
		{"listen a; unlisten b ;;", "listen a; unlisten b"},
		{"select 1;;select 2", "select ?; select ?"},
		{"select 1, from t", "select ?, from t"},
		{"create /* x */ temp\n\ttable t -- y\n(i int)", "create temp table t(i int)"},
		{"select a<=b, c::int[], d->>'k'", "select a <= b, c :: int[], d ->> ?"},
		{"select x.y from s.t", "select x.y from s.t"},
		{"set search_path to 'tenant 1', public", "set search_path to ?, public"},
		{"select 'open", "select ?"},
		{"select 1, 'open", "select ?"},
		{"select \"open", "select ?"},
		{"select /* open", "select ?"},
	};
	char shape[256];

	for (size_t i = 0; i < N(cases); i++) {
		(void)print_of(cases[i][0], true, shape, sizeof(shape));
		ck_assert_str_eq(shape, cases[i][1]);
	}
}
END_TEST

START_TEST(one_statement_has_one_number)
{
	static const char *const same[][2] = {
		{"select 1", "SELECT  2 ; "},
		{"select f(1,2,3)", "select f( 'a' )"},
		{"select f($1)", "select f(-- c\n 17)"},
		{"listen a;unlisten b", "LISTEN a ; UNLISTEN b;"},
		{"select a<=1", "select a <= 1"},
	};
	static const char *const different[][2] = {
		{"select 1", "select a"},       {"select ab", "select a b"},
		{"listen a", "listen b"},       {"select \"A\"", "select \"a\""},
		{"select a", "select \"a\""},   {"select f(1), g(2)", "select f(1)"},
		{"listen a;b", "listen a b"},   {"select 1 from t", "select 1, from t"},
		{"select a(1)", "select a[1]"}, {"", "select"},
	};

	for (size_t i = 0; i < N(same); i++)
		ck_assert_msg(number_of(same[i][0]) == number_of(same[i][1]), "%s, %s", same[i][0], same[i][1]);
	for (size_t i = 0; i < N(different); i++)
		ck_assert_msg(number_of(different[i][0]) != number_of(different[i][1]), "%s, %s", different[i][0],
		              different[i][1]);
}
END_TEST

/* It is written to logs and remembered there: it may not change with the release. */
START_TEST(numbers_stay)
{
	ck_assert_uint_eq(number_of(""), UINT64_C(0xcbf29ce484222325));
	ck_assert_uint_eq(number_of("a"), (((UINT64_C(0xcbf29ce484222325) ^ ' ') * UINT64_C(0x100000001b3)) ^ 'a') *
	                                          UINT64_C(0x100000001b3));
}
END_TEST

START_TEST(backslashes_end_no_string_where_they_escape)
{
	char shape[64];

	(void)print_of("select 'a\\', b, '", true, shape, sizeof(shape));
	ck_assert_str_eq(shape, "select ?, b, ?");
	(void)print_of("select 'a\\', b, '", false, shape, sizeof(shape));
	ck_assert_str_eq(shape, "select ?");
}
END_TEST

START_TEST(shapes_are_cut)
{
	char shape[12];
	uint64_t whole = number_of("select something_long, 1");

	memset(shape, 'x', sizeof(shape));
	ck_assert(print_of("select something_long, 1", true, shape, 8) == whole);
	ck_assert_str_eq(shape, "select ");
	ck_assert_int_eq(shape[8], 'x');
	ck_assert(print_of("select something_long, 1", true, shape, 1) == whole);
	ck_assert_str_eq(shape, "");
}
END_TEST

UNIT_MAIN("sql_fingerprint", shapes_leave_values_out, one_statement_has_one_number, numbers_stay,
          backslashes_end_no_string_where_they_escape, shapes_are_cut)
