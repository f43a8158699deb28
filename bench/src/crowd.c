/* SPDX-License-Identifier: ISC */
#include "crowd.h"

#include "base/str.h"
#include "child.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORM_SECONDS 120
#define LINE_BYTES 1024

static volatile sig_atomic_t told_to_leave;

static void
on_term(int sig)
{
	(void)sig;
	told_to_leave = 1;
}

static bool
query_ok(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	bool ok = PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return ok;
}

static int
complain(PGconn *conn, const char *what)
{
	fprintf(stderr, "error: %s: %s", what, PQerrorMessage(conn));
	return 1;
}

/* ---- idle ---- */

static long
open_all(PGconn **conns, const char *conninfo, long n)
{
	for (long i = 0; i < n; i++) {
		if (told_to_leave)
			return i;
		conns[i] = PQconnectdb(conninfo);
		if (PQstatus(conns[i]) != CONNECTION_OK || !query_ok(conns[i], "select 1")) {
			fprintf(stderr, "error: connection %ld of %ld: %s", i + 1, n, PQerrorMessage(conns[i]));
			return i;
		}
	}
	return n;
}

/* The far end's goodbye, if any, waits in the socket of an idle connection. */
static bool
was_closed(PGconn *conn)
{
	return PQconsumeInput(conn) == 0 || PQstatus(conn) != CONNECTION_OK;
}

static int
idle(PGconn **conns, const char *conninfo, long n)
{
	double begin = child_now();
	long opened = open_all(conns, conninfo, n), lost = 0;
	sigset_t none;

	if (opened < n)
		return 1;
	printf("ready %.6f\n", child_now() - begin);
	fflush(stdout);
	sigemptyset(&none);
	/* SIGTERM is blocked but for here: none is missed between the look and the wait. */
	while (!told_to_leave)
		(void)ppoll(NULL, 0, NULL, &none);
	for (long i = 0; i < n; i++)
		lost += was_closed(conns[i]);
	printf("lost %ld\n", lost);
	return lost == 0 ? 0 : 1;
}

/* ---- storm ---- */

enum stage { STAGE_CONNECTING, STAGE_ASKED, STAGE_DONE, STAGE_FAILED };

struct caller {
	PGconn *conn;
	enum stage stage;
	short events; /* what to poll for */
};

static void
caller_connect(struct caller *c)
{
	switch (PQconnectPoll(c->conn)) {
	case PGRES_POLLING_READING:
		c->events = POLLIN;
		break;
	case PGRES_POLLING_WRITING:
	case PGRES_POLLING_ACTIVE:
		c->events = POLLOUT;
		break;
	case PGRES_POLLING_OK:
		c->stage = PQsendQuery(c->conn, "select 1") ? STAGE_ASKED : STAGE_FAILED;
		c->events = POLLIN;
		break;
	case PGRES_POLLING_FAILED:
		c->stage = STAGE_FAILED;
		break;
	}
}

static void
caller_receive(struct caller *c)
{
	PGresult *result;

	if (!PQconsumeInput(c->conn)) {
		c->stage = STAGE_FAILED;
		return;
	}
	if (PQisBusy(c->conn))
		return;
	result = PQgetResult(c->conn);
	c->stage = PQresultStatus(result) == PGRES_TUPLES_OK ? STAGE_DONE : STAGE_FAILED;
	PQclear(result);
}

static long
count_open(const struct caller *callers, long n)
{
	long open = 0;

	for (long i = 0; i < n; i++)
		open += callers[i].stage == STAGE_CONNECTING || callers[i].stage == STAGE_ASKED;
	return open;
}

static void
storm_turn(struct caller *callers, struct pollfd *fds, long n)
{
	for (long i = 0; i < n; i++) {
		bool open = callers[i].stage == STAGE_CONNECTING || callers[i].stage == STAGE_ASKED;

		fds[i] = (struct pollfd){.fd = open ? PQsocket(callers[i].conn) : -1, .events = callers[i].events};
	}
	if (poll(fds, (nfds_t)n, 1000) <= 0)
		return;
	for (long i = 0; i < n; i++) {
		if (fds[i].fd < 0 || fds[i].revents == 0)
			continue;
		if (callers[i].stage == STAGE_CONNECTING)
			caller_connect(&callers[i]);
		else
			caller_receive(&callers[i]);
	}
}

