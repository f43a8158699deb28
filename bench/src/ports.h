/* SPDX-License-Identifier: ISC */
/* Ports on loopback below the range that the kernel takes for outgoing connections. */
#ifndef PGWEIR_BENCH_PORTS_H
#define PGWEIR_BENCH_PORTS_H

#include <stdbool.h>

/* Between finding one free and listening there, somebody else may be faster: so often another one is tried. */
#define PORTS_TRIES 5

/* One that nobody listens on or is connected at, never the same twice; 0: none. `n_hosts` addresses from 127.0.0.1 on. */
int ports_find(int n_hosts);
/* Whether a server could listen there, at all of these addresses. */
bool ports_is_free(int n_hosts, int port);

#endif
