/* SPDX-License-Identifier: ISC */
#include "workload.h"

#include "files.h"
#include "nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define YCSB_ROWS 100000 /* per scale */
#define YCSB_THETA 0.99

static const struct workload workloads[] = {
	{"tpcb", "pgbench's TPC-B-like transaction: 3 updates, a select, an insert", WORKLOAD_PGBENCH,
         "builtin:tpcb-like", TABLES_PGBENCH, CLIENT_STAYS, false, true},
	{"simple-update", "the same without the updates that all clients contend for", WORKLOAD_PGBENCH,
         "builtin:simple-update", TABLES_PGBENCH, CLIENT_STAYS, false, true},
	{"select-only", "one indexed select", WORKLOAD_PGBENCH, "builtin:select-only", TABLES_PGBENCH, CLIENT_STAYS,
         false, false},
	{"select1", "select 1: nothing but overhead", WORKLOAD_PGBENCH, "select1.sql", TABLES_NONE, CLIENT_STAYS, false,
         false},
	{"ycsb-a", "half reads, half updates of 1000-byte rows, Zipf keys (0.99)", WORKLOAD_PGBENCH,
         "ycsb-read.sql@50,ycsb-update.sql@50", TABLES_YCSB, CLIENT_STAYS, false, true},
	{"ycsb-b", "19 reads to an update", WORKLOAD_PGBENCH, "ycsb-read.sql@95,ycsb-update.sql@5", TABLES_YCSB,
         CLIENT_STAYS, false, true},
	{"ycsb-c", "reads only", WORKLOAD_PGBENCH, "ycsb-read.sql", TABLES_YCSB, CLIENT_STAYS, false, false},
	{"reconnect", "a login for each select 1", WORKLOAD_PGBENCH, "select1.sql", TABLES_NONE, CLIENT_RECONNECTS,
         false, false},
	{"tls", "select 1 over TLS between client and pooler", WORKLOAD_PGBENCH, "select1.sql", TABLES_NONE,
         CLIENT_STAYS, true, false},
	{"reconnect-tls", "a login over TLS for each select 1", WORKLOAD_PGBENCH, "select1.sql", TABLES_NONE,
         CLIENT_RECONNECTS, true, false},
	{"mixed", "99 short selects to one that takes long: who waits for whom", WORKLOAD_PGBENCH,
         "select-short.sql@99,select-long.sql@1", TABLES_PGBENCH, CLIENT_STAYS, false, false},
	{"idle-in-transaction", "one transaction in ten thinks for 20 ms between its two selects", WORKLOAD_PGBENCH,
         "select-short.sql@9,think-in-transaction.sql@1", TABLES_PGBENCH, CLIENT_STAYS, false, false},
	{"beside-idle", "select-only while other clients stay connected and do nothing (--idle)", WORKLOAD_PGBENCH,
         "builtin:select-only", TABLES_PGBENCH, CLIENT_STAYS, false, false},
	{"open-loop", "select-only at a fixed rate: latency counts from when a transaction was due", WORKLOAD_PGBENCH,
         "builtin:select-only", TABLES_PGBENCH, CLIENT_STAYS, false, false},
	{"copy-out", "COPY TO STDOUT of 1 GiB by each client", WORKLOAD_COPY_OUT, "", TABLES_NONE, CLIENT_STAYS, false,
         false},
	{"copy-in", "COPY FROM STDIN of 1 GiB by each client", WORKLOAD_COPY_IN, "", TABLES_NONE, CLIENT_STAYS, false,
         true},
	{"idle", "memory of clients that do nothing, and what is given back", WORKLOAD_IDLE, "", TABLES_NONE,
         CLIENT_STAYS, false, false},
	{"idle-tls", "the same over TLS", WORKLOAD_IDLE, "", TABLES_NONE, CLIENT_STAYS, true, false},
	{"storm", "all clients log in at once", WORKLOAD_STORM, "", TABLES_NONE, CLIENT_STAYS, false, false},
};

#define N_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

const struct workload *
workload_at(size_t i)
{
	return i < N_WORKLOADS ? &workloads[i] : NULL;
}

