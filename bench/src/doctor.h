/* SPDX-License-Identifier: ISC */
/* `pgweir-bench doctor`: what is installed, limits, and what would be left out. */
#ifndef PGWEIR_BENCH_DOCTOR_H
#define PGWEIR_BENCH_DOCTOR_H

#include "cmdline.h"

/* The exit code: 1 if nothing could be measured. */
int doctor_main(const struct options *options);

#endif
