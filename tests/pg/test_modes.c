/* SPDX-License-Identifier: ISC */
/* Session, transaction and statement pooling. */
#include "suite.h"

static long
backend_pid(PGconn *conn)
{
	return query_int(conn, "select pg_backend_pid()");
}

START_TEST(transaction_mode_shares_one_backend)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	long pid = backend_pid(a);

	ck_assert_int_eq(backend_pid(b), pid);
	query_ok(a, "begin");
	ck_assert_int_eq(backend_pid(a), pid);
	/* b must wait until a's transaction ends. */
	query_send(b, "select 'b ran'");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	ck_assert_int_eq(backend_pid(a), pid);
	ck_assert(!query_is_done(b));
	query_ok(a, "commit");
	ck_assert_str_eq(query_finish(b), "00000");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(failed_transaction_keeps_its_backend)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "begin");
	ck_assert_str_eq(query_sqlstate(a, "select 1/0"), "22012");
	query_send(b, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	ck_assert_str_eq(query_sqlstate(a, "select 1"), "25P02");
	ck_assert_int_eq(PQtransactionStatus(a), PQTRANS_INERROR);
	ck_assert(!query_is_done(b));
	query_ok(a, "rollback");
	ck_assert_str_eq(query_finish(b), "00000");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* COMMIT AND CHAIN ends in a transaction: the backend is not free. */
START_TEST(chained_transaction_keeps_its_backend)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "begin");
	query_ok(a, "commit and chain");
	query_send(b, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	query_ok(a, "rollback and chain");
	ck_assert_int_eq(PQtransactionStatus(a), PQTRANS_INTRANS);
	ck_assert(!query_is_done(b));
	query_ok(a, "commit");
	ck_assert_str_eq(query_finish(b), "00000");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(session_mode_keeps_the_backend_until_the_client_leaves)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = session\ndefault_pool_size = 1\n"});
	PGconn *a = daemon_connect(d), *b;
	long pid = backend_pid(a);

	query_ok(a, "create temp table t (i int); insert into t values (1); set work_mem = '99MB'");
	b = daemon_connect(d);
	query_send(b, "select pg_backend_pid(), current_setting('work_mem'), to_regclass('pg_temp.t') is null");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	ck_assert_int_eq(query_int(a, "select i from t"), 1);
	PQfinish(a);
	/* The reset query ran in between: neither table nor setting is left. */
	for (PGresult *r; (r = PQgetResult(b)) != NULL; PQclear(r)) {
		ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(b));
		ck_assert_int_eq(strtol(PQgetvalue(r, 0, 0), NULL, 10), pid);
		ck_assert_str_ne(PQgetvalue(r, 0, 1), "99MB");
		ck_assert_str_eq(PQgetvalue(r, 0, 2), "t");
	}
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

static long
n_resets(PGconn *direct)
{
	return query_int(direct, "select last_value - 1 + is_called::int from resets");
}

