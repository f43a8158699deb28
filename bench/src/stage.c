/* SPDX-License-Identifier: ISC */
#include "stage.h"

#include "base/str.h"
#include "certificate.h"
#include "child.h"
#include "files.h"
#include "host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SPARE_CONNECTIONS 60     /* of the server, beside those of clients */
#define SPARE_BYTES (3ull << 30) /* for WAL and what runs add */

static const char *
temporary_folder(void)
{
	const char *given = getenv("TMPDIR");

	return given != NULL && *given == '/' && strlen(given) < 100 && child_user_can_enter(given) ? given : "/tmp";
}

static bool
make_scratch(struct stage *s, struct why *why)
{
	char *path = text_fmt("%s/pgweir-bench.XXXXXX", temporary_folder());

	if (mkdtemp(path) == NULL) {
		why_set(why, "cannot make a folder: %s: %s", path, strerror(errno));
		free(path);
		return false;
	}
	s->scratch = path;
	if (!child_give_folder(path))
		return why_set(why, "cannot give %s to the servers' user: %s", path, strerror(errno));
	s->cert = text_fmt("%s/server.crt", path);
	s->key = text_fmt("%s/server.key", path);
	return certificate_write(s->cert, s->key, why) && child_give_folder(s->key) && child_give_folder(s->cert);
}

static bool
find_pgbench(struct stage *s, struct why *why)
{
	const char *given = s->options->pgbench;
	char *path = NULL;

	if (given == NULL && s->bindir != NULL) {
		char *beside = text_fmt("%s/pgbench", s->bindir);

		path = files_find_program(beside);
		free(beside);
	}
	s->pgbench = path != NULL ? path : files_find_program(given != NULL ? given : "pgbench");
	return s->pgbench != NULL ? true
	                          : why_set(why,
	                                    "%s not found (Debian, Ubuntu: apt install postgresql-contrib or "
	                                    "postgresql)",
	                                    given != NULL ? given : "pgbench");
}

static bool
find_strace(struct stage *s, struct why *why)
{
	s->strace = files_find_program("strace");
	return s->strace != NULL || s->options->changes.trace == TRACE_NOTHING
	               ? true
	               : why_set(why, "--strace: strace is not installed (Debian, Ubuntu: apt install strace)");
}

bool
stage_init(struct stage *s, const struct options *options, struct why *why)
{
	char self[PATH_MAX], *folder;

	memset(s, 0, sizeof(*s));
	s->options = options;
	s->file_limit = host_raise_file_limit(65536);
	if (realpath("/proc/self/exe", self) == NULL)
		return why_set(why, "/proc is not mounted");
	s->self = text_dup(self);
	if (!child_choose_user(why))
		return false;
	folder = workload_find_folder();
	if (folder == NULL || (s->workloads = realpath(folder, NULL)) == NULL) {
		why_set(why, "the folder of the workloads is not found: set PGWEIR_BENCH_WORKLOADS");
		free(folder);
		return false;
	}
	free(folder);
	s->bindir = server_find_bindir();
	if (s->bindir == NULL && options->changes.server == NULL)
		return why_set(why,
		               "no PostgreSQL server found (Debian, Ubuntu: apt install postgresql; or set PG_BINDIR)");
	return find_pgbench(s, why) && find_strace(s, why) && make_scratch(s, why);
}

static void
fini_system(struct stage_system *system)
{
	free(system->program);
	free(system->missing);
	free(system->version);
}

void
stage_fini(struct stage *s)
{
	for (size_t i = 0; i < s->n_servers; i++)
		server_stop(&s->servers[i].server);
	free(s->servers);
	for (size_t i = 0; i < s->n_systems; i++)
		fini_system(&s->systems[i]);
	free(s->systems);
	if (s->scratch != NULL)
		files_remove_tree(s->scratch);
	free(s->scratch);
	free(s->out);
	free(s->bindir);
	free(s->pgbench);
	free(s->strace);
	free(s->workloads);
	free(s->self);
	free(s->cert);
	free(s->key);
	memset(s, 0, sizeof(*s));
}

/* The program that was given on the command line, or pgweir's beside this one. Allocated or NULL. */
static char *
given_program(const struct options *o, enum system_kind kind)
{
	const char *given = kind == SYSTEM_PGWEIR      ? o->pgweir
	                    : kind == SYSTEM_PGBOUNCER ? o->pgbouncer
	                    : kind == SYSTEM_ODYSSEY   ? o->odyssey
	                    : kind == SYSTEM_HAPROXY   ? o->haproxy
	                                               : NULL;
	char *own, *beside;

	if (given != NULL)
		return text_dup(given);
	if (kind != SYSTEM_PGWEIR)
		return NULL;
	if (getenv("PGWEIR") != NULL)
		return text_dup(getenv("PGWEIR"));
	own = files_own_folder();
	beside = text_fmt("%s/pgweir", own);
	free(own);
	if (files_exist(beside))
		return beside;
	free(beside);
	return NULL;
}

