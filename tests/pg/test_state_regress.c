/* SPDX-License-Identifier: ISC */
/* What PostgreSQL's regression tests found wrong in kept session state (tests/regress), each as small as it gets. */
#include "suite.h"

static struct daemon *
one_backend(void)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = "session_state = preserve\ndefault_pool_size = 1\n"});
}

/* Another session uses the backend: nothing may be left of the one before. */
static void
others_turn(PGconn *other)
{
	query_ok(other, "select 1");
}

static long
n_probes(const struct daemon *d)
{
	return daemon_show(d, "session_state", "database", "app", "total_probes");
}

START_TEST(reset_goes_back_to_the_startup_value)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c datestyle=postgres,mdy'"), *b = daemon_connect(d);

	query_ok(a, "set datestyle = iso, ymd");
	query_ok(a, "reset datestyle");
	ck_assert_str_eq(query_text(a, "show datestyle"), "Postgres, MDY");
	ck_assert_str_eq(PQparameterStatus(a, "DateStyle"), "Postgres, MDY");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show datestyle"), "Postgres, MDY");
	ck_assert_str_eq(query_text(a, "select timestamp '2026-01-02 03:04:05'"), "Fri Jan 02 03:04:05 2026");
	ck_assert_str_eq(PQparameterStatus(b, "DateStyle"), "ISO, MDY");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* In one text with the SET the server reports only what comes out; the startup value is reported when it is put back. */
START_TEST(set_and_reset_in_one_text)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c datestyle=postgres,mdy -c intervalstyle=iso_8601'"),
	       *b = daemon_connect(d);

	query_ok(a, "set datestyle = iso, ymd; reset datestyle");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show datestyle"), "Postgres, MDY");
	ck_assert_str_eq(PQparameterStatus(a, "DateStyle"), "Postgres, MDY");
	query_ok(a, "set intervalstyle = postgres; reset datestyle");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "postgres");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "postgres");
	query_ok(a, "reset all");
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "iso_8601");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "iso_8601");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* Put back once behind each unit, and not again behind our own. */
START_TEST(reset_in_a_transaction)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c datestyle=postgres,mdy'"), *b = daemon_connect(d);
	long n_asked;

	query_ok(a, "set datestyle = iso, ymd");
	query_ok(a, "begin");
	query_ok(a, "reset datestyle");
	ck_assert_str_eq(query_text(a, "show datestyle"), "Postgres, MDY");
	ck_assert_str_eq(query_text(a, "select timestamp '2026-01-02 03:04:05'"), "Fri Jan 02 03:04:05 2026");
	query_ok(a, "rollback");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show datestyle"), "ISO, YMD");
	ck_assert_str_eq(PQparameterStatus(a, "DateStyle"), "ISO, YMD");
	query_ok(a, "begin; reset all");
	n_asked = n_probes(d);
	ck_assert(!wait_until(n_probes(d) > n_asked + 1, 200));
	query_ok(a, "commit");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show datestyle"), "Postgres, MDY");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* ---- sequences: currval() and lastval() answer what nextval() gave on the same backend, to whomever ---- */

static void
make_sequence(const char *name)
{
	PGconn *direct = cluster_connect(pg, "app");

	query_ok(direct,
	         "set client_min_messages = error; drop sequence if exists %1$s; create sequence %1$s; grant all on "
	         "sequence %1$s to app",
	         name);
	PQfinish(direct);
}

static const char *
params_sqlstate(PGconn *conn, const char *sql)
{
	PGresult *r = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0);
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	return state != NULL ? state : "00000"; /* in r, which is leaked */
}

START_TEST(currval_is_never_another_sessions)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *c = daemon_connect(d);

	make_sequence("sr_seq");
	query_int(a, "select nextval('sr_seq')");
	ck_assert_str_eq(query_sqlstate(b, "select currval('sr_seq')"), "55000");
	/* from now on the backend is b's: what it asks for is there */
	ck_assert_int_eq(query_int(b, "select nextval('sr_seq')"), 2);
	ck_assert_int_eq(query_int(b, "select currval('sr_seq')"), 2);
	ck_assert_int_eq(daemon_count(d, "pins", "reason", "sequence"), 1);
	PQfinish(b);
	ck_assert_str_eq(query_sqlstate(a, "select lastval()"), "55000");
	PQfinish(a);
	ck_assert_str_eq(params_sqlstate(c, "select currval('sr_seq')"), "55000");
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

