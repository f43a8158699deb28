/* SPDX-License-Identifier: ISC */
#include "wire/build.h"

#include <string.h>

#include "wire/pgmsg.h"

#include "unit.h"

/* The bytes are those of the protocol's documentation; most were also compared with what servers and libpq send. */
#define assert_bytes(b, literal)                                                                                       \
	do {                                                                                                           \
		ck_assert(!(b)->failed);                                                                               \
		ck_assert_uint_eq((b)->len, sizeof(literal) - 1);                                                      \
		ck_assert_mem_eq(buf_head(b), literal, sizeof(literal) - 1);                                           \
		buf_reset(b);                                                                                          \
	} while (0)

START_TEST(logs_a_client_in)
{
	static const char *const mechanisms[] = {"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", NULL};
	static const char *const unknown[] = {"_pq_.a", "_pq_.bc"};
	struct buf b;
	buf_init(&b);
	build_auth(&b, AUTH_OK, NULL, 0);
	assert_bytes(&b, "R\0\0\0\10\0\0\0\0");
	build_auth(&b, AUTH_MD5, "\1\2\3\4", 4);
	assert_bytes(&b, "R\0\0\0\14\0\0\0\5\1\2\3\4");
	build_auth_sasl(&b, mechanisms);
	assert_bytes(&b, "R\0\0\0\52\0\0\0\12SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
	build_parameter_status(&b, "client_encoding", "UTF8");
	assert_bytes(&b, "S\0\0\0\31client_encoding\0UTF8\0");
	build_parameter_status(&b, "application_name", "");
	assert_bytes(&b, "S\0\0\0\26application_name\0\0");
	build_key_data(&b, 0x01020304, (const uint8_t *)"abcd", 4);
	assert_bytes(&b, "K\0\0\0\14\1\2\3\4abcd");
	build_negotiate(&b, 0, unknown, 2);
	assert_bytes(&b, "v\0\0\0\33\0\3\0\0\0\0\0\2_pq_.a\0_pq_.bc\0");
	build_negotiate(&b, 2, NULL, 0);
	assert_bytes(&b, "v\0\0\0\14\0\3\0\2\0\0\0\0");
	build_ready(&b, TX_FAILED);
	assert_bytes(&b, "Z\0\0\0\5E");
	buf_fini(&b);
}
END_TEST

START_TEST(reports_errors_with_the_fields_given)
{
	struct buf b;
	buf_init(&b);
	build_error(&b, "FATAL", "53300", "full", "why", "wait");
	assert_bytes(&b, "E\0\0\0\53SFATAL\0VFATAL\0C53300\0Mfull\0Dwhy\0Hwait\0\0");
	build_error(&b, "ERROR", "57014", "m", NULL, NULL);
	assert_bytes(&b, "E\0\0\0\35SERROR\0VERROR\0C57014\0Mm\0\0");
	build_notice(&b, "NOTICE", "00000", "n");
	assert_bytes(&b, "N\0\0\0\37SNOTICE\0VNOTICE\0C00000\0Mn\0\0");
	buf_fini(&b);
}
END_TEST

START_TEST(answers_with_text_rows)
{
	static const char *const names[] = {"a", "n", "b"};
	static const uint32_t oids[] = {25, 23, 20};
	static const char *const values[] = {"x", NULL, ""};
	struct buf b;
	buf_init(&b);
	build_row_description(&b, names, oids, 3);
	assert_bytes(&b, "T\0\0\0\102\0\3"
	                 "a\0\0\0\0\0\0\0\0\0\0\31\377\377\377\377\377\377\0\0"
	                 "n\0\0\0\0\0\0\0\0\0\0\27\0\4\377\377\377\377\0\0"
	                 "b\0\0\0\0\0\0\0\0\0\0\24\0\10\377\377\377\377\0\0");
	build_data_row(&b, values, 3);
	assert_bytes(&b, "D\0\0\0\23\0\3\0\0\0\1x\377\377\377\377\0\0\0\0");
	build_data_row(&b, NULL, 0);
	assert_bytes(&b, "D\0\0\0\6\0\0");
	build_command_complete(&b, "SHOW");
	assert_bytes(&b, "C\0\0\0\11SHOW\0");
	build_empty_query(&b);
	assert_bytes(&b, "I\0\0\0\4");
	buf_fini(&b);
}
END_TEST

START_TEST(logs_in_to_a_server)
{
	static const char *const pairs[] = {"user", "u", "database", "", NULL};
	static const char *const none[] = {NULL};
	struct buf b;
	buf_init(&b);
	build_startup(&b, PROTO_3_2, pairs);
	assert_bytes(&b, "\0\0\0\32\0\3\0\2user\0u\0database\0\0\0");
	build_startup(&b, PROTO_3_0, none);
	assert_bytes(&b, "\0\0\0\11\0\3\0\0\0");
	build_cancel(&b, 7, (const uint8_t *)"12345", 5);
	assert_bytes(&b, "\0\0\0\21\4\322\26\56\0\0\0\00712345");
	build_password(&b, "pw");
	assert_bytes(&b, "p\0\0\0\7pw\0");
	build_sasl_initial(&b, "SCRAM-SHA-256", "n,,", 3);
	assert_bytes(&b, "p\0\0\0\31SCRAM-SHA-256\0\0\0\0\3n,,");
	build_sasl_response(&b, "c=biws", 6);
	assert_bytes(&b, "p\0\0\0\12c=biws");
	buf_fini(&b);
}
END_TEST

START_TEST(sends_statements)
{
	static const char *const values[] = {"1", NULL};
	struct buf b;
	buf_init(&b);
	build_query(&b, "");
	assert_bytes(&b, "Q\0\0\0\5\0");
	build_query(&b, "SELECT 1");
	assert_bytes(&b, "Q\0\0\0\15SELECT 1\0");
	build_parse(&b, "s", "SELECT $1");
	assert_bytes(&b, "P\0\0\0\22s\0SELECT $1\0\0\0");
	build_bind_text(&b, "", "s", values, 2);
	assert_bytes(&b, "B\0\0\0\26\0s\0\0\0\0\2\0\0\0\0011\377\377\377\377\0\0");
	build_execute(&b, "p");
	assert_bytes(&b, "E\0\0\0\12p\0\0\0\0\0");
	build_close_statement(&b, "s");
	assert_bytes(&b, "C\0\0\0\7Ss\0");
	build_sync(&b);
	assert_bytes(&b, "S\0\0\0\4");
	build_terminate(&b);
	assert_bytes(&b, "X\0\0\0\4");
	buf_fini(&b);
}
END_TEST

START_TEST(appends_behind_what_is_there)
{
	struct buf b;
	buf_init(&b);
	build_sync(&b);
	buf_consume(&b, 3);
	build_query(&b, "x"); /* its mark counts from the head, not from the memory's start */
	build_ready(&b, TX_IDLE);
	assert_bytes(&b, "\0\4Q\0\0\0\6x\0Z\0\0\0\5I");

	/* so large that the memory moves between msg_begin and msg_end */
	static char big[100000];
	memset(big, 'a', sizeof(big) - 1);
	build_sync(&b);
	buf_consume(&b, 5);
	uint32_t mark = msg_begin(&b, 'Q');
	msg_str(&b, big);
	msg_end(&b, mark);
	ck_assert_uint_eq(b.len, sizeof(big) + 5);
	ck_assert_mem_eq(buf_head(&b), "Q\0\1\206\244aaa", 8);
	buf_fini(&b);
}
END_TEST

START_TEST(does_nothing_on_a_failed_buffer)
{
	static const char *const pairs[] = {"user", "u", NULL};
	struct buf b;
	buf_init(&b);
	b.failed = true;
	build_startup(&b, PROTO_3_0, pairs);
	build_error(&b, "FATAL", "53300", "full", NULL, NULL);
	ck_assert_uint_eq(b.len, 0);
	ck_assert(b.failed);
	buf_fini(&b);
}
END_TEST

UNIT_MAIN("build", logs_a_client_in, reports_errors_with_the_fields_given, answers_with_text_rows, logs_in_to_a_server,
          sends_statements, appends_behind_what_is_there, does_nothing_on_a_failed_buffer)
