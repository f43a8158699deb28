/* SPDX-License-Identifier: ISC */
#include "core/settings.h"

#include <stdio.h>
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
	struct settings *a = with(with(settings_empty(), "timezone", "UTC"), "TimeZone", "CET"), *b;

	ck_assert_uint_eq(settings_n(a), 1);
	check_set(a, "TimeZone=CET");
	ck_assert_str_eq(settings_get(a, "TIMEZONE"), "CET");
	ck_assert_ptr_null(settings_get(a, "timezon"));
	settings_unref(&a);
	a = with(with(settings_empty(), "timezone", "UTC"), "my.Own", "a");
	b = with(with(settings_empty(), "TimeZone", "UTC"), "MY.own", "a");
	ck_assert_ptr_eq(a, b);
	settings_unref(&b);
	b = with(with(settings_empty(), "TimeZone", "utc"), "my.own", "a");
	ck_assert_ptr_ne(a, b);
	settings_unref(&a);
	settings_unref(&b);
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
	ck_assert_uint_eq(settings_build_apply(&out, from, from, SETTINGS_OR_END), 0);
	ck_assert_uint_eq(out.len, 0);
	/* one Parse, and Bind and Execute for a, c and d */
	ck_assert_uint_eq(settings_build_apply(&out, from, to, SETTINGS_TRY), 7);
	ck_assert_int_eq(((const char *)buf_head(&out))[0], 'P');
	ck_assert_mem_eq((const char *)buf_head(&out) + out.len - 10, "E\0\0\0\x09\0\0\0\0", 10);
	ck_assert_str_eq(settings_applied_name(from, to, 0), "a");
	ck_assert_str_eq(settings_applied_name(from, to, 1), "c");
	ck_assert_str_eq(settings_applied_name(from, to, 2), "d");
	ck_assert_ptr_null(settings_applied_name(from, to, 3));
	buf_fini(&out);
	settings_unref(&from);
	settings_unref(&to);
}
END_TEST

/* "name name": what is set, in order. */
static void
check_order(const struct settings *from, const struct settings *to, const char *want)
{
	char got[512] = "";
	const char *name;

	for (size_t i = 0; (name = settings_applied_name(from, to, i)) != NULL; i++) {
		if (i > 0)
			strcat(got, " "); /* lint: sized for it */
		strcat(got, name);        /* lint: sized for it */
	}
	ck_assert_str_eq(got, want);
}

/* Names and values of the set_config() calls in a run of messages: "name=value name". */
static void
check_calls(const struct buf *b, const char *want)
{
	const uint8_t *p = buf_head(b), *end = p + b->len;
	char got[512] = "";
	size_t n_got = 0;

	while (p < end) {
		uint32_t n = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
		const uint8_t *at = p + 5 + 2 + 2 + 2; /* portal, statement, formats, count */
		int n_values = *p == 'B' ? at[-1] : 0;

		for (int i = 0; i < n_values && i < 2; i++) {
			int32_t len =
				(int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);

			at += 4;
			if (len < 0)
				continue;
			n_got += (size_t)snprintf(got + n_got, sizeof(got) - n_got, "%s%.*s",
			                          i == 1      ? "="
			                          : n_got > 0 ? " "
			                                      : "",
			                          (int)len, (const char *)at);
			at += len;
		}
		p += 1 + n;
	}
	ck_assert_str_eq(got, want);
}

START_TEST(roles_and_time_limits_are_undone_first_and_set_last)
{
	struct settings *plain = with(settings_empty(), "work_mem", "1MB");
	struct settings *roles = with(with(with(settings_empty(), "session_authorization", "a"), "role", "b"),
	                              "statement_timeout", "1s");
	struct settings *other = with(with(settings_empty(), "Role", "c"), "client_encoding", "LATIN1");
	struct settings *same = with(settings_ref(roles), "a", "1");
	struct settings *brief = with(settings_ref(roles), "statement_timeout", "10ms");
	struct settings *waits = with(with(settings_empty(), "lock_timeout", "10ms"), "a", "1");
	struct settings *brief_a = with(settings_ref(brief), "a", "1");

	check_order(plain, roles, "work_mem session_authorization role statement_timeout");
	check_order(roles, plain, "statement_timeout role session_authorization work_mem");
	check_order(roles, other, "statement_timeout role session_authorization client_encoding role");
	check_order(other, plain, "role client_encoding work_mem");
	/* who may set `a` is not known: not with that role */
	check_order(roles, same, "role session_authorization a session_authorization role");
	check_order(same, roles, "role session_authorization a session_authorization role");
	/* and not within a moment */
	check_order(brief, brief_a,
	            "statement_timeout role session_authorization a session_authorization role statement_timeout");
	check_order(roles, brief,
	            "statement_timeout role session_authorization session_authorization role "
	            "statement_timeout");
	check_order(roles, roles, "");
	check_order(plain, waits, "a work_mem lock_timeout");
	check_order(waits, plain, "lock_timeout a work_mem");
	settings_unref(&plain);
	settings_unref(&roles);
	settings_unref(&other);
	settings_unref(&same);
	settings_unref(&brief);
	settings_unref(&brief_a);
	settings_unref(&waits);
}
END_TEST

/* Nobody's statement must run behind settings that could not be applied. */
START_TEST(an_error_can_be_made_to_end_the_connection)
{
	struct settings *from = with(with(settings_empty(), "a", "1"), "b", "2"),
			*to = with(settings_empty(), "b", "3");
	struct buf out;

	buf_init(&out);
	ck_assert_uint_eq(settings_build_apply(&out, from, to, SETTINGS_OR_END), 7);
	check_calls(&out, "exit_on_error=on a b=3");
	buf_fini(&out);
	ck_assert_uint_eq(settings_build_apply(&out, from, to, SETTINGS_TRY), 5);
	check_calls(&out, "a b=3");
	buf_fini(&out);
	settings_unref(&from);
	settings_unref(&to);
}
END_TEST

/* The texts of a run of messages, "set" for the calls of set_config(). */
static void
check_texts(const struct buf *b, const char *want)
{
	const uint8_t *p = buf_head(b), *end = p + b->len;
	char got[512] = "";

	for (uint32_t n; p < end; p += 1 + n) {
		n = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
		if (*p != 'P')
			continue;
		strcat(got, strstr((const char *)p + 6, "set_config") ? "set"
		                                                      : (const char *)p + 6); /* lint: sized for it */
		strcat(got, ";");                                                             /* lint: sized for it */
	}
	ck_assert_str_eq(got, want);
}

/* Whatever fails: what is sent behind is not executed, since the connection or the transaction ends. */
START_TEST(what_is_forgotten_first_ends_the_connection_too)
{
	struct buf out;

	buf_init(&out);
	ck_assert_uint_eq(settings_build_forget(&out, false, false), 0);
	ck_assert_uint_eq(settings_build_forget(&out, true, false), 6);
	check_texts(&out, "set;DISCARD SEQUENCES;");
	check_calls(&out, "exit_on_error=on");
	buf_fini(&out);
	ck_assert_uint_eq(settings_build_forget(&out, true, true), 15);
	ck_assert_uint_eq(settings_build_forgotten(&out), 3);
	check_texts(&out, "BEGIN;set;DISCARD SEQUENCES;RESET ALL;set;COMMIT;");
	buf_fini(&out);
}
END_TEST

UNIT_MAIN("settings", equal_sets_are_one, names_and_values_are_kept_apart, names_compare_without_case, without, apply,
          roles_and_time_limits_are_undone_first_and_set_last, an_error_can_be_made_to_end_the_connection,
          what_is_forgotten_first_ends_the_connection_too)
