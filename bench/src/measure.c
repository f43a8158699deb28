/* SPDX-License-Identifier: ISC */
#include "measure.h"

#include "child.h"
#include "files.h"
#include "measure_parts.h"
#include "pgbench.h"
#include "stats.h"
#include "trace.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_CLIENTS 10
#define TRACE_SECONDS 4   /* that a run is longer for strace to come and go */
#define GRACE_SECONDS 120 /* that pgbench may take longer than it was told to */

/* ---- watching, for all kinds of runs ---- */

void
watch_begin(struct watch *w, const struct measure_how *how, double limit_s)
{
	memset(w, 0, sizeof(*w));
	w->how = how;
	w->begin = child_now();
	w->limit = w->begin + limit_s;
	w->next_count = w->begin + 0.3;
	w->connections = -1;
	samples_init(&w->samples);
	for (int i = 0; i < how->system->n_pids; i++)
		samples_watch(&w->samples, SAMPLE_POOLER, how->system->pids[i]);
	for (int i = 0; i < how->server->n_nodes; i++)
		samples_watch(&w->samples, SAMPLE_SERVER, how->server->pids[i]);
	samples_take(&w->samples);
}

bool
watch_tick(void *arg)
{
	struct watch *w = arg;
	double now = child_now();

	samples_tick(&w->samples);
	if (now >= w->next_count) {
		int n = server_count_connections(w->how->server);

		if (n > w->connections)
			w->connections = n;
		w->next_count = now + 1;
		if (!system_is_alive(w->how->system, &w->why) || !server_is_alive(w->how->server, &w->why))
			return false;
	}
	if (w->trace != NULL && !trace_tick(w->trace, &w->why))
		return false;
	if (now > w->limit)
		return why_set(&w->why, "still running after %.0f s", now - w->begin);
	return true;
}

static void
store_usage(const struct watch *w, size_t first, size_t last, enum sample_group group, double *user, double *system,
            int64_t *switches)
{
	struct usage usage = samples_usage(&w->samples, group, first, last);

	*user = usage.user_s;
	*system = usage.system_s;
	*switches = usage.switches;
}

void
watch_end(struct watch *w, double from, double to, struct result *out)
{
	size_t first, last;
	char *path = text_fmt("%s.samples.csv", w->how->raw);
	struct why ignored;

	samples_take(&w->samples);
	if (!samples_window(&w->samples, from, to, &first, &last)) {
		/* Too short to look inside: all of it, logins included. */
		first = 0;
		last = w->samples.n - 1;
	} else if (out->tps > 0) {
		out->cpu_transactions = llround(out->tps * (w->samples.all[last].at - w->samples.all[first].at));
	}
	store_usage(w, first, last, SAMPLE_POOLER, &out->pooler_user_s, &out->pooler_system_s, &out->pooler_switches);
	store_usage(w, first, last, SAMPLE_SERVER, &out->server_user_s, &out->server_system_s, &out->server_switches);
	store_usage(w, first, last, SAMPLE_PGBENCH, &out->pgbench_user_s, &out->pgbench_system_s,
	            &out->pgbench_switches);
	if (w->how->system->n_pids > 0) {
		out->pooler_rss_avg_kb = (int64_t)samples_mean_rss_kb(&w->samples, SAMPLE_POOLER, first, last);
		out->pooler_rss_peak_kb = (int64_t)samples_peak_rss_kb(&w->samples, SAMPLE_POOLER, first, last);
	}
	if (w->how->server->pids[0] > 0)
		out->server_rss_peak_kb = (int64_t)samples_peak_rss_kb(&w->samples, SAMPLE_SERVER, first, last);
	if (w->connections >= 0)
		out->server_connections = w->connections;
	(void)samples_write(&w->samples, path, &ignored);
	samples_fini(&w->samples);
	free(path);
}

/* ---- pgbench ---- */

/* Standard output and errors of one pgbench. */
struct pgbench_files {
	char *out, *errors;
};

static bool
run_pgbench(const struct pgbench_how *how, const struct pgbench_files *files, struct watch *watch,
            struct pgbench_report *report, struct why *why)
{
	struct child_how child = {.log = files->out, .errors = files->errors, .stop_signal = SIGKILL};
	struct text_list argv = {0};
	char *text, *line;
	pid_t pid;
	int rc;

