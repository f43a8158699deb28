/* SPDX-License-Identifier: ISC */
/* A line on the terminal for each run, with the time that is left. */
#ifndef PGWEIR_BENCH_PROGRESS_H
#define PGWEIR_BENCH_PROGRESS_H

#include "result.h"

#include <stddef.h>

struct progress {
	size_t n_done, n;
	double guessed;      /* seconds that all runs were guessed to take */
	double guessed_done; /* of those that are over; and how long they took */
	double took;
	double begin; /* of this run */
	bool in_line; /* a line is begun */
};

void progress_init(struct progress *p, size_t n, double guessed_s);
void progress_begin(struct progress *p, const struct result *r);
void progress_measures(struct progress *p); /* what was before, the start of a server, is not to be expected again */
void progress_end(struct progress *p, const struct result *r, double guessed_s);
void progress_skip(struct progress *p, double guessed_s);
void progress_note(struct progress *p, const struct result *r); /* a whole line: left out, and why */
void progress_break(struct progress *p);                        /* ends a line that was begun: interrupted */
void progress_complain(struct progress *p, const char *text);   /* to standard error, on a line of its own */

#endif
