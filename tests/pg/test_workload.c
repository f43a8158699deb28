/* SPDX-License-Identifier: ISC */
/* PostgreSQL's own programs through the daemon. */
#include "suite.h"

#define LIMIT 16

static struct daemon *
start(void)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("default_pool_size = %d\nproxies = 2\n"
	                                                                   "max_client_conn = 1200\n",
	                                                                   LIMIT)});
}

static char *
tool(const struct daemon *d, const char *program, const char *arguments)
{
	return proc_fmt("%s -h 127.0.0.1 -p %d -U app %s", proc_pg_program(program), d->port, arguments);
}

static char *
must_run(const char *command)
{
	char *out;
	int rc = proc_run(&out, "%s", command);

	ck_assert_msg(rc == 0, "%s\nended with %d:\n%.3000s", command, rc, out);
	return out;
}

static void
run_pgbench(const struct daemon *d, const char *arguments)
{
	char *out = must_run(tool(d, "pgbench", proc_fmt("-n %s app", arguments))), *failed;

	ck_assert_msg(strstr(out, "aborted") == NULL, "%s", out);
	failed = strstr(out, "number of failed transactions: ");
	ck_assert_msg(failed == NULL || strncmp(failed, "number of failed transactions: 0 ", 33) == 0, "%s", out);
}

static void
init_pgbench(const struct daemon *d, int scale)
{
	must_run(tool(d, "pgbench", proc_fmt("-i -q -s %d app", scale)));
}

START_TEST(pgbench_tpcb_keeps_the_books)
{
	struct daemon *d = start();
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);
	PGconn *direct = cluster_connect(pg, "app");
	static const char *const protocols[] = {"simple", "extended", "prepared"};

	init_pgbench(d, 1);
	for (int i = 0; i < 3; i++)
		/* Named statements keep their backend for now: no more clients than backends then. */
		run_pgbench(d, proc_fmt("-c %d -j 2 -t 10 -M %s", i == 2 ? LIMIT : 64, protocols[i]));
	ck_assert_int_eq(query_int(direct, "select count(*) from pgbench_history"), (64 + 64 + LIMIT) * 10);
	ck_assert_str_eq(
		query_text(direct,
	                   "select sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts"),
		"t");
	ck_assert_int_le(sampler_stop(sampler), LIMIT);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(pgbench_select_only_with_many_clients)
{
	struct daemon *d = start();
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);

	init_pgbench(d, 1);
	run_pgbench(d, "-S -c 500 -j 2 -t 5");
	run_pgbench(d, "-S -c 200 -j 2 -t 5 -M extended");
	/* A connection for each transaction. */
	run_pgbench(d, "-S -C -c 20 -j 2 -t 10");
	ck_assert_int_le(sampler_stop(sampler), LIMIT);
	daemon_stop(d);
}
END_TEST

START_TEST(dump_and_restore)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");

	init_pgbench(d, 1);
	query_ok(direct,
	         "create table odd (i int, b bytea, t text); insert into odd select i, decode(lpad(to_hex(i), 8, '0'), "
	         "'hex'), "
	         "repeat(chr(i %% 500 + 200), i %% 90) from generate_series(1, 2000) i; alter table odd owner to app");
	PQfinish(direct);
	direct = cluster_connect(pg, "other");
	must_run(proc_fmt("{ %s || touch %s/dump-failed; } | %s && test ! -e %s/dump-failed", tool(d, "pg_dump", "app"),
	                  proc_tmpdir(), tool(d, "psql", "-X -q -v ON_ERROR_STOP=1 -1 other"), proc_tmpdir()));
	ck_assert_int_eq(query_int(direct, "select count(*) from pgbench_accounts"), 100000);
	PQfinish(direct);
	/* pg_dump prepares statements by SQL and leaves them: through the daemon one dump is enough. */
	must_run(proc_fmt(
		"cd %s && for db in app other; do %s -h %s -p %d -U app $db | "
		"sed '/^.restrict\\|^.unrestrict/d' > $db.sql; done && test -s app.sql && cmp app.sql other.sql",
		proc_tmpdir(), proc_pg_program("pg_dump"), pg->dir, pg->port));
	daemon_stop(d);
}
END_TEST

START_TEST(psql_feels_at_home)
{
	struct daemon *d = start();
	char *script = proc_fmt("%s/psql.sql", proc_tmpdir()), *out;

	proc_write_file(script, "\\set ON_ERROR_STOP 1\n"
	                        "\\l\n"
	                        "\\dt\n"
	                        "begin;\n"
	                        "create table via_psql (i int, t text);\n"
	                        "\\copy via_psql from stdin\n"
	                        "1\tone\n"
	                        "2\ttwo\n"
	                        "\\.\n"
	                        "\\copy (select * from via_psql order by i) to stdout\n"
	                        "select i, t from via_psql \\gdesc\n"
	                        "\\set FETCH_COUNT 1\n"
	                        "select * from via_psql;\n"
	                        "rollback;\n"
	                        "select 'the end';\n");
	out = must_run(tool(d, "psql", proc_fmt("-X -f %s app", script)));
	query_assert_message(out, "2\ttwo");
	query_assert_message(out, "the end");
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("workload", 120, pgbench_tpcb_keeps_the_books, pgbench_select_only_with_many_clients, dump_and_restore,
           psql_feels_at_home)
