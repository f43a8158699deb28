/* SPDX-License-Identifier: ISC */
#include "progress.h"

#include "child.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void
progress_init(struct progress *p, size_t n, double guessed_s)
{
	memset(p, 0, sizeof(*p));
	p->n = n;
	p->guessed = guessed_s;
}

/* Seconds, from the guesses and how right they were so far. */
static double
seconds_left(const struct progress *p)
{
	double factor = p->guessed_done > 0 ? p->took / p->guessed_done : 1;

	return p->guessed * factor;
}

static void
print_cell(const struct progress *p, const struct result *r)
{
	int left = (int)seconds_left(p);

	printf("[%zu/%zu, %d:%02d left] %s%s%s, %s%s%s, %lld clients, %s%s: ", p->n_done + 1, p->n, left / 60,
	       left % 60, r->workload, r->mode[0] != '\0' ? " " : "", r->mode, r->topology,
	       r->variant[0] != '\0' ? ", " : "", r->variant, (long long)r->clients, r->system,
	       r->discarded ? " (does not count)" : "");
}

void
progress_begin(struct progress *p, const struct result *r)
{
	print_cell(p, r);
	fflush(stdout);
	p->in_line = true;
	p->begin = child_now();
}

void
progress_measures(struct progress *p)
{
	p->begin = child_now();
}

static void
print_figures(const struct result *r)
{
	double us = result_pooler_us(r);

	if (!isnan(r->mb_per_s))
		printf("%.0f MB/s", r->mb_per_s);
	else if (!isnan(r->tps))
		printf("%.0f tps", r->tps);
	else if (!isnan(r->tps_connecting))
		printf("%.0f logins a second", r->tps_connecting);
	else if (!isnan(r->pooler_calls))
		printf("%.2f system calls per transaction", r->pooler_calls);
	else if (r->pooler_rss_before_kb >= 0)
		printf("%.1f KiB a client, %lld KiB after",
		       (double)(r->pooler_rss_peak_kb - r->pooler_rss_before_kb) / (double)r->clients,
		       (long long)r->pooler_rss_after_kb);
	if (!isnan(r->latency_p99_ms))
		printf(", p99 %.2f ms", r->latency_p99_ms);
	if (!isnan(us))
		printf(", %.1f us of the pooler", us);
	if (r->failures > 0)
		printf(", %lld failures", (long long)r->failures);
}

void
progress_end(struct progress *p, const struct result *r, double guessed_s)
{
	if (strcmp(r->status, "ok") == 0)
		print_figures(r);
	else
		printf("%s%s", p->in_line ? "" : "  ", r->status);
	printf("\n");
	fflush(stdout);
	p->in_line = false;
	p->took += child_now() - p->begin;
	p->guessed_done += guessed_s;
	progress_skip(p, guessed_s);
}

void
progress_skip(struct progress *p, double guessed_s)
{
	p->guessed -= guessed_s;
}

void
progress_note(struct progress *p, const struct result *r)
{
	print_cell(p, r);
	printf("%s\n", r->status);
}

void
progress_break(struct progress *p)
{
	if (p->in_line)
		printf("interrupted\n");
	p->in_line = false;
}

void
progress_complain(struct progress *p, const char *text)
{
	if (p->in_line)
		printf("\n");
	fflush(stdout);
	p->in_line = false;
	fprintf(stderr, "pgweir-bench: %s\n", text);
}