size_t
stage_add_system(struct stage *s, const struct system_spec *spec)
{
	struct stage_system *grown;
	struct why why;
	char *given;

	for (size_t i = 0; i < s->n_systems; i++)
		if (strcmp(s->systems[i].spec.name, spec->name) == 0)
			return i;
	grown = text_alloc((s->n_systems + 1) * sizeof(*grown));
	if (s->n_systems > 0)
		memcpy(grown, s->systems, s->n_systems * sizeof(*grown));
	free(s->systems);
	s->systems = grown;
	grown += s->n_systems;
	grown->spec = *spec;
	if (spec->n_processes > 0) {
		given = given_program(s->options, spec->kind);
		grown->program = system_find_program(spec, given, s->scratch, &why);
		free(given);
		if (grown->program == NULL)
			grown->missing = text_dup(why.text);
		else
			grown->version = system_version(spec, grown->program);
	}
	return s->n_systems++;
}

/* ---- servers ---- */

static const char *
data_folder(const struct stage *s, const struct setup *setup)
{
	return setup->datadir[0] != '\0' ? setup->datadir : s->scratch;
}

/* Each node has the tables; loading them writes them to the WAL, too. */
static bool
check_space(const struct stage *s, const struct setup *setup, int scale, struct why *why)
{
	const char *folder = data_folder(s, setup);
	uint64_t available = files_free_bytes(folder), needed;
	struct topology topology;

	if (strcmp(setup->topology, "server") == 0)
		return true;
	if (!topology_parse(setup->topology, &topology, why))
		return false;
	needed = (uint64_t)(topology.n_standbys + 1) * (server_size_of_scale(scale) * 2 + SPARE_BYTES / 4);
	if (available == 0)
		return why_set(why, "%s: %s", folder, strerror(errno));
	if (available < needed)
		return why_set(why, "%s has %.1f GB left, %s at scale %d needs about %.1f GB", folder,
		               (double)available / 1e9, setup->topology, scale, (double)needed / 1e9);
	return true;
}

/* Server connections that the system takes with so many clients. */
static int
connections_of(const struct stage *s, const struct cell *cell)
{
	const struct system_spec *spec = &s->systems[cell->system].spec;

	if (spec->pool > 0)
		return spec->pool;
	return cell->clients + cell->idle < s->options->max_direct ? cell->clients + cell->idle
	                                                           : s->options->max_direct;
}

bool
stage_plan(struct stage *s, const struct plan *plan, struct why *why)
{
	int max_scale = 1;

	s->n_servers = plan->n_setups;
	s->servers = text_alloc((plan->n_setups + 1) * sizeof(*s->servers));
	for (size_t i = 0; i < plan->n_cells; i++) {
		const struct cell *cell = &plan->cells[i];
		int n = connections_of(s, cell) + SPARE_CONNECTIONS;

		if (!workload_check(cell->workload, s->workloads, why))
			return false;
		s->servers[cell->setup].last_cell = i;
		if (n > s->servers[cell->setup].max_connections)
			s->servers[cell->setup].max_connections = n;
		if (cell->workload->tables != TABLES_NONE && cell->scale > max_scale)
			max_scale = cell->scale;
	}
	for (size_t i = 0; i < plan->n_setups; i++)
		if (!check_space(s, &plan->setups[i], max_scale, why))
			return false;
	return true;
}

static bool
setup_settings(const struct stage *s, const struct setup *setup, struct text_list *out)
{
	for (size_t i = 0; i < s->options->settings.n; i++)
		text_list_add(out, s->options->settings.items[i]);
	if (setup->setting[0] != '\0') {
		const char *equals = strchr(setup->setting, '=');

		if (equals == NULL)
			return false;
		text_list_addf(out, "%.*s = '%s'", (int)(equals - setup->setting), setup->setting, equals + 1);
	}
	return true;
}

static struct server *
start_scratch(struct stage *s, const struct setup *setup, size_t number, struct why *why)
{
	struct text_list settings = {0};
	char *log = text_fmt("%s/postgresql-%zu.log", s->out, number), *conf_path, *conf;
	struct server_how how = {.bindir = s->bindir,
	                         .folder = data_folder(s, setup),
	                         .log = log,
	                         .max_connections = s->servers[number].max_connections,
	                         .settings = &settings,
	                         .cert = s->cert,
	                         .key = s->key,
	                         .unix_sockets = s->options->changes.sockets == SOCKETS_UNIX};
	struct server *server = NULL;

	if (!setup_settings(s, setup, &settings))
		why_set(why, "%s: a setting is written NAME=VALUE", setup->setting);
	else if (topology_parse(setup->topology, &how.topology, why)) {
		conf = server_settings(&how);
		conf_path = text_fmt("%s/systems/postgresql-%zu.conf", s->out, number);
		if (files_write(conf_path, conf, why))
			server = server_start(&how, why);
		free(conf);
		free(conf_path);
	}
	text_list_fini(&settings);
	free(log);
	return server;
}

struct server *
stage_server(struct stage *s, const struct plan *plan, size_t setup, struct why *why)
{
	struct stage_server *it = &s->servers[setup];

	if (it->server == NULL) {
		memset(&it->tables, 0, sizeof(it->tables));
		it->server = strcmp(plan->setups[setup].topology, "server") == 0
		                     ? server_adopt(s->options->changes.server, why)
		                     : start_scratch(s, &plan->setups[setup], setup, why);
	}
	return it->server;
}

void
stage_release(struct stage *s, size_t next)
{
	for (size_t i = 0; i < s->n_servers; i++)
		if (s->servers[i].last_cell < next)
			server_stop(&s->servers[i].server);
}
