/* SPDX-License-Identifier: ISC */
/* What drivers and frameworks do with a session, statement by statement, beside another session on the same connection. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nsession_state = preserve\nproxies = 1\n"
#define TWO_SERVERS "default_pool_size = 2\nsession_state = preserve\nproxies = 1\nmax_pinned = 100\n"

/* The statements of a habit, and then what the session must see, as one text. */
static const struct {
	const char *name;
	const char *statements[10];
	const char *look;
} habits[] = {
	{"rails",
         {"set client_min_messages to 'warning'", "set standard_conforming_strings = on",
          "set intervalstyle = iso_8601", "set session timezone to 'UTC'", "set session statement_timeout to 15000"},
         "select concat_ws(' ', current_setting('client_min_messages'), "
         "current_setting('standard_conforming_strings'), "
         "current_setting('intervalstyle'), current_setting('timezone'), current_setting('statement_timeout'))"},
	{"jdbc",
         {"set extra_float_digits = 3", "set application_name = 'PostgreSQL JDBC Driver'",
          "set session characteristics as transaction read only", "begin read only", "commit"},
         "select concat_ws(' ', current_setting('extra_float_digits'), current_setting('application_name'), "
         "current_setting('default_transaction_read_only'))"},
	{"django",
         {"select set_config('TimeZone', 'Europe/Vienna', false)", "set role app3", "begin",
          "set transaction isolation level serializable", "set constraints all immediate", "commit"},
         "select concat_ws(' ', current_setting('timezone'), current_user, session_user, "
         "current_setting('transaction_isolation'))"},
	{"psycopg",
         {"begin isolation level repeatable read", "set search_path to pg_catalog", "commit", "set work_mem = '3MB'",
          "discard all"},
         "select concat_ws(' ', current_setting('search_path'), current_setting('work_mem'), "
         "current_setting('transaction_isolation'))"},
	{"npgsql",
         {"set datestyle = 'sql'", "set my.tenant = '7'", "close all", "unlisten *", "select pg_advisory_unlock_all()",
          "discard sequences", "discard temp"},
         "select concat_ws(' ', current_setting('datestyle'), current_setting('my.tenant'))"},
	{"sqlalchemy",
         {"begin", "set transaction isolation level repeatable read", "select 1", "rollback", "begin",
          "set session characteristics as transaction isolation level serializable", "commit", "begin",
          "set local statement_timeout = '5s'", "commit"},
         "select concat_ws(' ', current_setting('default_transaction_isolation'), "
         "current_setting('statement_timeout'), "
         "current_setting('transaction_isolation'))"},
	{"tenants",
         {"select set_config('my.tenant', '42', false)", "begin", "set local my.tenant = '43'", "commit",
          "set search_path = 'tenant_42', public"},
         "select concat_ws(' ', current_setting('my.tenant'), current_setting('search_path'))"},
};

