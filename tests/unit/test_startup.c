/* SPDX-License-Identifier: ISC */
#include "wire/startup.h"

#include <stdio.h>
#include <string.h>

#include "wire/build.h"
#include "wire/pgmsg.h"

#include "unit.h"

#define LAYOUT "invalid startup packet layout: expected terminator as last byte"
#define LENGTH "invalid length of startup packet"
#define BYTES(literal) (literal), sizeof(literal) - 1

/* The status and texts of junk are those that PostgreSQL 15 gave for the same bytes. */
START_TEST(judges_whole_packets)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum status status;
		enum startup_kind kind;
		const char *why;
	} cases[] = {
		{BYTES(""), STATUS_MORE, 0, NULL},
		{BYTES("\0"), STATUS_MORE, 0, NULL},
		{BYTES("\0\0\0"), STATUS_MORE, 0, NULL},
		{BYTES("\0\0\0\10"), STATUS_MORE, 0, NULL},
		{BYTES("\0\0\0\10\4\322\26"), STATUS_MORE, 0, NULL},
		{BYTES("\0\0\0\0"), STATUS_BAD, 0, LENGTH},
		{BYTES("\0\0\0\7"), STATUS_BAD, 0, LENGTH},
		{BYTES("\0\0\47\24"), STATUS_MORE, 0, NULL},
		{BYTES("\0\0\47\25"), STATUS_TOO_BIG, 0, LENGTH},
		{BYTES("\377\377\377\377"), STATUS_TOO_BIG, 0, LENGTH},
		{BYTES("GET / HTTP/1.0\r\n"), STATUS_TOO_BIG, 0, LENGTH},
		{BYTES("\26"), STATUS_OK, STARTUP_TLS_HELLO, NULL},
		{BYTES("\26\3\1\2\0\1"), STATUS_OK, STARTUP_TLS_HELLO, NULL},
		{BYTES("\0\0\0\10\4\322\26\57"), STATUS_OK, STARTUP_SSL, NULL},
		{BYTES("\0\0\0\13\4\322\26\57abc"), STATUS_OK, STARTUP_SSL, NULL},
		{BYTES("\0\0\0\10\4\322\26\60"), STATUS_OK, STARTUP_GSSENC, NULL},
		{BYTES("\0\0\0\20\4\322\26\56\0\0\0\1\0\0\0\2"), STATUS_OK, STARTUP_CANCEL, NULL},
		{BYTES("\0\0\0\21\4\322\26\56\0\0\0\1\0\0\0\2x"), STATUS_OK, STARTUP_CANCEL, NULL},
		{BYTES("\0\0\0\17\4\322\26\56\0\0\0\1\0\0\0"), STATUS_BAD, 0, LENGTH},
		{BYTES("\0\0\0\10\4\322\26\56"), STATUS_BAD, 0, LENGTH},
		{BYTES("\0\0\0\20\0\3\0\0user\0u\0\0"), STATUS_OK, STARTUP_LOGIN, NULL},
		{BYTES("\0\0\0\11\0\3\0\0\0"), STATUS_OK, STARTUP_LOGIN, NULL}, /* no user: for the session to say */
		{BYTES("\0\0\0\10\0\3\0\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\17\0\3\0\0user\0u\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\15\0\3\0\0user\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\16\0\3\0\0user\0\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\14\0\3\0\0user"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\16\0\3\0\0user\0u"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\21\0\3\0\0user\0u\0\0\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\21\0\3\0\0user\0u\0\0x"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\21\0\3\0\0\0user\0u\0\0"), STATUS_BAD, 0, LAYOUT},
		{BYTES("\0\0\0\10\0\2\0\0"), STATUS_REFUSED, 0,
	         "unsupported frontend protocol 2.0: server supports 3.0 to 3.2"},
		{BYTES("\0\0\0\10\0\4\0\7"), STATUS_REFUSED, 0,
	         "unsupported frontend protocol 4.7: server supports 3.0 to 3.2"},
		{BYTES("\0\0\0\10\4\322\26\54"), STATUS_REFUSED, 0,
	         "unsupported frontend protocol 1234.5676: server supports 3.0 to 3.2"},
		{BYTES("\0\0\0\10\377\377\377\377"), STATUS_REFUSED, 0,
	         "unsupported frontend protocol 65535.65535: server supports 3.0 to 3.2"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct startup_packet sp;
		const char *why = NULL;
		size_t n = cases[i].n;
		uint8_t *copy = malloc(n == 0 ? 1 : n); /* exact size, for AddressSanitizer */
		memcpy(copy, cases[i].bytes, n);
		enum status status = startup_parse(copy, n, &sp, &why);
		ck_assert_msg(status == cases[i].status, "case %zu: status %d", i, status);
		if (status == STATUS_OK) {
			ck_assert_msg(sp.kind == cases[i].kind, "case %zu: kind %d", i, sp.kind);
			ck_assert_uint_eq(sp.len, sp.kind == STARTUP_TLS_HELLO ? 0 : n);
		} else if (cases[i].why != NULL) {
			ck_assert_str_eq(why, cases[i].why);
		}
		free(copy);
	}
}
END_TEST

START_TEST(takes_the_first_packet_of_a_run)
{
	static const char run[] = "\0\0\0\20\0\3\0\0user\0u\0\0Q\0\0\0\5";
	struct startup_packet sp;
	const char *why;
	for (size_t n = 0; n < 16; n++)
		ck_assert_int_eq(startup_parse((const uint8_t *)run, n, &sp, &why), STATUS_MORE);
	for (size_t n = 16; n < sizeof(run); n++) {
		ck_assert_int_eq(startup_parse((const uint8_t *)run, n, &sp, &why), STATUS_OK);
		ck_assert_uint_eq(sp.len, 16);
	}
}
END_TEST

START_TEST(takes_the_largest_packet_and_no_larger)
{
	static char value[STARTUP_MAX];
	struct buf b;
	for (size_t extra = 0; extra < 2; extra++) {
		/* 8 bytes of head, "user" "x" "a", the value's terminator and the packet's */
		memset(value, 'v', sizeof(value));
		value[STARTUP_MAX - 8 - 5 - 2 - 2 - 2 + extra] = 0;
		const char *const pairs[] = {"user", "x", "a", value, NULL};
		struct startup_packet sp;
		const char *why;
		buf_init(&b);
		build_startup(&b, PROTO_3_0, pairs);
		ck_assert_uint_eq(b.len, STARTUP_MAX + extra);
		ck_assert_int_eq(startup_parse(buf_head(&b), b.len, &sp, &why),
		                 extra == 0 ? STATUS_OK : STATUS_TOO_BIG);
		buf_fini(&b);
	}
}
END_TEST

START_TEST(reads_cancel_keys_of_both_protocols)
{
	static const struct {
		size_t n;
		enum status status;
	} cases[] = {{3, STATUS_BAD}, {4, STATUS_OK}, {32, STATUS_OK}, {256, STATUS_OK}, {257, STATUS_BAD}};
	uint8_t secret[257] = {1, 2, 3};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct startup_packet sp;
		const char *why = NULL;
		struct buf b;
		buf_init(&b);
		build_cancel(&b, 0xdeadbeef, secret, cases[i].n);
		ck_assert_int_eq(startup_parse(buf_head(&b), b.len, &sp, &why), cases[i].status);
		if (cases[i].status == STATUS_OK) {
			ck_assert_uint_eq(sp.cancel_pid, 0xdeadbeef);
			ck_assert_uint_eq(sp.cancel_secret_len, cases[i].n);
			ck_assert_mem_eq(sp.cancel_secret, secret, cases[i].n);
		}
		buf_fini(&b);
	}
}
END_TEST

static struct startup_packet
login_packet(struct buf *b, uint32_t protocol, const char *const *pairs)
{
	struct startup_packet sp;
	const char *why = "";
	buf_init(b);
	build_startup(b, protocol, pairs);
	ck_assert_int_eq(startup_parse(buf_head(b), b->len, &sp, &why), STATUS_OK);
	return sp;
}

START_TEST(walks_parameters)
{
	static const char *const pairs[] = {"user", "joe", "application_name", "", "DateStyle", "ISO", "user",
	                                    "jim",  NULL};
	struct buf b;
	struct startup_packet sp = login_packet(&b, PROTO_3_0, pairs);
	struct startup_param param;
	const char *cursor = NULL;
	size_t i = 0;
	for (; startup_next_param(&sp, &cursor, &param); i += 2) {
		ck_assert_str_eq(param.name, pairs[i]);
		ck_assert_str_eq(param.value, pairs[i + 1]);
	}
	ck_assert_uint_eq(i, 8);
	ck_assert(!startup_next_param(&sp, &cursor, &param));
	buf_fini(&b);

	static const char *const none[] = {NULL};
	sp = login_packet(&b, PROTO_3_0, none);
	cursor = NULL;
	ck_assert(!startup_next_param(&sp, &cursor, &param));
	buf_fini(&b);
}
END_TEST

START_TEST(negotiates_versions)
{
	static const char *const plain[] = {"user", "u", NULL};
	static const char *const with_option[] = {"user", "u", "_pq_.x", "1", NULL};
	static const char *const lookalike[] = {"user", "u", "_pq_x", "1", "x_pq_.", "", NULL};
	static const struct {
		uint32_t protocol;
		const char *const *pairs;
		uint32_t minor;
		bool must_negotiate;
	} cases[] = {
		{0x30000, plain, 0, false},      {0x30001, plain, 0, true},       {0x30002, plain, 2, false},
		{0x30003, plain, 2, true},       {0x3270f, plain, 2, true},       {0x3ffff, plain, 2, true},
		{0x30000, with_option, 0, true}, {0x30002, with_option, 2, true}, {0x30000, lookalike, 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b;
		struct startup_packet sp = login_packet(&b, cases[i].protocol, cases[i].pairs);
		bool must_negotiate;
		ck_assert_uint_eq(startup_negotiate(&sp, &must_negotiate), cases[i].minor);
		ck_assert_msg(must_negotiate == cases[i].must_negotiate, "case %zu", i);
		buf_fini(&b);
	}
}
END_TEST

UNIT_MAIN("startup", judges_whole_packets, takes_the_first_packet_of_a_run, takes_the_largest_packet_and_no_larger,
          reads_cancel_keys_of_both_protocols, walks_parameters, negotiates_versions)
