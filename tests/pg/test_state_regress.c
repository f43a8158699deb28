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

/* Reported settings and a startup value; the session then sets what a session without startup settings has. */
static const char *const given[][2] = {{"client_encoding", "LATIN1"}, {"DateStyle", "German, DMY"},
                                       {"TimeZone", "Asia/Tokyo"},    {"IntervalStyle", "iso_8601"},
                                       {"application_name", "given"}, {"standard_conforming_strings", "off"}};
#define N_GIVEN (sizeof(given) / sizeof(given[0]))

static void
run_either_way(PGconn *conn, const char *sql, bool extended)
{
	PGresult *r = extended ? PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0) : PQexec(conn, sql);

	ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", sql,
	              PQerrorMessage(conn));
	PQclear(r);
}

/* `reset` may name the setting. What libpq knows then it has read before the end of the reply. */
static void
check_told_of_reset(PGconn *a, const PGconn *plain, const char *reset, bool extended)
{
	for (size_t i = 0; i < N_GIVEN; i++) {
		const char *at = strchr(reset, '%');
		char *sql = at == NULL ? strdup(reset)
		                       : proc_fmt("%.*s%s%s", (int)(at - reset), reset, given[i][0], at + 1);

		query_ok(a, "set %s to '%s'", given[i][0], PQparameterStatus(plain, given[i][0]));
		ck_assert_str_eq(PQparameterStatus(a, given[i][0]), PQparameterStatus(plain, given[i][0]));
		run_either_way(a, sql, extended);
		ck_assert_msg(strcmp(PQparameterStatus(a, given[i][0]), given[i][1]) == 0, "%s%s: %s is told as %s",
		              sql, extended ? " (extended)" : "", given[i][0], PQparameterStatus(a, given[i][0]));
		ck_assert_str_eq(query_text(a, "show %s", given[i][0]), given[i][1]);
		free(sql);
	}
}

START_TEST(startup_values_are_told_before_the_end_of_the_unit_that_resets)
{
	static const char *const ways[] = {"reset %", "set % to default", "reset all", "discard all",
	                                   "do $$ begin reset all; end $$"};
	static const char *const texts[] = {"reset %; select 1", "begin; reset all; commit", "set my.a = 1; reset %"};
	struct daemon *d = one_backend();
	PGconn *plain = daemon_connect(d),
	       *a = daemon_try_connect(d,
	                               "client_encoding=LATIN1 application_name=given options='-c datestyle=german,dmy "
	                               "-c timezone=Asia/Tokyo -c intervalstyle=iso_8601 -c "
	                               "standard_conforming_strings=off'");

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		check_told_of_reset(a, plain, ways[i], false);
		check_told_of_reset(a, plain, ways[i], true);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_told_of_reset(a, plain, texts[i], false);
	PQfinish(a);
	PQfinish(plain);
	daemon_stop(d);
}
END_TEST

/* The next unit of a pipeline runs with them as well. */
START_TEST(nothing_overtakes_the_startup_values)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c work_mem=3MB'");
	const char *shown = NULL;

	query_ok(a, "set work_mem = '5MB'");
	ck_assert_int_eq(PQenterPipelineMode(a), 1);
	ck_assert_int_eq(PQsendQueryParams(a, "reset work_mem", 0, NULL, NULL, NULL, NULL, 0), 1);
	ck_assert_int_eq(PQpipelineSync(a), 1);
	ck_assert_int_eq(PQsendQueryParams(a, "show work_mem", 0, NULL, NULL, NULL, NULL, 0), 1);
	ck_assert_int_eq(PQpipelineSync(a), 1);
	for (int n_synced = 0; n_synced < 2;) {
		PGresult *r = PQgetResult(a);

		n_synced += PQresultStatus(r) == PGRES_PIPELINE_SYNC;
		if (PQresultStatus(r) == PGRES_TUPLES_OK)
			shown = strdup(PQgetvalue(r, 0, 0));
		PQclear(r);
	}
	ck_assert_ptr_nonnull(shown);
	ck_assert_str_eq(shown, "3MB");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* Other settings were not reset, whatever the session set them to: the login's value, or a role that SET took along. */
