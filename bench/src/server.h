/* SPDX-License-Identifier: ISC */
/*
 * The PostgreSQL server behind the poolers: a scratch cluster, with or without standbys, or one that runs already. The
 * nodes of a scratch cluster listen on one port of 127.0.0.1, 127.0.0.2, ...: a pooler is given a list of hosts.
 */
#ifndef PGWEIR_BENCH_SERVER_H
#define PGWEIR_BENCH_SERVER_H

#include "text.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_MAX_NODES 8

enum replication { REPLICATION_NONE, REPLICATION_ASYNC, REPLICATION_SYNC };

struct topology {
	enum replication replication;
	int n_standbys;
};

struct server_how {
	struct topology topology;
	const char *bindir; /* initdb, postgres, pg_basebackup */
	const char *folder; /* the data go into a new folder in it */
	const char *log;    /* of all nodes */
	int max_connections;
	const struct text_list *settings; /* "name = value", go before ours */
	const char *cert, *key;           /* NULL: no TLS */
	bool unix_sockets;                /* for clients; on loopback it listens all the same */
};

struct server {
	char folder[256]; /* "" : not ours */
	char host[128];   /* the primary; over Unix sockets, the folder */
	char hosts[1024]; /* all nodes, with commas */
	int port;
	char database[64], user[64], password[64];
	char admin[256]; /* conninfo of a superuser, or whom we were given, without the database */
	int n_nodes;
	pid_t pids[SERVER_MAX_NODES]; /* of the postmasters; 0: not ours */
	char log[256];
	PGconn *conn; /* to the primary's database, kept open; not counted among the connections in use */
};

/* single, replicas:N, sync */
bool topology_parse(const char *text, struct topology *out, struct why *why);

/* The folder of PostgreSQL's newest server programs. NULL: none. Allocated. */
char *server_find_bindir(void);
/* What it will be started with, as postgresql.conf has it. Allocated. */
char *server_settings(const struct server_how *how);

struct server *server_start(const struct server_how *how, struct why *why); /* NULL: why */
struct server *server_adopt(const char *conninfo, struct why *why);         /* one that runs; NULL: why */
void server_stop(struct server **server);                                   /* removes the data; NULL is fine */

/* False: which node has died, with its last words. */
bool server_is_alive(struct server *server, struct why *why);
bool server_exec(struct server *server, const char *sql, struct why *why);
char *server_value(struct server *server, const char *sql); /* the first field; "" if there is none. Allocated. */

/* Connections of clients to the database, our own left out; -1: not known. */
int server_count_connections(struct server *server);
/* Until there are none and the standbys have replayed everything: one run shall not weigh on the next. */
bool server_settle(struct server *server, struct why *why);
uint64_t server_size_of_scale(int scale); /* bytes that pgbench's tables take, about */

#endif
