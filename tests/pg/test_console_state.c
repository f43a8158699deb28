/* SPDX-License-Identifier: ISC */
/* The admin console: what it shows of session state. */
#include "suite.h"

static struct daemon *
start(const char *more)
{
	return daemon_start(pg, &(struct daemon_conf){
					.settings = proc_fmt("pool_mode = transaction\nsession_state = preserve\n"
	                                                     "default_pool_size = 8\nproxies = 2\n%s",
	                                                     more)});
}

/* A connection to the console under that name. */
static PGconn *
console_as(const struct daemon *d, const char *user)
{
	PGconn *c = daemon_try_connect(d, proc_fmt("dbname=pgweir user=%s", user));

	ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
	return c;
}

/* The value of a column in the row whose key column is key; NULL: no such row, or SQL's NULL. */
static char *
cell(PGresult *r, const char *key_column, const char *key, const char *column)
{
	int n_key = PQfnumber(r, key_column), n_column = PQfnumber(r, column);

	ck_assert_msg(n_key >= 0 && n_column >= 0, "%s, %s: %s", key_column, column, PQresultErrorMessage(r));
	for (int row = 0; row < PQntuples(r); row++)
		if (strcmp(PQgetvalue(r, row, n_key), key) == 0)
			return PQgetisnull(r, row, n_column) ? NULL : PQgetvalue(r, row, n_column);
	return NULL;
}

static long
pinned(const struct daemon *d)
{
	return daemon_show(d, "session_state", "database", "app", "pinned");
}

