/* SPDX-License-Identifier: ISC */
/* Prepared statements of the protocol over changing backends: what the wire player can't see. */
#include "suite.h"

static struct daemon *
start(const char *settings)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = settings});
}

static void
prepare(PGconn *conn, const char *name, const char *sql)
{
	PGresult *r = PQprepare(conn, name, sql, 0, NULL);

	ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s", name, PQerrorMessage(conn));
	PQclear(r);
}

/* The first column of the first row; for an error its SQLSTATE. */
static const char *
execute(PGconn *conn, const char *name)
{
	static char text[256];
	PGresult *r = PQexecPrepared(conn, name, 0, NULL, NULL, NULL, 0);

	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		snprintf(text, sizeof(text), "%s", PQgetvalue(r, 0, 0));
	else
		snprintf(text, sizeof(text), "%s", PQresultErrorField(r, PG_DIAG_SQLSTATE));
	PQclear(r);
	return text;
}

static long
n_on_backend(PGconn *conn)
{
	return query_int(conn, "select count(*) from pg_prepared_statements");
}

static long
total(const struct daemon *d, const char *column)
{
	return daemon_show(d, "stats", "database", "app", column);
}

/* ---- eviction ---- */

/* One result of a pipeline, and the NULL behind it. */
static void
pipeline_result(PGconn *conn, ExecStatusType status, const char *value)
{
	PGresult *r = PQgetResult(conn);

	ck_assert_msg(PQresultStatus(r) == status, "%s instead of %s: %s", PQresStatus(PQresultStatus(r)),
	              PQresStatus(status), PQerrorMessage(conn));
	if (value != NULL)
		ck_assert_str_eq(PQgetvalue(r, 0, 0), value);
	PQclear(r);
	if (status != PGRES_PIPELINE_SYNC)
		ck_assert_ptr_null(PQgetResult(conn));
}

/* Twenty statements ahead, a Sync behind every `group` of them. */
static void
pipeline_of_twenty(PGconn *conn, const char *who, int group)
{
	ck_assert(PQenterPipelineMode(conn));
	for (int i = 0; i < 20; i++) {
		ck_assert(PQsendQueryPrepared(conn, proc_fmt("s%d", i), 0, NULL, NULL, NULL, 0));
		if ((i + 1) % group == 0)
			ck_assert(PQpipelineSync(conn));
	}
	for (int i = 0; i < 20; i++) {
		pipeline_result(conn, PGRES_TUPLES_OK, proc_fmt("%s %d", who, i));
		if ((i + 1) % group == 0)
			pipeline_result(conn, PGRES_PIPELINE_SYNC, NULL);
	}
	ck_assert(PQexitPipelineMode(conn));
}

static void
run_pipelines(int most)
{
	static const int groups[] = {1, 2, 4, 5, 10, 20};
	struct daemon *d = start(proc_fmt("default_pool_size = 1\nmax_prepared_statements = %d\n", most));
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	for (int i = 0; i < 20; i++) {
		prepare(a, proc_fmt("s%d", i), proc_fmt("select 'a %d'", i));
		prepare(b, proc_fmt("s%d", i), proc_fmt("select 'b %d'", i));
	}
	ck_assert_int_le(n_on_backend(a), most);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		pipeline_of_twenty(a, "a", groups[i]);
		pipeline_of_twenty(b, "b", groups[i]);
	}
	/* more were there while a unit needed them; the next one that is missing makes room */
	ck_assert_str_eq(execute(a, "s7"), "a 7");
	ck_assert_int_le(n_on_backend(b), most);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}

START_TEST(pipelines_longer_than_a_backend_remembers)
{
	run_pipelines(1);
	run_pipelines(2);
	run_pipelines(5);
}
END_TEST

/* ---- sharing ---- */

enum { N_SHARING = 30, N_TEXTS = 10 };

START_TEST(one_text_is_parsed_once_per_backend)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *conns[N_SHARING];

	for (int i = 0; i < N_SHARING; i++) {
		conns[i] = daemon_connect(d);
		for (int k = 0; k < N_TEXTS; k++)
			prepare(conns[i], proc_fmt("%d of %d", k, i), proc_fmt("select 'text %d'", k));
	}
	for (int i = 0; i < N_SHARING; i++)
		for (int k = 0; k < N_TEXTS; k++)
			ck_assert_str_eq(execute(conns[i], proc_fmt("%d of %d", k, i)), proc_fmt("text %d", k));
	ck_assert_int_eq(n_on_backend(conns[0]), N_TEXTS);
	ck_assert_int_eq(total(d, "total_client_parse_count"), N_SHARING * N_TEXTS);
	ck_assert_int_eq(total(d, "total_server_parse_count"), N_TEXTS);
	ck_assert_int_eq(total(d, "total_bind_count"), N_SHARING * N_TEXTS);
	/* leaving ends nothing for the others */
	for (int i = 1; i < N_SHARING; i++)
		PQfinish(conns[i]);
	ck_assert_str_eq(execute(conns[0], "3 of 0"), "text 3");
	query_ok(conns[0], "deallocate all");
	ck_assert_str_eq(execute(conns[0], "3 of 0"), "26000");
	PQfinish(conns[0]);
	daemon_stop(d);
}
END_TEST

