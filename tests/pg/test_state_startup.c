/* SPDX-License-Identifier: ISC */
/* Startup parameters: what the server says to each when asked directly, a session through the daemon hears, too. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nsession_state = preserve\nproxies = 1\n"

/* Logged in as app on app with one more parameter, on the server or through the daemon: look at sqlstate. */
static struct rawconn *
login_with(uint16_t port, const char *name, const char *value)
{
	const char *const pairs[] = {"user", "app", "database", "app", name, value, NULL};
	struct rawconn *c = raw_tcp(port);

	packet_startup(&c->out, 0x30000, pairs);
	raw_flush(c);
	(void)raw_finish_login(c);
	return c;
}

/* Each is refused or accepted by the server itself: what it says decides. */
static const struct {
	const char *name, *value;
} startups[] = {
	{"work_mem", "lots"},
	{"work_mem", "1"},
	{"work_mem", "8MB"},
	{"no_such_setting", "1"},
	{"no.such", "x"},
	{"no-such.thing", "x"},
	{"datestyle", "nonsense"},
	{"client_encoding", "nonsense"},
	{"timezone", "Nowhere/Land"},
	{"default_transaction_isolation", "wild"},
	{"search_path", "$$$"},
	{"role", "nobody_such"},
	{"role", "app2"},
	{"session_authorization", "app2"},
	{"log_min_duration_statement", "0"},
	{"session_replication_role", "replica"},
	{"shared_buffers", "1GB"},
	{"server_version", "1"},
	{"is_superuser", "on"},
	{"fsync", "off"},
	{"temp_buffers", "1MB"},
	{"options", "-c work_mem=lots"},
	{"options", "-c work_mem"},
	{"options", "-c"},
	{"options", "nonsense"},
	{"options", "--work_mem=8MB --no_such=1"},
	{"options", "-c role=nobody_such"},
	{"options", "-c statement_timeout=1x"},
};

START_TEST(each_is_answered_as_by_the_server)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *other = daemon_connect(d);
	long pid = query_int(other, "select pg_backend_pid()");

	for (size_t i = 0; i < sizeof(startups) / sizeof(startups[0]); i++) {
		struct rawconn *direct = login_with(pg->port, startups[i].name, startups[i].value),
			       *through = login_with(d->port, startups[i].name, startups[i].value);

		ck_assert_msg(strcmp(direct->sqlstate, through->sqlstate) == 0 &&
		                      strcmp(direct->message, through->message) == 0,
		              "%s=%s: %s %s, and through the daemon %s %s", startups[i].name, startups[i].value,
		              direct->sqlstate, direct->message, through->sqlstate, through->message);
		raw_close(direct);
		raw_close(through);
		ck_assert_str_eq(query_text(other, "show work_mem"), "4MB");
	}
	ck_assert_int_eq(query_int(other, "select pg_backend_pid()"), pid);
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* Whoever sends bad ones by the thousand makes the server start no process for each, and leaves nothing behind. */
START_TEST(refused_ones_leave_the_server_connection)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *other = daemon_connect(d);
	long pid = query_int(other, "select pg_backend_pid()");

	for (int i = 0; i < 5; i++) {
		struct rawconn *c =
			login_with(d->port, "options", "-c datestyle=postgres -c work_mem=8MB -c role=nobody_such");

		ck_assert_str_ne(c->sqlstate, "");
		raw_close(c);
		ck_assert_int_eq(query_int(other, "select pg_backend_pid()"), pid);
		ck_assert_str_eq(query_text(other, "show work_mem"), "4MB");
		ck_assert_str_eq(query_text(other, "show datestyle"), "ISO, MDY");
	}
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* A combination that a server has accepted is not tried again. */
START_TEST(accepted_ones_are_tried_once)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *direct = cluster_connect(pg, "app"), *a;

	PQfinish(daemon_try_connect(d, "options='-c work_mem=8MB'"));
	/* with the server's only connection taken, nobody else's login may need it */
	a = daemon_connect(d);
	query_ok(a, "begin");
	for (int i = 0; i < 3; i++) {
		PGconn *b = daemon_try_connect(d, "options='-c work_mem=8MB'");

		ck_assert_int_eq(PQstatus(b), CONNECTION_OK);
		PQfinish(b);
	}
	query_ok(a, "commit");
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Those that servers from 14 on report. */
static const char *const reported[] = {"application_name",
                                       "client_encoding",
                                       "DateStyle",
                                       "default_transaction_read_only",
                                       "IntervalStyle",
                                       "is_superuser",
                                       "in_hot_standby",
                                       "server_encoding",
                                       "standard_conforming_strings",
                                       "TimeZone",
                                       "server_version",
                                       "integer_datetimes",
                                       "session_authorization"};

static void
compare_reports(PGconn *direct, PGconn *through, const char *what)
{
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		const char *want = PQparameterStatus(direct, reported[i]),
			   *got = PQparameterStatus(through, reported[i]);

		ck_assert_msg(want != NULL && got != NULL && strcmp(want, got) == 0,
		              "%s: %s is %s, and through the daemon %s", what, reported[i], want, got);
	}
}

/* Each twice: the second time nothing need be tried. */
START_TEST(login_reports_the_sessions_own_values)
{
	static const char *const conninfos[] = {
		"user=app options='-c datestyle=german'",
		"user=app options='-c timezone=europe/vienna -c intervalstyle=iso_8601'",
		"user=app options='-c default_transaction_read_only=on'",
		"user=app options='-c standard_conforming_strings=off' client_encoding=latin1",
		"user=app options='-c role=app2'",
		"user=app options='-c session_authorization=app'",
		"user=app application_name=me",
		"user=postgres",
	};
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *super = cluster_connect(pg, "app");

	query_ok(super, "grant app2 to app");
	for (size_t i = 0; i < 2 * sizeof(conninfos) / sizeof(conninfos[0]); i++) {
		const char *info = conninfos[i / 2];
		PGconn *through = daemon_try_connect(d, info),
		       *direct = PQconnectdb(proc_fmt("host=127.0.0.1 port=%d dbname=app %s", pg->port, info));

		compare_reports(direct, through, info);
		ck_assert_str_eq(query_text(through, "select session_user || '/' || current_user"),
		                 query_text(direct, "select session_user || '/' || current_user"));
		compare_reports(direct, through, info);
		PQfinish(through);
		PQfinish(direct);
	}
	query_ok(super, "revoke app2 from app");
	PQfinish(super);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_startup", 30, each_is_answered_as_by_the_server, refused_ones_leave_the_server_connection,
           accepted_ones_are_tried_once, login_reports_the_sessions_own_values)
