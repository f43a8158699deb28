/* SPDX-License-Identifier: ISC */
#include "core/statement.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct statement *
get(struct settings *settings, const char *body, size_t n)
{
	struct statement *st = statement_get(settings, 1, (const uint8_t *)body, n);

	ck_assert_ptr_nonnull(st);
	return st;
}

#define GET(settings, body) get(settings, body, sizeof(body) - 1)

START_TEST(equal_ones_are_one)
{
	struct settings *none = settings_empty();
	struct statement *a = GET(none, "select 1\0\0\0"), *b = GET(none, "select 1\0\0\0");
	struct statement *typed = GET(none, "select 1\0\0\1\0\0\0\x17"), *other = GET(none, "select 2\0\0\0");
	size_t n;

	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, typed);
	ck_assert_ptr_ne(a, other);
	ck_assert_uint_eq(statement_totals().n_statements, 3);
	ck_assert_mem_eq(statement_body(typed, &n), "select 1\0\0\1\0\0\0\x17", 15);
	ck_assert_uint_eq(n, 15);
	statement_unref(&a);
	ck_assert_ptr_null(a);
	ck_assert_uint_eq(statement_totals().n_statements, 3);
	statement_unref(&b);
	statement_unref(&typed);
	statement_unref(&other);
	statement_unref(&other); /* a no-op */
	ck_assert_uint_eq(statement_totals().n_statements, 0);
	ck_assert_uint_eq(statement_totals().n_bytes, 0);
	settings_unref(&none);
}
END_TEST

START_TEST(settings_tell_them_apart)
{
	struct settings *none = settings_empty(), *path = settings_with(none, "search_path", "s1");
	struct settings *same = settings_with(none, "search_path", "s1");
	struct statement *a = GET(none, "select 1\0\0\0"), *b = GET(path, "select 1\0\0\0"),
			 *c = GET(same, "select 1\0\0\0");

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(b, c);
	settings_unref(&none);
	settings_unref(&path);
	settings_unref(&same); /* the statements hold what they need */
	statement_unref(&a);
	statement_unref(&b);
	statement_unref(&c);
}
END_TEST

/* A number is never used again: on some backend its name may still mean the old statement. */
START_TEST(names_on_servers_are_not_used_again)
{
	struct settings *none = settings_empty();
	struct statement *a = GET(none, "select 1\0\0\0"), *b;
	char first[64];

	snprintf(first, sizeof(first), "%s", statement_server_name(a));
	ck_assert_int_eq(strncmp(first, STATEMENT_PREFIX, strlen(STATEMENT_PREFIX)), 0);
	ck_assert_str_ne(first, STATEMENT_PREFIX "0");
	statement_unref(&a);
	b = GET(none, "select 1\0\0\0");
	ck_assert_str_ne(first, statement_server_name(b));
	statement_unref(&b);
	settings_unref(&none);
}
END_TEST

START_TEST(large_ones_are_of_their_own)
{
	struct statement *a = statement_new_large(), *b = statement_new_large();
	size_t n = 7;

	ck_assert(statement_is_large(a));
	ck_assert_str_ne(statement_server_name(a), statement_server_name(b));
	(void)statement_body(a, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(statement_totals().n_statements, 0);
	statement_unref(&a);
	statement_unref(&b);
}
END_TEST

static void *
get_and_drop(void *arg)
{
	struct settings *none = settings_empty();

	for (int i = 0; i < 20000; i++) {
		char body[32];
		int n = snprintf(body, sizeof(body), "select %d", i % 7) + 1;
		struct statement *st = statement_get(none, 1, (const uint8_t *)body, (size_t)n),
				 *again = statement_ref(st);

		statement_unref(&st);
		statement_unref(&again);
	}
	settings_unref(&none);
	return arg;
}

START_TEST(threads_share_the_table)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, get_and_drop, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(statement_totals().n_statements, 0);
	ck_assert_uint_eq(statement_totals().n_bytes, 0);
}
END_TEST

START_TEST(a_new_generation_tells_them_apart)
{
	struct settings *none = settings_empty();
	uint64_t first = statement_new_generation(), second = statement_new_generation();
	struct statement *a = statement_get(none, first, (const uint8_t *)"x", 1),
			 *b = statement_get(none, second, (const uint8_t *)"x", 1),
			 *c = statement_get(none, first, (const uint8_t *)"x", 1);

	ck_assert_uint_ne(first, second);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(a, c);
	statement_unref(&a);
	statement_unref(&b);
	statement_unref(&c);
	settings_unref(&none);
}
END_TEST

/* Other sessions go by it already. */
START_TEST(the_first_description_stays)
{
	struct settings *none = settings_empty();
	struct statement *st = GET(none, "select 1");
	struct description *first = description_new((const uint8_t *)"\0\0", 2, NULL, 0);

	ck_assert_ptr_null(statement_described(st));
	statement_set_described(st, first);
	statement_set_described(st, description_new((const uint8_t *)"\0\0", 2, NULL, 0));
	ck_assert_ptr_eq(statement_described(st), first);
	statement_unref(&st);
	settings_unref(&none);
}
END_TEST

UNIT_MAIN("statement", a_new_generation_tells_them_apart, the_first_description_stays, equal_ones_are_one,
          settings_tell_them_apart, names_on_servers_are_not_used_again, large_ones_are_of_their_own,
          threads_share_the_table)