static int
storm(PGconn **conns, const char *conninfo, long n)
{
	struct caller *callers = calloc((size_t)n, sizeof(*callers));
	struct pollfd *fds = calloc((size_t)n, sizeof(*fds));
	double begin = child_now();
	long failed = 0, first_failed = -1;

	if (callers == NULL || fds == NULL)
		return 1;
	for (long i = 0; i < n; i++) {
		callers[i].conn = conns[i] = PQconnectStart(conninfo);
		callers[i].events = POLLOUT;
		if (PQstatus(conns[i]) == CONNECTION_BAD)
			callers[i].stage = STAGE_FAILED;
	}
	while (count_open(callers, n) > 0 && child_now() < begin + STORM_SECONDS && !told_to_leave)
		storm_turn(callers, fds, n);
	for (long i = 0; i < n; i++)
		if (callers[i].stage != STAGE_DONE) {
			failed++;
			first_failed = first_failed < 0 ? i : first_failed;
		}
	if (failed > 0)
		complain(conns[first_failed], "login");
	printf("done %.6f %ld\n", child_now() - begin, failed);
	free(callers);
	free(fds);
	return 0;
}

/* ---- copy ---- */

static int
copy_out(PGconn *conn, long mb)
{
	double begin = child_now();
	int64_t bytes = 0;
	PGresult *result;
	char sql[160], *row;
	int n;

	/* A line of LINE_BYTES with its end; a mebibyte has 1024 of them. */
	snprintf(sql, sizeof(sql), "copy (select repeat('x', %d) from generate_series(1, %ld)) to stdout",
	         LINE_BYTES - 1, mb * 1024);
	result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_COPY_OUT)
		return complain(conn, "copy");
	PQclear(result);
	while ((n = PQgetCopyData(conn, &row, 0)) > 0) {
		bytes += n;
		PQfreemem(row);
	}
	result = PQgetResult(conn);
	if (n != -1 || PQresultStatus(result) != PGRES_COMMAND_OK)
		return complain(conn, "copy");
	PQclear(result);
	printf("done %.6f %lld\n", child_now() - begin, (long long)bytes);
	return 0;
}

static int
copy_in(PGconn *conn, long mb)
{
	static char chunk[64 * LINE_BYTES];
	double begin = child_now();
	int64_t bytes = 0;
	PGresult *result = PQexec(conn, "copy copied from stdin");

	if (PQresultStatus(result) != PGRES_COPY_IN)
		return complain(conn, "copy");
	PQclear(result);
	memset(chunk, 'x', sizeof(chunk));
	for (size_t i = LINE_BYTES - 1; i < sizeof(chunk); i += LINE_BYTES)
		chunk[i] = '\n';
	for (long i = 0; i < mb * 1024 / 64; i++) {
		if (PQputCopyData(conn, chunk, sizeof(chunk)) != 1)
			return complain(conn, "copy");
		bytes += (int64_t)sizeof(chunk);
	}
	if (PQputCopyEnd(conn, NULL) != 1)
		return complain(conn, "copy");
	result = PQgetResult(conn);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		return complain(conn, "copy");
	PQclear(result);
	printf("done %.6f %lld\n", child_now() - begin, (long long)bytes);
	return 0;
}

static int
copy(PGconn **conns, const char *conninfo, long mb, bool out)
{
	conns[0] = PQconnectdb(conninfo);
	if (PQstatus(conns[0]) != CONNECTION_OK)
		return complain(conns[0], "login");
	return out ? copy_out(conns[0], mb) : copy_in(conns[0], mb);
}

int
crowd_main(const char *kind, const char *conninfo, const char *n)
{
	struct sigaction action = {.sa_handler = on_term};
	sigset_t term;
	int64_t number;
	PGconn **conns;
	int rc = 2;

	if (!str_parse_int(n, 1, 1000000, &number) || (conns = calloc((size_t)number, sizeof(*conns))) == NULL)
		return 2;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigaction(SIGTERM, &action, NULL);
	if (strcmp(kind, "idle") == 0) {
		sigprocmask(SIG_BLOCK, &term, NULL);
		rc = idle(conns, conninfo, number);
	} else if (strcmp(kind, "storm") == 0) {
		rc = storm(conns, conninfo, number);
	} else if (strcmp(kind, "copy-out") == 0 || strcmp(kind, "copy-in") == 0) {
		rc = copy(conns, conninfo, number, strcmp(kind, "copy-out") == 0);
	}
	for (long i = 0; i < number; i++)
		PQfinish(conns[i]);
	free(conns);
	return rc;
}
