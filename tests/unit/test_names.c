/* SPDX-License-Identifier: ISC */
#include "core/statement.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

/* Statements by a number in their text; each call is a reference. */
static struct statement *
statement(int i)
{
	char body[64];
	int n = snprintf(body, sizeof(body), "select %d", i);
	struct settings *none = settings_empty();
	struct statement *st;

	body[n + 1] = body[n + 2] = 0; /* no parameter types */
	st = statement_get(none, 1, (const uint8_t *)body, (size_t)n + 3);
	settings_unref(&none);
	ck_assert_ptr_nonnull(st);
	return st;
}

static void
take(struct names *n, const char *name, int want)
{
	struct statement *got = names_take(n, name), *st = statement(want);

	ck_assert_ptr_eq(got, st);
	statement_unref(&got);
	statement_unref(&st);
}

START_TEST(empty_has_nothing)
{
	struct names *n = NULL;

	ck_assert_ptr_null(names_find(n, "a"));
	ck_assert_ptr_null(names_take(n, "a"));
	ck_assert_ptr_null(names_of(n, "pgweir_1"));
	ck_assert_uint_eq(names_n(n), 0);
	names_free(&n);
}
END_TEST

START_TEST(finds_what_was_added)
{
	struct names *n = NULL;

	ck_assert(names_add(&n, "a", statement(1)));
	ck_assert(names_add(&n, "b", statement(1))); /* two names of one statement */
	ck_assert(names_add(&n, "A", statement(2)));
	ck_assert_ptr_eq(names_find(n, "a"), names_find(n, "b"));
	ck_assert_ptr_ne(names_find(n, "a"), names_find(n, "A"));
	ck_assert_ptr_null(names_find(n, "c"));
	ck_assert_uint_eq(names_n(n), 3);
	take(n, "a", 1);
	ck_assert_ptr_null(names_find(n, "a"));
	ck_assert_ptr_nonnull(names_find(n, "b"));
	ck_assert_uint_eq(names_n(n), 2);
	names_free(&n);
	ck_assert_uint_eq(statement_totals().n_statements, 0);
}
END_TEST

/* As in the server: what differs behind the 63rd byte is the same name. */
START_TEST(compares_63_bytes)
{
	char a[80], b[80], c[80];
	struct names *n = NULL;

	memset(a, 'x', sizeof(a));
	memcpy(b, a, sizeof(a));
	memcpy(c, a, sizeof(a));
	a[63] = '\0';
	b[64] = '\0';
	c[62] = '\0';
	ck_assert(names_are_same(a, b));
	ck_assert(!names_are_same(a, c));
	ck_assert(names_add(&n, b, statement(1)));
	ck_assert_ptr_nonnull(names_find(n, a));
	ck_assert_ptr_null(names_find(n, c));
	ck_assert_str_eq(names_of(n, statement_server_name(names_find(n, a))),
	                 b); /* but it is written as it was given */
	take(n, a, 1);
	names_free(&n);
}
END_TEST

/* Removing keeps the rest to be found, however the table is filled. */
START_TEST(takes_in_any_order)
{
	enum { N = 500 };
	struct names *n = NULL;
	bool in[N] = {false};
	unsigned seed = 1;
	char name[16];

	for (int round = 0; round < 20000; round++) {
		int i;

		seed = seed * 1103515245u + 12345u;
		i = (int)(seed >> 16) % N;
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(names_find(n, name) != NULL, in[i]);
		if (in[i])
			take(n, name, i);
		else
			ck_assert(names_add(&n, name, statement(i)));
		in[i] = !in[i];
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(names_find(n, name) != NULL, in[i]);
	}
	names_free(&n);
	ck_assert_ptr_null(n);
	ck_assert_uint_eq(statement_totals().n_statements, 0);
}
END_TEST

UNIT_MAIN("names", empty_has_nothing, finds_what_was_added, compares_63_bytes, takes_in_any_order)
