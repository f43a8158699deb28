/* SPDX-License-Identifier: ISC */
#include "core/description.h"

#include "unit.h"

#define TYPES(s) (const uint8_t *)(s), sizeof(s) - 1
#define INT4 "\0\0\0\x17"
#define TEXT "\0\0\0\x19"
/* name, table and column, type, length, modifier, format */
#define COLUMN(name, table, type, modifier) name "\0" table "\0\1" type "\0\4" modifier "\0\0"

static struct description *
describe(const char *row, size_t n)
{
	struct description *d = description_new(TYPES("\0\1" INT4), (const uint8_t *)row, n);

	ck_assert_ptr_nonnull(d);
	return d;
}

static bool
is_same(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct description *x = describe(a, n_a), *y = describe(b, n_b);
	bool same = description_has_same_result(x, y);

	ck_assert(description_has_same_result(y, x) == same);
	description_free(&x);
	description_free(&y);
	ck_assert_ptr_null(x);
	return same;
}

#define SAME(a, b) is_same(a, sizeof(a) - 1, b, sizeof(b) - 1)

START_TEST(compares_names_types_and_modifiers)
{
	ck_assert(SAME("\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff"),
	               "\0\1" COLUMN("i", "\0\0\2\2", INT4, "\xff\xff\xff\xff")));
	ck_assert(!SAME("\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff"),
	                "\0\1" COLUMN("j", "\0\0\1\1", INT4, "\xff\xff\xff\xff")));
	ck_assert(!SAME("\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff"),
	                "\0\1" COLUMN("i", "\0\0\1\1", TEXT, "\xff\xff\xff\xff")));
	ck_assert(!SAME("\0\1" COLUMN("i", "\0\0\1\1", TEXT, "\xff\xff\xff\xff"),
	                "\0\1" COLUMN("i", "\0\0\1\1", TEXT, "\0\0\0\x08")));
	ck_assert(!SAME("\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff"),
	                "\0\2" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff")
	                        COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff")));
}
END_TEST

START_TEST(no_result_is_one_of_its_own)
{
	struct description *none = description_new(TYPES("\0\0"), NULL, 0), *other, *empty;

	other = describe("\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff"), 22);
	empty = describe("\0\0", 2); /* a result without columns */
	ck_assert(description_has_same_result(none, none));
	ck_assert(!description_has_same_result(none, other));
	ck_assert(!description_has_same_result(none, empty));
	description_free(&none);
	description_free(&other);
	description_free(&empty);
}
END_TEST

START_TEST(keeps_the_types)
{
	struct description *d = description_new(TYPES("\0\2" INT4 TEXT), NULL, 0);
	size_t n;

	ck_assert_mem_eq(description_types(d, &n), "\0\2" INT4 TEXT, 10);
	ck_assert_uint_eq(n, 10);
	description_free(&d);
	description_free(&d);
}
END_TEST

START_TEST(malformed_is_none)
{
	static const char row[] = "\0\1" COLUMN("i", "\0\0\1\1", INT4, "\xff\xff\xff\xff");

	ck_assert_ptr_null(description_new(TYPES(""), NULL, 0));
	ck_assert_ptr_null(description_new(TYPES("\0"), NULL, 0));
	ck_assert_ptr_null(description_new(TYPES("\0\2" INT4), NULL, 0));
	ck_assert_ptr_null(description_new(TYPES("\0\0" INT4), NULL, 0));
	for (size_t n = 0; n < sizeof(row) - 1; n++)
		ck_assert_ptr_null(description_new(TYPES("\0\0"), (const uint8_t *)row, n));
	ck_assert_ptr_null(description_new(TYPES("\0\0"), (const uint8_t *)row, sizeof(row)));
}
END_TEST

UNIT_MAIN("description", compares_names_types_and_modifiers, no_result_is_one_of_its_own, keeps_the_types,
          malformed_is_none)