const struct workload *
workload_find(const char *name)
{
	for (size_t i = 0; i < N_WORKLOADS; i++)
		if (strcmp(workloads[i].name, name) == 0)
			return &workloads[i];
	return NULL;
}

static const char *
name_at(size_t i)
{
	return i < N_WORKLOADS ? workloads[i].name : NULL;
}

bool
workload_refuse(const char *name, struct why *why)
{
	return nearest_refuse(why, "workload", name, name_at, "pgweir-bench list");
}

void
workload_list(FILE *out)
{
	for (size_t i = 0; i < N_WORKLOADS; i++)
		fprintf(out, "  %-20s %s\n", workloads[i].name, workloads[i].meaning);
}

long
workload_rows(const struct workload *w, int scale)
{
	switch (w->tables) {
	case TABLES_PGBENCH:
		return scale * 100000l;
	case TABLES_YCSB:
		return scale * (long)YCSB_ROWS;
	case TABLES_NONE:
		break;
	}
	return 0;
}

struct zipf
zipf_constants(long n, double theta)
{
	double zetan = 0, zeta2 = 1 + pow(0.5, theta);
	struct zipf z;

	for (long i = 1; i <= n; i++)
		zetan += 1 / pow((double)i, theta);
	z.zetan = zetan;
	z.second = zeta2;
	z.alpha = 1 / (1 - theta);
	z.eta = (1 - pow(2 / (double)n, 1 - theta)) / (1 - zeta2 / zetan);
	return z;
}

static void
define(struct text_list *argv, const char *name, double value)
{
	text_list_addf(argv, "--define=%s=%.15g", name, value);
}

void
workload_arguments(const struct workload *w, const char *folder, long rows, struct text_list *argv)
{
	struct text_list scripts = {0};

	text_list_split(&scripts, w->scripts, ',');
	for (size_t i = 0; i < scripts.n; i++) {
		if (strncmp(scripts.items[i], "builtin:", 8) == 0)
			text_list_addf(argv, "--builtin=%s", scripts.items[i] + 8);
		else
			text_list_addf(argv, "--file=%s/%s", folder, scripts.items[i]);
	}
	text_list_fini(&scripts);
	if (rows > 0)
		text_list_addf(argv, "--define=rows=%ld", rows);
	if (w->tables == TABLES_YCSB) {
		struct zipf z = zipf_constants(rows, YCSB_THETA);

		define(argv, "zetan", z.zetan);
		define(argv, "second", z.second);
		define(argv, "eta", z.eta);
		define(argv, "alpha", z.alpha);
	}
}

bool
workload_check(const struct workload *w, const char *folder, struct why *why)
{
	struct text_list scripts = {0};
	bool ok = true;

	text_list_split(&scripts, w->scripts, ',');
	for (size_t i = 0; ok && i < scripts.n; i++) {
		char *path = text_fmt("%s/%.*s", folder, (int)strcspn(scripts.items[i], "@"), scripts.items[i]);

		if (strncmp(scripts.items[i], "builtin:", 8) != 0 && !files_exist(path))
			ok = why_set(why, "the workload %s wants %s", w->name, path);
		free(path);
	}
	text_list_fini(&scripts);
	return ok;
}

char *
workload_find_folder(void)
{
	const char *given = getenv("PGWEIR_BENCH_WORKLOADS");
	char *own = files_own_folder(), *path = NULL;
	const char *const beside[] = {"bench/workloads", "../share/pgweir/workloads", "../bench/workloads",
	                              "../../bench/workloads"};

	if (given != NULL && *given != '\0') {
		free(own);
		return text_dup(given);
	}
	for (size_t i = 0; path == NULL && i < sizeof(beside) / sizeof(beside[0]); i++) {
		path = text_fmt("%s/%s", own, beside[i]);
		if (!files_exist(path)) {
			free(path);
			path = NULL;
		}
	}
	free(own);
	if (path == NULL && files_exist("bench/workloads"))
		path = text_dup("bench/workloads");
	return path;
}
