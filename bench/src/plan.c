/* SPDX-License-Identifier: ISC */
#include "plan.h"

#include "base/str.h"
#include "server.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLIENTS 100000

/* Lists of one line, with the changes, taken apart. */
struct lists {
	struct text_list workloads, modes, setups, clients, idle;
};

static const char *
choose(const char *change, const char *own, const char *usual)
{
	return change != NULL ? change : own != NULL ? own : usual;
}

static void
lists_fini(struct lists *l)
{
	text_list_fini(&l->workloads);
	text_list_fini(&l->modes);
	text_list_fini(&l->setups);
	text_list_fini(&l->clients);
	text_list_fini(&l->idle);
}

static size_t
find_or_add_setup(struct plan *plan, const struct setup *setup)
{
	struct setup *grown;

	for (size_t i = 0; i < plan->n_setups; i++)
		if (strcmp(plan->setups[i].topology, setup->topology) == 0 &&
		    strcmp(plan->setups[i].setting, setup->setting) == 0 &&
		    strcmp(plan->setups[i].datadir, setup->datadir) == 0)
			return i;
	grown = text_alloc((plan->n_setups + 1) * sizeof(*grown));
	if (plan->n_setups > 0)
		memcpy(grown, plan->setups, plan->n_setups * sizeof(*grown));
	free(plan->setups);
	plan->setups = grown;
	grown[plan->n_setups] = *setup;
	return plan->n_setups++;
}

static bool
parse_setup(const char *text, const char *datadir, struct setup *out, struct why *why)
{
	const char *blank = strchr(text, ' ');

	memset(out, 0, sizeof(*out));
	if ((size_t)snprintf(out->topology, sizeof(out->topology), "%.*s",
	                     (int)(blank != NULL ? blank - text : (long)strlen(text)), text) >= sizeof(out->topology) ||
	    (blank != NULL && !str_copy(out->setting, sizeof(out->setting), blank + 1)) ||
	    !str_copy(out->datadir, sizeof(out->datadir), datadir))
		return why_set(why, "%s %s: too long", text, datadir);
	return true;
}

/* CLIENTS or CLIENTS/THREADS. */
static bool
parse_clients(const char *text, int default_threads, struct cell *cell, struct why *why)
{
	char *copy = text_dup(text), *slash = strchr(copy, '/');
	int64_t clients = 0, threads = 0;
	bool ok;

	if (slash != NULL)
		*slash = '\0';
	ok = str_parse_int(copy, 1, MAX_CLIENTS, &clients) &&
	     (slash == NULL || str_parse_int(slash + 1, 1, 1000, &threads));
	free(copy);
	if (!ok)
		return why_set(why, "%s: clients are written as CLIENTS or CLIENTS/THREADS", text);
	if (threads == 0)
		threads = default_threads;
	cell->clients = (int)clients;
	cell->threads = threads > clients ? (int)clients : (int)threads;
	return true;
}

static void
add_cell(struct plan *plan, const struct cell *cell)
{
	if ((plan->n_cells & (plan->n_cells - 1)) == 0) {
		struct cell *grown = text_alloc((plan->n_cells == 0 ? 1 : plan->n_cells * 2) * sizeof(*grown));

		if (plan->n_cells > 0)
			memcpy(grown, plan->cells, plan->n_cells * sizeof(*grown));
		free(plan->cells);
		plan->cells = grown;
	}
	plan->cells[plan->n_cells++] = *cell;
}

/* Only pgbench's clients have others beside them. */
static bool
add_for_idle(struct plan *plan, struct cell *cell, const struct lists *l, size_t n_systems, struct why *why)
{
	size_t n = cell->workload->kind == WORKLOAD_PGBENCH ? l->idle.n : 1;

	for (size_t i = 0; i < n; i++) {
		int64_t idle = 0;

		if (l->idle.n > 0 && !str_parse_int(l->idle.items[i], 0, MAX_CLIENTS, &idle))
			return why_set(why, "%s: --idle wants numbers of clients", l->idle.items[i]);
		cell->idle = cell->workload->kind == WORKLOAD_PGBENCH ? (int)idle : 0;
		for (cell->system = 0; cell->system < n_systems; cell->system++)
			add_cell(plan, cell);
	}
	return true;
}

/* The setups of a line, times the data directories. */
static bool
add_for_setups(struct plan *plan, struct cell *cell, const struct lists *l, const struct plan_changes *changes,
               size_t n_systems, struct why *why)
{
	size_t n_dirs = changes->datadirs != NULL && changes->datadirs->n > 0 ? changes->datadirs->n : 1;

	for (size_t i = 0; i < l->setups.n; i++)
		for (size_t dir = 0; dir < n_dirs; dir++) {
			const char *datadir = changes->datadirs != NULL && changes->datadirs->n > 0
			                              ? changes->datadirs->items[dir]
			                              : "";
			struct setup setup;

			if (!parse_setup(l->setups.items[i], datadir, &setup, why))
				return false;
			cell->setup = find_or_add_setup(plan, &setup);
			if (!add_for_idle(plan, cell, l, n_systems, why))
				return false;
		}
	return true;
}

