/* SPDX-License-Identifier: ISC */
#include "run.h"

#include "base/str.h"
#include "child.h"
#include "environment.h"
#include "files.h"
#include "host.h"
#include "measure.h"
#include "progress.h"
#include "report.h"
#include "result.h"
#include "stage.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILES_SPARE 120

struct run {
	struct stage stage;
	struct plan plan;
	struct result_set done;
	struct progress progress;
};

/* ---- the folder of results ---- */

static bool
make_folders(const char *out, struct why *why)
{
	static const char *const parts[] = {"systems", "raw"};

	for (size_t i = 0; i < 2; i++) {
		char *path = text_fmt("%s/%s", out, parts[i]);
		bool ok = files_make_folder(path, why);

		free(path);
		if (!ok)
			return false;
	}
	return true;
}

static char *
default_folder(const char *suite)
{
	const char *given = getenv("TMPDIR");
	char when[32];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	return text_fmt("%s/pgweir-bench-%s-%s", given != NULL && *given == '/' ? given : "/tmp", suite, when);
}

/* The command line, an argument a line, for --resume. */
static bool
keep_arguments(const char *out, int argc, char **argv, struct why *why)
{
	char *path = text_fmt("%s/arguments", out);
	bool ok = files_write(path, "", why);

	for (int i = 1; ok && i < argc; i++) {
		char *line = text_fmt("%s\n", argv[i]);

		ok = strchr(argv[i], '\n') == NULL ? files_append(path, line, why)
		                                   : why_set(why, "a line break in an argument");
		free(line);
	}
	free(path);
	return ok;
}

static bool
open_folder(struct run *r, const struct options *o, int argc, char **argv, struct why *why)
{
	char *wanted = o->resume != NULL ? text_dup(o->resume)
	               : o->out != NULL  ? text_dup(o->out)
	                                 : default_folder(o->suite);
	char *results = text_fmt("%s/results.csv", wanted);
	bool ok = true;

	if (o->resume == NULL && files_exist(results))
		ok = why_set(why, "%s holds results already: go on with --resume %s, or choose another folder", wanted,
		             wanted);
	ok = ok && files_make_folder(wanted, why);
	if (ok && (r->stage.out = realpath(wanted, NULL)) == NULL)
		ok = why_set(why, "%s: %s", wanted, strerror(errno));
	ok = ok && make_folders(r->stage.out, why);
	if (ok && o->resume == NULL)
		ok = keep_arguments(r->stage.out, argc, argv, why);
	if (ok && files_exist(results) && !result_read(r->stage.out, &r->done, stderr))
		ok = why_set(why, "the results in %s cannot be read", wanted);
	free(wanted);
	free(results);
	return ok;
}

/* ---- the plan ---- */

/* One suite with its systems. Cells come with indices into the suite's list: turned into the stage's. */
static bool
add_suite(struct run *r, const struct suite *suite, struct why *why)
{
	const struct options *o = r->stage.options;
	struct plan_changes changes = o->changes;
	struct system_spec *specs;
	size_t n, first = r->plan.n_cells;
	bool ok;

	if (!system_spec_parse_list(o->systems != NULL ? o->systems : suite->systems, &specs, &n, why)) {
		free(specs);
		return false;
	}
	changes.datadirs = &o->datadirs;
	ok = plan_add(&r->plan, suite, o->quick, &changes, n, host_n_cpus(), why);
	for (size_t i = first; ok && i < r->plan.n_cells; i++)
		r->plan.cells[i].system = stage_add_system(&r->stage, &specs[r->plan.cells[i].system]);
	free(specs);
	return ok;
}

static bool
make_plan(struct run *r, struct why *why)
{
	const char *name = r->stage.options->suite;
	const struct suite *suite = suite_find(name);

	if (suite != NULL)
		return add_suite(r, suite, why) && stage_plan(&r->stage, &r->plan, why);
	if (strcmp(name, "all") != 0)
		return suite_refuse(name, why);
	for (size_t i = 0; (suite = suite_at(i)) != NULL; i++)
		if (!add_suite(r, suite, why))
			return false;
	return stage_plan(&r->stage, &r->plan, why);
}

/* ---- one run ---- */

/* Why the system cannot be measured that way; NULL: it can. */
static const char *
unsuited(const struct system_spec *spec, const struct cell *cell)
{
	if (cell->sockets == SOCKETS_UNIX && cell->workload->tls)
		return "there is no TLS over Unix sockets";
	if (cell->sockets == SOCKETS_UNIX && spec->kind == SYSTEM_PGBOUNCER && spec->n_processes > 1)
		return "several processes cannot share a Unix socket";
	if (cell->sockets == SOCKETS_UNIX && spec->kind == SYSTEM_ODYSSEY)
		return "not measured over Unix sockets";
	if (cell->trace == TRACE_SYSCALLS && spec->n_processes == 0)
		return "there is no process of a pooler to trace";
	if (cell->trace == TRACE_SYSCALLS && cell->workload->kind != WORKLOAD_PGBENCH)
		return "only pgbench's workloads are traced";
	return NULL;
}

