/* SPDX-License-Identifier: ISC */
/* Signals, flags, pid file, and what the command line says. */
#include "suite.h"

#include <sys/stat.h>

static bool
is_refused(struct daemon *d)
{
	PGconn *conn = daemon_try_connect(d, "connect_timeout=2");
	bool refused = PQstatus(conn) != CONNECTION_OK;

	PQfinish(conn);
	return refused;
}

static void
assert_exit(struct daemon *d, int timeout_ms)
{
	ck_assert_msg(daemon_ended(d, timeout_ms), "it still runs:\n%s", daemon_log_tail(d));
	ck_assert_msg(d->exit_code == 0 || !daemon_is_pgweir(), "exit code %d", d->exit_code);
	daemon_assert_clean_log(d);
}

START_TEST(int_waits_for_transactions)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d), *idle = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(direct, "set client_min_messages = warning; drop table if exists shut; create table shut (i int); "
	                 "grant all on shut to app");
	query_ok(idle, "select 1");
	query_ok(a, "begin; insert into shut values (1)");
	proc_kill(d->pid, SIGINT);
	ck_assert(wait_until(is_refused(d), 5000));
	query_ok(a, "insert into shut values (2)");
	ck_assert(!daemon_ended(d, 300));
	query_ok(a, "commit");
	assert_exit(d, 10000);
	ck_assert_int_eq(query_int(direct, "select count(*) from shut"), 2);
	PQfinish(a);
	PQfinish(idle);
	PQfinish(direct);
}
END_TEST

START_TEST(int_lets_a_running_statement_finish)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_send(a, "select pg_sleep(0.7), 'int-running'");
	ck_assert(wait_until(query_int(direct,
	                               "select count(*) from pg_stat_activity where query like '%%int-running%%' and "
	                               "wait_event = 'PgSleep'") == 1,
	                     5000));
	proc_kill(d->pid, SIGINT);
	ck_assert_str_eq(query_finish(a), "00000");
	assert_exit(d, 10000);
	PQfinish(a);
	PQfinish(direct);
}
END_TEST

START_TEST(term_waits_for_clients)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d);

	if (daemon_is_pgweir()) {
		query_ok(a, "select 1");
		proc_kill(d->pid, SIGTERM);
		ck_assert(wait_until(is_refused(d), 5000));
		query_ok(a, "select 2");
		query_ok(a, "begin");
		query_ok(a, "commit");
		ck_assert(!daemon_ended(d, 300));
	} else {
		proc_kill(d->pid, SIGTERM);
	}
	PQfinish(a);
	assert_exit(d, 10000);
}
END_TEST

START_TEST(term_is_bounded_by_shutdown_timeout)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "shutdown_timeout = 1\n"});
	PGconn *a = daemon_connect(d);
	int64_t start_ms;

	query_ok(a, "begin");
	start_ms = proc_now_ms();
	proc_kill(d->pid, SIGTERM);
	assert_exit(d, 10000);
	ck_assert_int_ge(proc_now_ms() - start_ms, daemon_is_pgweir() ? 800 : 0);
	PQfinish(a);
}
END_TEST

static void
check_twice(int first, int second)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d);

	query_ok(a, "begin");
	proc_kill(d->pid, first);
	ck_assert(wait_until(is_refused(d), 5000));
	proc_kill(d->pid, second);
	assert_exit(d, 5000);
	PQfinish(a);
}

START_TEST(second_signal_is_at_once)
{
	check_twice(SIGINT, SIGINT);
	check_twice(SIGTERM, SIGTERM);
	check_twice(SIGTERM, SIGINT);
}
END_TEST

START_TEST(quit_is_at_once)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(a, "begin");
	proc_kill(d->pid, SIGQUIT);
	if (daemon_is_pgweir())
		assert_exit(d, 5000);
	ck_assert(wait_until(query_int(direct, SAMPLE_BACKENDS) == 0, 5000));
	PQfinish(a);
	PQfinish(direct);
}
END_TEST

