/* SPDX-License-Identifier: ISC */
/*
 * libpq itself: its pipeline mode, single-row mode, Describe of statements and
 * portals, COPY, PQcancel, large objects by FunctionCall. The other programs
 * over libpq use a part of this; here every result is written down.
 */
#include <libpq-fe.h>
#include <libpq/libpq-fs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TEXTS 6
#define ROUNDS 8
#define BIG "select i, md5(i::text) from generate_series(1, 3000) i"

static int session;
static const char *job;

__attribute__((format(printf, 1, 2))) static void
say(const char *format, ...)
{
	va_list ap;

	printf("%s: ", job);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

__attribute__((format(printf, 1, 2))) static const char *
text(const char *format, ...)
{
	static char ring[4][512];
	static unsigned next;
	char *out = ring[next++ % 4];
	va_list ap;

	va_start(ap, format);
	vsnprintf(out, sizeof(ring[0]), format, ap);
	va_end(ap);
	return out;
}

static void
ignore_notice(void *arg, const PGresult *res)
{
	(void)arg;
	(void)res;
}

static PGconn *
connect_db(void)
{
	PGconn *c = PQconnectdb("");

	if (PQstatus(c) != CONNECTION_OK) {
		say("cannot connect: %s", PQerrorMessage(c));
		exit(1);
	}
	PQsetNoticeReceiver(c, ignore_notice, NULL);
	return c;
}

/* FNV-1a over all fields. */
static uint64_t
digest_add(uint64_t h, const PGresult *res)
{
	for (int row = 0; row < PQntuples(res); row++)
		for (int col = 0; col < PQnfields(res); col++) {
			const char *value = PQgetvalue(res, row, col);

			for (int i = 0; i <= PQgetlength(res, row, col); i++)
				h = (h ^ (uint8_t)value[i]) * 1099511628211u;
		}
	return h;
}

/* Consumes a result: its status, and its rows, tag or error. */
static void
say_result(const char *what, PGresult *res)
{
	const char *status = PQresStatus(PQresultStatus(res)) + strlen("PGRES_");

	if (PQresultStatus(res) == PGRES_FATAL_ERROR)
		say("%s %s %s", what, PQresultErrorField(res, PG_DIAG_SQLSTATE),
		    PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else if (PQntuples(res) == 1 && PQgetlength(res, 0, 0) < 200)
		say("%s %s %s", what, status, PQgetvalue(res, 0, 0));
	else if (PQresultStatus(res) == PGRES_TUPLES_OK)
		say("%s %s %d rows %016llx", what, status, PQntuples(res), (unsigned long long)digest_add(0, res));
	else
		say("%s %s %s", what, status, PQcmdStatus(res));
	PQclear(res);
}

static void
say_query(PGconn *c, const char *sql)
{
	say_result("query", PQexec(c, sql));
}

static void
run_quietly(PGconn *c, const char *sql)
{
	PGresult *res = PQexec(c, sql);

	if (PQresultStatus(res) == PGRES_FATAL_ERROR)
		say("%s: %s", sql, PQerrorMessage(c));
	PQclear(res);
}

static PGresult *
exec_int(PGconn *c, const char *statement, int n)
{
	const char *value = text("%d", n);

	return PQexecPrepared(c, statement, 1, &value, NULL, NULL, 0);
}

static PGresult *
params_int(PGconn *c, const char *sql, int n)
{
	const char *value = text("%d", n);

	return PQexecParams(c, sql, 1, NULL, &value, NULL, NULL, 0);
}

/* ---- one statement at a time ---- */

static void
job_prepared(PGconn *c)
{
	long sums[N_TEXTS] = {0};

	for (int k = 0; k < N_TEXTS; k++)
		PQclear(PQprepare(c, text("text%d", k), text("select $1::int + %d", 1000 * session + k), 0, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		run_quietly(c, "begin");
		for (int k = 0; k < N_TEXTS; k++) {
			PGresult *res = exec_int(c, text("text%d", k), i);

			sums[k] += atol(PQgetvalue(res, 0, 0)) - 1000 * session;
			PQclear(res);
		}
		run_quietly(c, i % 2 ? "rollback" : "commit");
	}
	for (int k = 0; k < N_TEXTS; k++)
		say("sum %ld", sums[k]);
	say_result("twice", PQprepare(c, "text0", "select 1", 0, NULL));
	say_result("unknown", exec_int(c, "nothing", 1));
	say_result("describe unknown", PQdescribePrepared(c, "nothing"));

	PGresult *about = PQdescribePrepared(c, "text3");
	say("describe %d %u %s %u", PQnparams(about), PQparamtype(about, 0), PQfname(about, 0), PQftype(about, 0));
	PQclear(about);
}

static void
job_reuse(PGconn *c)
{
	run_quietly(c, text("insert into account values (%d, 500, 1, 'reuse')", session));
	PQclear(PQprepare(c, "note", text("select note from account where s = %d and id = $1", session), 0, NULL));
	PQclear(PQprepare(c, "divide", "select 1 / $1::int", 0, NULL));
	for (int i = 0; i < 5; i++) {
		say_result("note", exec_int(c, "note", 500));
		say_result("divide", exec_int(c, "divide", 0));
	}
	say_result("broken", PQprepare(c, "broken", "selec 1", 0, NULL));
	say_result("broken", exec_int(c, "broken", 1));
	say_result("mended", PQprepare(c, "broken", "select $1::int", 0, NULL));
	say_result("mended", exec_int(c, "broken", 1));
	/* The unnamed statement, used in later units. */
	PQclear(PQprepare(c, "", "select $1::int * 3", 0, NULL));
	for (int i = 0; i < 5; i++)
		say_result("unnamed", exec_int(c, "", i));
	say_query(c, "deallocate note");
	say_result("after deallocate", exec_int(c, "note", 500));
	say_result("divide", exec_int(c, "divide", 1));
	say_query(c, "deallocate all");
	say_result("after deallocate all", exec_int(c, "divide", 1));
}

static void
job_changed_table(PGconn *c)
{
	static const char *const change[] = {"add b text default 'b'", "alter a type text", "drop b"};

	run_quietly(c, text("create table changing_%d as select 1 as a", session));
	for (int i = 0; i < 3; i++) {
		const char *name = text("changed%d", i);

		PQclear(PQprepare(c, name, text("select * from changing_%d where a::text = $1", session), 0, NULL));
		say_result("before", exec_int(c, name, 1));
		run_quietly(c, text("alter table changing_%d %s", session, change[i]));
		say_result("after", exec_int(c, name, 1));
		say_result("anew", params_int(c, text("select * from changing_%d where a::text = $1", session), 1));
	}
	run_quietly(c, text("drop table changing_%d", session));
}

static void
job_transaction(PGconn *c)
{
	run_quietly(c, text("insert into account values (%d, 1, 100, 'one'), (%d, 2, 50, 'two')", session, session));
	for (int i = 0; i < ROUNDS; i++) {
		run_quietly(c, "begin");
		PQclear(params_int(c,
		                   text("update account set balance = balance - $1 where s = %d and id = 1", session),
		                   i));
		PQclear(params_int(c,
		                   text("update account set balance = balance + $1 where s = %d and id = 2", session),
		                   i));
		run_quietly(c, i % 2 ? "rollback" : "commit");
	}
	say_query(c,
	          text("select string_agg(id || ' ' || balance, ',' order by id) from account where s = %d", session));
	say_query(c, "begin; select 1; commit and chain");
	say("status %d", PQtransactionStatus(c));
	say_query(c, "rollback and chain");
	say_query(c, "commit");
	say("status %d", PQtransactionStatus(c));
}

static void
job_savepoint(PGconn *c)
{
	run_quietly(c, "begin");
	run_quietly(c, text("insert into account values (%d, 10, 1, 'kept')", session));
	run_quietly(c, "savepoint a");
	run_quietly(c, text("insert into account values (%d, 11, 1, 'undone')", session));
	run_quietly(c, "rollback to a");
	say_result("twice", params_int(c, text("insert into account values (%d, $1, 1, 'twice')", session), 10));
	say("status %d", PQtransactionStatus(c));
	run_quietly(c, "rollback to a");
	run_quietly(c, text("insert into account values (%d, 12, 1, 'kept')", session));
	run_quietly(c, "commit");
	say_query(c, text("select string_agg(id || note, ',' order by id) from account where s = %d and id between 10 "
	                  "and 12",
	                  session));
}

static void
job_error(PGconn *c)
{
	static const char *const bad[] = {"select 1 / $1::int", "selec $1::int", "select * from missing where a = $1",
	                                  "select 'x'::int + $1"};

	for (int i = 0; i < 4; i++) {
		run_quietly(c, "begin");
		say_result("bad", params_int(c, bad[i], 0));
		say_result("then", params_int(c, "select $1::int", 1));
		say("status %d", PQtransactionStatus(c));
		run_quietly(c, "rollback");
		say_result("again", params_int(c, "select $1::int", 1));
	}
	say_query(c, "select 1; select 1 / 0; select 2");
	say_query(c, "");
	say_query(c, "select 1");
}

/* ---- cancel ---- */

static bool
wait_readable(PGconn *c, int ms)
{
	struct pollfd p = {.fd = PQsocket(c), .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static void
job_cancel(PGconn *c)
{
	for (int i = 0; i < 3; i++) {
		PGcancel *cancel = PQgetCancel(c);
		PGresult *res;
		char why[256];

		PQsendQuery(c, "select pg_sleep(60)");
		while (PQconsumeInput(c) && PQisBusy(c))
			if (!wait_readable(c, 20) && !PQcancel(cancel, why, sizeof(why)))
				say("cancel: %s", why);
		while ((res = PQgetResult(c)) != NULL)
			say_result("sleep", res);
		PQfreeCancel(cancel);
		say_query(c, "select 1");
	}
}

/* ---- bulk ---- */

static void
copy_in(PGconn *c, int n, const char *last, const char *failure)
{
	PGresult *res;

	PQclear(PQexec(c, "copy copied from stdin"));
	for (int i = 0; i < n; i++) {
		const char *line = text("%d\t%d\tnote %d\n", session, i, i);

		PQputCopyData(c, line, (int)strlen(line));
	}
	PQputCopyData(c, last, (int)strlen(last));
	PQputCopyEnd(c, failure);
	while ((res = PQgetResult(c)) != NULL)
		say_result("copy in", res);
}

static void
job_copy(PGconn *c)
{
	uint64_t h = 0;
	int n = 0;
	char *line;

	copy_in(c, 5000, "", NULL);
	copy_in(c, 5000, "not a number\n", NULL);
	copy_in(c, 100, "", "given up");
	PQclear(PQexecParams(c, text("copy (select id, note from copied where s = %d order by id) to stdout", session),
	                     0, NULL, NULL, NULL, NULL, 0)); /* in the extended protocol */
	for (int len; (len = PQgetCopyData(c, &line, 0)) > 0; n++) {
		for (int i = 0; i < len; i++)
			h = (h ^ (uint8_t)line[i]) * 1099511628211u;
		PQfreemem(line);
	}
	say("copy out %d lines %016llx", n, (unsigned long long)h);
	say_result("copy out", PQgetResult(c));
	PQclear(PQgetResult(c));
	say_query(c, text("select count(*) from copied where s = %d", session));
}

static void
job_cursor(PGconn *c)
{
	uint64_t h = 0;
	int n = 0;
	PGresult *res;

	run_quietly(c, "begin");
	run_quietly(c, "declare walk scroll cursor for " BIG);
	res = PQdescribePortal(c, "walk");
	say("portal %d %s %u", PQnfields(res), PQfname(res, 1), PQftype(res, 1));
	PQclear(res);
	for (int got = 1; got > 0; n += got) {
		res = PQexecParams(c, "fetch 700 from walk", 0, NULL, NULL, NULL, NULL, 1);
		got = PQntuples(res);
		h = digest_add(h, res);
		PQclear(res);
	}
	say("walked %d rows %016llx", n, (unsigned long long)h);
	run_quietly(c, "move absolute 500 in walk");
	say_query(c, "fetch backward 2 from walk");
	run_quietly(c, "commit");
	say_result("closed", PQdescribePortal(c, "walk"));
}

static void
job_large_result(PGconn *c)
{
	uint64_t h = 0;
	int n = 0;
	PGresult *res;

	say_query(c, BIG);
	say_query(c, "select repeat('0123456789', 300000)");
	PQsendQuery(c, BIG);
	PQsetSingleRowMode(c);
	while ((res = PQgetResult(c)) != NULL) {
		n += PQntuples(res);
		h = digest_add(h, res);
		PQclear(res);
	}
	say("single rows %d %016llx", n, (unsigned long long)h);

	size_t size = 3000000;
	char *big = malloc(size + 1);
	memset(big, 'x', size);
	big[size] = '\0';
	res = PQexecParams(c, "select md5($1::text), length($1)", 1, NULL, (const char *const *)&big, NULL, NULL, 0);
	say("sent %s %s", PQgetvalue(res, 0, 0), PQgetvalue(res, 0, 1));
	PQclear(res);
	free(big);
}

static void
job_large_object(PGconn *c)
{
	static char data[300000], back[300001];
	Oid oid;
	int fd;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 31 % 251);
	run_quietly(c, "begin");
	oid = lo_creat(c, INV_READ | INV_WRITE);
	fd = lo_open(c, oid, INV_WRITE);
	say("wrote %d", lo_write(c, fd, data, sizeof(data)));
	lo_close(c, fd);
	run_quietly(c, "commit");
	run_quietly(c, "begin");
	fd = lo_open(c, oid, INV_READ | INV_WRITE);
	say("read %d %s", lo_read(c, fd, back, sizeof(back)),
	    memcmp(data, back, sizeof(data)) == 0 ? "equal" : "different");
	say("truncated %d, end at %lld", lo_truncate(c, fd, 5000), (long long)lo_lseek64(c, fd, 0, SEEK_END));
	run_quietly(c, "commit");
	say("unlinked %d", lo_unlink(c, oid));
	say("unlinked %d", lo_unlink(c, oid));
}

/* ---- pipelines ---- */

/* Reads until the n-th Sync. */
static void
say_pipeline(PGconn *c, int n)
{
	int nothing = 0;

	while (n > 0) {
		PGresult *res = PQgetResult(c);

		if (res == NULL) {
			/* Two in a row: there is nothing more. */
			if (++nothing == 2) {
				say("the pipeline ends early: %s", PQerrorMessage(c));
				return;
			}
			continue;
		}
		nothing = 0;
		if (PQresultStatus(res) == PGRES_PIPELINE_SYNC)
			n--;
		say_result("pipeline", res);
	}
}

static void
send_int(PGconn *c, const char *sql, int n)
{
	const char *value = text("%d", n);

	PQsendQueryParams(c, sql, 1, NULL, &value, NULL, NULL, 0);
}

static void
job_batch(PGconn *c)
{
	PQenterPipelineMode(c);
	/* Parse, use and Describe in one unit, under a name that other sessions have for another text. */
	PQsendPrepare(c, "text0", text("select $1::int - %d", session), 0, NULL);
	PQsendDescribePrepared(c, "text0");
	for (int i = 0; i < 20; i++) {
		const char *value = text("%d", session + i);

		PQsendQueryPrepared(c, "text0", 1, &value, NULL, NULL, 0);
	}
	PQpipelineSync(c);
	/* An error in the middle, with a Parse behind it that the server skips; the next unit must not know that name. */
	send_int(c, "select $1::int", 1);
	send_int(c, "select 1 / $1::int", 0);
	PQsendPrepare(c, "skipped", "select $1::int", 0, NULL);
	send_int(c, "select $1::int", 2);
	PQpipelineSync(c);
	PQsendDescribePrepared(c, "skipped");
	PQpipelineSync(c);
	/* A transaction over several units, a failed one, and its end. */
	PQsendQueryParams(c, "begin", 0, NULL, NULL, NULL, NULL, 0);
	send_int(c, text("insert into account values (%d, $1, 0)", session), 100);
	PQpipelineSync(c);
	send_int(c, text("insert into account values (%d, $1, 0)", session), 100);
	PQpipelineSync(c);
	send_int(c, "select $1::int", 3);
	PQpipelineSync(c);
	PQsendQueryParams(c, "rollback", 0, NULL, NULL, NULL, NULL, 0);
	send_int(c, text("insert into account values (%d, $1, 1)", session), 101);
	PQpipelineSync(c);
	PQpipelineSync(c); /* an empty unit */
	say_pipeline(c, 8);
	/* Flush without Sync: the replies come, the unit stays open. */
	send_int(c, "select $1::int", 4);
	PQsendFlushRequest(c);
	PQflush(c);
	say_result("flushed", PQgetResult(c));
	PQclear(PQgetResult(c));
	send_int(c, "select $1::int", 5);
	PQpipelineSync(c);
	say_pipeline(c, 1);
	PQexitPipelineMode(c);
	say_query(c, text("select string_agg(id || ' ' || balance, ',') from account where s = %d and id in (100, 101)",
	                  session));
}

/* ---- connections ---- */

static void
job_reconnect(PGconn *c)
{
	for (int i = 0; i < 5; i++) {
		PGconn *own = connect_db();

		PQclear(PQprepare(own, "same", text("select $1::int + %d", 10 * i), 0, NULL));
		say_result("own", exec_int(own, "same", i));
		if (i % 2) {
			run_quietly(own, "begin");
			run_quietly(own,
			            text("insert into account values (%d, 9000, 0, 'left in a transaction')", session));
		}
		PQfinish(own);
	}
	PQreset(c);
	PQsetNoticeReceiver(c, ignore_notice, NULL);
	say_query(c, "select 'reset'");
	say_result("forgotten", exec_int(c, "text0", 1));
}

static void
job_sessions(PGconn *c)
{
	PGconn *two[2] = {connect_db(), connect_db()};

	for (int k = 0; k < 2; k++)
		PQclear(PQprepare(two[k], "same",
		                  text("insert into account values (%d, %d + 2 * $1::int, $1::int)", session, 1000 + k),
		                  0, NULL));
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < 2; k++) {
			run_quietly(two[k], "begin");
			PQclear(exec_int(two[k], "same", i));
			run_quietly(two[k], "commit");
		}
	PQfinish(two[0]);
	PQfinish(two[1]);
	say_query(c,
	          text("select count(*) || ' ' || sum(balance) from account where s = %d and id between 1000 and 8999",
	               session));
}

int
main(void)
{
	static const struct {
		const char *name;
		void (*run)(PGconn *c);
	} jobs[] = {
		{"prepared", job_prepared},
		{"reuse", job_reuse},
		{"changed-table", job_changed_table},
		{"transaction", job_transaction},
		{"savepoint", job_savepoint},
		{"error", job_error},
		{"cancel", job_cancel},
		{"copy", job_copy},
		{"cursor", job_cursor},
		{"large-result", job_large_result},
		{"large-object", job_large_object},
		{"batch", job_batch},
		{"reconnect", job_reconnect},
		{"sessions", job_sessions},
	};
	PGconn *c;

	session = atoi(getenv("DRIVER_SESSION"));
	job = "connect";
	c = connect_db();
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		job = jobs[i].name;
		jobs[i].run(c);
	}
	PQfinish(c);
	return 0;
}
