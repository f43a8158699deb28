/* SPDX-License-Identifier: ISC */
#include "published.h"

#include <math.h>
#include <string.h>

#define XC(workload, clients, threads, tps)                                                                            \
	{                                                                                                              \
		"postgres-xc-2013", workload, "", NULL, "three servers", clients, threads, METRIC_TPS, tps, NAN        \
	}
#define PGCLUSTER(workload, topology, subject, clients, metric, tps)                                                   \
	{                                                                                                              \
		"pgcluster-normal-reliable", workload, topology, NULL, subject, clients, RESULT_UNKNOWN, metric, tps,  \
			NAN                                                                                            \
	}
#define FILESYSTEM(subject, tps, sd)                                                                                   \
	{                                                                                                              \
		"filesystems-2006", "tpcb", "", NULL, subject, 20, RESULT_UNKNOWN, METRIC_TPS, tps, sd                 \
	}
#define STORAGE(topology, subject, tps)                                                                                \
	{                                                                                                              \
		"replicated-storage-2007", "tpcb", topology, "", subject, 100, RESULT_UNKNOWN, METRIC_TPS, tps, NAN    \
	}

const struct published published_figures[] = {
	XC("tpcb", 16, 8, 170),
	XC("tpcb", 16, 16, 232),
	XC("tpcb", 96, 8, 423),
	XC("tpcb", 64, 32, 234),
	XC("tpcb", 64, 64, 233),
	XC("tpcb", 104, 8, 542),
	XC("select-only", 16, 8, 1041),
	XC("select-only", 16, 16, 999),
	XC("select-only", 96, 8, 1930),
	XC("select-only", 64, 32, 2072),
	XC("select-only", 64, 64, 1530),
	XC("select-only", 104, 8, 4770),
	/* Two repetitions of each. */
	PGCLUSTER("tpcb", "replicas", "normal mode", 10, METRIC_TPS, 15.5),
	PGCLUSTER("tpcb", "replicas", "normal mode", 10, METRIC_TPS, 12.5),
	PGCLUSTER("tpcb", "replicas", "normal mode", 20, METRIC_TPS, 2.6),
	PGCLUSTER("tpcb", "replicas", "normal mode", 20, METRIC_TPS, 2.7),
	PGCLUSTER("tpcb", "sync", "reliable mode", 10, METRIC_TPS, 10.7),
	PGCLUSTER("tpcb", "sync", "reliable mode", 10, METRIC_TPS, 11.6),
	PGCLUSTER("tpcb", "sync", "reliable mode", 20, METRIC_TPS, 1.0),
	PGCLUSTER("tpcb", "sync", "reliable mode", 20, METRIC_TPS, 1.5),
	PGCLUSTER("select-only", "", "with connecting", 20, METRIC_TPS_CONNECTING, 99),
	PGCLUSTER("select-only", "", "without connecting", 20, METRIC_TPS, 499),
	FILESYSTEM("JFS", 462, 104),
	FILESYSTEM("XFS", 425, 74),
	FILESYSTEM("ext3", 319, 106),
	FILESYSTEM("XFS, a later kernel", 814, 130),
	FILESYSTEM("ext3, another machine, lowest", 520, NAN),
	FILESYSTEM("ext3, another machine, highest", 530, NAN),
	STORAGE("single", "local", 122.0),
	STORAGE("sync", "replicated", 60.9),
};

const size_t n_published_figures = sizeof(published_figures) / sizeof(published_figures[0]);

bool
published_matches(const struct published *p, const struct result *r)
{
	return strcmp(p->suite, r->suite) == 0 && strcmp(p->workload, r->workload) == 0 &&
	       strncmp(p->topology, r->topology, strlen(p->topology)) == 0 &&
	       (p->variant == NULL || strcmp(p->variant, r->variant) == 0) &&
	       (p->clients == RESULT_UNKNOWN || p->clients == r->clients) &&
	       (p->threads == RESULT_UNKNOWN || p->threads == r->threads);
}