START_TEST(a_reset_leaves_what_it_does_not_name)
{
	struct daemon *d = one_backend();
	PGconn *direct = cluster_connect(pg, "app"), *a, *b = daemon_connect(d);

	query_ok(direct, "create role reset_role; grant reset_role to app");
	a = daemon_try_connect(d, "options='-c my.given=x -c default_transaction_deferrable=on -c role=reset_role'");
	query_ok(a, "set my.given = ''; set default_transaction_deferrable = off; set role none");
	others_turn(b);
	query_ok(a, "reset work_mem");
	query_ok(a, "begin; set session authorization app; set role none");
	query_ok(a, "set extra_float_digits to default");
	query_ok(a, "commit");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show my.given"), "");
	ck_assert_str_eq(query_text(a, "show default_transaction_deferrable"), "off");
	ck_assert_str_eq(query_text(a, "show role"), "none");
	PQfinish(direct);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* What the login had anyway was set all the same: on the next backend it is no outcome of a RESET either. */
START_TEST(a_login_value_in_place_of_the_startup_value_stays)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c default_transaction_read_only=on -c intervalstyle=iso_8601'"),
	       *b = daemon_connect(d);

	query_ok(a, "set default_transaction_read_only = false");
	query_ok(a, "set intervalstyle = postgres");
	query_ok(b, "reset all");
	query_ok(a, "select set_config(n, v, false) from (values ('my.a', 'x')) v(n, v)");
	ck_assert_str_eq(query_text(a, "show default_transaction_read_only"), "off");
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "postgres");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "postgres");
	query_ok(a, "do $$ begin reset all; end $$");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show default_transaction_read_only"), "on");
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "iso_8601");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* Set by a text that may reset anything, or behind a RESET in the same transaction. */
START_TEST(a_login_value_may_be_set_where_a_reset_is_suspected)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "application_name=given options='-c intervalstyle=iso_8601'"),
	       *b = daemon_connect(d);

	query_ok(a, "do $$ begin perform set_config('application_name', '', false); end $$");
	ck_assert_str_eq(PQparameterStatus(a, "application_name"), "");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show application_name"), "");
	query_ok(a, "set intervalstyle = sql_standard");
	query_ok(a, "begin");
	query_ok(a, "reset intervalstyle");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "iso_8601");
	query_ok(a, "set intervalstyle = postgres");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "postgres");
	query_ok(a, "commit");
	others_turn(b);
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "postgres");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* It looks like the outcome of a RESET, but for what the session did itself. */
START_TEST(an_emptied_startup_value_stays_empty)
{
	static const char *const resets[] = {"reset my.given", "set my.given to default", "reset all", "discard all"};
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "options='-c my.given=x'"), *b = daemon_connect(d);

	for (size_t i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
		query_ok(a, "set my.given = ''");
		query_ok(a, "do $$ begin perform set_config('my.b', 'y', false); end $$");
		ck_assert_str_eq(query_text(a, "show my.given"), "");
		query_ok(a, "begin");
		query_ok(a, "select set_config(n, v, false) from (values ('my.a', 'x')) v(n, v)");
		ck_assert_str_eq(query_text(a, "show my.given"), "");
		query_ok(a, "commit");
		others_turn(b);
		ck_assert_str_eq(query_text(a, "show my.given"), "");
		query_ok(a, "%s", resets[i]);
		others_turn(b);
		ck_assert_str_eq(query_text(a, "show my.given"), "x");
	}
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* EXECUTE does what was prepared by the protocol, whatever that is. */
START_TEST(sql_executes_what_the_protocol_prepared)
{
	struct daemon *d = one_backend();
	PGconn *a = daemon_try_connect(d, "client_encoding=latin1 options='-c datestyle=postgres,mdy'"),
	       *b = daemon_connect(d);

	PQclear(PQprepare(a, "p", "reset all", 0, NULL));
	PQclear(PQprepare(a, "q", "select set_config('work_mem', '7MB', false)", 0, NULL));
	query_ok(a, "set datestyle = iso, ymd");
	query_ok(a, "execute p");
	ck_assert_str_eq(PQparameterStatus(a, "client_encoding"), "LATIN1");
	ck_assert_str_eq(PQparameterStatus(a, "DateStyle"), "Postgres, MDY");
	ck_assert_str_eq(query_text(a, "show client_encoding"), "LATIN1");
	query_ok(a, "execute q");
	others_turn(b);
	ck_assert_str_eq(query_text(b, "show work_mem"), "4MB");
	ck_assert_str_eq(query_text(a, "show work_mem"), "7MB");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_regress", 30, reset_goes_back_to_the_startup_value, set_and_reset_in_one_text, reset_in_a_transaction,
           currval_is_never_another_sessions, currval_in_the_extended_protocol, currval_in_one_transaction,
           currval_is_not_refused, strict_keeps_the_backend_after_nextval, own_notifications_are_known,
           startup_values_are_told_before_the_end_of_the_unit_that_resets, nothing_overtakes_the_startup_values,
           a_reset_leaves_what_it_does_not_name, a_login_value_in_place_of_the_startup_value_stays,
           a_login_value_may_be_set_where_a_reset_is_suspected, an_emptied_startup_value_stays_empty,
           sql_executes_what_the_protocol_prepared)
