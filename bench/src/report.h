/* SPDX-License-Identifier: ISC */
/* What is shown of a folder of results (result.h): a table on the terminal, and report.html. */
#ifndef PGWEIR_BENCH_REPORT_H
#define PGWEIR_BENCH_REPORT_H

#include "result.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * `pgweir-bench report DIR`: prints the table on `out` and writes DIR/report.html, with charts if gnuplot is there.
 * `baseline` is the system that ratios are to; NULL: pgbouncer's first configuration, else direct, else the first system.
 * The exit code: 0, or 1 with the reason on `errors`.
 */
int report_run(const char *dir, const char *baseline, FILE *out, FILE *errors);

/* `pgweir-bench compare DIR1 DIR2`: the cells of both side by side with ratios. The exit code, as above. */
int compare_run(const char *dir1, const char *dir2, FILE *out, FILE *errors);

#endif
