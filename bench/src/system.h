/* SPDX-License-Identifier: ISC */
/* A system under test: one of system_spec, started in front of a server, watched, stopped. */
#ifndef PGWEIR_BENCH_SYSTEM_H
#define PGWEIR_BENCH_SYSTEM_H

#include "server.h"
#include "spec.h"

#include <stdbool.h>
#include <sys/types.h>

/* What is the same for all systems of a run. */
struct system_how {
	const char *scratch;    /* folder that the servers' user owns */
	const char *out;        /* folder of results: configurations and logs are kept there */
	const char *cert, *key; /* NULL: clients come without TLS */
	const char *hosts;      /* of the server, that a pooler is to use, with commas */
	bool unix_sockets;      /* clients come through one in `scratch` */
};

struct system {
	const struct system_spec *spec;
	const char *program; /* path; NULL: none of ours */
	pid_t pids[SPEC_MAX_PROCESSES];
	int n_pids;
	char host[128], user[64], database[64], password[64];
	int port;
	char log[256];
	long log_from; /* what is before was written in earlier runs */
};

/*
 * The program that the system is to be started with: `given` (may be NULL) or the one in PATH; if servers run as a user
 * who cannot reach it, a copy of it in `scratch`. NULL: why. Allocated.
 */
char *system_find_program(const struct system_spec *spec, const char *given, const char *scratch, struct why *why);
char *system_version(const struct system_spec *spec, const char *program); /* one line. Allocated. */

/* Returns when it answers a query. False: why; nothing of it is left running. */
bool system_start(struct system *sys, const struct system_spec *spec, const char *program, const struct system_how *how,
                  struct server *server, int max_clients, struct why *why);
bool system_is_alive(struct system *sys, struct why *why); /* false: its last words */
void system_stop(struct system *sys);
/* For libpq. Allocated. */
char *system_conninfo(const struct system *sys, bool tls);

#endif
