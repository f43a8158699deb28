/* SPDX-License-Identifier: ISC */
/* The admin console: what exporters and scripts written for pgbouncer read. */
#include "suite.h"

static const struct {
	const char *what, *columns;
} shows[] = {
	{"version", "version"},
	{"stats", "database total_server_assignment_count total_xact_count total_query_count total_received total_sent "
                  "total_xact_time "
                  "total_query_time total_wait_time total_client_parse_count total_server_parse_count total_bind_count "
                  "total_client_login_count avg_server_assignment_count avg_xact_count avg_query_count avg_recv "
                  "avg_sent avg_xact_time "
                  "avg_query_time avg_wait_time avg_client_parse_count avg_server_parse_count avg_bind_count "
                  "avg_client_login_count"},
	{"totals", "name value"},
	{"pools",
         "database user cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req sv_active sv_active_cancel "
         "sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait maxwait_us pool_mode load_balance_hosts"},
	{"clients",
         "type user database replication state addr port local_addr local_port connect_time request_time wait wait_us "
         "close_needed ptr link remote_pid tls application_name prepared_statements id"},
	{"servers",
         "type user database replication state addr port local_addr local_port connect_time request_time wait wait_us "
         "close_needed ptr link remote_pid tls application_name prepared_statements id"},
	{"databases",
         "name host port database force_user pool_size min_pool_size reserve_pool_size server_lifetime pool_mode "
         "load_balance_hosts max_connections current_connections max_client_connections current_client_connections "
         "paused "
         "disabled"},
	{"config", "key value default changeable"},
	{"users", "name pool_size reserve_pool_size pool_mode max_user_connections current_connections "
                  "max_user_client_connections "
                  "current_client_connections"},
	{"lists", "list items"},
	{"state", "key value"},
	{"sockets",
         "type user database replication state addr port local_addr local_port connect_time request_time wait wait_us "
         "close_needed ptr link remote_pid tls application_name prepared_statements id recv_pos pkt_pos pkt_remain "
         "send_pos "
         "send_remain pkt_avail send_avail"},
	{"active_sockets",
         "type user database replication state addr port local_addr local_port connect_time request_time wait wait_us "
         "close_needed ptr link remote_pid tls application_name prepared_statements id recv_pos pkt_pos pkt_remain "
         "send_pos "
         "send_remain pkt_avail send_avail"},
	{"stats_totals", "database server_assignment_count xact_count query_count bytes_received bytes_sent xact_time "
                         "query_time wait_time "
                         "client_parse_count server_parse_count bind_count client_login_count"},
	{"stats_averages", "database server_assignment_count xact_count query_count bytes_received bytes_sent "
                           "xact_time query_time wait_time "
                           "avg_client_parse_count avg_server_parse_count avg_bind_count avg_client_login_count"},
};

static struct daemon *
start(void)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 3\nproxies = 2\n"});
}

START_TEST(columns_are_those_of_pgbouncer)
{
	struct daemon *d = start();
	PGconn *console = daemon_console(d), *a = daemon_connect(d);

	query_ok(a, "begin");
	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		PGresult *r = PQexec(console, proc_fmt("SHOW %s;", shows[i].what));
		char columns[2000] = "";

		ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "SHOW %s: %s", shows[i].what,
		              PQerrorMessage(console));
		for (int c = 0; c < PQnfields(r); c++) {
			strcat(columns, c > 0 ? " " : ""); /* lint: sized for it */
			strcat(columns, PQfname(r, c));    /* lint: sized for it */
		}
		ck_assert_str_eq(columns, shows[i].columns);
		ck_assert_msg(PQntuples(r) > 0, "SHOW %s is empty", shows[i].what);
		ck_assert_str_eq(PQcmdStatus(r), "SHOW");
		PQclear(r);
	}
	PQfinish(a);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

/* A row for each proxy, with the columns the issue names. */
START_TEST(proxies)
{
	static const char *const names[] = {"sessions", "waiting", "pools", "backends"};
	struct daemon *d;
	PGconn *console;
	PGresult *r;

	if (!daemon_is_pgweir())
		return;
	d = start();
	console = daemon_console(d);
	r = PQexec(console, "SHOW PROXIES");
	ck_assert_int_eq(PQntuples(r), 2);
	ck_assert_int_ge(PQnfields(r), 11);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(PQfnumber(r, names[i]) >= 0, "SHOW PROXIES has no column %s", names[i]);
	PQclear(r);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

static void
take_notice(void *arg, const PGresult *r)
{
	const char *detail = PQresultErrorField(r, PG_DIAG_MESSAGE_DETAIL);

	snprintf(arg, 7000, "%s%s", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), detail ? detail : "");
}

START_TEST(help_is_a_notice)
{
	struct daemon *d = start();
	PGconn *console = daemon_console(d);
	char notice[8000] = "";

	PQsetNoticeReceiver(console, take_notice, notice);
	query_ok(console, "SHOW HELP");
	query_assert_message(notice, "SHOW");
	query_assert_message(notice, "VERSION");
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(pools_count_what_happens)
{
	struct daemon *d = start();
	PGconn *a = daemon_connect(d), *b[3], *c = daemon_connect(d);

	for (int i = 0; i < 3; i++) {
		b[i] = daemon_connect(d);
		query_ok(b[i], "begin");
	}
	query_send(c, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "sv_active"), 3);
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "sv_idle"), 0);
	ck_assert_int_eq(daemon_count(d, "servers", "state", "active"), 3);
	ck_assert_int_eq(daemon_count(d, "clients", "state", "waiting"), 1);
	ck_assert_int_eq(daemon_count(d, "clients", "database", "app"), 5);
	for (int i = 0; i < 3; i++)
		query_ok(b[i], "commit");
	ck_assert_str_eq(query_finish(c), "00000");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "sv_idle") == 3, 5000));
	for (int i = 0; i < 3; i++)
		PQfinish(b[i]);
	PQfinish(a);
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

