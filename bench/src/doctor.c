/* SPDX-License-Identifier: ISC */
#include "doctor.h"

#include "child.h"
#include "files.h"
#include "host.h"
#include "ports.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes the value. */
static void
say(const char *name, char *value)
{
	printf("  %-18s %s\n", name, value);
	free(value);
}

static void
show_machine(const struct stage *s)
{
	char *governor = host_governor();

	printf("Machine\n");
	say("CPU", host_cpu());
	say("CPU governor", text_fmt("%s%s", governor,
	                             strcmp(governor, "performance") == 0 || strcmp(governor, "unknown") == 0
	                                     ? ""
	                                     : " (performance makes figures steadier)"));
	free(governor);
	say("memory", host_memory());
	say("system", host_system());
	say("load", host_load());
	say("file descriptors", text_fmt("%ld: up to %ld clients", s->file_limit, s->file_limit - 120));
	say("a free port", text_fmt("%d", ports_find(SERVER_MAX_NODES)));
	if (s->scratch != NULL)
		say("temporary folder",
		    text_fmt("%.1f GB left beside %s", (double)files_free_bytes(s->scratch) / 1e9, s->scratch));
	say("servers run as", text_dup(child_user_name() != NULL ? child_user_name() : "you"));
	printf("\n");
}

static void
show_program(const char *what, const char *path, const char *package)
{
	if (path != NULL)
		say(what, text_dup(path));
	else
		say(what, text_fmt("not installed: package %s", package));
}

static void
show_programs(struct stage *s)
{
	static const char *const systems[] = {"pgweir", "pgbouncer", "odyssey", "haproxy"};
	char *gnuplot = files_find_program("gnuplot");

	printf("Programs\n");
	show_program("PostgreSQL", s->bindir, "postgresql");
	show_program("pgbench", s->pgbench, "postgresql-contrib or postgresql");
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
		struct system_spec spec;
		struct why why;
		const struct stage_system *it;
		size_t added;

		if (!system_spec_parse(systems[i], &spec, &why))
			continue;
		added = stage_add_system(s, &spec); /* which moves the list */
		it = &s->systems[added];
		say(systems[i],
		    it->missing != NULL ? text_dup(it->missing) : text_fmt("%s (%s)", it->version, it->program));
	}
	show_program("strace", s->strace, "strace (only for --strace)");
	show_program("gnuplot", gnuplot, "gnuplot-nox (only for the pictures)");
	free(gnuplot);
	printf("\n");
}

/* A suite's systems that are not there. */
static void
show_suites(struct stage *s)
{
	const struct suite *suite;

	printf("Suites\n");
	for (size_t i = 0; (suite = suite_at(i)) != NULL; i++) {
		struct system_spec *specs;
		struct why why;
		size_t n;
		char *missing = text_dup(""), *quick = plan_duration(suite, true, host_n_cpus());

		if (!system_spec_parse_list(suite->systems, &specs, &n, &why))
			n = 0;
		for (size_t j = 0; j < n; j++) {
			size_t added = stage_add_system(s, &specs[j]);
			char *more;

			if (s->systems[added].missing == NULL)
				continue;
			more = text_fmt("%s%s%s", missing, *missing != '\0' ? ", " : "", specs[j].name);
			free(missing);
			missing = more;
		}
		printf("  %-26s --quick %s; %s%s\n", suite->name, quick, *missing != '\0' ? "without " : "all systems",
		       missing);
		free(missing);
		free(quick);
		free(specs);
	}
}

int
doctor_main(const struct options *options)
{
	struct stage stage;
	struct why why = {""};
	bool ok;

	child_begin();
	ok = stage_init(&stage, options, &why);
	show_machine(&stage);
	if (ok) {
		show_programs(&stage);
		show_suites(&stage);
	} else {
		printf("Nothing can be measured: %s\n", why.text);
	}
	stage_fini(&stage);
	return ok ? 0 : 1;
}
