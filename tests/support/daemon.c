/* SPDX-License-Identifier: ISC */
#include "daemon.h"

#include "proc.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char default_userlist[] = "\"postgres\" \"secret\"\n"
				       "\"app\" \"secret\"\n"
				       "\"app2\" \"secret\"\n"
				       "\"app3\" \"secret\"\n"
				       "\"user_plain\" \"secret\"\n"
				       "\"user_md5\" \"secret\"\n"
				       "\"user_scram\" \"secret\"\n";

/* Settings that pgbouncer does not know, left out when the tests are tried on it. */
static const char *const own_settings[] = {"proxies", "session_schedule", "max_connecting", "shutdown_timeout"};

bool
daemon_is_pgweir(void)
{
	static int is = -1;
	char *out;

	if (is < 0) {
		proc_run(&out, "%s --version", proc_daemon_path());
		is = strcasestr(out, "pgbouncer 1.") == NULL;
		free(out);
	}
	return is;
}

bool
daemon_is_sanitized(void)
{
	static int is = -1;

	if (is < 0)
		is = proc_run(NULL, "grep -q -e __asan_init -e __tsan_init %s", proc_daemon_path()) == 0;
	return is;
}

static bool
is_own_setting(const char *line)
{
	for (size_t i = 0; i < sizeof(own_settings) / sizeof(own_settings[0]); i++)
		if (strncmp(line, own_settings[i], strlen(own_settings[i])) == 0)
			return true;
	return false;
}

static void
write_lines(FILE *f, const char *lines, const struct cluster *pg)
{
	while (lines != NULL && *lines != '\0') {
		size_t n = strcspn(lines, "\n");
		char *line = strndup(lines, n), *at = line;

		if (daemon_is_pgweir() || !is_own_setting(line)) {
			for (char *token; (token = strstr(at, "@pg")) != NULL; at = token + 3)
				fprintf(f, "%.*shost=%s port=%d", (int)(token - at), at, pg->dir, pg->port);
			fprintf(f, "%s\n", at);
		}
		free(line);
		lines += n + (lines[n] == '\n');
	}
}

static void
write_ini(const struct daemon *d, const struct cluster *pg, const struct daemon_conf *conf)
{
	FILE *f = fopen(daemon_ini_path(d), "w");

	if (f == NULL)
		proc_die("cannot write %s: %s", daemon_ini_path(d), strerror(errno));
	fprintf(f, "[databases]\n");
	write_lines(f, conf->databases != NULL ? conf->databases : "* = @pg\n", pg);
	if (conf->users != NULL) {
		fprintf(f, "[users]\n");
		write_lines(f, conf->users, pg);
	}
	fprintf(f,
	        "[pgbouncer]\n"
	        "listen_addr = 127.0.0.1\n"
	        "listen_port = %d\n"
	        "unix_socket_dir = %s\n"
	        "listen_backlog = 2048\n"
	        "logfile = %s/daemon.log\n"
	        "auth_type = trust\n"
	        "auth_file = %s/userlist.txt\n"
	        "admin_users = postgres\n"
	        "pool_mode = transaction\n",
	        d->port, d->dir, d->dir, d->dir);
	write_lines(f, conf->settings, pg);
	fclose(f);
	proc_write_file(proc_fmt("%s/userlist.txt", d->dir),
	                conf->userlist != NULL ? conf->userlist : default_userlist);
}

char *
daemon_ini_path(const struct daemon *d)
{
	return proc_fmt("%s/pgweir.ini", d->dir);
}

static PGconn *
console_connect(const struct daemon *d)
{
	return PQconnectdb(proc_fmt("host=%s port=%d user=pgbouncer dbname=pgbouncer", d->dir, d->port));
}

static bool
is_answering(const struct daemon *d)
{
	PGconn *conn = console_connect(d);
	PGresult *r = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, "SHOW VERSION") : NULL;
	bool ok = PQresultStatus(r) == PGRES_TUPLES_OK;

	PQclear(r);
	PQfinish(conn);
	return ok;
}

struct daemon *
daemon_start(const struct cluster *pg, const struct daemon_conf *conf)
{
	static int n_daemons;
	static const struct daemon_conf defaults;
	struct daemon *d = calloc(1, sizeof(*d));

	if (d == NULL)
		proc_die("no memory");
	if (conf == NULL)
		conf = &defaults;
	snprintf(d->dir, sizeof(d->dir), "%s/d%d-%d", proc_tmpdir(), (int)getpid() % 100000, n_daemons++);
	if (mkdir(d->dir, 0755) != 0)
		proc_die("cannot make %s: %s", d->dir, strerror(errno));
	d->port = proc_free_port();
	d->exit_code = -1;
	write_ini(d, pg, conf);
	d->pid = proc_spawn(proc_fmt("%s/stderr", d->dir), SIGKILL,
	                    (char *[]){(char *)proc_daemon_path(), "-q", daemon_ini_path(d), NULL});
	wait_until(daemon_ended(d, 0) || is_answering(d), 10000);
	if (!conf->may_not_start)
		ck_assert_msg(d->exit_code == -1 && is_answering(d), "the daemon does not start (exit code %d):\n%s",
		              d->exit_code, daemon_log_tail(d));
	return d;
}

