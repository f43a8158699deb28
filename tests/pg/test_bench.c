/* SPDX-License-Identifier: ISC */
/* pgweir-bench itself, for a few seconds, with what is installed. */
#include "proc.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
	                              "--clients 8 --scale 1 --duration 1 --runs 1 --discard 0 --out %s/r",
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

static void
write_script(const char *path, const char *text)
{
	proc_write_file(path, text);
	ck_assert_int_eq(chmod(path, 0755), 0);
}

/* Systems that are not there or end at once, a pgbench that fails, clients for which there are no descriptors, TLS over what
   has none. */
START_TEST(what_cannot_be_measured_is_a_result)
{
	char *out, *csv, *path = proc_fmt("%s/failing-pgbench", proc_tmpdir());
	int rc;

	write_script(path,
	             proc_fmt("#!/bin/sh\n"
	                      "case \"$*\" in *--client=3*) echo 'pgbench: error: out of luck' >&2; exit 2;; esac\n"
	                      "exec %s \"$@\"\n",
	                      proc_pg_program("pgbench")));
	rc = proc_run(&out,
	              "ulimit -n 300; TMPDIR=%s PG_BINDIR=%s PGWEIR=/bin/false '%s' run overhead --systems "
	              "direct,odyssey,pgweir:2 --odyssey /nonexistent/odyssey --pgbench %s --workloads select1 --modes "
	              "simple --clients 1,3,250 --transactions 5 --runs 1 --discard 0 --out %s/f",
	              proc_tmpdir(), proc_pg_bindir(), bench, path, proc_tmpdir());
	ck_assert_msg(rc == 0, "%d: %s", rc, out);
	csv = proc_read_file(proc_fmt("%s/f/results.csv", proc_tmpdir()));
	ck_assert_str_eq(field(csv, "direct", "status"), "ok");
	ck_assert_ptr_nonnull(strstr(field(csv, "odyssey", "status"), "not installed"));
	ck_assert_ptr_nonnull(strstr(field(csv, "pgweir:2", "status"), "failed: pgweir:2 has ended (exit code 1)"));
	ck_assert_msg(strstr(csv, "failed: pgbench: error: out of luck") != NULL, "%s", csv);
	ck_assert_msg(strstr(csv, "file descriptors wanted, the limit is 300 (ulimit -n)") != NULL, "%s", csv);
	ck_assert_msg(strstr(out, "Not measured:") != NULL, "%s", out);
	nothing_is_left();
}
END_TEST