static bool
add_for_clients(struct plan *plan, struct cell *cell, const struct lists *l, const struct plan_changes *changes,
                size_t n_systems, int default_threads, struct why *why)
{
	for (size_t i = 0; i < l->clients.n; i++)
		if (!parse_clients(l->clients.items[i], default_threads, cell, why) ||
		    !add_for_setups(plan, cell, l, changes, n_systems, why))
			return false;
	return true;
}

static bool
add_for_modes(struct plan *plan, struct cell *cell, const struct lists *l, const struct plan_changes *changes,
              size_t n_systems, int default_threads, struct why *why)
{
	bool modeless = cell->workload->kind != WORKLOAD_PGBENCH;

	if (modeless || l->modes.n == 0) {
		str_copy(cell->mode, sizeof(cell->mode), modeless ? "" : "simple");
		return add_for_clients(plan, cell, l, changes, n_systems, default_threads, why);
	}
	for (size_t i = 0; i < l->modes.n; i++) {
		const char *mode = l->modes.items[i];

		if (strcmp(mode, "simple") != 0 && strcmp(mode, "extended") != 0 && strcmp(mode, "prepared") != 0)
			return why_set(why, "unknown query mode %s (simple, extended, prepared)", mode);
		str_copy(cell->mode, sizeof(cell->mode), mode);
		if (!add_for_clients(plan, cell, l, changes, n_systems, default_threads, why))
			return false;
	}
	return true;
}

/* The line's numbers, with the changes. */
static void
set_numbers(struct cell *cell, const struct suite_line *line, const struct plan_changes *changes)
{
	cell->scale = changes->scale > 0 ? changes->scale : line->scale > 0 ? line->scale : 1;
	cell->seconds = line->seconds;
	cell->transactions = line->transactions;
	if (changes->seconds > 0) {
		cell->seconds = changes->seconds;
		cell->transactions = 0;
	}
	if (changes->transactions > 0) {
		cell->transactions = changes->transactions;
		cell->seconds = 0;
	}
	if (cell->seconds == 0 && cell->transactions == 0)
		cell->seconds = 10;
	cell->rate = changes->rate > 0 ? changes->rate : line->rate;
	cell->copy_mb = changes->copy_mb > 0 ? changes->copy_mb : line->copy_mb > 0 ? line->copy_mb : 1024;
	cell->data = line->data;
	cell->hosts = changes->hosts == HOSTS_ALL ? HOSTS_ALL : line->hosts;
	cell->sockets = changes->sockets;
	cell->trace = changes->trace;
}

static bool
add_line(struct plan *plan, const struct suite *suite, const struct suite_line *line,
         const struct plan_changes *changes, size_t n_systems, int n_cpus, struct why *why)
{
	struct cell cell = {.suite = suite->name};
	struct lists l = {0};
	int runs = changes->runs > 0 ? changes->runs : line->runs;
	int discard = changes->discard >= 0 ? changes->discard : line->discard < runs ? line->discard : runs - 1;
	bool ok = discard < runs ? true
	                         : why_set(why, "%d runs, of which the first %d do not count: nothing would be left",
	                                   runs, discard);

	set_numbers(&cell, line, changes);
	text_list_split(&l.workloads, choose(changes->workloads, line->workloads, ""), ',');
	text_list_split(&l.modes, choose(changes->modes, line->modes, "simple"), ',');
	text_list_split(&l.setups, changes->server != NULL ? "server" : choose(changes->setups, line->setups, "single"),
	                ',');
	text_list_split(&l.clients, choose(changes->clients, line->clients, ""), ',');
	text_list_split(&l.idle, choose(changes->idle, line->idle, "0"), ',');
	for (cell.run = 1; ok && cell.run <= runs; cell.run++) {
		cell.discarded = cell.run <= discard;
		for (size_t i = 0; ok && i < l.workloads.n; i++) {
			cell.workload = workload_find(l.workloads.items[i]);
			ok = cell.workload == NULL
			             ? workload_refuse(l.workloads.items[i], why)
			             : add_for_modes(plan, &cell, &l, changes, n_systems,
			                             changes->threads > 0 ? changes->threads : n_cpus, why);
		}
	}
	lists_fini(&l);
	return ok;
}

bool
plan_add(struct plan *plan, const struct suite *suite, bool quick, const struct plan_changes *changes, size_t n_systems,
         int n_cpus, struct why *why)
{
	const struct suite_line *line = quick ? suite->quick : suite->lines;

	for (; line->workloads != NULL; line++) {
		if (!add_line(plan, suite, line, changes, n_systems, n_cpus, why))
			return false;
		/* With workloads of one's own, the other lines would be the same again. */
		if (changes->workloads != NULL)
			break;
	}
	return true;
}

void
plan_fini(struct plan *plan)
{
	free(plan->cells);
	free(plan->setups);
	*plan = (struct plan){0};
}

