/* SPDX-License-Identifier: ISC */
/* What the command line calls a system: pgweir:16/2, pgbouncer:16x2, name=conninfo. Pure. */
#ifndef PGWEIR_BENCH_SPEC_H
#define PGWEIR_BENCH_SPEC_H

#include "text.h"

#include <stdbool.h>

enum system_kind {
	SYSTEM_DIRECT,
	SYSTEM_PGWEIR,
	SYSTEM_PGBOUNCER,
	SYSTEM_ODYSSEY,
	SYSTEM_HAPROXY,
	SYSTEM_OTHER, /* runs already; we know its conninfo */
};

#define SPEC_MAX_PROCESSES 16

struct system_spec {
	enum system_kind kind;
	char name[64];      /* as given, of SYSTEM_OTHER what is left of the = */
	int pool;           /* server connections in all; 0: it does not pool */
	int threads;        /* of each process: proxies, workers */
	int n_processes;    /* 0: none of ours */
	char conninfo[256]; /* of SYSTEM_OTHER */
};

/*
 *   direct                       no pooler
 *   pgweir[:BACKENDS[/PROXIES]]  16/1 unless given
 *   pgbouncer[:POOL[xPROCESSES]] 16x1; several processes share one port with so_reuseport, and the pool among them
 *   odyssey[:BACKENDS[/THREADS]] 16/1
 *   haproxy[:THREADS]            1; TCP mode
 *   NAME=CONNINFO                any other
 */
bool system_spec_parse(const char *text, struct system_spec *out, struct why *why);

/* A list with commas; a comma inside of a conninfo belongs to it if what follows is no system. */
bool system_spec_parse_list(const char *text, struct system_spec **out, size_t *n, struct why *why);

const char *system_spec_package(const struct system_spec *spec); /* that has its program */
const char *system_spec_program(const struct system_spec *spec); /* its name; NULL: none of ours */

#endif
