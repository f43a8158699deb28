/* SPDX-License-Identifier: ISC */
#include "base/secret.h"

#include <string.h>

#include "unit.h"

START_TEST(sets_replaces_and_forgets)
{
	struct secret s = {0};
	ck_assert(!secret_is_set(&s));
	ck_assert(secret_set(&s, "first and more", 5));
	ck_assert(secret_is_set(&s));
	ck_assert_str_eq(s.text, "first");
	ck_assert_uint_eq(s.len, 5);
	ck_assert(secret_set(&s, s.text + 2, 3)); /* part of itself */
	ck_assert_str_eq(s.text, "rst");
	ck_assert(secret_set(&s, "", 0));
	ck_assert(secret_is_set(&s));
	ck_assert_uint_eq(s.len, 0);
	secret_fini(&s);
	ck_assert(!secret_is_set(&s));
	secret_fini(&s);
}
END_TEST

START_TEST(keeps_bytes_after_a_zero)
{
	struct secret s = {0};
	ck_assert(secret_set(&s, "a\0b", 3));
	ck_assert_mem_eq(s.text, "a\0b", 4);
	secret_fini(&s);
}
END_TEST

START_TEST(wipes)
{
	char bytes[16] = "0123456789abcde";
	static const char zero[16];
	secret_wipe_bytes(bytes + 1, 14);
	ck_assert_int_eq(bytes[0], '0');
	ck_assert_mem_eq(bytes + 1, zero, 14);
	secret_wipe_bytes(NULL, 0);
}
END_TEST

START_TEST(compares_length_and_every_byte)
{
	char a[64], b[64];
	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	ck_assert(secret_equal(a, 64, b, 64));
	for (int i = 0; i < 64; i++) {
		b[i] ^= 0x10;
		ck_assert(!secret_equal(a, 64, b, 64));
		b[i] ^= 0x10;
	}
	ck_assert(!secret_equal(a, 63, b, 64));
	ck_assert(!secret_equal(a, 64, b, 63));
	ck_assert(!secret_equal(a, 0, b, 1));
	ck_assert(!secret_equal(a, 1, b, 0));
	ck_assert(secret_equal(a, 0, b, 0));
	ck_assert(secret_equal(NULL, 0, NULL, 0));
}
END_TEST

UNIT_MAIN("secret", sets_replaces_and_forgets, keeps_bytes_after_a_zero, wipes, compares_length_and_every_byte)
