/* SPDX-License-Identifier: ISC */
/* A table for the terminal: columns as wide as they need to be. One thread. */
#ifndef PGWEIR_BENCH_TEXTGRID_H
#define PGWEIR_BENCH_TEXTGRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct textgrid {
	char **cells; /* row by row; the first row is the headings */
	size_t n;
	size_t n_columns;
	size_t n_left; /* so many columns are flush left, the others flush right */
};

void textgrid_init(struct textgrid *t, size_t n_left);
/* Fills the row from left to right. The first row, until textgrid_end_headings(), says how many columns there are. */
void textgrid_add(struct textgrid *t, const char *text);
void textgrid_addf(struct textgrid *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void textgrid_end_headings(struct textgrid *t);
void textgrid_print(const struct textgrid *t, FILE *out); /* only whole rows */
void textgrid_fini(struct textgrid *t);

#endif
