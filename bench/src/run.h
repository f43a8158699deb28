/* SPDX-License-Identifier: ISC */
/* `pgweir-bench run`: the runs of a suite one after the other, each recorded as it ends. */
#ifndef PGWEIR_BENCH_RUN_H
#define PGWEIR_BENCH_RUN_H

#include "cmdline.h"

/* The exit code: 0, 1 (could not be run or not to its end), 130 (interrupted). argv is kept for --resume. */
int run_main(const struct options *options, int argc, char **argv);
/* Reads the command line of an interrupted run and goes on with it. */
int run_resume(const struct options *options);

#endif