START_TEST(pidfile_is_written_and_removed)
{
	char *path = proc_fmt("%s/pid-test", proc_tmpdir());
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("pidfile = %s\n", path)});

	ck_assert_int_eq(strtol(proc_read_file(path), NULL, 10), d->pid);
	daemon_stop(d);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(unix_socket_is_removed)
{
	struct daemon *d = daemon_start(pg, NULL);
	char *path = proc_fmt("%s/.s.PGSQL.%d", d->dir, d->port);

	ck_assert_int_eq(access(path, F_OK), 0);
	daemon_stop(d);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* A stale socket of a daemon that was killed is no obstacle; a living daemon's is. */
START_TEST(stale_socket_is_replaced)
{
	struct daemon *d = daemon_start(pg, NULL);
	char *out;
	int rc;

	rc = proc_run(&out, "%s -q %s", proc_daemon_path(), daemon_ini_path(d));
	ck_assert_msg(rc != 0 && rc < 128, "a second daemon on the same port ended with %d: %s", rc, out);
	ck_assert_int_eq(PQstatus(daemon_connect(d)), CONNECTION_OK);
	proc_kill(d->pid, SIGKILL);
	ck_assert(daemon_ended(d, 5000));
	d->pid = proc_spawn(proc_fmt("%s/stderr", d->dir), SIGKILL,
	                    (char *[]){(char *)proc_daemon_path(), "-q", daemon_ini_path(d), NULL});
	d->exit_code = -1;
	ck_assert(wait_until(!is_refused(d) || daemon_ended(d, 0), 5000));
	daemon_stop(d);
}
END_TEST

START_TEST(daemonizes_with_d)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	char *ini = proc_read_file(daemon_ini_path(d)), *path = proc_fmt("%s/background.ini", d->dir), *out;
	char *pidfile = proc_fmt("%s/background.pid", d->dir);
	pid_t pid;
	int rc;

	daemon_stop(d);
	proc_write_file(path, proc_fmt("%spidfile = %s\n", ini, pidfile));
	rc = proc_run(&out, "%s -d %s", proc_daemon_path(), path);
	ck_assert_msg(rc == 0, "exit code %d: %s", rc, out);
	ck_assert(wait_until(strtol(proc_read_file(pidfile), NULL, 10) > 1, 5000));
	pid = (pid_t)strtol(proc_read_file(pidfile), NULL, 10);
	ck_assert(wait_until(!is_refused(d), 5000));
	ck_assert_int_ne(getpgid(pid), getpgid(0));
	kill(pid, SIGTERM);
	if (!wait_until(kill(pid, 0) != 0, 10000)) {
		kill(pid, SIGKILL);
		ck_abort_msg("the background daemon does not end");
	}
}
END_TEST

START_TEST(version_and_help)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *console = daemon_console(d);
	char *version, *help;

	ck_assert_int_eq(proc_run(&version, "%s -V", proc_daemon_path()), 0);
	version[strcspn(version, "\n")] = '\0';
	ck_assert_str_eq(query_text(console, "show version"), version);
	ck_assert_int_eq(proc_run(&help, "%s --help", proc_daemon_path()), 0);
	query_assert_message(help, "--quiet");
	query_assert_message(help, "--daemon");
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

/* ---- the configuration file ---- */

static int
check_ini(const char *ini, char **out)
{
	char *path = proc_fmt("%s/check.ini", proc_tmpdir());

	proc_write_file(path, ini);
	return proc_run(out, "%s --check %s", proc_daemon_path(), path);
}

