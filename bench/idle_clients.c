// SPDX-License-Identifier: ISC
//
// idle_clients CONNINFO N [SQL]: opens N connections one after the other, runs SQL
// once on each, prints "ready" and holds them until its standard input has
// something to say or ends. Then it tells how many the other side had closed
// meanwhile, which is an error. The benchmark weighs a pooler's idle clients
// with it.

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <libpq-fe.h>

static bool
client_query(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

static PGconn *
client_open(const char *conninfo, const char *sql)
{
	PGconn *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) == CONNECTION_OK && (sql == NULL || client_query(conn, sql)))
		return conn;
	fprintf(stderr, "idle_clients: %s", PQerrorMessage(conn));
	PQfinish(conn);
	return NULL;
}

// The far end's goodbye, if any, waits in the socket of an idle connection.
static bool
client_was_closed(PGconn *conn)
{
	return PQconsumeInput(conn) == 0 || PQstatus(conn) != CONNECTION_OK;
}

static int
wait_for_stdin(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	int n;

	do
		n = poll(&in, 1, -1);
	while (n < 0 && errno == EINTR);
	return n;
}

static void
raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int
main(int argc, char **argv)
{
	long wanted = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
	const char *sql = argc >= 4 ? argv[3] : NULL;
	long opened, lost = 0;
	PGconn **clients;

	if (wanted < 1 || wanted > 1000000 || argc > 4) {
		fprintf(stderr, "usage: idle_clients CONNINFO N [SQL]\n");
		return 2;
	}
	clients = calloc((size_t)wanted, sizeof(*clients));
	if (clients == NULL) {
		perror("idle_clients");
		return 1;
	}
	raise_file_limit();
	for (opened = 0; opened < wanted; opened++) {
		clients[opened] = client_open(argv[1], sql);
		if (clients[opened] == NULL)
			break;
	}
	if (opened == wanted) {
		printf("ready\n");
		fflush(stdout);
		wait_for_stdin();
	} else {
		fprintf(stderr, "idle_clients: %ld of %ld connections are open\n", opened, wanted);
	}
	for (long i = 0; i < opened; i++) {
		lost += client_was_closed(clients[i]);
		PQfinish(clients[i]);
	}
	free(clients);
	if (lost > 0)
		fprintf(stderr, "idle_clients: %ld connections were closed by the other side\n", lost);
	return opened == wanted && lost == 0 ? 0 : 1;
}
