/* SPDX-License-Identifier: ISC */
#include "wire/parse.h"

#include <string.h>

#include "wire/pgmsg.h"

#include "unit.h"

#define BODY(literal) (const uint8_t *)(literal), sizeof(literal) - 1

/* A parser must refuse every shorter and the one-byte-longer body, wherever it ends. On the heap, for AddressSanitizer. */
#define refuses_cuts(parse_call, literal, longer_too)                                                                  \
	do {                                                                                                           \
		size_t whole = sizeof(literal) - 1;                                                                    \
		for (size_t n = 0; n <= whole + 1; n++) {                                                              \
			uint8_t *body = malloc(n == 0 ? 1 : n);                                                        \
			memcpy(body, literal, n < whole ? n : whole);                                                  \
			if (n > whole)                                                                                 \
				body[whole] = 'x';                                                                     \
			bool good = n == whole || (n > whole && !(longer_too));                                        \
			ck_assert_msg(((parse_call) == STATUS_OK) == good, "%zu of %zu bytes", n, whole);              \
			free(body);                                                                                    \
		}                                                                                                      \
	} while (0)

START_TEST(cursor_stops_at_the_first_bad_read)
{
	static const uint8_t bytes[] = {1, 0, 2, 0, 0, 0, 3, 'a', 0, 9, 9};
	struct reader r;
	reader_init(&r, bytes, sizeof(bytes));
	ck_assert_uint_eq(reader_u8(&r), 1);
	ck_assert_uint_eq(reader_u16(&r), 2);
	ck_assert_uint_eq(reader_u32(&r), 3);
	ck_assert_str_eq(reader_str(&r), "a");
	ck_assert(!r.bad);
	ck_assert_uint_eq(reader_u32(&r), 0);
	ck_assert(r.bad);
	ck_assert_uint_eq(reader_u8(&r), 0); /* would have fitted */
	ck_assert_str_eq(reader_str(&r), "");
	ck_assert_ptr_null(reader_bytes(&r, 0));

	reader_init(&r, bytes + 9, 2); /* no terminator */
	ck_assert_str_eq(reader_str(&r), "");
	ck_assert(r.bad);
	reader_init(&r, NULL, 0);
	ck_assert_str_eq(reader_str(&r), "");
	ck_assert(r.bad);
}
END_TEST

START_TEST(reads_errors)
{
	struct error_fields e;
	ck_assert_int_eq(parse_error(BODY("SFATAL2\0VFATAL\0C57P01\0Mgone\0Dd\0Hh\0Fx.c\0L1\0\0"), &e), STATUS_OK);
	ck_assert_str_eq(e.severity, "FATAL");
	ck_assert_str_eq(e.sqlstate, "57P01");
	ck_assert_str_eq(e.message, "gone");
	ck_assert_str_eq(e.detail, "d");
	ck_assert_str_eq(e.hint, "h");
	ck_assert_int_eq(parse_error(BODY("VFATAL\0SFATAL2\0\0"), &e), STATUS_OK); /* V wins in any order */
	ck_assert_str_eq(e.severity, "FATAL");
	ck_assert_int_eq(parse_error(BODY("SPANIK\0Mx\0\0"), &e), STATUS_OK); /* before 9.6 there was no V */
	ck_assert_str_eq(e.severity, "PANIK");
	ck_assert_ptr_null(e.sqlstate);
	ck_assert_ptr_null(e.detail);
	ck_assert_ptr_null(e.hint);
	ck_assert_int_eq(parse_error(BODY("\0"), &e), STATUS_OK);
	ck_assert_ptr_null(e.severity);
	ck_assert_ptr_null(e.message);
	refuses_cuts(parse_error(body, n, &e), "SFATAL\0C57P01\0\0", true);
}
END_TEST

START_TEST(reads_parameter_status)
{
	struct parameter_status p;
	ck_assert_int_eq(parse_parameter_status(BODY("DateStyle\0ISO, MDY\0"), &p), STATUS_OK);
	ck_assert_str_eq(p.name, "DateStyle");
	ck_assert_str_eq(p.value, "ISO, MDY");
	refuses_cuts(parse_parameter_status(body, n, &p), "a\0b\0", true);
}
END_TEST

START_TEST(reads_ready)
{
	for (int c = 0; c < 256; c++) {
		uint8_t body = (uint8_t)c;
		char status = 0;
		bool known = c == 'I' || c == 'T' || c == 'E';
		ck_assert_int_eq(parse_ready(&body, 1, &status), known ? STATUS_OK : STATUS_BAD);
		if (known)
			ck_assert_int_eq(status, c);
	}
	char status;
	refuses_cuts(parse_ready(body, n, &status), "I", true);
}
END_TEST