	unlink(files->out);
	unlink(files->errors);
	pgbench_arguments(how, &argv);
	pid = child_start(&child, argv.items, why);
	text_list_fini(&argv);
	if (pid < 0)
		return false;
	samples_watch(&watch->samples, SAMPLE_PGBENCH, pid);
	rc = child_wait(pid, watch_tick, watch);
	watch->end = child_now();
	if (rc == -1)
		return why_set(why, "%s", child_stop_asked() ? "interrupted" : watch->why.text);
	text = files_read(files->errors);
	line = text_error_line(text);
	free(text);
	text = files_read(files->out);
	/* A client that breaks off makes the exit code 2, the figures are printed all the same. */
	if (rc != 0)
		why_set(why, "%s%.300s",
		        strncmp(line, "pgbench:", 8) == 0 ? "" : "pgbench: ", line[0] != '\0' ? line : "no message");
	else if (!pgbench_parse(text, how->clients, report))
		why_set(why, "pgbench printed no result");
	else
		rc = -2;
	free(text);
	free(line);
	return rc == -2;
}

static void
remove_logs(const char *prefix)
{
	char *pattern = text_fmt("%s.[0-9]*", prefix);
	glob_t g;

	if (glob(pattern, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			unlink(g.gl_pathv[i]);
		globfree(&g);
	}
	free(pattern);
}

/*
 * pgbench's -T counts from its start, its figures from the moment when all clients are connected: so it is told a longer
 * time, by what ten clients need to connect.
 */
static bool
time_to_connect(const struct measure_how *how, const struct pgbench_how *pgbench, const struct pgbench_files *files,
                double *out, struct why *why)
{
	struct pgbench_how probe = *pgbench;
	struct pgbench_report report;
	struct watch watch;
	bool ok;

	probe.clients = pgbench->clients < PROBE_CLIENTS ? pgbench->clients : PROBE_CLIENTS;
	probe.seconds = 0;
	probe.transactions = 1;
	probe.rate = 0;
	probe.log_prefix = NULL;
	watch_begin(&watch, how, GRACE_SECONDS);
	ok = run_pgbench(&probe, files, &watch, &report, why);
	samples_fini(&watch.samples);
	if (ok)
		*out = isnan(report.connect_ms) ? 0 : report.connect_ms / 1000 / probe.clients * pgbench->clients;
	return ok;
}

static void
store_latency(const char *prefix, struct result *out)
{
	struct stats_latency latency;

	if (!stats_read_log(prefix, 0, UINT64_MAX, &latency, stderr))
		return;
	out->latency_avg_ms = latency.avg_ms;
	out->latency_sd_ms = latency.sd_ms;
	out->latency_p50_ms = latency.p50_ms;
	out->latency_p90_ms = latency.p90_ms;
	out->latency_p99_ms = latency.p99_ms;
	out->latency_p999_ms = latency.p999_ms;
	out->latency_max_ms = latency.max_ms;
}

static void
store_report(const struct pgbench_report *report, double seconds, struct result *out)
{
	out->tps = report->tps;
	out->tps_connecting = report->tps_connecting;
	out->transactions = report->transactions;
	out->failures = report->failed;
	out->connect_ms = report->connect_ms;
	out->latency_avg_ms = report->latency_ms;
	out->duration_s = seconds;
	if (report->skipped >= 0)
		out->skipped = report->skipped;
}

static bool
timed_run(const struct measure_how *how, struct pgbench_how *pgbench, const struct pgbench_files *files,
          double connecting_s, struct trace *trace, struct result *out, struct why *why)
{
	struct pgbench_report report;
	struct watch watch;
	double limit = GRACE_SECONDS + 3 * connecting_s, from, to;
	bool ok;

	if (pgbench->seconds > 0) {
		pgbench->seconds += (int)ceil(connecting_s * 1.2);
		limit += pgbench->seconds;
	} else {
		limit += 1800 + pgbench->transactions; /* nobody knows how long they take */
	}
	watch_begin(&watch, how, limit);
	watch.trace = trace;
	ok = run_pgbench(pgbench, files, &watch, &report, why);
	from = watch.begin + 0.1;
	to = watch.end - 0.05;
	if (ok) {
		double connected = isnan(report.connect_ms) || how->cell->workload->client == CLIENT_RECONNECTS
		                           ? 0
		                           : report.connect_ms / 1000;

		from += connected;
		store_report(&report, watch.end - watch.begin - connected, out);
	}
	watch_end(&watch, from, to, out);
	return ok;
}

/* A run that strace slowed: only what it counted is kept of it. */
static bool
traced_run(const struct measure_how *how, struct pgbench_how *pgbench, const struct pgbench_files *files,
           double connecting_s, struct result *out, struct why *why)
{
	struct result ignored = *out;
	struct trace trace;
	bool ok;

	trace_init(&trace, how->strace, how->raw, pgbench->log_prefix, how->system->pids, how->system->n_pids);
	if (pgbench->seconds > 0)
		pgbench->seconds += TRACE_SECONDS;
	ok = timed_run(how, pgbench, files, connecting_s, &trace, &ignored, why) && trace_store(&trace, out, why);
	out->transactions = ignored.transactions;
	out->failures = ignored.failures;
	out->duration_s = ignored.duration_s;
	trace_fini(&trace);
	return ok;
}

static bool
measure_pgbench(const struct measure_how *how, const char *conninfo, struct result *out, struct why *why)
{
	const struct cell *cell = how->cell;
	bool traced = cell->trace == TRACE_SYSCALLS;
	struct why ignored;
	struct pgbench_files files = {text_fmt("%s.out", how->raw), text_fmt("%s.errors", how->raw)};
	char *prefix = text_fmt("%s.log", how->raw);
	struct pgbench_how pgbench = {.program = how->pgbench,
	                              .workloads = how->workloads,
	                              .conninfo = conninfo,
	                              .cell = cell,
	                              .clients = cell->clients,
	                              .threads = cell->threads,
	                              .seconds = cell->seconds,
	                              .transactions = cell->transactions,
	                              .rate = cell->rate,
	                              .log_prefix = how->logs == LOGS_NONE && !traced ? NULL : prefix};
	struct beside beside = {0};
	double connecting = 0;
	bool ok = pgbench.seconds == 0 || cell->workload->client == CLIENT_RECONNECTS ||
	          time_to_connect(how, &pgbench, &files, &connecting, why);

	remove_logs(prefix);
	ok = ok && (cell->idle == 0 || beside_start(&beside, how, conninfo, cell->idle, why));
	ok = ok && (traced ? traced_run(how, &pgbench, &files, connecting, out, why)
	                   : timed_run(how, &pgbench, &files, connecting, NULL, out, why));
	ok = beside_stop(&beside, ok ? why : &ignored) && ok;
	if (ok && out->transactions == 0)
		ok = why_set(why, "no transaction was completed: connecting took %.0f ms", out->connect_ms);
	if (ok && pgbench.log_prefix != NULL && !traced)
		store_latency(prefix, out);
	if (how->logs != LOGS_KEPT)
		remove_logs(prefix);
	free(prefix);
	free(files.out);
	free(files.errors);
	return ok;
}

bool
measure_run(const struct measure_how *how, struct result *out, struct why *why)
{
	char *conninfo = system_conninfo(how->system, how->cell->workload->tls);
	bool ok = false;

	switch (how->cell->workload->kind) {
	case WORKLOAD_PGBENCH:
		ok = measure_pgbench(how, conninfo, out, why);
		break;
	case WORKLOAD_IDLE:
		ok = measure_idle(how, conninfo, out, why);
		break;
	case WORKLOAD_STORM:
		ok = measure_storm(how, conninfo, out, why);
		break;
	case WORKLOAD_COPY_IN:
	case WORKLOAD_COPY_OUT:
		ok = measure_copy(how, conninfo, out, why);
		break;
	}
	free(conninfo);
	/* If the load failed since the system did, that is the reason to tell. */
	if (!ok && child_stop_asked() == 0)
		(void)system_is_alive(how->system, why);
	return ok;
}
