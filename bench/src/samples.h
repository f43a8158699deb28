/* SPDX-License-Identifier: ISC */
/*
 * What /proc and the processes' CPU clocks tell while a run goes on: of the pooler, of the server with all its children,
 * and of pgbench. Samples are taken every 100 ms, or less often where looking at a thousand processes would weigh on the
 * run: it takes at most about 3 % of one CPU.
 */
#ifndef PGWEIR_BENCH_SAMPLES_H
#define PGWEIR_BENCH_SAMPLES_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sample_group { SAMPLE_POOLER, SAMPLE_SERVER, SAMPLE_PGBENCH, SAMPLE_N_GROUPS };

/* All values since the processes began, but for memory. */
struct sample {
	double at; /* child_now() */
	struct {
		uint64_t cpu_ns;     /* user and system; exact */
		uint64_t user_ticks; /* how they divide */
		uint64_t system_ticks;
		uint64_t switches;
		uint64_t rss_kb; /* of the server: what is private to each process, and what they share once */
		int n_processes;
	} of[SAMPLE_N_GROUPS];
};

struct samples {
	struct {
		pid_t pids[32];
		int n;
	} groups[SAMPLE_N_GROUPS];
	struct sample *all;
	size_t n, cap;
	double next;
};

void samples_init(struct samples *s);
void samples_fini(struct samples *s);
/* Of SAMPLE_SERVER, its children count, too: also those that come and go. */
void samples_watch(struct samples *s, enum sample_group group, pid_t pid);
/* Takes a sample if it is time. */
void samples_tick(struct samples *s);
void samples_take(struct samples *s); /* now */

/* What was used between two samples. */
struct usage {
	double user_s, system_s; /* NAN: not known */
	int64_t switches;        /* -1: not known */
};

/* The first sample at or after `from`, and the last one up to `to`. False: not two different ones. */
bool samples_window(const struct samples *s, double from, double to, size_t *first, size_t *last);
struct usage samples_usage(const struct samples *s, enum sample_group group, size_t first, size_t last);
uint64_t samples_peak_rss_kb(const struct samples *s, enum sample_group group, size_t first, size_t last);
uint64_t samples_mean_rss_kb(const struct samples *s, enum sample_group group, size_t first, size_t last);
uint64_t samples_rss_kb(const pid_t *pids, int n); /* now */

/* A line for each sample: seconds since the first, then CPU seconds and KiB of each group. */
bool samples_write(const struct samples *s, const char *path, struct why *why);

#endif
