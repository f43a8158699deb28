/* SPDX-License-Identifier: ISC */
#include "ops/admin_reply.h"

#include "unit.h"

#include <string.h>

static const struct reply_column columns[] = {{"a", REPLY_TEXT}, {"b", REPLY_INT4}};

static void
check_bytes(struct buf *b, const char *want, size_t n)
{
	ck_assert(!b->failed);
	ck_assert_uint_eq(b->len, n);
	ck_assert_mem_eq(buf_head(b), want, n);
	buf_fini(b);
}

START_TEST(rows_end_with_their_last_value)
{
	static const char want[] = "T\0\0\0\x2e\0\2"
				   "a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
				   "b\0\0\0\0\0\0\0\0\0\0\x17\0\4\xff\xff\xff\xff\0\0"
				   "D\0\0\0\x12\0\2\0\0\0\2xy\0\0\0\2-7"
				   "D\0\0\0\x0f\0\2\xff\xff\xff\xff\0\0\0\1"
				   "8"
				   "C\0\0\0\x09SHOW";
	struct buf b;
	struct reply r;

	buf_init(&b);
	REPLY_BEGIN(&r, &b, columns);
	reply_text(&r, "xy");
	reply_int(&r, -7);
	reply_text(&r, NULL);
	reply_uint(&r, 8);
	reply_end(&r);
	check_bytes(&b, want, sizeof(want));
}
END_TEST

START_TEST(an_empty_result_has_columns)
{
	struct buf b;
	struct reply r;

	buf_init(&b);
	REPLY_BEGIN(&r, &b, columns);
	reply_end(&r);
	ck_assert_uint_eq(b.len, 0x2e + 1 + 10);
	buf_fini(&b);
}
END_TEST

START_TEST(long_values_go_whole_as_text)
{
	static char text[100000];
	struct buf b;
	struct reply r;

	memset(text, 'x', sizeof(text) - 1);
	buf_init(&b);
	REPLY_BEGIN(&r, &b, columns);
	reply_text(&r, text);
	reply_int(&r, 1);
	reply_end(&r);
	ck_assert(!b.failed);
	ck_assert_uint_gt(b.len, sizeof(text));
	buf_fini(&b);
}
END_TEST

START_TEST(errors_are_errors)
{
	static const char want[] = "E\0\0\0\x27SERROR\0VERROR\0C08P01\0Mno such 'x'\0";
	struct buf b;

	buf_init(&b);
	reply_error(&b, "08P01", "no such '%s'", "x");
	check_bytes(&b, want, sizeof(want));
}
END_TEST

UNIT_MAIN("admin_reply", rows_end_with_their_last_value, an_empty_result_has_columns, long_values_go_whole_as_text,
          errors_are_errors)
