/* SPDX-License-Identifier: ISC */
/* The machine: what the reader of the figures has to know, and its limits. */
#ifndef PGWEIR_BENCH_HOST_H
#define PGWEIR_BENCH_HOST_H

#include "text.h"

#include <stdbool.h>

int host_n_cpus(void);
long host_raise_file_limit(long wanted); /* as far as we may; what it is then */
/* All are allocated; "unknown" where the system does not tell. */
char *host_cpu(void);
char *host_memory(void);
char *host_system(void);   /* distribution and kernel */
char *host_governor(void); /* of the CPUs' frequency */
char *host_load(void);
char *host_now(void); /* date and time, ISO 8601 */

#endif