START_TEST(server_reset_query_is_the_configured_one)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = session\ndefault_pool_size = 1\n"
	                                                           "server_reset_query = select nextval('resets')\n"});
	PGconn *direct = cluster_connect(pg, "app"), *a;
	long n;

	query_ok(direct, "create sequence resets; grant all on resets to app");
	a = daemon_connect(d);
	query_ok(a, "select 1");
	n = n_resets(direct);
	query_ok(a, "select 2");
	ck_assert_int_eq(n_resets(direct), n);
	PQfinish(a);
	ck_assert(wait_until(n_resets(direct) == n + 1, 5000));
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Without server_reset_query_always, transaction pooling never runs it. */
START_TEST(no_reset_query_in_transaction_mode)
{
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){.settings = "default_pool_size = 1\n"
	                                                       "server_reset_query = select pg_advisory_lock(4712)\n"});
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(a, "select 1");
	PQfinish(a);
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_active") == 0, 5000));
	a = daemon_connect(d);
	query_ok(a, "select 2");
	ck_assert_int_eq(query_int(direct,
	                           "select count(*) from pg_locks where locktype = 'advisory' and objid = 4712"),
	                 0);
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(statement_mode_refuses_transaction_blocks)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = statement\ndefault_pool_size = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");

	ck_assert_int_eq(query_int(a, "select 7"), 7);
	/* An implicit transaction of several statements is fine. */
	ck_assert_int_eq(query_int(a, "select 1; select 8"), 8);
	query_send(a, "begin");
	query_finish(a);
	query_assert_message(PQerrorMessage(a), "transaction blocks not allowed in statement pooling mode");
	ck_assert_int_eq(PQstatus(a), CONNECTION_BAD);
	ck_assert_int_eq(query_int(b, "select 9"), 9);
	ck_assert(wait_until(query_int(direct,
	                               "select count(*) from pg_stat_activity where usename = 'app' and state like "
	                               "'idle in transaction%%'") == 0,
	                     5000));
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(mode_per_database)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = session\ndefault_pool_size = 1\n",
	                                               .databases = "app = @pg\n"
	                                                            "tx = @pg dbname=app pool_mode=transaction\n"
	                                                            "st = @pg dbname=app pool_mode=statement\n"});
	PGconn *a = daemon_try_connect(d, "dbname=tx"), *b = daemon_try_connect(d, "dbname=tx"), *st, *s;

	ck_assert_int_eq(backend_pid(a), backend_pid(b));
	s = daemon_try_connect(d, "dbname=app");
	query_ok(s, "set work_mem = '77MB'");
	ck_assert_str_eq(query_text(s, "show work_mem"), "77MB");
	st = daemon_try_connect(d, "dbname=st");
	query_send(st, "begin");
	query_finish(st);
	query_assert_message(PQerrorMessage(st), "transaction blocks not allowed");
	PQfinish(a);
	PQfinish(b);
	PQfinish(s);
	PQfinish(st);
	daemon_stop(d);
}
END_TEST

START_TEST(mode_per_user)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = session\ndefault_pool_size = 1\n",
	                                               .users = "app2 = pool_mode=transaction\n"
	                                                        "app3 = pool_mode=statement\n"});
	PGconn *a = daemon_try_connect(d, "user=app2"), *b = daemon_try_connect(d, "user=app2");
	PGconn *st = daemon_try_connect(d, "user=app3"), *s1 = daemon_connect(d), *s2 = daemon_connect(d);

	ck_assert_int_eq(backend_pid(a), backend_pid(b));
	query_send(st, "begin");
	query_finish(st);
	query_assert_message(PQerrorMessage(st), "transaction blocks not allowed");
	query_ok(s1, "select 1");
	query_send(s2, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "user", "app", "cl_waiting") == 1, 5000));
	ck_assert(!query_is_done(s2));
	PQfinish(s1);
	ck_assert_str_eq(query_finish(s2), "00000");
	PQfinish(a);
	PQfinish(b);
	PQfinish(st);
	PQfinish(s2);
	daemon_stop(d);
}
END_TEST

/* dbname, forced user and connect_query of a [databases] line. */
START_TEST(database_entry_maps_name_and_user)
{
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){
				     .databases = "alias = @pg dbname=other user=app2 pool_size=1 "
						  "connect_query='set application_name to ''from connect_query'''\n"});
	PGconn *a = daemon_try_connect(d, "dbname=alias");

	ck_assert_msg(PQstatus(a) == CONNECTION_OK, "%s", PQerrorMessage(a));
	ck_assert_str_eq(query_text(a, "select current_database() || ' ' || current_user"), "other app2");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* A [databases] section without "*" knows no other name. */
START_TEST(unknown_database_is_refused)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = "app = @pg\n"});
	PGconn *a = daemon_try_connect(d, "dbname=nowhere");

	ck_assert_int_eq(PQstatus(a), CONNECTION_BAD);
	query_assert_message(PQerrorMessage(a), "no such database: nowhere");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("modes", 30, transaction_mode_shares_one_backend, failed_transaction_keeps_its_backend,
           chained_transaction_keeps_its_backend, session_mode_keeps_the_backend_until_the_client_leaves,
           server_reset_query_is_the_configured_one, no_reset_query_in_transaction_mode,
           statement_mode_refuses_transaction_blocks, mode_per_database, mode_per_user,
           database_entry_maps_name_and_user, unknown_database_is_refused)