/* Also where the first question of all comes in the extended protocol. */
START_TEST(currval_in_the_extended_protocol)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *c = daemon_connect(d);
	PGresult *r;

	make_sequence("sr_seq");
	query_int(a, "select nextval('sr_seq')");
	ck_assert_str_eq(params_sqlstate(b, "select currval('sr_seq')"), "55000");
	ck_assert_str_eq(params_sqlstate(b, "select nextval('sr_seq')"), "00000");
	ck_assert_str_eq(params_sqlstate(b, "select currval('sr_seq')"), "00000");
	PQfinish(b);
	PQclear(PQprepare(c, "p", "select currval('sr_seq')", 0, NULL));
	query_int(a, "select nextval('sr_seq')");
	r = PQexecPrepared(c, "p", 0, NULL, NULL, NULL, 0);
	ck_assert_str_eq(PQresultErrorField(r, PG_DIAG_SQLSTATE), "55000");
	PQclear(r);
	PQfinish(a);
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

/* Where the value comes from the same transaction nobody is pinned. */
START_TEST(currval_in_one_transaction)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	make_sequence("sr_seq");
	for (int i = 0; i < 3; i++) {
		query_ok(a, "begin");
		ck_assert_int_eq(query_int(a, "select nextval('sr_seq')"), query_int(a, "select lastval()"));
		query_ok(a, "commit");
		others_turn(b);
	}
	query_ok(b, "begin");
	ck_assert_str_eq(query_sqlstate(b, "select currval('sr_seq')"), "55000");
	query_ok(b, "rollback");
	/* that was a session which wants more than a transaction's */
	query_int(b, "select nextval('sr_seq')");
	query_ok(b, "begin");
	ck_assert_int_eq(query_int(b, "select currval('sr_seq')"), 4);
	query_ok(b, "commit");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* With no room for one more pin it is served without. */
START_TEST(currval_is_not_refused)
{
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){
				     .settings = "session_state = preserve\ndefault_pool_size = 2\nmax_pinned = 0\n"});
	PGconn *a = daemon_connect(d);

	make_sequence("sr_seq");
	ck_assert_int_eq(query_int(a, "select nextval('sr_seq')"), 1);
	ck_assert_int_eq(query_int(a, "select currval('sr_seq')"), 1);
	ck_assert_int_eq(daemon_count(d, "pins", "reason", "sequence"), 0);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* In strict mode nextval() is enough. */
START_TEST(strict_keeps_the_backend_after_nextval)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){
					 .settings = "session_state = strict\ndefault_pool_size = 2\nproxies = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	make_sequence("sr_seq");
	for (int i = 1; i <= 3; i++) {
		ck_assert_int_eq(query_int(a, "select nextval('sr_seq')"), i);
		others_turn(b);
		ck_assert_int_eq(query_int(a, "select currval('sr_seq')"), i);
	}
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* ---- notifications: clients know their own by the process id of the login ---- */

/* Of the notification that conn gets next. */
static int
notifier_of(PGconn *conn)
{
	PGnotify *n = NULL;

	ck_assert(wait_until(PQconsumeInput(conn) != 1 || (n = PQnotifies(conn)) != NULL, 5000));
	ck_assert_ptr_nonnull(n);
	return n->be_pid; /* n is leaked */
}

START_TEST(own_notifications_are_known)
{
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){.settings = "session_state = preserve\ndefault_pool_size = 3\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "listen sr_channel");
	query_ok(b, "listen sr_channel");
	query_ok(a, "notify sr_channel");
	ck_assert_int_eq(notifier_of(a), PQbackendPID(a));
	ck_assert_int_ne(notifier_of(b), PQbackendPID(b));
	query_ok(b, "notify sr_channel");
	ck_assert_int_eq(notifier_of(b), PQbackendPID(b));
	ck_assert_int_ne(notifier_of(a), PQbackendPID(a));
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_regress", 30, reset_goes_back_to_the_startup_value, set_and_reset_in_one_text, reset_in_a_transaction,
           currval_is_never_another_sessions, currval_in_the_extended_protocol, currval_in_one_transaction,
           currval_is_not_refused, strict_keeps_the_backend_after_nextval, own_notifications_are_known)
