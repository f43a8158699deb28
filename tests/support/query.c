/* SPDX-License-Identifier: ISC */
#include "query.h"

#include "proc.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 1, 0))) static char *
vformat(const char *fmt, va_list ap)
{
	char *s;

	ck_assert(vasprintf(&s, fmt, ap) >= 0);
	return s;
}

/* Runs sql and asserts that it worked. */
static PGresult *
must_exec(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	ExecStatusType st = PQresultStatus(r);

	ck_assert_msg(st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK || st == PGRES_EMPTY_QUERY, "%.200s: %s", sql,
	              PQerrorMessage(conn));
	return r;
}

void
query_ok(PGconn *conn, const char *fmt, ...)
{
	va_list ap;
	char *sql;

	va_start(ap, fmt);
	sql = vformat(fmt, ap);
	va_end(ap);
	PQclear(must_exec(conn, sql));
	free(sql);
}

static char *
first_value(PGconn *conn, char *sql)
{
	PGresult *r = must_exec(conn, sql);
	char *value = strdup(PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");

	PQclear(r);
	free(sql);
	return value;
}

char *
query_text(PGconn *conn, const char *fmt, ...)
{
	va_list ap;
	char *sql;

	va_start(ap, fmt);
	sql = vformat(fmt, ap);
	va_end(ap);
	return first_value(conn, sql);
}

long
query_int(PGconn *conn, const char *fmt, ...)
{
	va_list ap;
	char *sql, *value;
	long n;

	va_start(ap, fmt);
	sql = vformat(fmt, ap);
	va_end(ap);
	value = first_value(conn, sql);
	n = strtol(value, NULL, 10);
	free(value);
	return n;
}

char *
query_sqlstate(PGconn *conn, const char *fmt, ...)
{
	va_list ap;
	char *sql, *state;
	PGresult *r;

	va_start(ap, fmt);
	sql = vformat(fmt, ap);
	va_end(ap);
	r = PQexec(conn, sql);
	ck_assert_msg(PQresultStatus(r) == PGRES_FATAL_ERROR || PQresultStatus(r) == PGRES_BAD_RESPONSE,
	              "%.200s: worked, but should have failed", sql);
	state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	state = strdup(state != NULL ? state : "");
	PQclear(r);
	free(sql);
	return state;
}

void
query_send(PGconn *conn, const char *sql)
{
	ck_assert_msg(PQsendQuery(conn, sql) == 1, "%s", PQerrorMessage(conn));
}

bool
query_is_done(PGconn *conn)
{
	return PQconsumeInput(conn) == 0 || PQisBusy(conn) == 0;
}

char *
query_finish(PGconn *conn)
{
	char *state = strdup("00000");

	for (PGresult *r; (r = PQgetResult(conn)) != NULL; PQclear(r)) {
		const char *s = PQresultErrorField(r, PG_DIAG_SQLSTATE);

		if (PQresultStatus(r) != PGRES_FATAL_ERROR)
			continue;
		/* When the server said why before it went, keep that. */
		if (strcmp(state, "00000") == 0 || s != NULL) {
			free(state);
			state = strdup(s != NULL ? s : "");
		}
		if (PQstatus(conn) == CONNECTION_BAD) {
			PQclear(r);
			break;
		}
	}
	return state;
}

void
query_assert_message(const char *message, const char *part)
{
	ck_assert_msg(strstr(message, part) != NULL, "\"%s\" should contain \"%s\"", message, part);
}
