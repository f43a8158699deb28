/* SPDX-License-Identifier: ISC */
/* pgweir-bench itself, for a few seconds, with what is installed. */
#include "proc.h"

#include <check.h>
#include <dirent.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_S 240

static const char *bench;

/* The benchmark with these arguments; its exit code. */
static int
run_bench(char **output, const char *arguments)
{
	return proc_run(output, "TMPDIR=%s PG_BINDIR=%s PGWEIR=%s '%s' %s", proc_tmpdir(), proc_pg_bindir(),
	                proc_daemon_path(), bench, arguments);
}

static bool
is_installed(const char *program)
{
	return proc_run(NULL, "PATH=$PATH:/usr/sbin:/sbin command -v %s", program) == 0;
}

/* Field `column` of the lines of a results.csv in which `system` ran; "" if there is none. */
static const char *
field(const char *csv, const char *system, const char *column)
{
	static char value[256];
	char *copy = strdup(csv), *save = NULL, *line, *name;
	char *wanted = proc_fmt(",%s,", system);
	int n = 0, i = 0;

	line = strtok_r(copy, "\n", &save);
	ck_assert_ptr_nonnull(line);
	while ((name = strsep(&line, ",")) != NULL && strcmp(name, column) != 0)
		n++;
	ck_assert_msg(name != NULL, "no column %s", column);
	value[0] = '\0';
	while ((line = strtok_r(NULL, "\n", &save)) != NULL)
		if (strstr(line, wanted) != NULL)
			break;
	for (char *part; line != NULL && (part = strsep(&line, ",")) != NULL; i++)
		if (i == n)
			snprintf(value, sizeof(value), "%s", part);
	free(copy);
	free(wanted);
	return value;
}

static double
number(const char *csv, const char *system, const char *column)
{
	const char *text = field(csv, system, column);

	ck_assert_msg(*text != '\0', "%s of %s was not measured", column, system);
	return strtod(text, NULL);
}

/* The first process whose command line has the text; 0: none. */
static pid_t
find_process(const char *text)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (d != NULL && found == 0 && (entry = readdir(d)) != NULL) {
		char line[4096], *path = proc_fmt("/proc/%s/cmdline", entry->d_name);
		FILE *f = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
		size_t n = f != NULL ? fread(line, 1, sizeof(line) - 1, f) : 0;

		if (f != NULL)
			fclose(f);
		line[n] = '\0';
		for (size_t i = 0; i < n; i++)
			if (line[i] == '\0')
				line[i] = ' ';
		if (strstr(line, text) != NULL)
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		free(path);
	}
	if (d != NULL)
		closedir(d);
	return found;
}

/* No scratch folder is left, and no process that works in one. */
static void
nothing_is_left(void)
{
	char *scratch = proc_fmt("%s/pgweir-bench.", proc_tmpdir());
	pid_t left = 0;
	glob_t g;

	ck_assert_msg(wait_until((left = find_process(scratch)) == 0, 20000), "process %d is left", (int)left);
	ck_assert_msg(glob(proc_fmt("%s*", scratch), 0, NULL, &g) == GLOB_NOMATCH, "a scratch folder is left");
	free(scratch);
}

static const char *
systems(void)
{
	if (is_installed("pgbouncer"))
		return "direct,pgweir:4/1,pgbouncer:4";
	fprintf(stderr, "pgbouncer is not installed: run without it\n");
	return "direct,pgweir:4/1";
}

START_TEST(measures_what_is_there)
{
	char *out, *csv,
		*arguments = proc_fmt("run overhead --systems %s --workloads select-only --modes simple "
	                              "--clients 8 --scale 1 --duration 2 --runs 1 --discard 0 --out %s/r",
	                              systems(), proc_tmpdir());
	int rc = run_bench(&out, arguments);

	ck_assert_msg(rc == 0, "%d: %s", rc, out);
	csv = proc_read_file(proc_fmt("%s/r/results.csv", proc_tmpdir()));
	ck_assert_str_eq(field(csv, "direct", "status"), "ok");
	ck_assert_str_eq(field(csv, "pgweir:4/1", "status"), "ok");
	ck_assert_double_gt(number(csv, "pgweir:4/1", "tps"), 10);
	ck_assert_double_gt(number(csv, "pgweir:4/1", "latency_p99_ms"), 0);
	ck_assert_double_gt(number(csv, "pgweir:4/1", "pooler_user_s") + number(csv, "pgweir:4/1", "pooler_system_s"),
	                    0);
	ck_assert_double_gt(number(csv, "pgweir:4/1", "server_user_s"), 0);
	ck_assert_double_gt(number(csv, "pgweir:4/1", "pooler_rss_peak_kb"), 1000);
	/* Without a pooler each client has a server connection, with one there are no more than the pool's. */
	ck_assert_double_eq(number(csv, "direct", "server_connections"), 8);
	ck_assert_double_le(number(csv, "pgweir:4/1", "server_connections"), 4);
	ck_assert_str_eq(field(csv, "direct", "pooler_user_s"), "");
	if (is_installed("pgbouncer"))
		ck_assert_double_gt(number(csv, "pgbouncer:4", "tps"), 10);
	ck_assert_int_eq(access(proc_fmt("%s/r/report.html", proc_tmpdir()), R_OK), 0);
	ck_assert_int_eq(access(proc_fmt("%s/r/systems/pgweir-4-1.ini", proc_tmpdir()), R_OK), 0);
	ck_assert_ptr_nonnull(
		strstr(proc_read_file(proc_fmt("%s/r/environment.txt", proc_tmpdir())), "listen_port = "));
	nothing_is_left();
}
END_TEST

