/* SPDX-License-Identifier: ISC */
/* session_state where it is set, what ignore means, session mode, and what a SET costs. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nproxies = 1\n"

static struct daemon *
start(const char *settings, const char *databases, const char *users)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = settings, .databases = databases, .users = users});
}

/* Whether what `user` sets in `database` is still there after somebody else had the connection, and only there. */
static bool
is_kept(const struct daemon *d, const char *database, const char *user)
{
	char *info = proc_fmt("dbname=%s user=%s", database, user);
	PGconn *a = daemon_try_connect(d, info), *b = daemon_try_connect(d, info);
	bool has_own, is_others;

	query_ok(a, "set work_mem = '3MB'");
	is_others = strcmp(query_text(b, "show work_mem"), "3MB") == 0;
	query_ok(b, "set work_mem = '5MB'");
	has_own = strcmp(query_text(a, "show work_mem"), "3MB") == 0;
	ck_assert(has_own != is_others);
	PQfinish(a);
	PQfinish(b);
	return has_own;
}

/* The user's word before the database's, that before the main section's. */
START_TEST(policy_of_user_database_and_all)
{
	static const struct {
		const char *main, *database, *user;
		bool is_kept;
	} rows[] = {
		{"ignore", "preserve", NULL, true},
		{"preserve", "ignore", NULL, false},
		{"ignore", "ignore", "strict", true},
		{"preserve", "preserve", "ignore", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *database = rows[i].database, *user = rows[i].user;
		struct daemon *d =
			start(proc_fmt(ONE_SERVER "session_state = %s\n", rows[i].main),
		              database ? proc_fmt("app = @pg session_state=%s\nother = @pg\n", database) : NULL,
		              user ? proc_fmt("app = session_state=%s\n", user) : NULL);
		bool got = is_kept(d, "app", "app");

		ck_assert_msg(got == rows[i].is_kept, "main %s, database %s, user %s: %s", rows[i].main,
		              database ? database : "-", user ? user : "-", got ? "kept" : "not kept");
		/* who is not named is as the main section says */
		if (database != NULL && user != NULL)
			ck_assert_int_eq(is_kept(d, "other", "app2"), strcmp(rows[i].main, "ignore") != 0);
		daemon_stop(d);
	}
}
END_TEST

/* As pgbouncer: what the server reports follows the session, the rest is whose connection it is. */
START_TEST(ignore_keeps_what_the_server_reports)
{
	static const char *const reported[][2] = {
		{"application_name", "mine"},  {"datestyle", "German, DMY"},           {"timezone", "Europe/Vienna"},
		{"intervalstyle", "iso_8601"}, {"standard_conforming_strings", "off"}, {"client_encoding", "LATIN1"}};
	struct daemon *d = start(ONE_SERVER "session_state = ignore\n", NULL, NULL);
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	long pid = query_int(a, "select pg_backend_pid()");

	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		query_ok(a, "set %s = '%s'", reported[i][0], reported[i][1]);
		ck_assert_str_ne(query_text(b, "show %s", reported[i][0]), reported[i][1]);
		ck_assert_str_eq(query_text(a, "show %s", reported[i][0]), reported[i][1]);
	}
	/* nothing pins, and nothing is asked */
	query_ok(a, "create temp table t (i int)");
	query_ok(a, "select pg_advisory_lock(7)");
	ck_assert_int_eq(query_int(b, "select count(*) from t"), 0);
	ck_assert_int_eq(query_int(b, "select pg_backend_pid()"), pid);
	ck_assert_int_eq(daemon_count(d, "pins", "database", "app"), 0);
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_probes"), 0);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* ---- what it costs ---- */

static void
assert_probes(struct daemon *d, PGconn *conn, const char *sql, long n)
{
	long before = daemon_show(d, "session_state", "database", "app", "total_probes");

	query_ok(conn, "%s", sql);
	query_ok(conn, "select 1"); /* behind the question, if there is one */
	ck_assert_msg(daemon_show(d, "session_state", "database", "app", "total_probes") == before + n,
	              "%s: not %ld questions", sql, n);
}

START_TEST(lone_set_asks_nothing)
{
	static const char *const lone[] = {
		"set work_mem = '3MB'", "SET work_mem TO 3072", "set session statement_timeout = '1min';",
		"set my.own = 'x'",     "set datestyle = iso",  "set application_name to mine"};
	struct daemon *d = start(ONE_SERVER "session_state = preserve\n", NULL, NULL);
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	assert_probes(d, a, "select 1", 0);
	for (size_t i = 0; i < sizeof(lone) / sizeof(lone[0]); i++)
		assert_probes(d, a, lone[i], 0);
	assert_probes(d, a, "select set_config('work_mem', '3MB', false)", 1);
	query_ok(b, "select 1");
	ck_assert_str_eq(query_text(a, "show work_mem"), "3MB");
	ck_assert_str_eq(query_text(a, "show statement_timeout"), "1min");
	ck_assert_str_eq(query_text(a, "show my.own"), "x");
	ck_assert_str_eq(query_text(a, "show application_name"), "mine");
	/* a transaction of several asks once */
	query_ok(a, "begin");
	query_ok(a, "set work_mem = '5MB'");
	query_ok(a, "set lock_timeout = '1s'");
	assert_probes(d, a, "commit", 1);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* ---- session mode ---- */

START_TEST(session_mode_resets_to_the_startup_values)
{
	static const char *const resets[] = {"reset work_mem; reset datestyle",
	                                     "set work_mem to default; set datestyle to default", "reset all",
	                                     "discard all"};
	struct daemon *d = start(ONE_SERVER "pool_mode = session\n", NULL, NULL);

	for (size_t i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
		PGconn *a = daemon_try_connect(d, "options='-c work_mem=8MB -c datestyle=german'"), *b;

		query_ok(a, "set work_mem = '3MB'");
		query_ok(a, "set datestyle = iso");
		query_ok(a, "%s", resets[i]);
		ck_assert_str_eq(query_text(a, "show work_mem"), "8MB");
		ck_assert_str_eq(query_text(a, "show datestyle"), "German, DMY");
		ck_assert_str_eq(PQparameterStatus(a, "DateStyle"), "German, DMY");
		query_ok(a, "create temp table t (i int)");
		PQfinish(a);
		/* DISCARD ALL between two sessions */
		b = daemon_connect(d);
		ck_assert_str_eq(query_text(b, "show work_mem"), "4MB");
		ck_assert_str_eq(query_text(b, "show datestyle"), "ISO, MDY");
		ck_assert_str_eq(query_text(b, "select coalesce(to_regclass('pg_temp.t')::text, '')"), "");
		PQfinish(b);
	}
	daemon_stop(d);
}
END_TEST

/* Empty: nothing is run, as pgbouncer does; settings that the server reports are the next session's own all the same. */
START_TEST(session_mode_without_a_reset_query)
{
	struct daemon *d = start(ONE_SERVER "pool_mode = session\nserver_reset_query =\n", NULL, NULL);
	PGconn *a = daemon_connect(d), *b;

	query_ok(a, "set work_mem = '3MB'");
	query_ok(a, "set datestyle = german");
	PQfinish(a);
	b = daemon_connect(d);
	ck_assert_str_eq(query_text(b, "show work_mem"), "3MB");
	ck_assert_str_eq(query_text(b, "show datestyle"), "ISO, MDY");
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_policy", 30, policy_of_user_database_and_all, ignore_keeps_what_the_server_reports,
           lone_set_asks_nothing, session_mode_resets_to_the_startup_values, session_mode_without_a_reset_query)