START_TEST(one_name_for_many_texts)
{
	struct daemon *d = start("default_pool_size = 2\nproxies = 2\n");
	PGconn *conns[N_SHARING];

	for (int i = 0; i < N_SHARING; i++) {
		conns[i] = daemon_connect(d);
		prepare(conns[i], "mine", proc_fmt("select 'of %d'", i));
	}
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < N_SHARING; i++)
			ck_assert_str_eq(execute(conns[i], "mine"), proc_fmt("of %d", i));
	query_ok(conns[0], "deallocate all");
	ck_assert_str_eq(execute(conns[0], "mine"), "26000");
	ck_assert_str_eq(execute(conns[1], "mine"), "of 1");
	for (int i = 0; i < N_SHARING; i++)
		PQfinish(conns[i]);
	daemon_stop(d);
}
END_TEST

/* The same text means another table. */
START_TEST(search_path_tells_texts_apart)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *direct = cluster_connect(pg, "app"), *a, *b;

	query_ok(direct,
	         "create schema sp1; create schema sp2; create table sp1.t as select 'one' as v; create table sp2.t as "
	         "select 'two' as v; grant usage on schema sp1, sp2 to app; grant select on sp1.t, sp2.t to app");
	a = daemon_try_connect(d, "options='-c search_path=sp1'");
	b = daemon_try_connect(d, "options='-c search_path=sp2'");
	prepare(a, "t", "select v from t");
	prepare(b, "t", "select v from t");
	for (int i = 0; i < 3; i++) {
		ck_assert_str_eq(execute(a, "t"), "one");
		ck_assert_str_eq(execute(b, "t"), "two");
	}
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* ---- what changes under a statement ---- */

/* PostgreSQL itself would refuse the statement for ever; here it is parsed anew for its next use. */
START_TEST(a_changed_result_heals)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *direct = cluster_connect(pg, "app"), *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(direct, "create table heal as select 1 as i; grant select on heal to app");
	prepare(a, "h", "select * from heal");
	prepare(b, "other", "select 'other'");
	ck_assert_str_eq(execute(a, "h"), "1");
	query_ok(direct, "alter table heal drop i; alter table heal add t text default 'text'");
	ck_assert_str_eq(execute(b, "other"), "other");
	ck_assert_str_eq(execute(a, "h"), "0A000");
	ck_assert_str_eq(execute(a, "h"), "text");
	ck_assert_str_eq(execute(b, "other"), "other");
	/* inside a transaction it fails with it, and heals behind it */
	query_ok(direct, "alter table heal add n int default 2");
	query_ok(a, "begin");
	ck_assert_str_eq(execute(a, "h"), "0A000");
	ck_assert_str_eq(execute(a, "h"), "25P02");
	query_ok(a, "rollback");
	ck_assert_str_eq(execute(a, "h"), "text");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A client that has been told the columns must not get others: refused until it prepares the statement again. */
START_TEST(a_described_result_stays)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *direct = cluster_connect(pg, "app"), *a = daemon_connect(d), *b = daemon_connect(d);
	PGresult *r;

	query_ok(direct, "create table described as select 1 as i; grant select on described to app");
	prepare(a, "h", "select * from described");
	r = PQdescribePrepared(a, "h");
	ck_assert_int_eq(PQresultStatus(r), PGRES_COMMAND_OK);
	PQclear(r);
	query_ok(direct, "alter table described drop i; alter table described add t text default 'text'");
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(execute(a, "h"), "0A000");
	/* whoever prepares it afresh gets what is there now */
	prepare(b, "h", "select * from described");
	ck_assert_str_eq(execute(b, "h"), "text");
	query_ok(a, "deallocate h");
	prepare(a, "h", "select * from described");
	ck_assert_str_eq(execute(a, "h"), "text");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Statements that are taken from a backend by ways that can't be seen: an error, but only once. */