/* Why the cell is left out; false: it is not. */
static bool
is_left_out(const struct run *r, const struct cell *cell, struct result *result)
{
	const struct stage_system *system = &r->stage.systems[cell->system];
	int clients = cell->clients + cell->idle;
	long files = (system->spec.kind == SYSTEM_HAPROXY ? 2l : 1l) * clients + FILES_SPARE;
	const char *why = unsuited(&system->spec, cell);

	if (system->missing != NULL)
		str_copy(result->status, sizeof(result->status), system->missing);
	else if (system->spec.pool == 0 && system->spec.kind != SYSTEM_OTHER && clients > r->stage.options->max_direct)
		result_set_status(result, "skipped", "a server process for each of %d clients (--max-direct)", clients);
	else if (why != NULL)
		result_set_status(result, "skipped", "%s", why);
	else if (files > r->stage.file_limit)
		result_set_status(result, "skipped", "%ld file descriptors wanted, the limit is %ld (ulimit -n)", files,
		                  r->stage.file_limit);
	else
		return false;
	return true;
}

/* What the run's files are called. Allocated. */
static char *
raw_path(const struct run *r, const struct cell *cell, const struct result *result)
{
	char *name = text_fmt("%s.%s.%s.%s.%s%s%s.c%d.r%d", cell->suite, cell->workload->name, result->system,
	                      cell->mode[0] != '\0' ? cell->mode : "-", result->topology,
	                      result->variant[0] != '\0' ? "." : "", result->variant, cell->clients, cell->run);
	char *path;

	for (char *p = name; *p != '\0'; p++)
		if (strchr("/: ", *p) != NULL)
			*p = '-';
	path = text_fmt("%s/raw/%s", r->stage.out, name);
	free(name);
	return path;
}

/* Tables are loaded directly, not through the pooler; those of a system we were given only as a conninfo through it. */
static bool
prepare_tables(struct run *r, const struct cell *cell, struct server *server, struct why *why)
{
	struct stage_system *system = &r->stage.systems[cell->system];
	char *log = text_fmt("%s/tables.log", r->stage.out), *owner, *admin;
	bool ok;

	if (system->spec.kind == SYSTEM_OTHER) {
		ok = tables_prepare(&system->tables, cell, r->stage.pgbench, system->spec.conninfo, log, why) &&
		     tables_tidy(cell, system->spec.conninfo, why);
		free(log);
		return ok;
	}
	owner = server->folder[0] != '\0' ? text_fmt("host=%s port=%d user=%s dbname=%s", server->host, server->port,
	                                             server->user, server->database)
	                                  : text_dup(server->admin);
	admin = text_fmt("%s dbname='%s'", server->admin, server->database);
	ok = tables_prepare(&r->stage.servers[cell->setup].tables, cell, r->stage.pgbench, owner, log, why) &&
	     tables_tidy(cell, admin, why) && server_settle(server, why);
	free(owner);
	free(admin);
	free(log);
	return ok;
}

static bool
measure_cell(struct run *r, const struct cell *cell, struct server *server, struct result *result, struct why *why)
{
	struct stage_system *it = &r->stage.systems[cell->system];
	bool tls = cell->workload->tls;
	struct system_how how = {.scratch = r->stage.scratch,
	                         .out = r->stage.out,
	                         .cert = tls ? r->stage.cert : NULL,
	                         .key = tls ? r->stage.key : NULL,
	                         .unix_sockets = cell->sockets == SOCKETS_UNIX};
	struct system system;
	struct measure_how measure = {.pgbench = r->stage.pgbench,
	                              .workloads = r->stage.workloads,
	                              .strace = r->stage.strace,
	                              .self = r->stage.self,
	                              .logs = r->stage.options->logs,
	                              .cell = cell,
	                              .system = &system,
	                              .server = server};
	char *raw;
	bool ok;

	/* A fresh process for each run, so that all begin with the same memory. */
	how.hosts = cell->hosts == HOSTS_ALL && !cell->workload->writes ? server->hosts : server->host;
	if (!system_start(&system, &it->spec, it->program, &how, server, cell->clients + cell->idle + 50, why))
		return false;
	if (!it->noted)
		it->noted = environment_note_config(r->stage.out, &it->spec);
	raw = raw_path(r, cell, result);
	measure.raw = raw;
	ok = measure_run(&measure, result, why);
	free(raw);
	system_stop(&system);
	return ok;
}

enum outcome { OUTCOME_GO_ON, OUTCOME_STOP };

/* The run is recorded, whatever came of it, unless we were interrupted. */
static enum outcome
run_cell(struct run *r, const struct cell *cell, struct result *result)
{
	struct server *server;
	struct why why = {""}, death = {""};
	bool ok;

	server = stage_server(&r->stage, &r->plan, cell->setup, &why);
	if (server == NULL) {
		result_set_status(result, "failed", "%s", why.text);
		return OUTCOME_STOP;
	}
	progress_measures(&r->progress);
	result->started = (double)time(NULL);
	ok = prepare_tables(r, cell, server, &why) && measure_cell(r, cell, server, result, &why);
	if (child_stop_asked() != 0)
		return OUTCOME_STOP;
	if (!ok)
		result_set_status(result, "failed", "%s", why.text);
	if (!server_is_alive(server, &death)) {
		result_set_status(result, "failed", "%s", death.text);
		progress_complain(&r->progress, death.text);
		return OUTCOME_STOP;
	}
	return OUTCOME_GO_ON;
}