static char *
start_bench(const char *name, int runs, pid_t *pid)
{
	char *log = proc_fmt("%s/%s.log", proc_tmpdir(), name);
	char *command = proc_fmt(
		"TMPDIR=%s PG_BINDIR=%s PGWEIR=%s exec '%s' run overhead --systems direct,pgweir:2 "
		"--workloads select1 --modes simple --clients 2 --rate 50 --duration 1 --runs %d --discard 0 --out "
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

/* Until so many runs are recorded, and one more is under way. */
static void
wait_for_runs(const char *csv, int n, const char *log)
{
	ck_assert_msg(wait_until(n_lines(csv) >= 1 + n, 60000), "%s", proc_read_file(log));
}

static char *
resume_bench(const char *name, pid_t *pid)
{
	char *log = proc_fmt("%s/%s.log", proc_tmpdir(), name);
	char *command = proc_fmt("TMPDIR=%s PG_BINDIR=%s PGWEIR=%s exec '%s' run --resume %s/%s", proc_tmpdir(),
	                         proc_pg_bindir(), proc_daemon_path(), bench, proc_tmpdir(), name);

	unlink(log);
	*pid = proc_spawn(log, SIGKILL, (char *[]){"/bin/sh", "-c", command, NULL});
	return log;
}

/* Three runs each of two systems, every one exactly once. */
static void
assert_complete(const char *csv)
{
	char *text = proc_read_file(csv);

	ck_assert_int_eq(n_lines(csv), 7);
	for (int run = 1; run <= 3; run++) {
		char *direct = proc_fmt(",direct,single,,,2,2,%d,0,ok,", run),
		     *pgweir = proc_fmt(",pgweir:2,single,,,2,2,%d,0,ok,", run);

		ck_assert_msg(strstr(text, direct) != NULL && strstr(text, pgweir) != NULL, "run %d: %s", run, text);
		free(direct);
		free(pgweir);
	}
	free(text);
}

/* Ctrl-C, the signal of a shutdown, a full disk: each time everything is stopped, the results stay, and it goes on. */
START_TEST(broken_off_it_cleans_up_and_can_go_on)
{
	char *csv = proc_fmt("%s/i/results.csv", proc_tmpdir()), *json = proc_fmt("%s/i/results.json", proc_tmpdir()),
	     *log;
	pid_t pid;

	log = start_bench("i", 3, &pid);
	wait_for_runs(csv, 1, log);
	proc_kill(pid, SIGINT);
	ck_assert_int_eq(proc_wait(pid, 60000), 128 + SIGINT);
	nothing_is_left();
	ck_assert_int_lt(n_lines(csv), 7);
	ck_assert_ptr_nonnull(strstr(proc_read_file(log), "--resume"));

	log = resume_bench("i", &pid);
	wait_for_runs(csv, 2, log);
	proc_kill(pid, SIGTERM);
	ck_assert_int_eq(proc_wait(pid, 60000), 128 + SIGTERM);
	nothing_is_left();

	log = resume_bench("i", &pid);
	wait_for_runs(csv, 3, log);
	ck_assert_int_eq(symlink("/dev/full", "full-disk"), 0);
	ck_assert_int_eq(rename("full-disk", json), 0);
	ck_assert_int_eq(proc_wait(pid, 60000), 1);
	ck_assert_msg(strstr(proc_read_file(log), "results.json: No space left on device") != NULL, "%s",
	              proc_read_file(log));
	nothing_is_left();

	ck_assert_int_eq(unlink(json), 0);
	log = resume_bench("i", &pid);
	ck_assert_int_eq(proc_wait(pid, 120000), 0);
	assert_complete(csv);
	ck_assert_int_eq(proc_run(NULL, "test $(grep -o '\"status\": *\"ok\"' %s | wc -l) = 6", json), 0);
	ck_assert_int_eq(access(proc_fmt("%s/i/report.html", proc_tmpdir()), R_OK), 0);
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

/* Below the temporary folder, which is where we are. */
static void
make_damaged_folders(void)
{
	static const char *const folders[] = {"damaged", "garbage", "full"};

	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(mkdir(folders[i], 0755), 0);
	proc_write_file("damaged/arguments", "report\n/somewhere\n");
	proc_write_file("garbage/arguments", "run\noverhead\n");
	proc_write_file("garbage/results.csv", "sytem,tps\ndirect,1\n");
	ck_assert_int_eq(symlink("/dev/full", "full/environment.txt"), 0);
}

START_TEST(says_what_is_wrong_with_the_command_line_and_with_folders)
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
		{"run overhead --crwod", "unknown option --crwod (--help)"},
		{"run --resume damaged", "damaged/arguments is damaged"},
		{"run --resume garbage", "the results in garbage cannot be read"},
		{"report garbage", "garbage/results.csv:1: unknown column \"sytem\""},
		{"report damaged", "damaged/results.csv: No such file or directory"},
		{"compare garbage damaged", "unknown column \"sytem\""},
		{"compare damaged garbage", "damaged/results.csv: No such file or directory"},
		/* the new folder cannot be made, or not written into */
		{"run overhead --out damaged/arguments", "damaged/arguments"},
		{"run overhead --out full", "full/environment.txt: No space left on device"},
	};

	make_damaged_folders();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *out;
		int rc = run_bench(&out, cases[i].arguments);

		ck_assert_msg(rc != 0, "%s: %s", cases[i].arguments, out);
		ck_assert_msg(strstr(out, cases[i].says) != NULL, "%s: %s", cases[i].arguments, out);
	}
	nothing_is_left();
}
END_TEST

/*
 * Whoever takes the port that was found for the server, and for the pooler, after it was found: each then gets another. The
 * first start of each program writes down its port, and waits until we have it.
 */
static char *
slow_program(const char *name, const char *program, const char *find_port)
{
	char *path = proc_fmt("%s/bin/%s", proc_tmpdir(), name), *base = proc_fmt("%s/ports/%s", proc_tmpdir(), name);

	write_script(path, proc_fmt("#!/bin/sh\n"
	                            "port=$(%s)\n"
	                            "if [ -n \"$port\" ] && [ ! -e %s.taken ]; then\n"
	                            "	echo \"$port\" >%s.new && mv %s.new %s.found\n"
	                            "	until [ -e %s.taken ]; do sleep 0.02; done\n"
	                            "fi\n"
	                            "exec %s \"$@\"\n",
	                            find_port, base, base, base, base, base, program));
	return base;
}