START_TEST(a_system_that_cannot_run_is_a_result)
{
	char *out, *csv;
	int rc = run_bench(&out,
	                   proc_fmt("run overhead --systems direct,odyssey,pgweir:2 --odyssey /nonexistent/odyssey "
	                            "--pgweir /bin/false --workloads select1 --modes simple --clients 1 --duration 1 "
	                            "--runs 1 --discard 0 --out %s/f",
	                            proc_tmpdir()));

	ck_assert_msg(rc == 0, "%d: %s", rc, out);
	csv = proc_read_file(proc_fmt("%s/f/results.csv", proc_tmpdir()));
	ck_assert_str_eq(field(csv, "direct", "status"), "ok");
	ck_assert_ptr_nonnull(strstr(field(csv, "odyssey", "status"), "not installed"));
	ck_assert_ptr_nonnull(strstr(field(csv, "pgweir:2", "status"), "failed: pgweir:2 has ended (exit code 1)"));
	nothing_is_left();
}
END_TEST

static char *
start_bench(const char *name, int runs, pid_t *pid)
{
	char *log = proc_fmt("%s/%s.log", proc_tmpdir(), name);
	char *command =
		proc_fmt("TMPDIR=%s PG_BINDIR=%s PGWEIR=%s exec '%s' run overhead --systems direct,pgweir:2 "
	                 "--workloads select1 --modes simple --clients 2 --duration 1 --runs %d --discard 0 --out "
	                 "%s/%s",
	                 proc_tmpdir(), proc_pg_bindir(), proc_daemon_path(), bench, runs, proc_tmpdir(), name);

	*pid = proc_spawn(log, SIGKILL, (char *[]){"/bin/sh", "-c", command, NULL});
	return log;
}

static int
n_lines(const char *path)
{
	char *text = proc_read_file(path);
	int n = 0;

	for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	free(text);
	return n;
}

START_TEST(interrupted_it_cleans_up_and_can_go_on)
{
	char *csv = proc_fmt("%s/i/results.csv", proc_tmpdir()), *out, *log;
	pid_t pid;
	int rc;

	log = start_bench("i", 2, &pid);
	ck_assert_msg(wait_until(n_lines(csv) >= 2, 60000), "%s", proc_read_file(log));
	proc_kill(pid, SIGINT);
	ck_assert_int_eq(proc_wait(pid, 60000), 128 + SIGINT);
	nothing_is_left();
	ck_assert_int_lt(n_lines(csv), 5);
	ck_assert_ptr_nonnull(strstr(proc_read_file(log), "--resume"));
	rc = run_bench(&out, proc_fmt("run --resume %s/i", proc_tmpdir()));
	ck_assert_msg(rc == 0, "%d: %s", rc, out);
	/* two systems, two runs, and a header: none twice */
	ck_assert_int_eq(n_lines(csv), 5);
	nothing_is_left();
}
END_TEST

START_TEST(a_server_that_dies_ends_the_run_with_a_reason)
{
	char *log, *text, *csv = proc_fmt("%s/d/results.csv", proc_tmpdir());
	pid_t pid, postmaster;

	log = start_bench("d", 100, &pid);
	ck_assert_msg(wait_until(n_lines(csv) >= 2, 60000), "%s", proc_read_file(log));
	postmaster = find_process(proc_fmt("/postgres -D %s/pgweir-bench.", proc_tmpdir()));
	ck_assert_int_gt(postmaster, 1);
	proc_kill(postmaster, SIGQUIT);
	ck_assert_int_eq(proc_wait(pid, 60000), 1);
	text = proc_read_file(log);
	ck_assert_msg(strstr(text, "PostgreSQL (node 0) has ended") != NULL, "%s", text);
	ck_assert_int_ge(n_lines(csv), 2);
	nothing_is_left();
}
END_TEST

