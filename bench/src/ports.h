/* SPDX-License-Identifier: ISC */
/* Ports on loopback below the range that the kernel takes for outgoing connections. */
#ifndef PGWEIR_BENCH_PORTS_H
#define PGWEIR_BENCH_PORTS_H

/* One that nobody listens on or is connected at, never the same twice; 0: none. `n_hosts` addresses from 127.0.0.1 on. */
int ports_find(int n_hosts);

#endif