START_TEST(check_accepts_a_good_file)
{
	char *out;

	if (!daemon_is_pgweir())
		return;
	ck_assert_msg(check_ini("[databases]\napp = host=127.0.0.1\n[pgweir]\nlisten_port = 6543\nproxies = 2\n",
	                        &out) == 0,
	              "%s", out);
	ck_assert_msg(
		check_ini("; comment\n[databases]\n* = host=127.0.0.1 port=5432\n[pgbouncer]\n pool_mode=transaction\n"
	                  "pool_mode = session\nauth_type = any\n",
	                  &out) == 0,
		"%s", out);
}
END_TEST

START_TEST(check_points_at_mistakes)
{
	static const struct {
		const char *ini, *where, *what;
	} bad[] = {
		{"[databases]\n\n[pgweir]\ndefault_pool_sise = 5\n", "check.ini:4", "default_pool_size"},
		{"[pgweir]\npool_mode = sometimes\n", "check.ini:2", "pool_mode"},
		{"[pgweir]\ndefault_pool_size = many\n", "check.ini:2", "default_pool_size"},
		{"[pgweir]\nlisten_port = 70000\n", "check.ini:2", "listen_port"},
		{"[databases]\napp = hots=127.0.0.1\n", "check.ini:2", "host"},
		{"[databases]\napp = host='unfinished\n", "check.ini:2", ""},
		{"[pgweir]\nclient_tls_sslmode = require\n", "check.ini:2", "not supported yet"},
		{"[nonsense]\na = b\n", "check.ini", "nonsense"},
	};

	for (size_t i = 0; daemon_is_pgweir() && i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *out;
		int rc = check_ini(bad[i].ini, &out);

		ck_assert_msg(rc != 0 && rc < 128, "accepted (%d): %s", rc, bad[i].ini);
		query_assert_message(out, bad[i].where);
		query_assert_message(out, bad[i].what);
	}
}
END_TEST

START_TEST(missing_files_are_named)
{
	char *out;
	int rc = proc_run(&out, "%s -q %s/no-such.ini", proc_daemon_path(), proc_tmpdir());

	ck_assert(rc != 0 && rc < 128);
	query_assert_message(out, "no-such.ini");
	rc = proc_run(&out, "%s", proc_daemon_path());
	ck_assert(rc != 0 && rc < 128);
}
END_TEST

/* A conninfo in place of a file. */
START_TEST(conninfo_in_place_of_a_file)
{
	struct daemon d = {.port = proc_free_port(), .exit_code = -1};
	char *conninfo = proc_fmt("host=%s port=%d dbname=app user=app", pg->dir, pg->port);
	PGconn *conn = NULL;

	if (!daemon_is_pgweir())
		return;
	snprintf(d.dir, sizeof(d.dir), "%s/conninfo", proc_tmpdir());
	ck_assert_int_eq(mkdir(d.dir, 0755), 0);
	/* It listens where a pgbouncer with defaults would: port 6432 may be taken here. */
	d.pid = proc_spawn(proc_fmt("%s/stderr", d.dir), SIGKILL,
	                   (char *[]){(char *)proc_daemon_path(), conninfo, NULL});
	ck_assert(wait_until((conn = PQconnectdb("host=/tmp port=6432 user=app dbname=app"),
	                      PQstatus(conn) == CONNECTION_OK) ||
	                             daemon_ended(&d, 0),
	                     5000));
	if (d.exit_code >= 0)
		query_assert_message(daemon_log(&d), "6432"); /* in use: it says so */
	else
		ck_assert_str_eq(query_text(conn, "select current_user"), "app");
	PQfinish(conn);
	if (d.pid != 0)
		daemon_stop(&d);
}
END_TEST

SUITE_MAIN("shutdown", 60, int_waits_for_transactions, int_lets_a_running_statement_finish, term_waits_for_clients,
           term_is_bounded_by_shutdown_timeout, second_signal_is_at_once, quit_is_at_once,
           pidfile_is_written_and_removed, unix_socket_is_removed, stale_socket_is_replaced, daemonizes_with_d,
           version_and_help, check_accepts_a_good_file, check_points_at_mistakes, missing_files_are_named,
           conninfo_in_place_of_a_file)