static bool
record(struct run *r, const struct result *result)
{
	if (result_append(r->stage.out, result, stderr) && result_set_add(&r->done, result))
		return true;
	progress_complain(&r->progress, "the result cannot be written: stopped here");
	return false;
}

static enum outcome
run_or_skip(struct run *r, size_t i)
{
	const struct cell *cell = &r->plan.cells[i];
	enum outcome outcome = OUTCOME_GO_ON;
	struct result result;

	plan_describe(&r->plan, cell, &r->stage.systems[cell->system].spec, &result);
	if (plan_is_done(&r->done, &result)) {
		progress_skip(&r->progress, plan_seconds(cell));
		return OUTCOME_GO_ON;
	}
	if (is_left_out(r, cell, &result)) {
		progress_skip(&r->progress, plan_seconds(cell));
		/* Said once for the cell, not for each of its runs. */
		if (cell->run > 1)
			return OUTCOME_GO_ON;
		progress_note(&r->progress, &result);
	} else {
		progress_begin(&r->progress, &result);
		outcome = run_cell(r, cell, &result);
		if (child_stop_asked() != 0) {
			progress_break(&r->progress);
			return OUTCOME_STOP;
		}
		progress_end(&r->progress, &result, plan_seconds(cell));
	}
	return record(r, &result) ? outcome : OUTCOME_STOP;
}

static bool
run_all(struct run *r)
{
	double seconds = 0;

	for (size_t i = 0; i < r->plan.n_cells; i++)
		seconds += plan_seconds(&r->plan.cells[i]);
	progress_init(&r->progress, r->plan.n_cells, seconds);
	for (size_t i = 0; i < r->plan.n_cells; i++) {
		stage_release(&r->stage, i);
		if (run_or_skip(r, i) == OUTCOME_STOP)
			break;
		r->progress.n_done = i + 1;
	}
	return r->progress.n_done == r->plan.n_cells;
}

/* ---- all of it ---- */

static int
finish(struct run *r, bool complete)
{
	int rc = report_run(r->stage.out, r->stage.options->baseline, stdout, stderr);

	printf("\nresults: %s\n", r->stage.out);
	if (complete)
		return rc;
	printf("not complete; to go on: pgweir-bench run --resume %s\n", r->stage.out);
	return child_stop_asked() != 0 ? 128 + child_stop_asked() : 1;
}

static int
fail(const struct why *why)
{
	if (child_stop_asked() != 0 || why->text[0] != '\0')
		fprintf(stderr, "pgweir-bench: %s\n", child_stop_asked() != 0 ? "interrupted" : why->text);
	return child_stop_asked() != 0 ? 128 + child_stop_asked() : 1;
}

/* One that was given on the command line is looked for before anything is written. */
static bool
reach_server(struct run *r, struct why *why)
{
	return r->stage.options->changes.server == NULL || stage_server(&r->stage, &r->plan, 0, why) != NULL;
}

int
run_main(const struct options *options, int argc, char **argv)
{
	struct run r = {0};
	struct why why = {""};
	int rc;

	child_begin();
	if (stage_init(&r.stage, options, &why) && make_plan(&r, &why) && reach_server(&r, &why) &&
	    open_folder(&r, options, argc, argv, &why) &&
	    environment_note(&r.stage, &r.plan, argc, argv, options->resume != NULL, &why)) {
		bool complete;

		printf("results go to %s\n", r.stage.out);
		complete = run_all(&r);
		for (size_t i = 0; i < r.stage.n_servers; i++)
			server_stop(&r.stage.servers[i].server);
		rc = r.done.n > 0 ? finish(&r, complete) : fail(&why);
	} else {
		rc = fail(&why);
	}
	result_set_fini(&r.done);
	plan_fini(&r.plan);
	stage_fini(&r.stage);
	return rc;
}

int
run_resume(const struct options *options)
{
	char *path = text_fmt("%s/arguments", options->resume), *text = files_read(path);
	struct text_list argv = {0};
	struct options kept;
	struct why why;
	int rc;

	text_list_add(&argv, "pgweir-bench");
	text_list_split(&argv, text, '\n');
	if (argv.n < 2) {
		why_set(&why, "%s: no run to go on with", options->resume);
		rc = fail(&why);
	} else if (!cmdline_parse((int)argv.n, argv.items, &kept, &why) || kept.command != COMMAND_RUN ||
	           kept.suite == NULL) {
		fprintf(stderr, "pgweir-bench: %s is damaged\n", path);
		rc = 1;
	} else {
		kept.resume = options->resume;
		rc = run_main(&kept, (int)argv.n, argv.items);
		cmdline_fini(&kept);
	}
	text_list_fini(&argv);
	free(text);
	free(path);
	return rc;
}
