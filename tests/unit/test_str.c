/* SPDX-License-Identifier: ISC */
#include "base/str.h"

#include <string.h>

#include "unit.h"

START_TEST(parses_whole_decimal_numbers)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} cases[] = {
		{"0", true, 0},
		{"-1", true, -1},
		{"007", true, 7},
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"", false, 0},
		{"-", false, 0},
		{"--1", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"1.0", false, 0},
		{"0x10", false, 0},
		{"1e3", false, 0},
		{"abc", false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t out = 4711;
		bool ok = str_parse_int(cases[i].text, INT64_MIN, INT64_MAX, &out);
		ck_assert_msg(ok == cases[i].ok, "'%s'", cases[i].text);
		ck_assert_int_eq(out, cases[i].ok ? cases[i].value : 4711);
	}
}
END_TEST

START_TEST(number_range_is_inclusive)
{
	int64_t out = 0;
	ck_assert(str_parse_int("5", 5, 10, &out) && out == 5);
	ck_assert(str_parse_int("10", 5, 10, &out) && out == 10);
	ck_assert(!str_parse_int("4", 5, 10, &out));
	ck_assert(!str_parse_int("11", 5, 10, &out));
	ck_assert_int_eq(out, 10);
}
END_TEST

START_TEST(parses_seconds)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t us;
	} cases[] = {
		{"0", true, 0},
		{"1", true, 1000000},
		{"0.5", true, 500000},
		{".25", true, 250000},
		{"3.", true, 3000000},
		{"0.000001", true, 1},
		{"0.0000019", true, 1},
		{"3600.000250", true, 3600000250},
		{"18446744073709.551615", true, UINT64_MAX},
		{"18446744073709.551616", false, 0},
		{"18446744073710", false, 0},
		{"99999999999999999999999", false, 0},
		{"", false, 0},
		{".", false, 0},
		{"-1", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"1s", false, 0},
		{"1.2.3", false, 0},
		{"1e3", false, 0},
		{"inf", false, 0},
		{"nan", false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t out = 4711;
		bool ok = str_parse_seconds_us(cases[i].text, &out);
		ck_assert_msg(ok == cases[i].ok, "'%s'", cases[i].text);
		ck_assert_uint_eq(out, cases[i].ok ? cases[i].us : 4711);
	}
}
END_TEST

START_TEST(copies_and_tells_what_was_cut)
{
	char dst[4] = "zzz";
	ck_assert(str_copy(dst, sizeof(dst), "abc"));
	ck_assert_str_eq(dst, "abc");
	ck_assert(!str_copy(dst, sizeof(dst), "defg"));
	ck_assert_str_eq(dst, "def");
	ck_assert(str_copy(dst, 1, ""));
	ck_assert_str_eq(dst, "");
	ck_assert(!str_copy(dst, 0, ""));
}
END_TEST

START_TEST(duplicates)
{
	ck_assert_ptr_null(str_dup(NULL));
	char *s = str_dup("text");
	ck_assert_str_eq(s, "text");
	free(s);
}
END_TEST

START_TEST(trims_both_ends)
{
	char blanks[] = " \t\r\n ", inner[] = "\t a b \n", none[] = "ab", empty[] = "";
	ck_assert_str_eq(str_trim(blanks), "");
	ck_assert_str_eq(str_trim(inner), "a b");
	ck_assert_str_eq(str_trim(none), "ab");
	ck_assert_str_eq(str_trim(empty), "");
}
END_TEST

START_TEST(equal_without_ascii_case)
{
	ck_assert(str_equal_nocase("Pool_Mode", "pOOL_mODE"));
	ck_assert(str_equal_nocase("", ""));
	ck_assert(!str_equal_nocase("a", "ab"));
	ck_assert(!str_equal_nocase("ab", "a"));
	ck_assert(!str_equal_nocase("[", "{")); /* they differ by the same bit as a letter's cases */
	ck_assert(!str_equal_nocase("\xc4", "\xe4"));
}
END_TEST

START_TEST(distance_counts_edits_and_swaps)
{
	ck_assert_int_eq(str_distance("", ""), 0);
	ck_assert_int_eq(str_distance("", "abc"), 3);
	ck_assert_int_eq(str_distance("abc", ""), 3);
	ck_assert_int_eq(str_distance("pool_mode", "pool_mode"), 0);
	ck_assert_int_eq(str_distance("pool_mode", "pol_mode"), 1);
	ck_assert_int_eq(str_distance("pool_mode", "pool_mdoe"), 1);
	ck_assert_int_eq(str_distance("kitten", "sitting"), 3);
	ck_assert_int_eq(str_distance("abcdef", "badcfe"), 3);
	char a[100], b[100];
	memset(a, 'x', 99);
	memset(b, 'x', 63);
	a[99] = b[63] = '\0';
	ck_assert_int_eq(str_distance(b, ""), 63);
	ck_assert_int_eq(str_distance(b, b), 0);
	ck_assert_int_ge(str_distance(a, "x"), 63);
}
END_TEST

UNIT_MAIN("str", parses_whole_decimal_numbers, number_range_is_inclusive, parses_seconds, copies_and_tells_what_was_cut,
          duplicates, trims_both_ends, equal_without_ascii_case, distance_counts_edits_and_swaps)