START_TEST(unseen_deallocation_heals)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	prepare(a, "a", "select 'a'");
	prepare(b, "b", "select 'b'");
	query_ok(b, "do $$ begin execute 'deallocate all'; end $$");
	ck_assert_str_eq(execute(a, "a"), "26000");
	ck_assert_str_eq(execute(a, "a"), "a");
	/* by the name on the server */
	query_ok(b, "%s",
	         query_text(b, "select 'deallocate ' || quote_ident(name) from pg_prepared_statements limit 1"));
	ck_assert_str_eq(execute(a, "a"), "26000");
	ck_assert_str_eq(execute(a, "a"), "a");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* Parsed in vain, then again with what was missing made in between, everything under way at once. */
START_TEST(a_failed_parse_is_not_remembered)
{
	struct daemon *d = start("default_pool_size = 1\n");
	struct rawconn *c = raw_login(d->port, "app", "app");

	packet_parse(&c->out, "t", "select count(*) from not_yet");
	packet_simple(&c->out, 'S');
	packet_query(&c->out, "create table not_yet (i int)");
	packet_parse(&c->out, "t", "select count(*) from not_yet");
	packet_bind(&c->out, "", "t");
	packet_execute(&c->out, "", 0);
	packet_simple(&c->out, 'S');
	packet_bind(&c->out, "", "t");
	packet_execute(&c->out, "", 0);
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "42P01");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "0;");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "0;");
	raw_close(c);
	daemon_stop(d);
}
END_TEST

START_TEST(statements_outlive_their_backend)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *direct = cluster_connect(pg, "app"), *a = daemon_connect(d);
	long pid;

	prepare(a, "x", "select 'x'");
	prepare(a, "", "select 'unnamed'");
	pid = query_int(a, "select pg_backend_pid()");
	query_ok(direct, "select pg_terminate_backend(%ld)", pid);
	ck_assert(
		wait_until(query_int(direct, "select count(*) from pg_stat_activity where pid = %ld", pid) == 0, 5000));
	ck_assert(wait_until(daemon_count(d, "servers", "database", "app") == 0, 5000));
	ck_assert_str_eq(execute(a, "x"), "x");
	ck_assert_int_ne(query_int(a, "select pg_backend_pid()"), pid);
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* ---- a session that leaves ---- */

/* Distinct texts, so what is not forgotten shows. */
START_TEST(texts_end_with_their_last_session)
{
	struct daemon *d = start("default_pool_size = 1\nmax_prepared_statements = 10\n");
	int n_rounds = 12;
	long base_kib = 0;

	for (int round = 0; round < n_rounds; round++) {
		for (int i = 0; i < 5; i++) {
			struct rawconn *c = raw_login(d->port, "app", "app");

			for (int k = 0; k < 100; k++)
				packet_parse(&c->out, proc_fmt("s%d", k),
				             proc_fmt("select '%d %d %d', '%01000d'", round, i, k, 0));
			packet_simple(&c->out, 'S');
			raw_flush(c);
			ck_assert_int_eq(raw_until_ready(c), 'I');
			/* half a unit more: not even that stays */
			packet_parse(&c->out, "half", proc_fmt("select 'half %d %d'", round, i));
			packet_bind(&c->out, "", "s1");
			raw_flush(c);
			raw_close(c);
		}
		ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 0, 10000));
		if (round == 1)
			base_kib = proc_rss_kib(d->pid);
	}
	/* 5,000 statements of 1 KB were prepared meanwhile */
	if (!daemon_is_sanitized())
		ck_assert_msg(proc_rss_kib(d->pid) - base_kib <= 1024, "%ld KiB stay", proc_rss_kib(d->pid) - base_kib);
	daemon_stop(d);
}
END_TEST

enum { N_CROWD = 1000, N_EACH = 50 };

START_TEST(fifty_statements_cost_a_session_little)
{
	struct daemon *d = start("default_pool_size = 4\nproxies = 2\nmax_client_conn = 1100\n");
	int n = daemon_is_sanitized() ? N_CROWD / 10 : N_CROWD;
	struct rawconn **crowd = calloc((size_t)n, sizeof(struct rawconn *));
	long base_kib, each;

	crowd[0] = raw_login(d->port, "app", "app");
	raw_query(crowd[0], "select 1");
	ck_assert_int_eq(raw_until_ready(crowd[0]), 'I');
	base_kib = proc_rss_kib(d->pid);
	for (int i = 0; i < n; i++) {
		struct rawconn *c = i > 0 ? raw_login(d->port, "app", "app") : crowd[0];

		for (int k = 0; k < N_EACH; k++)
			packet_parse(&c->out, proc_fmt("statement_%d", k),
			             proc_fmt("select 'text %d', '%01000d'", k, 0));
		packet_simple(&c->out, 'S');
		raw_flush(c);
		ck_assert_int_eq(raw_until_ready(c), 'I');
		crowd[i] = c;
	}
	each = (proc_rss_kib(d->pid) - base_kib) * 1024 / n;
	if (!daemon_is_sanitized())
		ck_assert_msg(each <= 6 * 1024, "%ld bytes for a session with %d statements", each, N_EACH);
	for (int i = 0; i < n; i += 97) {
		packet_bind(&crowd[i]->out, "", "statement_49");
		packet_execute(&crowd[i]->out, "", 0);
		packet_simple(&crowd[i]->out, 'S');
		raw_flush(crowd[i]);
		ck_assert_int_eq(raw_until_ready(crowd[i]), 'I');
		ck_assert_int_eq(strncmp(crowd[i]->rows, "text 49,", 8), 0);
	}
	for (int i = 0; i < n; i++)
		raw_close(crowd[i]);
	free(crowd);
	daemon_stop(d);
}
END_TEST