START_TEST(pins_are_shown_while_they_last)
{
	struct daemon *d = start("");
	PGconn *locker = daemon_connect(d), *both = daemon_connect(d), *console = daemon_console(d);
	PGresult *r;

	query_ok(locker, "SELECT pg_advisory_lock(4711)");
	query_ok(both, "begin; create temp table t (i int) ; listen c; commit");
	ck_assert(wait_until(pinned(d) == 2, 5000));
	r = PQexec(console, "SHOW PINS");
	ck_assert_int_eq(PQntuples(r), 2);
	ck_assert_str_eq(cell(r, "reason", "lock", "statement"), "SELECT pg_advisory_lock(4711)");
	ck_assert_str_eq(cell(r, "reason", "lock", "user"), "app");
	ck_assert_str_eq(cell(r, "reason", "lock", "database"), "app");
	ck_assert_int_eq(strtol(cell(r, "reason", "lock", "server_pid"), NULL, 10),
	                 query_int(locker, "select pg_backend_pid()"));
	ck_assert_int_eq((long)strlen(cell(r, "reason", "lock", "fingerprint")), 16);
	ck_assert_int_lt(strtol(cell(r, "reason", "lock", "age"), NULL, 10), 60);
	ck_assert_ptr_nonnull(cell(r, "reason", "temp,listen", "statement"));
	PQclear(r);
	/* the first one ends, the other does in parts */
	query_ok(locker, "SELECT pg_advisory_unlock(4711)");
	query_ok(both, "unlisten *");
	ck_assert(wait_until(daemon_count(d, "pins", "reason", "temp") == 1, 5000));
	ck_assert(
		wait_until(daemon_count(d, "pins", "reason", "lock") == 0, 5000)); /* the client does not wait for it */
	query_ok(both, "drop table t");
	ck_assert(wait_until(pinned(d) == 0, 5000));
	r = PQexec(console, "SHOW PINS");
	ck_assert_int_eq(PQntuples(r), 0);
	PQclear(r);
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_pins_lock"), 1);
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_pins_temp"), 1);
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_pins_cursor"), 0);
	ck_assert_int_ge(daemon_show(d, "session_state", "database", "app", "total_probes"), 5);
	PQfinish(locker);
	PQfinish(both);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(prepared_texts_are_known)
{
	struct daemon *d = start("");
	PGconn *unnamed = daemon_connect(d), *named = daemon_connect(d), *console = daemon_console(d);
	const char *key = "7";
	PGresult *r;

	PQclear(PQexecParams(unnamed, "select pg_advisory_lock($1)", 1, NULL, &key, NULL, NULL, 0));
	PQclear(PQprepare(named, "s", "SELECT pg_advisory_lock_shared($1)", 1, NULL));
	key = "8";
	PQclear(PQexecPrepared(named, "s", 1, &key, NULL, NULL, 0));
	ck_assert(wait_until(pinned(d) == 2, 5000));
	r = PQexec(console, "SHOW PINS");
	ck_assert_ptr_nonnull(cell(r, "statement", "select pg_advisory_lock($1)", "fingerprint"));
	ck_assert_ptr_nonnull(cell(r, "statement", "SELECT pg_advisory_lock_shared($1)", "fingerprint"));
	PQclear(r);
	PQfinish(unnamed);
	PQfinish(named);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

static bool
shows_settings(PGconn *console, const char *part)
{
	PGresult *r = PQexec(console, "SHOW SETTINGS");
	bool found = false;

	ck_assert_int_eq(PQresultStatus(r), PGRES_TUPLES_OK);
	for (int row = 0; row < PQntuples(r); row++)
		found = found || strstr(PQgetvalue(r, row, 0), part) != NULL;
	PQclear(r);
	return found;
}

/* Two sessions do the same with other values: one fingerprint. Texts and values are not for everybody. */
START_TEST(texts_and_values_are_for_administrators)
{
	struct daemon *d = start("stats_users = app2\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *reader = console_as(d, "app2");
	PGconn *console = daemon_console(d);
	PGresult *r;

	query_ok(a, "select pg_advisory_lock(1)");
	query_ok(b, "SELECT pg_advisory_lock( 22222 ) -- mine");
	query_ok(a, "set app.token = 's3cr''t'");
	ck_assert(wait_until(pinned(d) == 2, 5000));
	r = PQexec(reader, "SHOW PINS");
	ck_assert_int_eq(PQntuples(r), 2);
	ck_assert_str_eq(PQgetvalue(r, 0, PQfnumber(r, "fingerprint")), PQgetvalue(r, 1, PQfnumber(r, "fingerprint")));
	ck_assert(PQgetisnull(r, 0, PQfnumber(r, "statement")) && PQgetisnull(r, 1, PQfnumber(r, "statement")));
	PQclear(r);
	ck_assert(wait_until(shows_settings(console, "app.token='s3cr''t'"), 5000));
	ck_assert(shows_settings(reader, "app.token"));
	ck_assert(!shows_settings(reader, "s3cr"));
	PQfinish(a);
	PQfinish(b);
	PQfinish(reader);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(settings_are_counted_over_all_proxies)
{
	struct daemon *d = start("");
	PGconn *c[4];

	for (int i = 0; i < 4; i++) {
		c[i] = daemon_try_connect(d, "options='-c work_mem=2MB'");
		query_ok(c[i], "begin");
	}
	query_ok(c[3], "rollback");
	query_ok(c[3], "set work_mem = '3MB'");
	query_ok(c[3], "begin");
	{
		PGconn *console = daemon_console(d);
		PGresult *r = PQexec(console, "SHOW SETTINGS");
		long n_sessions = 0, n_servers = 0;

		for (int row = 0; row < PQntuples(r); row++) {
			if (strstr(PQgetvalue(r, row, 0), "work_mem='2MB'") == NULL)
				continue;
			n_sessions += strtol(PQgetvalue(r, row, PQfnumber(r, "sessions")), NULL, 10);
			n_servers += strtol(PQgetvalue(r, row, PQfnumber(r, "servers")), NULL, 10);
		}
		ck_assert_int_eq(n_sessions, 3);
		ck_assert_int_ge(n_servers, 3);
		ck_assert_int_eq(daemon_count(d, "settings", "sessions", "3"), 1);
		PQclear(r);
		PQfinish(console);
	}
	for (int i = 0; i < 4; i++)
		PQfinish(c[i]);
	daemon_stop(d);
}
END_TEST

/* Two sessions with settings of their own take turns on one backend. */
START_TEST(replays_are_counted)
{
	struct daemon *d = start("default_pool_size = 1\nproxies = 1\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);
	long before;

	query_ok(a, "set work_mem = '2MB'");
	query_ok(b, "set work_mem = '3MB'");
	query_ok(b, "select 1");
	before = daemon_show(d, "session_state", "database", "app", "total_replays");
	for (int i = 0; i < 5; i++) {
		ck_assert_str_eq(query_text(a, "show work_mem"), "2MB");
		ck_assert_str_eq(query_text(b, "show work_mem"), "3MB");
	}
	query_ok(b, "select 1");
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_replays") - before, 10);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* More than is kept, cut inside a letter. */
START_TEST(long_texts_are_cut)
{
	struct daemon *d = start("");
	PGconn *a = daemon_connect(d), *console = daemon_console(d);
	char filler[400];
	PGresult *r;
	const char *text;

	for (size_t i = 0; i + 2 < sizeof(filler); i += 2)
		memcpy(filler + i, "\xc3\xa9", 3);
	filler[sizeof(filler) - 2] = '\0';
	query_ok(a, "select pg_advisory_lock(1), '%s'", filler);
	ck_assert(wait_until(pinned(d) == 1, 5000));
	r = PQexec(console, "SHOW PINS");
	text = cell(r, "reason", "lock", "statement");
	ck_assert_uint_eq(strlen(text), 200);
	ck_assert_str_eq(text + 197, "\xc3\xa9?");
	PQclear(r);
	PQfinish(a);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

/* It can't be seen whole, so everything is asked for: nothing is there. */
START_TEST(a_large_text_does_not_pin)
{
	struct daemon *d = start("");
	PGconn *a = daemon_connect(d);
	char *filler = calloc(1, 100001);

	memset(filler, 'x', 100000);
	query_ok(a, "select '%s'", filler);
	query_ok(a, "begin; select '%s'; create temp table t (i int); commit", filler);
	ck_assert(wait_until(daemon_count(d, "pins", "reason", "temp") == 1, 5000));
	query_ok(a, "drop table t");
	ck_assert(wait_until(pinned(d) == 0, 5000));
	ck_assert_int_eq(daemon_show(d, "session_state", "database", "app", "total_pins_seed"), 0);
	ck_assert_int_ge(daemon_show(d, "session_state", "database", "app", "total_probes"), 3);
	free(filler);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("console_state", 30, pins_are_shown_while_they_last, prepared_texts_are_known,
           texts_and_values_are_for_administrators, settings_are_counted_over_all_proxies, replays_are_counted,
           long_texts_are_cut, a_large_text_does_not_pin)
