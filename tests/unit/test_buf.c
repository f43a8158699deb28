/* SPDX-License-Identifier: ISC */
#include "base/buf.h"

#include <string.h>

#include "unit.h"

static void
assert_holds(const struct buf *b, const char *text)
{
	ck_assert_uint_eq(b->len, strlen(text));
	ck_assert_mem_eq(buf_head(b), text, b->len);
}

START_TEST(owns_nothing_when_empty)
{
	struct buf b;
	buf_init(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_ptr_null(buf_head(&b));
	buf_append(&b, "", 0);
	ck_assert_ptr_null(b.data);
	buf_fini(&b);
	buf_fini(&b);
}
END_TEST

START_TEST(appends_in_network_order)
{
	struct buf b;
	buf_init(&b);
	buf_append_u8(&b, 0x01);
	buf_append_u16(&b, 0x0203);
	buf_append_u32(&b, 0x04050607);
	buf_append_str(&b, "ab");
	static const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 'a', 'b'};
	ck_assert_uint_eq(b.len, sizeof(want));
	ck_assert_mem_eq(buf_head(&b), want, sizeof(want));
	ck_assert(!b.failed);
	buf_fini(&b);
}
END_TEST

START_TEST(prints_without_terminator)
{
	struct buf b;
	char long_text[1000];
	memset(long_text, 'x', sizeof(long_text));
	long_text[999] = '\0';
	buf_init(&b);
	buf_printf(&b, "%d-%s", 42, "end");
	assert_holds(&b, "42-end");
	buf_printf(&b, "%s", long_text); /* more than the first allocation */
	ck_assert_uint_eq(b.len, 6 + 999);
	buf_consume(&b, 6);
	assert_holds(&b, long_text);
	buf_printf(&b, "%s", "");
	ck_assert_uint_eq(b.len, 999);
	buf_fini(&b);
}
END_TEST

/* The contents are a running count, so a byte lost or doubled at any growth or move shows. */
START_TEST(keeps_bytes_over_growth_and_moves)
{
	struct buf b;
	uint32_t in = 0, out = 0;
	int n_wrong = 0;
	buf_init(&b);
	for (int round = 1; round < 2000; round++) {
		for (int i = 0; i < round % 37; i++)
			buf_append_u8(&b, (uint8_t)in++);
		for (int i = 0; i < round % 31 && b.len > 0; i++) {
			n_wrong += *buf_head(&b) != (uint8_t)out++;
			buf_consume(&b, 1);
		}
	}
	ck_assert_uint_eq(b.len, in - out);
	for (; b.len > 0; buf_consume(&b, 1))
		n_wrong += *buf_head(&b) != (uint8_t)out++;
	ck_assert_int_eq(n_wrong, 0);
	ck_assert_uint_eq(in, out);
	buf_fini(&b);
}
END_TEST

START_TEST(steady_queue_does_not_grow)
{
	struct buf b;
	buf_init(&b);
	buf_append_str(&b, "0123456789");
	for (int i = 0; i < 100000; i++) {
		buf_append_str(&b, "0123456789");
		buf_consume(&b, 10);
	}
	ck_assert_uint_le(b.cap, 1024);
	assert_holds(&b, "0123456789");
	buf_fini(&b);
}
END_TEST

START_TEST(consuming_everything_rewinds)
{
	struct buf b;
	buf_init(&b);
	buf_append_str(&b, "abc");
	buf_consume(&b, 2);
	assert_holds(&b, "c");
	buf_consume(&b, 1);
	ck_assert_uint_eq(b.off, 0);
	ck_assert_uint_eq(b.len, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(reserve_then_commit)
{
	struct buf b;
	buf_init(&b);
	ck_assert_ptr_nonnull(buf_reserve(&b, 0));
	uint8_t *end = buf_reserve(&b, 300);
	ck_assert_ptr_nonnull(end);
	memcpy(end, "xyz", 3);
	ck_assert_uint_eq(b.len, 0);
	buf_commit(&b, 3);
	assert_holds(&b, "xyz");
	buf_fini(&b);
}
END_TEST

START_TEST(over_the_cap_fails_and_sticks)
{
	struct buf b;
	buf_init(&b);
	buf_append_str(&b, "kept");
	ck_assert_ptr_null(buf_reserve(&b, BUF_MAX));
	ck_assert(b.failed);
	buf_append_str(&b, "lost");
	buf_printf(&b, "lost");
	ck_assert_ptr_null(buf_reserve(&b, 1));
	assert_holds(&b, "kept");
	ck_assert_ptr_null(buf_reserve(&b, SIZE_MAX));
	buf_reset(&b);
	ck_assert(!b.failed);
	buf_append_str(&b, "again");
	assert_holds(&b, "again");
	buf_fini(&b);
}
END_TEST

START_TEST(reset_keeps_small_and_frees_large)
{
	struct buf b;
	buf_init(&b);
	buf_append_str(&b, "small");
	uint8_t *before = b.data;
	buf_reset(&b);
	ck_assert_ptr_eq(b.data, before);
	ck_assert_uint_eq(b.len, 0);
	buf_reserve(&b, 5000);
	buf_reset(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_uint_eq(b.cap, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(wipe_frees)
{
	struct buf b;
	buf_init(&b);
	buf_wipe(&b);
	buf_append_str(&b, "password");
	buf_consume(&b, 3);
	buf_wipe(&b);
	ck_assert_ptr_null(b.data);
}
END_TEST

UNIT_MAIN("buf", owns_nothing_when_empty, appends_in_network_order, prints_without_terminator,
          keeps_bytes_over_growth_and_moves, steady_queue_does_not_grow, consuming_everything_rewinds,
          reserve_then_commit, over_the_cap_fails_and_sticks, reset_keeps_small_and_frees_large, wipe_frees)