START_TEST(reads_key_data)
{
	static const struct {
		size_t secret_len;
		enum status status;
	} cases[] = {{0, STATUS_BAD}, {3, STATUS_BAD},  {4, STATUS_OK},
	             {32, STATUS_OK}, {256, STATUS_OK}, {257, STATUS_BAD}};
	uint8_t body[4 + 257] = {0, 0, 1, 2, 'k'};
	struct key_data k;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(parse_key_data(body, 4 + cases[i].secret_len, &k), cases[i].status);
		if (cases[i].status != STATUS_OK)
			continue;
		ck_assert_uint_eq(k.pid, 0x102);
		ck_assert_uint_eq(k.secret_len, cases[i].secret_len);
		ck_assert_ptr_eq(k.secret, body + 4);
	}
	ck_assert_int_eq(parse_key_data(body, 3, &k), STATUS_BAD);
	ck_assert_int_eq(parse_key_data(body, 0, &k), STATUS_BAD);
}
END_TEST

START_TEST(reads_auth_requests)
{
	struct auth_request a;
	ck_assert_int_eq(parse_auth(BODY("\0\0\0\0"), &a), STATUS_OK);
	ck_assert_uint_eq(a.code, AUTH_OK);
	ck_assert_uint_eq(a.data_len, 0);
	ck_assert_int_eq(parse_auth(BODY("\0\0\0\5abcd"), &a), STATUS_OK);
	ck_assert_uint_eq(a.code, AUTH_MD5);
	ck_assert_uint_eq(a.data_len, 4);
	ck_assert_mem_eq(a.data, "abcd", 4);
	refuses_cuts(parse_auth(body, n, &a), "\0\0\0\0", false);
}
END_TEST

START_TEST(reads_sasl_initial_responses)
{
	struct sasl_initial s;
	ck_assert_int_eq(parse_sasl_initial(BODY("SCRAM-SHA-256\0\0\0\0\3n,,"), &s), STATUS_OK);
	ck_assert_str_eq(s.mechanism, "SCRAM-SHA-256");
	ck_assert_uint_eq(s.data_len, 3);
	ck_assert_mem_eq(s.data, "n,,", 3);
	ck_assert_int_eq(parse_sasl_initial(BODY("X\0\377\377\377\377"), &s), STATUS_OK);
	ck_assert_ptr_null(s.data);
	ck_assert_uint_eq(s.data_len, 0);
	ck_assert_int_eq(parse_sasl_initial(BODY("X\0\0\0\0\0"), &s), STATUS_OK);
	ck_assert_ptr_nonnull(s.data);
	ck_assert_uint_eq(s.data_len, 0);
	ck_assert_int_eq(parse_sasl_initial(BODY("X\0\377\377\377\377y"), &s), STATUS_BAD);
	ck_assert_int_eq(parse_sasl_initial(BODY("X\0\377\377\377\376y"), &s), STATUS_BAD);
	refuses_cuts(parse_sasl_initial(body, n, &s), "SCRAM\0\0\0\0\3n,,", true);
}
END_TEST

START_TEST(finds_statement_names)
{
	struct statement_ref s;
	ck_assert_int_eq(parse_statement_ref(FE_PARSE, BODY("s1\0SELECT 1\0\0\0"), &s), STATUS_OK);
	ck_assert_str_eq(s.name, "s1");
	ck_assert_int_eq(s.kind, 'S');
	ck_assert_int_eq(parse_statement_ref(FE_BIND, BODY("p\0s2\0\0\0\0\0\0\0"), &s), STATUS_OK);
	ck_assert_str_eq(s.name, "s2");
	ck_assert_int_eq(s.kind, 'S');
	ck_assert_int_eq(parse_statement_ref(FE_DESCRIBE, BODY("Pp\0"), &s), STATUS_OK);
	ck_assert_str_eq(s.name, "p");
	ck_assert_int_eq(s.kind, 'P');
	ck_assert_int_eq(parse_statement_ref(FE_CLOSE, BODY("S\0"), &s), STATUS_OK);
	ck_assert_str_eq(s.name, "");
	ck_assert_int_eq(s.kind, 'S');
	ck_assert_int_eq(parse_statement_ref(FE_CLOSE, BODY("Xa\0"), &s), STATUS_BAD);
	ck_assert_int_eq(parse_statement_ref(FE_BIND, BODY("p\0s2"), &s), STATUS_BAD);
	ck_assert_int_eq(parse_statement_ref(FE_PARSE, BODY("p"), &s), STATUS_BAD);
	ck_assert_int_eq(parse_statement_ref(FE_EXECUTE, BODY("p\0\0\0\0\0"), &s), STATUS_BAD);
	refuses_cuts(parse_statement_ref(FE_DESCRIBE, body, n, &s), "Sabc\0", true);
}
END_TEST

UNIT_MAIN("parse", cursor_stops_at_the_first_bad_read, reads_errors, reads_parameter_status, reads_ready,
          reads_key_data, reads_auth_requests, reads_sasl_initial_responses, finds_statement_names)