START_TEST(stats_count_transactions_and_queries)
{
	struct daemon *d = start();
	PGconn *a = daemon_connect(d);

	for (int i = 0; i < 10; i++)
		query_ok(a, "select 1");
	query_ok(a, "begin");
	query_ok(a, "select 1");
	query_ok(a, "commit");
	ck_assert(wait_until(daemon_show(d, "stats", "database", "app", "total_query_count") == 13, 5000));
	ck_assert_int_eq(daemon_show(d, "stats", "database", "app", "total_xact_count"), 11);
	ck_assert_int_gt(daemon_show(d, "stats", "database", "app", "total_received"), 100);
	ck_assert_int_gt(daemon_show(d, "stats", "database", "app", "total_sent"), 100);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(servers_show_the_real_backend)
{
	struct daemon *d = start();
	PGconn *a = daemon_connect(d);
	long pid;

	query_ok(a, "begin");
	pid = query_int(a, "select pg_backend_pid()");
	ck_assert_int_eq(daemon_show(d, "servers", "database", "app", "remote_pid"), pid);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* A statement longer than a command may be, several in one message, comments, case. */
START_TEST(commands_are_forgiving_and_errors_are_clear)
{
	struct daemon *d = start();
	PGconn *console = daemon_console(d);
	static const char *const bad[] = {"SHOW NONSENSE", "FROBNICATE", "SHOW", "update t set i = 1"};

	query_ok(console, "show version");
	query_ok(console, "  ShOw   VeRsIoN ; ");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *state = query_sqlstate(console, "%s", bad[i]);

		ck_assert_msg(strlen(state) == 5, "%s: no SQLSTATE", bad[i]);
		ck_assert_int_eq(PQstatus(console), CONNECTION_OK);
	}
	query_ok(console, "show version");
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

/* What drivers do on connect. */
START_TEST(drivers_can_connect)
{
	struct daemon *d = start();
	PGconn *console = daemon_console(d);
	char *out;

	query_ok(console, "SET client_encoding TO 'UTF8'");
	query_ok(console, "SET extra_float_digits = 2");
	query_ok(console, "SET datestyle TO 'ISO'");
	ck_assert_msg(proc_run(&out, "%s -X -h %s -p %d -U pgbouncer -d pgbouncer -c 'show pools'",
	                       proc_pg_program("psql"), d->dir, d->port) == 0,
	              "%s", out);
	query_assert_message(out, "cl_waiting");
	if (daemon_is_pgweir()) {
		ck_assert_msg(proc_run(&out, "%s -X -h %s -p %d -U pgbouncer -d pgweir -c 'show pools'",
		                       proc_pg_program("psql"), d->dir, d->port) == 0,
		              "%s", out);
		query_assert_message(out, "cl_waiting");
	}
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(extended_protocol_is_refused)
{
	struct daemon *d = start();
	struct rawconn *c = raw_unix(d->dir, d->port);

	packet_login(&c->out, "pgbouncer", "pgbouncer");
	raw_flush(c);
	ck_assert(raw_finish_login(c));
	packet_parse(&c->out, "", "show version");
	packet_bind(&c->out, "", "");
	packet_execute(&c->out, "", 0);
	packet_simple(&c->out, 'S');
	raw_flush(c);
	raw_until_ready(c);
	ck_assert_str_eq(c->sqlstate, "08P01");
	raw_close(c);
	daemon_stop(d);
}
END_TEST

START_TEST(access_is_limited)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "admin_users = app2\nstats_users = app3\n"});
	PGconn *nobody = daemon_try_connect(d, "dbname=pgbouncer user=app");
	PGconn *stats = daemon_try_connect(d, "dbname=pgbouncer user=app3"),
	       *admin = daemon_try_connect(d, "dbname=pgbouncer user=app2");

	ck_assert_int_eq(PQstatus(nobody), CONNECTION_BAD);
	query_assert_message(PQerrorMessage(nobody), "not allowed");
	query_ok(stats, "show pools");
	query_ok(admin, "show pools");
	PQfinish(nobody);
	PQfinish(stats);
	PQfinish(admin);
	daemon_stop(d);
}
END_TEST

START_TEST(config_lists_settings_in_order)
{
	struct daemon *d = start();
	PGconn *console = daemon_console(d);
	PGresult *r = PQexec(console, "SHOW CONFIG");
	bool found = false;

	ck_assert_int_gt(PQntuples(r), 80);
	for (int i = 0; i < PQntuples(r); i++) {
		if (i > 0)
			ck_assert_str_lt(PQgetvalue(r, i - 1, 0), PQgetvalue(r, i, 0));
		if (strcmp(PQgetvalue(r, i, 0), "default_pool_size") == 0) {
			found = true;
			ck_assert_str_eq(PQgetvalue(r, i, 1), "3");
			ck_assert_str_eq(PQgetvalue(r, i, 2), "20");
			ck_assert_str_eq(PQgetvalue(r, i, 3), "yes");
		}
	}
	ck_assert(found);
	PQclear(r);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("console", 30, columns_are_those_of_pgbouncer, proxies, help_is_a_notice, pools_count_what_happens,
           stats_count_transactions_and_queries, servers_show_the_real_backend,
           commands_are_forgiving_and_errors_are_clear, drivers_can_connect, extended_protocol_is_refused,
           access_is_limited, config_lists_settings_in_order)
