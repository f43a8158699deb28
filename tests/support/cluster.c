/* SPDX-License-Identifier: ISC */
#include "cluster.h"

#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char server_conf[] = "max_connections = 200\n"
				  "listen_addresses = '127.0.0.1'\n"
				  "fsync = off\n"
				  "synchronous_commit = off\n"
				  "full_page_writes = off\n"
				  "autovacuum = off\n"
				  "jit = off\n"
				  "shared_buffers = 64MB\n"
				  "max_prepared_transactions = 10\n"
				  "wal_level = logical\n"
				  "max_wal_size = 1GB\n"
				  "log_min_messages = warning\n"
				  "log_destination = stderr\n"
				  "logging_collector = off\n";

static const char server_hba[] = "local all user_plain password\n"
				 "local all user_md5 md5\n"
				 "local all user_scram scram-sha-256\n"
				 "local all all trust\n"
				 "local replication all trust\n"
				 "host replication all 127.0.0.1/32 trust\n"
				 "host all user_plain 127.0.0.1/32 password\n"
				 "host all user_md5 127.0.0.1/32 md5\n"
				 "host all user_scram 127.0.0.1/32 scram-sha-256\n"
				 "host all all 127.0.0.1/32 trust\n";

/* One statement a line: the single-user backend reads it so. */
static const char bootstrap_sql[] = "create role app login password 'secret';\n"
				    "create role app2 login password 'secret';\n"
				    "create role app3 login password 'secret';\n"
				    "set password_encryption = 'md5';\n"
				    "create role user_md5 login password 'secret';\n"
				    "set password_encryption = 'scram-sha-256';\n"
				    "create role user_plain login password 'secret';\n"
				    "create role user_scram login password 'secret';\n"
				    "create database app owner app;\n"
				    "create database other owner app;\n";

static void
append_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	if (f == NULL || fputs(text, f) == EOF || fclose(f) != 0)
		proc_die("cannot write %s: %s", path, strerror(errno));
}

static void
must_run(const char *what, int rc, const char *output)
{
	if (rc != 0)
		proc_die("%s ended with %d: %s", what, rc, output);
}

static void
make_template(const char *data)
{
	char *out, *sql = proc_fmt("%s/bootstrap.sql", proc_tmpdir());
	int rc = proc_run(&out, "%s/initdb -D %s -U postgres -A trust -E UTF8 --locale=C --no-sync --wal-segsize=4",
	                  proc_pg_bindir(), data);

	must_run("initdb", rc, out);
	append_file(proc_fmt("%s/postgresql.conf", data), server_conf);
	proc_write_file(proc_fmt("%s/pg_hba.conf", data), server_hba);
	proc_write_file(sql, bootstrap_sql);
	rc = proc_run(&out, "%s/postgres --single -D %s postgres < %s", proc_pg_bindir(), data, sql);
	must_run("postgres --single", rc, out);
	proc_write_file(proc_fmt("%s/template-complete", data), "");
}

/* The first program of a run makes the template, the others wait for it. */
static const char *
template_dir(void)
{
	static char data[4096];
	const char *shared = getenv("PGWEIR_TEST_TEMPLATE");
	int lock;

	if (data[0] != '\0')
		return data;
	if (shared == NULL || *shared == '\0')
		shared = proc_tmpdir();
	snprintf(data, sizeof(data), "%s/template", shared);
	lock = open(proc_fmt("%s/template.lock", shared), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		proc_die("cannot lock %s: %s", shared, strerror(errno));
	if (access(proc_fmt("%s/template-complete", data), F_OK) != 0) {
		proc_run(NULL, "rm -rf %s", data);
		make_template(data);
	}
	close(lock);
	return data;
}

struct cluster *
cluster_new(void)
{
	static int n_clusters;
	struct cluster *c = calloc(1, sizeof(*c));
	char *out;

	if (c == NULL)
		proc_die("no memory");
	snprintf(c->dir, sizeof(c->dir), "%s/pg%d-%d", proc_tmpdir(), (int)getpid() % 100000, n_clusters++);
	must_run("cp", proc_run(&out, "cp -a %s %s && chmod 700 %s", template_dir(), c->dir, c->dir), out);
	c->port = proc_free_port();
	cluster_start(c);
	return c;
}

static bool
is_up(const struct cluster *c)
{
	PGconn *conn = PQconnectdb(proc_fmt("host=%s port=%d user=postgres dbname=postgres", c->dir, c->port));
	bool ok = PQstatus(conn) == CONNECTION_OK;

	PQfinish(conn);
	return ok;
}

void
cluster_start(struct cluster *c)
{
	char *postgres = proc_fmt("%s/postgres", proc_pg_bindir()), *log = proc_fmt("%s/server.log", c->dir);
	char *port = proc_fmt("%d", c->port);
	/* SIGQUIT is the immediate shutdown: it also frees the shared memory. */
	char *argv[] = {postgres, "-D", c->dir, "-k", c->dir, "-p", port, NULL};

	c->pid = proc_spawn(log, SIGQUIT, argv);
	if (!wait_until(is_up(c), 30000))
		proc_die("PostgreSQL does not start: %s", proc_read_file(log));
}

void
cluster_stop(struct cluster *c)
{
	if (c->pid == 0)
		return;
	proc_kill(c->pid, SIGQUIT);
	if (proc_wait(c->pid, 20000) < 0)
		proc_die("PostgreSQL does not stop");
	c->pid = 0;
}

void
cluster_kill_all(struct cluster *c)
{
	pid_t pids[512];
	int n;

	/* Stopped first, so that it neither starts more nor reports on its children. */
	proc_kill(c->pid, SIGSTOP);
	n = proc_children(c->pid, pids, 512);
	proc_kill(c->pid, SIGKILL);
	for (int i = 0; i < n; i++)
		proc_kill(pids[i], SIGKILL);
	if (proc_wait(c->pid, 20000) < 0)
		proc_die("PostgreSQL survives SIGKILL");
	for (int i = 0; i < n; i++)
		wait_until(kill(pids[i], 0) != 0, 5000);
	c->pid = 0;
}

PGconn *
cluster_connect(const struct cluster *c, const char *database)
{
	PGconn *conn = PQconnectdb(
		proc_fmt("host=%s port=%d user=postgres dbname=%s application_name=direct", c->dir, c->port, database));

	if (PQstatus(conn) != CONNECTION_OK)
		proc_die("direct connection: %s", PQerrorMessage(conn));
	return conn;
}
