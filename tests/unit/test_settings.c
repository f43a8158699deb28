/* SPDX-License-Identifier: ISC */
#include "core/settings.h"

#include <string.h>

#include "unit.h"

/* "name=value name=value": what the set holds, in order. */
static void
check_set(const struct settings *s, const char *want)
{
	char got[512] = "";

	for (size_t i = 0; i < settings_n(s); i++) {
		if (i > 0)
			strcat(got, " ");          /* lint: sized for it */
		strcat(got, settings_name(s, i));  /* lint: sized for it */
		strcat(got, "=");                  /* lint: sized for it */
		strcat(got, settings_value(s, i)); /* lint: sized for it */
	}
	ck_assert_str_eq(got, want);
}

/* Consumes s. */
static struct settings *
with(struct settings *s, const char *name, const char *value)
{
	struct settings *next = settings_with(s, name, value);

	ck_assert_ptr_nonnull(next);
	settings_unref(&s);
	return next;
}

START_TEST(equal_sets_are_one)
{
	struct settings *a = with(with(settings_empty(), "work_mem", "1MB"), "datestyle", "ISO");
	struct settings *b = with(with(settings_empty(), "datestyle", "ISO"), "work_mem", "1MB");

	ck_assert_ptr_eq(a, b);
	check_set(a, "datestyle=ISO work_mem=1MB");
	b = with(b, "work_mem", "2MB");
	ck_assert_ptr_ne(a, b);
	b = with(b, "work_mem", "1MB");
	ck_assert_ptr_eq(a, b);
	settings_unref(&a);
	check_set(b, "datestyle=ISO work_mem=1MB");
	settings_unref(&b);
	ck_assert_ptr_null(b);
	settings_unref(&b);
}
END_TEST

/* "a" + "bc" is not "ab" + "c". */
START_TEST(names_and_values_are_kept_apart)
{
	struct settings *a = with(settings_empty(), "a", "bc"), *b = with(settings_empty(), "ab", "c");

	ck_assert_ptr_ne(a, b);
	a = with(a, "empty", "");
	check_set(a, "a=bc empty=");
	settings_unref(&a);
	settings_unref(&b);
}
END_TEST

START_TEST(names_compare_without_case)
{
	struct settings *a = with(with(settings_empty(), "timezone", "UTC"), "TimeZone", "CET");

	ck_assert_uint_eq(settings_n(a), 1);
	check_set(a, "TimeZone=CET");
	ck_assert_str_eq(settings_get(a, "TIMEZONE"), "CET");
	ck_assert_ptr_null(settings_get(a, "timezon"));
	settings_unref(&a);
}
END_TEST

START_TEST(without)
{
	struct settings *a = with(with(settings_empty(), "b", "2"), "a", "1"), *b = settings_without(a, "B");
	struct settings *same = settings_without(b, "b"), *none = settings_without(b, "a"), *empty = settings_empty();

	check_set(b, "a=1");
	ck_assert_ptr_eq(same, b);
	ck_assert_ptr_eq(none, empty);
	settings_unref(&a);
	settings_unref(&b);
	settings_unref(&same);
	settings_unref(&none);
	settings_unref(&empty);
}
END_TEST

/* What differs is set, what is no longer wanted goes back to its default, what is equal is left alone. */
START_TEST(apply)
{
	struct settings *from = with(with(with(settings_empty(), "a", "1"), "b", "2"), "c", "3");
	struct settings *to = with(with(with(settings_empty(), "b", "2"), "c", "4"), "d", "");
	struct buf out;

	buf_init(&out);
	ck_assert_uint_eq(settings_build_apply(&out, from, from), 0);
	ck_assert_uint_eq(out.len, 0);
	/* one Parse, and Bind and Execute for a, c and d */
	ck_assert_uint_eq(settings_build_apply(&out, from, to), 7);
	ck_assert_int_eq(((const char *)buf_head(&out))[0], 'P');
	ck_assert_int_eq(((const char *)buf_head(&out))[out.len - 5], 'S');
	ck_assert_str_eq(settings_applied_name(from, to, 0), "a");
	ck_assert_str_eq(settings_applied_name(from, to, 1), "c");
	ck_assert_str_eq(settings_applied_name(from, to, 2), "d");
	ck_assert_ptr_null(settings_applied_name(from, to, 3));
	buf_fini(&out);
	settings_unref(&from);
	settings_unref(&to);
}
END_TEST

UNIT_MAIN("settings", equal_sets_are_one, names_and_values_are_kept_apart, names_compare_without_case, without, apply)