/* What sets the cell apart that has no column of its own. */
static void
describe_variant(const struct setup *setup, const struct cell *cell, char *out, size_t cap)
{
	struct text_list parts = {0};
	size_t len = 0;

	if (setup->setting[0] != '\0')
		text_list_add(&parts, setup->setting);
	if (setup->datadir[0] != '\0')
		text_list_add(&parts, setup->datadir);
	if (cell->workload->kind == WORKLOAD_COPY_IN || cell->workload->kind == WORKLOAD_COPY_OUT)
		text_list_addf(&parts, "%d MiB", cell->copy_mb);
	if (cell->idle > 0)
		text_list_addf(&parts, "beside %d idle", cell->idle);
	if (cell->sockets == SOCKETS_UNIX)
		text_list_add(&parts, "Unix sockets");
	if (cell->trace == TRACE_SYSCALLS)
		text_list_add(&parts, "strace");
	out[0] = '\0';
	for (size_t i = 0; i < parts.n && len < cap; i++)
		len += (size_t)snprintf(out + len, cap - len, "%s%s", i > 0 ? ", " : "", parts.items[i]);
	text_list_fini(&parts);
}

void
plan_describe(const struct plan *plan, const struct cell *cell, const struct system_spec *system, struct result *out)
{
	const struct setup *setup = &plan->setups[cell->setup];

	result_init(out);
	str_copy(out->suite, sizeof(out->suite), cell->suite);
	str_copy(out->workload, sizeof(out->workload), cell->workload->name);
	str_copy(out->mode, sizeof(out->mode), cell->mode);
	str_copy(out->system, sizeof(out->system), system->name);
	str_copy(out->topology, sizeof(out->topology), setup->topology);
	describe_variant(setup, cell, out->variant, sizeof(out->variant));
	out->scale = cell->workload->tables == TABLES_NONE ? RESULT_UNKNOWN : cell->scale;
	out->clients = cell->clients;
	out->threads = cell->workload->kind == WORKLOAD_PGBENCH ? cell->threads : RESULT_UNKNOWN;
	out->run = cell->run;
	out->discarded = cell->discarded;
	if (cell->rate > 0)
		out->rate = cell->rate;
}

bool
plan_is_done(const struct result_set *done, const struct result *described)
{
	for (size_t i = 0; i < done->n; i++)
		if (done->rows[i].run == described->run && result_same_cell(&done->rows[i], described))
			return true;
	return false;
}

/* ---- how long it takes, on two CPUs that have nothing else to do ---- */

#define SETUP_SECONDS 4 /* initdb and the first start */
#define STANDBY_SECONDS 3
#define LOAD_SECONDS 0.4 /* of pgbench's scale 1 */

double
plan_seconds(const struct cell *cell)
{
	double start = 1.5 + cell->idle * 0.001;

	if (cell->data == DATA_AFRESH)
		start += cell->scale * LOAD_SECONDS;
	switch (cell->workload->kind) {
	case WORKLOAD_IDLE:
		return start + 5 + cell->clients * (cell->workload->tls ? 0.003 : 0.0007);
	case WORKLOAD_STORM:
		return start + cell->clients * 0.001;
	case WORKLOAD_COPY_IN:
	case WORKLOAD_COPY_OUT:
		return start + cell->copy_mb / 200.0;
	case WORKLOAD_PGBENCH:
		break;
	}
	start += cell->clients * 0.002;
	return cell->seconds > 0 ? start + cell->seconds : start + (double)cell->clients * cell->transactions / 1000;
}

/* Each setup has its server, which is loaded anew for each kind of tables and whenever the scale changes. */
static double
load_seconds(const struct plan *plan, size_t setup)
{
	int loaded[] = {[TABLES_NONE] = 0, [TABLES_PGBENCH] = 0, [TABLES_YCSB] = 0};
	double seconds = 0;

	for (size_t i = 0; i < plan->n_cells; i++) {
		const struct cell *cell = &plan->cells[i];
		enum workload_tables tables = cell->workload->tables;

		if (cell->setup != setup || tables == TABLES_NONE || loaded[tables] == cell->scale)
			continue;
		seconds += cell->scale * LOAD_SECONDS;
		loaded[tables] = cell->scale;
	}
	return seconds;
}

double
plan_total_seconds(const struct plan *plan)
{
	double seconds = 0;

	for (size_t i = 0; i < plan->n_cells; i++)
		seconds += plan_seconds(&plan->cells[i]);
	for (size_t i = 0; i < plan->n_setups; i++) {
		struct topology topology;
		struct why why;

		seconds += SETUP_SECONDS + load_seconds(plan, i);
		if (topology_parse(plan->setups[i].topology, &topology, &why))
			seconds += topology.n_standbys * STANDBY_SECONDS;
	}
	return seconds;
}

char *
plan_duration(const struct suite *suite, bool quick, int n_cpus)
{
	static const struct plan_changes none = {.discard = -1};
	struct system_spec *systems;
	struct plan plan = {0};
	struct why why;
	size_t n;
	char *text = system_spec_parse_list(suite->systems, &systems, &n, &why) &&
	                             plan_add(&plan, suite, quick, &none, n, n_cpus, &why)
	                     ? text_duration(plan_total_seconds(&plan))
	                     : text_dup(why.text);

	plan_fini(&plan);
	free(systems);
	return text;
}
