/* SPDX-License-Identifier: ISC */
/*
 * Clients of our own, for what pgbench does not do. They run in a process apart, `pgweir-bench --crowd KIND CONNINFO N`,
 * so that what they use is not mistaken for the benchmark's, and tell on standard output:
 *
 *   idle      opens N connections one after the other, runs a query on each, says "ready SECONDS", and holds them until
 *             SIGTERM; then says "lost NUMBER" of those that the other side had closed
 *   storm     opens N at once, runs a query on each: "done SECONDS FAILED"
 *   copy-out  reads N MiB, copy-in writes N MiB: "done SECONDS BYTES"
 */
#ifndef PGWEIR_BENCH_CROWD_H
#define PGWEIR_BENCH_CROWD_H

int crowd_main(const char *kind, const char *conninfo, const char *n); /* the exit code */

#endif
