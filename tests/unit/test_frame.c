/* SPDX-License-Identifier: ISC */
#include "wire/frame.h"

#include <string.h>

#include "unit.h"

START_TEST(asks_for_a_whole_header)
{
	static const uint8_t sync[] = {'S', 0, 0, 0, 4};
	struct frame f;
	for (size_t n = 0; n < sizeof(sync); n++)
		ck_assert_int_eq(frame_next(sync, n, &f), STATUS_MORE);
	ck_assert_int_eq(frame_next(sync, sizeof(sync), &f), STATUS_OK);
	ck_assert_int_eq(f.type, 'S');
	ck_assert_uint_eq(f.len, 5);
	ck_assert_uint_eq(f.avail, 5);
}
END_TEST

START_TEST(tells_how_much_of_a_message_is_there)
{
	static const struct {
		size_t n;
		uint32_t avail;
	} cases[] = {{5, 5}, {6, 6}, {10, 10}, {11, 11}, {12, 11}, {16, 11}};
	/* a Query of 11 bytes and the head of a second one */
	static const uint8_t bytes[] = {'Q', 0, 0, 0, 10, 'S', 'E', 'L', 'E', 'C', 0, 'Q', 0, 0, 0, 10};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame f;
		ck_assert_int_eq(frame_next(bytes, cases[i].n, &f), STATUS_OK);
		ck_assert_int_eq(f.type, 'Q');
		ck_assert_uint_eq(f.len, 11);
		ck_assert_uint_eq(f.avail, cases[i].avail);
	}
}
END_TEST

START_TEST(judges_lengths)
{
	static const struct {
		uint32_t field;
		enum status status;
	} cases[] = {
		{0, STATUS_BAD},          {3, STATUS_BAD},          {4, STATUS_OK},           {5, STATUS_OK},
		{10000, STATUS_OK},       {0x3ffffffe, STATUS_OK},  {0x40000002, STATUS_OK},  {0x40000003, STATUS_BAD},
		{0x7fffffff, STATUS_BAD}, {0x80000000, STATUS_BAD}, {0xffffffff, STATUS_BAD},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t v = cases[i].field;
		const uint8_t bytes[] = {'D', (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
		struct frame f = {0};
		ck_assert_int_eq(frame_next(bytes, sizeof(bytes), &f), cases[i].status);
		ck_assert_int_eq(f.type, 'D');
		if (cases[i].status == STATUS_OK) {
			ck_assert_uint_eq(f.len, v + 1);
			ck_assert_uint_eq(f.avail, 5);
		}
	}
}
END_TEST

/* As the server's SocketBackend: large, small, or not known at all. */
START_TEST(limits_clients_by_type)
{
	static const char large[] = "QFPBd";
	static const char small[] = "CDEHSXcf";
	for (int c = 0; c < 256; c++) {
		uint32_t want = 0;
		if (c != 0 && strchr(large, c) != NULL)
			want = 0x3ffffffe;
		else if (c != 0 && strchr(small, c) != NULL)
			want = 10000;
		ck_assert_msg(frame_client_limit((char)c) == want, "type %d", c);
	}
}
END_TEST

START_TEST(reads_network_order)
{
	static const uint8_t bytes[] = {0xfe, 0xdc, 0xba, 0x98};
	ck_assert_uint_eq(frame_get_u32(bytes), 0xfedcba98);
	ck_assert_uint_eq(frame_get_u16(bytes), 0xfedc);
}
END_TEST

UNIT_MAIN("frame", asks_for_a_whole_header, tells_how_much_of_a_message_is_there, judges_lengths,
          limits_clients_by_type, reads_network_order)