/* A pgbench that fails, and clients for which there are no descriptors, are results with their reasons. */
START_TEST(a_run_that_cannot_be_made_is_a_result)
{
	char *out, *csv, *path = proc_fmt("%s/failing-pgbench", proc_tmpdir());
	FILE *f = fopen(path, "w");
	int rc;

	ck_assert_ptr_nonnull(f);
	/* It loads the tables and breaks off when it is to run. */
	fprintf(f, "#!/bin/sh\necho 'pgbench: error: out of luck' >&2\nexit 2\n");
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	rc = proc_run(
		&out,
		"ulimit -n 300; TMPDIR=%s PG_BINDIR=%s PGWEIR=%s '%s' run overhead --systems direct --workloads "
		"select1 --modes simple --clients 1,250 --duration 1 --runs 1 --discard 0 --pgbench %s --out %s/p",
		proc_tmpdir(), proc_pg_bindir(), proc_daemon_path(), bench, path, proc_tmpdir());
	ck_assert_msg(rc == 0, "%d: %s", rc, out);
	csv = proc_read_file(proc_fmt("%s/p/results.csv", proc_tmpdir()));
	ck_assert_msg(strstr(csv, "failed: pgbench: error: out of luck") != NULL, "%s", csv);
	ck_assert_msg(strstr(csv, "file descriptors wanted, the limit is 300 (ulimit -n)") != NULL, "%s", csv);
	nothing_is_left();
}
END_TEST

START_TEST(a_pooler_that_dies_fails_its_run_and_the_others_go_on)
{
	char *log, *csv = proc_fmt("%s/w/results.csv", proc_tmpdir()), *text;
	pid_t pid, pooler = 0;

	log = start_bench("w", 2, &pid);
	ck_assert_msg(wait_until(n_lines(csv) >= 2, 60000), "%s", proc_read_file(log));
	ck_assert(wait_until((pooler = find_process(proc_fmt("pgweir %s/pgweir-bench.", proc_tmpdir()))) > 1, 60000));
	proc_kill(pooler, SIGKILL);
	ck_assert_int_eq(proc_wait(pid, 60000), 0);
	text = proc_read_file(csv);
	ck_assert_msg(strstr(text, "failed: pgweir:2 has ended (signal 9)") != NULL, "%s", text);
	ck_assert_int_eq(n_lines(csv), 5);
	nothing_is_left();
}
END_TEST

START_TEST(says_what_is_wrong_with_the_command_line)
{
	static const struct {
		const char *arguments, *says;
	} cases[] = {
		{"run overheat", "unknown suite overheat: is overhead meant?"},
		{"run overhead --systems pgbuoncer", "unknown system pgbuoncer: is pgbouncer meant?"},
		{"run overhead --systems nginx", "unknown system nginx (there are direct, "},
		{"run overhead --client 4 --colour", "unknown option --colour (--help)"},
		{"run overhead --client 4 --sytems direct", "unknown option --sytems: is --systems meant?"},
		{"run overhead --workloads tcpb", "unknown workload tcpb: is tpcb meant?"},
		{"run overhead --topologies double", "unknown topology double"},
		{"run overhead --datadir /nonexistent/folder", "/nonexistent/folder"},
		{"run overhead --server 'host=127.0.0.1 port=1 user=u dbname=d'", "onnection"},
		{"run overhead --out /proc/here", "/proc/here"},
		{"run overhead --pgbench /nonexistent", "/nonexistent"},
		{"run filesystems-2006 --scale 20000", "GB left"},
		{"run --resume /nonexistent", "no run to go on with"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *out;
		int rc = run_bench(&out, cases[i].arguments);

		ck_assert_msg(rc != 0, "%s: %s", cases[i].arguments, out);
		ck_assert_msg(strstr(out, cases[i].says) != NULL, "%s: %s", cases[i].arguments, out);
	}
	nothing_is_left();
}
END_TEST

START_TEST(doctor_tells_what_is_there)
{
	char *out;
	int rc = run_bench(&out, "doctor --odyssey /nonexistent/odyssey");

	ck_assert_msg(rc == 0, "%s", out);
	ck_assert_ptr_nonnull(strstr(out, "pgbench"));
	ck_assert_msg(strstr(out, "without odyssey") != NULL, "%s", out);
	nothing_is_left();
}
END_TEST

int
main(void)
{
	const TTest *tests[] = {measures_what_is_there,
	                        a_system_that_cannot_run_is_a_result,
	                        interrupted_it_cleans_up_and_can_go_on,
	                        a_server_that_dies_ends_the_run_with_a_reason,
	                        a_run_that_cannot_be_made_is_a_result,
	                        a_pooler_that_dies_fails_its_run_and_the_others_go_on,
	                        says_what_is_wrong_with_the_command_line,
	                        doctor_tells_what_is_there};
	const char *given = getenv("PGWEIR_BENCH"), *only = getenv("TEST");
	Suite *suite = suite_create("bench");
	TCase *tcase = tcase_create("bench");
	SRunner *runner;
	int n_failed;

	bench = realpath(given != NULL ? given : "./pgweir-bench", NULL);
	if (bench == NULL) {
		fprintf(stderr, "no benchmark to test: set PGWEIR_BENCH\n");
		return 2;
	}
	/* Root or not: it is the benchmark that sees to the servers' user. */
	proc_init_keep_user();
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (only == NULL || strcmp(only, tests[i]->name) == 0)
			tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