/* ---- without ---- */

/* As in pgbouncer then: names are the server's own, and a session that has one keeps its backend. */
START_TEST(off_ties_the_session_to_its_backend)
{
	struct daemon *d = start("default_pool_size = 2\nmax_prepared_statements = 0\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *c = daemon_connect(d);
	long pid;

	prepare(a, "x", "select 'a'");
	pid = query_int(a, "select pg_backend_pid()");
	for (int i = 0; i < 5; i++) {
		ck_assert_int_ne(query_int(b, "select pg_backend_pid()"), pid);
		ck_assert_int_ne(query_int(c, "select pg_backend_pid()"), pid);
		ck_assert_str_eq(execute(a, "x"), "a");
	}
	ck_assert_str_eq(query_text(a, "select name from pg_prepared_statements"), "x");
	prepare(b, "x", "select 'b'");
	ck_assert_str_eq(execute(b, "x"), "b");
	ck_assert_str_eq(execute(a, "x"), "a");
	PQfinish(a);
	/* what a leaves is gone before its backend is another's */
	ck_assert_int_eq(n_on_backend(c), 0);
	PQfinish(b);
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

/* The same with a statement that is too large to be kept. */
START_TEST(a_large_named_statement_ties_the_session)
{
	struct daemon *d = start("default_pool_size = 2\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	long pid;

	prepare(a, "big", proc_fmt("select 'big' /* %0300000d */", 0));
	pid = query_int(a, "select pg_backend_pid()");
	for (int i = 0; i < 5; i++) {
		ck_assert_int_ne(query_int(b, "select pg_backend_pid()"), pid);
		ck_assert_str_eq(execute(a, "big"), "big");
	}
	PQfinish(a);
	ck_assert(wait_until(
		query_int(b, "select count(*) from pg_prepared_statements where length(statement) > 200000") == 0,
		5000));
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* A COPY that fails behind which a client prepares something blindly: what of it was executed is not left to the next one. */
START_TEST(what_is_sent_into_a_failing_copy_harms_nobody_else)
{
	struct daemon *d = start("default_pool_size = 1\n");
	struct rawconn *c = raw_login(d->port, "app", "app");
	PGconn *a = daemon_connect(d);

	query_ok(a, "create table of_numbers (i int)");
	packet_query(&c->out, "copy of_numbers from stdin");
	packet_begin(&c->out, 'd');
	packet_bytes(&c->out, "x\n", 2);
	packet_end(&c->out);
	packet_parse(&c->out, "t", "select 'the same'");
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "22P02");
	ck_assert_int_eq(raw_read_type(c, '1').type, '1');
	ck_assert_int_eq(raw_until_ready(c), 'I');
	prepare(a, "u", "select 'the same'");
	ck_assert_str_eq(execute(a, "u"), "the same");
	query_ok(a, "drop table of_numbers");
	raw_close(c);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(session_mode_passes_everything)
{
	struct daemon *d = start("pool_mode = session\ndefault_pool_size = 2\n");
	PGconn *a = daemon_connect(d);

	prepare(a, "x", "select 'x'");
	ck_assert_str_eq(query_text(a, "select name from pg_prepared_statements"), "x");
	ck_assert_str_eq(execute(a, "x"), "x");
	query_ok(a, "deallocate x");
	ck_assert_str_eq(execute(a, "x"), "26000");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("prepared", 90, pipelines_longer_than_a_backend_remembers, one_text_is_parsed_once_per_backend,
           one_name_for_many_texts, search_path_tells_texts_apart, a_changed_result_heals, a_described_result_stays,
           unseen_deallocation_heals, a_failed_parse_is_not_remembered, statements_outlive_their_backend,
           texts_end_with_their_last_session, fifty_statements_cost_a_session_little,
           off_ties_the_session_to_its_backend, a_large_named_statement_ties_the_session,
           what_is_sent_into_a_failing_copy_harms_nobody_else, session_mode_passes_everything)
