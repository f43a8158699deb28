/* SPDX-License-Identifier: ISC */
/* One-line libpq for tests: each asserts what it does not return. Results are malloc'd; leaking them is fine. */
#ifndef PGWEIR_TEST_QUERY_H
#define PGWEIR_TEST_QUERY_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

void query_ok(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* First column of the first row; "" when there is none. */
char *query_text(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
long query_int(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs what must fail; its SQLSTATE, "" when the connection was lost without an error message. */
char *query_sqlstate(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sends without waiting; query_result_* later. */
void query_send(PGconn *conn, const char *sql);
bool query_is_done(PGconn *conn); /* a whole result is there (or the connection is lost) */
char *query_finish(PGconn *conn); /* waits; the SQLSTATE, "00000" when it worked, "" when the connection was lost */

void query_assert_message(const char *message, const char *part); /* message contains part */

#endif
