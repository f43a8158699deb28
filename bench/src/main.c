/* SPDX-License-Identifier: ISC */
#include "cmdline.h"
#include "config.h"
#include "crowd.h"
#include "doctor.h"
#include "host.h"
#include "plan.h"
#include "report.h"
#include "run.h"
#include "suite.h"
#include "workload.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* What the caller has set must not decide what is measured. */
static void
clean_environment(void)
{
	static const char *const names[] = {"PGHOST",
	                                    "PGHOSTADDR",
	                                    "PGPORT",
	                                    "PGUSER",
	                                    "PGDATABASE",
	                                    "PGPASSWORD",
	                                    "PGOPTIONS",
	                                    "PGSSLMODE",
	                                    "PGSERVICE",
	                                    "PGAPPNAME",
	                                    "PGTZ",
	                                    "PGDATESTYLE",
	                                    "PGREQUIRESSL",
	                                    "PGTARGETSESSIONATTRS",
	                                    "PGCLIENTENCODING",
	                                    "PGCHANNELBINDING"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("PGGSSENCMODE", "disable", 1);
	/* pgbench's figures and the logs of the others are read. */
	setenv("LC_ALL", "C", 1);
}

static void
list_suites(void)
{
	const struct suite *suite;

	printf("Suites:\n");
	for (size_t i = 0; (suite = suite_at(i)) != NULL; i++) {
		char *whole = plan_duration(suite, false, host_n_cpus()),
		     *quick = plan_duration(suite, true, host_n_cpus());

		printf("  %-26s %s\n  %-26s systems: %s\n  %-26s takes about %s, --quick %s\n", suite->name,
		       suite->meaning, "", suite->systems, "", whole, quick);
		free(whole);
		free(quick);
	}
	printf("  %-26s all of these, one after the other\n", "all");
}

static int
list(void)
{
	list_suites();
	printf("\nWorkloads:\n");
	workload_list(stdout);
	return 0;
}

static int
dispatch(const struct options *o, int argc, char **argv)
{
	switch (o->command) {
	case COMMAND_RUN:
		return o->resume != NULL ? run_resume(o) : run_main(o, argc, argv);
	case COMMAND_LIST:
		return list();
	case COMMAND_DOCTOR:
		return doctor_main(o);
	case COMMAND_REPORT:
		return report_run(o->args[0], o->baseline, stdout, stderr);
	case COMMAND_COMPARE:
		return compare_run(o->args[0], o->args[1], stdout, stderr);
	case COMMAND_HELP:
		cmdline_usage(stdout);
		return 0;
	case COMMAND_VERSION:
		printf("pgweir-bench %s\n", PACKAGE_VERSION);
		return 0;
	case COMMAND_CROWD:
		return crowd_main(o->args[0], o->args[1], o->args[2]);
	}
	return 2;
}

int
main(int argc, char **argv)
{
	struct options options;
	struct why why;
	int rc;

	clean_environment();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!cmdline_parse(argc, argv, &options, &why)) {
		fprintf(stderr, "pgweir-bench: %s\n", why.text);
		cmdline_fini(&options);
		return 2;
	}
	rc = dispatch(&options, argc, argv);
	cmdline_fini(&options);
	return rc;
}