bool
daemon_ended(struct daemon *d, int timeout_ms)
{
	if (d->exit_code < 0 && d->pid != 0 && (d->exit_code = proc_wait(d->pid, timeout_ms)) >= 0)
		d->pid = 0;
	return d->exit_code >= 0;
}

char *
daemon_log(const struct daemon *d)
{
	char *log = proc_read_file(proc_fmt("%s/daemon.log", d->dir));
	char *err = proc_read_file(proc_fmt("%s/stderr", d->dir));
	char *both = proc_fmt("%s%s", log, err);

	free(log);
	free(err);
	return both;
}

bool
daemon_logged(const struct daemon *d, const char *text)
{
	char *log = daemon_log(d);
	bool found = strstr(log, text) != NULL;

	free(log);
	return found;
}

/* The part of the log that says what went wrong, or NULL. */
static char *
find_alarm(const struct daemon *d)
{
	static const char *const alarms[] = {"invariant", "Sanitizer", "runtime error:"};
	char *log = daemon_log(d);

	for (size_t i = 0; i < sizeof(alarms) / sizeof(alarms[0]); i++) {
		char *found = strstr(log, alarms[i]);

		if (found != NULL)
			return proc_fmt("%.6000s", found);
	}
	free(log);
	return NULL;
}

void
daemon_assert_clean_log(const struct daemon *d)
{
	char *alarm_text = find_alarm(d);

	ck_assert_msg(alarm_text == NULL, "the daemon's log says:\n%s", alarm_text);
}

char *
daemon_log_tail(const struct daemon *d)
{
	char *log = daemon_log(d);
	size_t n = strlen(log);

	return n > 3000 ? log + n - 3000 : log;
}

char *
daemon_end(struct daemon *d)
{
	int64_t deadline = proc_now_ms() + 20000;
	char *alarm_text;

	do {
		if (d->pid != 0)
			proc_kill(d->pid, SIGTERM);
	} while (!daemon_ended(d, 300) && proc_now_ms() < deadline);
	alarm_text = find_alarm(d);
	if (alarm_text != NULL)
		return proc_fmt("the daemon's log says:\n%s", alarm_text);
	/* The old pgbouncer of some distributions ends with 1 on SIGTERM. */
	if (d->exit_code != 0 && daemon_is_pgweir())
		return proc_fmt("the daemon's exit code is %d:\n%s", d->exit_code, daemon_log_tail(d));
	return NULL;
}

void
daemon_stop(struct daemon *d)
{
	char *problem = daemon_end(d);

	ck_assert_msg(problem == NULL, "%s", problem);
}

PGconn *
daemon_try_connect(const struct daemon *d, const char *extra)
{
	/* Later words win, so extra may name another user, database or host. */
	return PQconnectdb(proc_fmt("host=127.0.0.1 port=%d user=app dbname=app password=secret %s", d->port,
	                            extra != NULL ? extra : ""));
}

PGconn *
daemon_connect(const struct daemon *d)
{
	PGconn *conn = daemon_try_connect(d, NULL);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	return conn;
}

PGconn *
daemon_console(const struct daemon *d)
{
	PGconn *conn = console_connect(d);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	return conn;
}

static PGresult *
show(const struct daemon *d, PGconn *conn, const char *what)
{
	PGresult *r = PQexec(conn, proc_fmt("SHOW %s", what));

	ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "SHOW %s: %s\n%s", what, PQerrorMessage(conn),
	              PQstatus(conn) == CONNECTION_OK ? "" : daemon_log_tail(d));
	return r;
}

long
daemon_show(const struct daemon *d, const char *what, const char *key_column, const char *key, const char *column)
{
	PGconn *conn = daemon_console(d);
	PGresult *r = show(d, conn, what);
	int n_column = PQfnumber(r, column), n_key = key != NULL ? PQfnumber(r, key_column) : -1;
	long value = -1;

	ck_assert_msg(n_column >= 0, "SHOW %s has no column %s", what, column);
	for (int row = 0; row < PQntuples(r) && value < 0; row++)
		if (key == NULL || strcmp(PQgetvalue(r, row, n_key), key) == 0)
			value = strtol(PQgetvalue(r, row, n_column), NULL, 10);
	PQclear(r);
	PQfinish(conn);
	return value;
}

int
daemon_count(const struct daemon *d, const char *what, const char *column, const char *value)
{
	PGconn *conn = daemon_console(d);
	PGresult *r = show(d, conn, what);
	int n_column = PQfnumber(r, column), n = 0;

	ck_assert_msg(n_column >= 0, "SHOW %s has no column %s", what, column);
	for (int row = 0; row < PQntuples(r); row++)
		n += strcmp(PQgetvalue(r, row, n_column), value) == 0;
	PQclear(r);
	PQfinish(conn);
	return n;
}
