/* SPDX-License-Identifier: ISC */
/* The configuration file of each pooler, as text. Pure. The same for all as far as they have the same settings. */
#ifndef PGWEIR_BENCH_POOLCONF_H
#define PGWEIR_BENCH_POOLCONF_H

#include "spec.h"
#include "text.h"

struct poolconf {
	const struct system_spec *spec;
	const char *folder; /* where it may write and looks for certificates */
	int port;           /* to listen on, on 127.0.0.1 */
	const char *socket; /* folder of a Unix socket for clients, with that port in its name; NULL: none */
	int max_clients;
	const char *server_hosts; /* with commas: several servers, at the same port; or folders of Unix sockets */
	int server_port;
	const char *database;
	const char *user;
	const char *password; /* for the server; "" : none */
	const char *cert;     /* paths for TLS to clients; NULL: no TLS */
	const char *key;
};

/* For SYSTEM_DIRECT and SYSTEM_OTHER: NULL. `process` counts from 0. Allocated. */
char *poolconf_write(const struct poolconf *c, int process);
/* The users' file of pgweir and pgbouncer. Allocated. */
char *poolconf_write_users(const struct poolconf *c);

#endif
