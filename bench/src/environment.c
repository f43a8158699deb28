/* SPDX-License-Identifier: ISC */
#include "environment.h"

#include "child.h"
#include "files.h"
#include "host.h"
#include "pgbench.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the value. */
static bool
note(const char *out, const char *name, char *value)
{
	bool ok = result_note_append(out, name, value, stderr);

	free(value);
	return ok;
}

static char *
first_line_of(const char *program, const char *option)
{
	char *command = text_fmt("'%s' %s 2>&1", program, option), line[128] = "";
	FILE *p = popen(command, "re");

	free(command);
	if (p != NULL) {
		if (fgets(line, sizeof(line), p) != NULL)
			line[strcspn(line, "\n")] = '\0';
		pclose(p);
	}
	return text_dup(line);
}

static char *
join(int argc, char **argv)
{
	char *all = text_dup(argv[0]);

	for (int i = 1; i < argc; i++) {
		bool plain = strpbrk(argv[i], " '\"$&;|<>()*?") == NULL && argv[i][0] != '\0';
		char *more = text_fmt(plain ? "%s %s" : "%s '%s'", all, argv[i]);

		free(all);
		all = more;
	}
	return all;
}

static bool
note_machine(const struct stage *s)
{
	const char *user = child_user_name();

	return note(s->out, "CPU", host_cpu()) && note(s->out, "memory", host_memory()) &&
	       note(s->out, "system", host_system()) && note(s->out, "CPU governor", host_governor()) &&
	       note(s->out, "file descriptors", text_fmt("%ld", s->file_limit)) &&
	       note(s->out, "servers run as", text_dup(user != NULL ? user : "the user who started the benchmark"));
}

static bool
note_versions(const struct stage *s)
{
	bool ok = note(s->out, "pgbench", first_line_of(s->pgbench, "--version"));

	if (ok && s->bindir != NULL) {
		char *postgres = text_fmt("%s/postgres", s->bindir);

		ok = note(s->out, "server", first_line_of(postgres, "--version"));
		free(postgres);
	}
	for (size_t i = 0; ok && i < s->n_systems; i++) {
		const struct stage_system *system = &s->systems[i];

		if (system->missing != NULL)
			ok = note(s->out, system->spec.name, text_dup(system->missing));
		else if (system->version != NULL)
			ok = note(s->out, system->spec.name, text_dup(system->version));
	}
	return ok;
}

static bool
note_servers(const struct stage *s, const struct plan *plan)
{
	bool ok = true;

	for (size_t i = 0; ok && i < plan->n_setups; i++) {
		const struct setup *setup = &plan->setups[i];
		struct server_how how = {.max_connections = s->servers[i].max_connections,
		                         .settings = &s->options->settings,
		                         .cert = s->cert,
		                         .key = s->key};
		char *name = text_fmt("server settings, %s%s%s", setup->topology, setup->setting[0] != '\0' ? " " : "",
		                      setup->setting);

		ok = strcmp(setup->topology, "server") == 0
		             ? note(s->out, name, text_dup("of a server that ran already"))
		             : note(s->out, name, server_settings(&how));
		free(name);
	}
	return ok;
}

/* As an example, the first run of each workload. */
static bool
note_commands(const struct stage *s, const struct plan *plan)
{
	const struct workload *w;
	bool ok = true;

	for (size_t i = 0; ok && (w = workload_at(i)) != NULL; i++)
		for (size_t j = 0; j < plan->n_cells; j++) {
			const struct cell *cell = &plan->cells[j];
			struct pgbench_how how = {.program = "pgbench",
			                          .workloads = "bench/workloads",
			                          .conninfo = "CONNINFO",
			                          .cell = cell,
			                          .clients = cell->clients,
			                          .threads = cell->threads,
			                          .seconds = cell->seconds,
			                          .transactions = cell->transactions,
			                          .rate = cell->rate,
			                          .log_prefix = s->options->logs == LOGS_NONE ? NULL : "FILE"};
			struct text_list argv = {0};
			char *name;

			if (cell->workload != w || w->kind != WORKLOAD_PGBENCH)
				continue;
			pgbench_arguments(&how, &argv);
			name = text_fmt("load, %s", w->name);
			ok = note(s->out, name, join((int)argv.n, argv.items));
			free(name);
			text_list_fini(&argv);
			break;
		}
	return ok;
}

bool
environment_note(const struct stage *s, const struct plan *plan, int argc, char **argv, bool resumed, struct why *why)
{
	bool ok = note(s->out, resumed ? "resumed" : "started", host_now()) &&
	          note(s->out, resumed ? "load average when resumed" : "load average at the start", host_load());

	if (ok && !resumed)
		ok = note(s->out, "command line", join(argc, argv)) && note_machine(s) && note_versions(s) &&
		     note_servers(s, plan) && note_commands(s, plan);
	return ok ? true : why_set(why, "cannot write %s/environment.txt", s->out);
}

/* Of a run that is resumed, it may have been noted before. */
static bool
is_noted(const char *out, const char *name)
{
	struct result_notes notes = {0};
	bool found = false;

	if (result_notes_read(out, &notes, stderr))
		for (size_t i = 0; i < notes.n; i++)
			found = found || strcmp(notes.notes[i].name, name) == 0;
	result_notes_fini(&notes);
	return found;
}

bool
environment_note_config(const char *out, const struct system_spec *spec)
{
	char *name = text_dup(spec->name), *path, *title = text_fmt("configuration of %s", spec->name);
	bool ok;

	for (char *p = name; *p != '\0'; p++)
		if (*p == '/' || *p == ':')
			*p = '-';
	path = text_fmt("%s/systems/%s%s%s", out, name, spec->n_processes > 1 ? "-0" : "",
	                spec->kind == SYSTEM_HAPROXY ? ".cfg" : ".ini");
	ok = is_noted(out, title) || !files_exist(path) || note(out, title, files_read(path));
	free(title);
	free(path);
	free(name);
	return ok;
}
