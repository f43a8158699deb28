/* SPDX-License-Identifier: ISC */
/* What session_state promises, case by case; test_state_random.c compares at random. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nsession_state = preserve\nquery_wait_timeout = 20\n"
#define TWO_SERVERS "default_pool_size = 2\nsession_state = preserve\nserver_round_robin = 1\nmax_pinned = 100\n"

static long
pid_of(PGconn *conn)
{
	return query_int(conn, "select pg_backend_pid()");
}

START_TEST(settings_follow_their_session_and_nobody_else)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	long pid = pid_of(a);

	query_ok(a, "set work_mem = '3MB'");
	query_ok(a, "select set_config('my.own', 'a', false)");
	ck_assert_int_eq(pid_of(b), pid);
	ck_assert_str_ne(query_text(b, "show work_mem"), "3MB");
	ck_assert_str_eq(query_text(b, "select coalesce(current_setting('my.own', true), '')"), "");
	ck_assert_str_eq(query_text(a, "show work_mem"), "3MB");
	ck_assert_str_eq(query_text(a, "show my.own"), "a");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* The name comes as a value, and the server lists no such settings. */
START_TEST(a_dotted_name_that_is_a_parameter_stays_with_its_session)
{
	static const char *const values[] = {"my.hidden", "mine"};
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	PQclear(PQexecParams(a, "select set_config($1, $2, false)", 2, NULL, values, NULL, NULL, 0));
	ck_assert_str_eq(query_text(b, "select coalesce(current_setting('my.hidden', true), '')"), "");
	ck_assert_str_eq(query_text(a, "select current_setting('my.hidden', true)"), "mine");
	/* put together on the server: the session may lose it, others must not get it */
	query_ok(a, "do $$ begin perform set_config('my' || '.' || 'secret', 'x', false); end $$");
	ck_assert_str_eq(query_text(b, "select coalesce(current_setting('my.secret', true), '')"), "");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* Each makes a pin and ends it. */
START_TEST(pins_keep_the_server_connection_and_end_by_themselves)
{
	static const char *const pairs[][2] = {{"create temp table t (i int)", "drop table t"},
	                                       {"listen c", "unlisten c"},
	                                       {"select pg_advisory_lock(7)", "select pg_advisory_unlock(7)"},
	                                       {"prepare q as select 1", "deallocate q"},
	                                       {"declare c cursor with hold for select 1", "close c"}};
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = TWO_SERVERS});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		long pid;

		query_ok(a, "%s", pairs[i][0]);
		ck_assert(wait_until(daemon_count(d, "pins", "database", "app") == 1, 5000));
		pid = pid_of(a);
		ck_assert_int_ne(pid_of(b), pid);
		ck_assert_int_ne(pid_of(b), pid);
		ck_assert_int_eq(pid_of(a), pid);
		query_ok(a, "%s", pairs[i][1]);
		ck_assert(wait_until(daemon_count(d, "pins", "database", "app") == 0, 5000));
	}
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(notifications_reach_an_idle_listener_and_nobody_else)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = TWO_SERVERS});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	PGnotify *n = NULL;

	query_ok(a, "listen c");
	query_ok(b, "notify c, 'hello'");
	ck_assert(wait_until(PQconsumeInput(a) && (n = PQnotifies(a)) != NULL, 5000));
	ck_assert_str_eq(n->extra, "hello");
	query_ok(b, "select 1");
	ck_assert_ptr_null(PQnotifies(b));
	PQfreemem(n);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(too_many_pins_are_refused_and_that_heals)
{
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){
				     .settings = "default_pool_size = 2\nsession_state = preserve\nmax_pinned = 50\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "create temp table t (i int)");
	ck_assert(wait_until(daemon_count(d, "pins", "database", "app") == 1, 5000));
	ck_assert_str_eq(query_sqlstate(b, "create temp table t (i int)"), "53300");
	query_assert_message(PQerrorMessage(b), "max_pinned");
	query_ok(b, "begin");
	ck_assert_str_eq(query_sqlstate(b, "listen c"), "53300");
	ck_assert_int_eq(PQtransactionStatus(b), PQTRANS_INERROR);
	query_ok(b, "rollback");
	query_ok(a, "drop table t");
	ck_assert(wait_until(daemon_count(d, "pins", "database", "app") == 0, 5000));
	query_ok(b, "create temp table t (i int)");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(an_idle_pin_is_ended)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER "pin_idle_timeout = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "create temp table t (i int)");
	query_ok(b, "select 1"); /* waits until a is gone */
	ck_assert_int_eq(query_int(b, "select count(*) from pg_class where relname = 't'"), 0);
	ck_assert(daemon_logged(d, "pin_idle_timeout"));
	query_send(a, "select 1");
	ck_assert_str_eq(query_finish(a), "57P05");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* A role that is gone: what is sent behind the settings must not run without them. */
START_TEST(nothing_runs_behind_settings_that_can_not_be_applied)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(direct, "create role passing; grant passing to app; create table public.ran (i int); grant insert on "
	                 "public.ran to app");
	query_ok(a, "set role passing");
	query_ok(b, "select 1");
	query_ok(direct, "drop role passing");
	query_send(a, "insert into public.ran values (1)");
	ck_assert_str_eq(query_finish(a), "58000");
	ck_assert_int_eq(query_int(direct, "select count(*) from public.ran"), 0);
	query_ok(b, "select 1");
	query_ok(direct, "drop table public.ran");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Sessions that spell the same setting otherwise have the same settings: one must not wait for what needs no answer. */
START_TEST(names_of_settings_are_spelled_in_any_case)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *a = daemon_try_connect(d, "options='-c work_mem=3MB'");
	PGconn *b = daemon_try_connect(d, "options='-c WORK_MEM=3MB' connect_timeout=10");

	for (int i = 0; i < 3; i++) {
		query_ok(a, "set Work_Mem = '5MB'");
		query_ok(a, "select pg_advisory_unlock_all(); reset all");
		ck_assert_str_eq(query_text(a, "show work_mem"), "3MB");
		query_ok(b, "select set_config('Work_mem', '4MB', false)");
		query_ok(b, "reset all");
		ck_assert_str_eq(query_text(b, "show work_mem"), "3MB");
		query_ok(b, "select pg_advisory_unlock_all(); reset all");
		ck_assert_str_eq(query_text(b, "show work_mem"), "3MB");
	}
	ck_assert(wait_until(daemon_count(d, "servers", "state", "idle") == 1, 5000));
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state", 60, settings_follow_their_session_and_nobody_else,
           a_dotted_name_that_is_a_parameter_stays_with_its_session,
           pins_keep_the_server_connection_and_end_by_themselves, notifications_reach_an_idle_listener_and_nobody_else,
           too_many_pins_are_refused_and_that_heals, an_idle_pin_is_ended,
           nothing_runs_behind_settings_that_can_not_be_applied, names_of_settings_are_spelled_in_any_case)