/* The same on the server itself, and with somebody else's statements in between. */
START_TEST(habits_of_settings)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *super = cluster_connect(pg, "app"), *other = daemon_connect(d);

	query_ok(super, "grant app3 to app");
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		PGconn *through = daemon_connect(d),
		       *direct = PQconnectdb(proc_fmt("host=127.0.0.1 port=%d user=app dbname=app", pg->port));
		const char *want, *got;

		for (size_t k = 0; k < 10 && habits[i].statements[k] != NULL; k++) {
			query_ok(direct, "%s", habits[i].statements[k]);
			query_ok(through, "%s", habits[i].statements[k]);
			if (PQtransactionStatus(through) == PQTRANS_IDLE)
				query_ok(other,
				         "set work_mem = '9MB'; set timezone = 'Asia/Tokyo'; set my.tenant = 'no'");
		}
		want = query_text(direct, "%s", habits[i].look);
		got = query_text(through, "%s", habits[i].look);
		ck_assert_msg(strcmp(want, got) == 0, "%s: %s, and through the daemon %s", habits[i].name, want, got);
		ck_assert_int_eq(daemon_count(d, "pins", "database", "app"), 0);
		PQfinish(through);
		PQfinish(direct);
	}
	query_ok(super, "revoke app3 from app");
	PQfinish(super);
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* One migrates, the others wait for the lock or see that it is taken, and whoever is next gets it. */
START_TEST(migrations_under_an_advisory_lock)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = TWO_SERVERS});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	ck_assert_str_eq(query_text(a, "select pg_try_advisory_lock(77)"), "t");
	ck_assert_str_eq(query_text(b, "select pg_try_advisory_lock(77)"), "f");
	query_ok(a, "begin; create table public.state_migrated (i int); commit");
	query_ok(a, "set lock_timeout = '1s'");
	ck_assert_str_eq(query_text(b, "select pg_try_advisory_lock(77)"), "f");
	ck_assert_str_eq(query_text(a, "select pg_advisory_unlock(77)"), "t");
	ck_assert_str_eq(query_text(b, "select pg_try_advisory_lock(77)"), "t");
	/* who goes without a word gives it back */
	PQfinish(b);
	ck_assert(wait_until(strcmp(query_text(a, "select pg_try_advisory_lock(77)"), "t") == 0, 5000));
	query_ok(a, "drop table public.state_migrated");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* A worker that is cut off comes again, listens again, and misses nothing from then on. */
START_TEST(listening_worker_that_reconnects)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = TWO_SERVERS});
	PGconn *super = cluster_connect(pg, "app"), *sender = daemon_connect(d), *worker;
	PGnotify *n;

	for (int i = 0; i < 2; i++) {
		worker = daemon_connect(d);
		query_ok(worker, "listen jobs");
		query_ok(sender, "select pg_notify('jobs', '%d')", i);
		n = NULL;
		ck_assert(wait_until(PQconsumeInput(worker) != 1 || (n = PQnotifies(worker)) != NULL, 5000));
		ck_assert_ptr_nonnull(n);
		ck_assert_str_eq(n->extra, proc_fmt("%d", i));
		PQfreemem(n);
		query_ok(super, "select pg_terminate_backend(%ld)", query_int(worker, "select pg_backend_pid()"));
		query_send(worker, "select 1");
		(void)query_finish(worker);
		ck_assert(wait_until(daemon_count(d, "pins", "reason", "listen") == 0, 5000));
		PQfinish(worker);
	}
	query_ok(sender, "select 1");
	PQfinish(sender);
	PQfinish(super);
	daemon_stop(d);
}
END_TEST

/* Values are bytes in the encoding of who set them. */
START_TEST(letters_in_other_encodings)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *latin = daemon_try_connect(d, "client_encoding=latin1"),
	       *utf = daemon_try_connect(d, "client_encoding=utf8"), *plain = daemon_connect(d);

	query_ok(latin, "set my.name = 'M\xfcller'");
	query_ok(utf, "set my.name = 'M\xc3\xbcller'");
	query_ok(plain, "select 1");
	ck_assert_str_eq(query_text(latin, "show my.name"), "M\xfcller");
	ck_assert_str_eq(query_text(utf, "show my.name"), "M\xc3\xbcller");
	ck_assert_int_eq(query_int(latin, "select length(current_setting('my.name'))"), 6);
	/* the session changes its mind: the value is the same text in other bytes */
	query_ok(latin, "select set_config('my.other', '\xe4', false)");
	query_ok(latin, "set client_encoding = utf8");
	query_ok(plain, "select 1");
	ck_assert_str_eq(query_text(latin, "show my.name"), "M\xc3\xbcller");
	ck_assert_str_eq(query_text(latin, "show my.other"), "\xc3\xa4");
	query_ok(utf, "set client_encoding = latin1");
	query_ok(plain, "select 1");
	ck_assert_str_eq(query_text(utf, "show my.name"), "M\xfcller");
	PQfinish(latin);
	PQfinish(utf);
	PQfinish(plain);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_habits", 30, habits_of_settings, migrations_under_an_advisory_lock, listening_worker_that_reconnects,
           letters_in_other_encodings)