/* Bound is enough to be in the way, and nobody who connects is kept waiting. */
static int
take_port(const char *base, int *port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char *found = proc_fmt("%s.found", base);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert(wait_until(access(found, R_OK) == 0, 60000));
	*port = atoi(proc_read_file(found));
	in.sin_port = htons((uint16_t)*port);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	proc_write_file(proc_fmt("%s.taken", base), "");
	return fd;
}

START_TEST(a_port_that_somebody_takes_is_given_up_for_another)
{
	char *log = proc_fmt("%s/b.log", proc_tmpdir()), *server, *pooler, *ini;
	int server_port, pooler_port, fds[2];
	pid_t pid;

	ck_assert_int_eq(mkdir("bin", 0755), 0);
	ck_assert_int_eq(mkdir("ports", 0755), 0);
	ck_assert_int_eq(chmod("ports", 0777), 0);
	write_script("bin/initdb", proc_fmt("#!/bin/sh\nexec %s/initdb \"$@\"\n", proc_pg_bindir()));
	server = slow_program("postgres", proc_fmt("%s/postgres", proc_pg_bindir()),
	                      "echo \"$*\" | sed -n 's/.*--port=\\([0-9]*\\).*/\\1/p'");
	pooler = slow_program("pgweir", proc_daemon_path(), "sed -n 's/^listen_port = //p' \"$1\" 2>/dev/null");
	pid = proc_spawn(log, SIGKILL,
	                 (char *[]){"/bin/sh", "-c",
	                            proc_fmt("TMPDIR=%s PG_BINDIR=%s/bin PGWEIR=%s/bin/pgweir exec '%s' run overhead "
	                                     "--systems pgweir:2 --workloads select1 --modes simple --clients 1 "
	                                     "--transactions 5 --runs 1 --discard 0 --pgbench '%s' --out %s/b",
	                                     proc_tmpdir(), proc_tmpdir(), proc_tmpdir(), bench,
	                                     proc_pg_program("pgbench"), proc_tmpdir()),
	                            NULL});
	fds[0] = take_port(server, &server_port);
	fds[1] = take_port(pooler, &pooler_port);
	ck_assert_msg(proc_wait(pid, 60000) == 0, "%s", proc_read_file(log));
	ck_assert_str_eq(field(proc_read_file(proc_fmt("%s/b/results.csv", proc_tmpdir())), "pgweir:2", "status"),
	                 "ok");
	ini = proc_read_file(proc_fmt("%s/b/systems/pgweir-2.ini", proc_tmpdir()));
	ck_assert_ptr_null(strstr(ini, proc_fmt("listen_port = %d\n", pooler_port)));
	ck_assert_ptr_null(strstr(ini, proc_fmt(" port=%d ", server_port)));
	close(fds[0]);
	close(fds[1]);
	nothing_is_left();
}
END_TEST

START_TEST(doctor_tells_what_is_there)
{
	char *out, *line;
	int rc = run_bench(&out, "doctor --odyssey /nonexistent/odyssey");

	ck_assert_msg(rc == 0, "%s", out);
	ck_assert_ptr_nonnull(strstr(out, "pgbench"));
	ck_assert_msg(strstr(out, "not installed: no program /nonexistent/odyssey") != NULL, "%s", out);
	line = strstr(out, "without ");
	ck_assert_msg(line != NULL && strstr(strtok(line, "\n"), "odyssey:32/2") != NULL, "%s", out);
	nothing_is_left();
}
END_TEST

int
main(void)
{
	const TTest *tests[] = {measures_what_is_there,
	                        what_cannot_be_measured_is_a_result,
	                        broken_off_it_cleans_up_and_can_go_on,
	                        a_server_that_dies_ends_the_run_with_a_reason,
	                        a_pooler_that_dies_fails_its_run_and_the_others_go_on,
	                        a_port_that_somebody_takes_is_given_up_for_another,
	                        says_what_is_wrong_with_the_command_line_and_with_folders,
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
