/* SPDX-License-Identifier: ISC */
/* The admin console: that what it shows is so, over all proxies. */
#include "suite.h"

/* The value of a column in the row whose key column is key; asserts that there is one. */
static char *
cell(PGresult *r, const char *key_column, const char *key, const char *column)
{
	int n_key = PQfnumber(r, key_column), n_column = PQfnumber(r, column);

	ck_assert(n_key >= 0 && n_column >= 0);
	for (int row = 0; row < PQntuples(r); row++)
		if (strcmp(PQgetvalue(r, row, n_key), key) == 0)
			return PQgetvalue(r, row, n_column);
	ck_abort_msg("no row has %s = %s", key_column, key);
}

START_TEST(a_client_and_its_server_name_each_other)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 2\n"});
	PGconn *a = daemon_try_connect(d, "application_name=holder"), *console = daemon_console(d);
	PGresult *clients, *servers;

	query_ok(a, "begin");
	clients = PQexec(console, "SHOW CLIENTS");
	servers = PQexec(console, "SHOW SERVERS");
	ck_assert_str_eq(cell(clients, "application_name", "holder", "state"), "active");
	ck_assert_str_eq(cell(clients, "application_name", "holder", "addr"), "127.0.0.1");
	ck_assert_int_eq(strtol(cell(clients, "application_name", "holder", "local_port"), NULL, 10), d->port);
	ck_assert_str_eq(cell(clients, "application_name", "holder", "link"), cell(servers, "state", "active", "ptr"));
	ck_assert_str_eq(cell(clients, "application_name", "holder", "ptr"), cell(servers, "state", "active", "link"));
	ck_assert_str_eq(cell(servers, "state", "active", "addr"), "unix");
	ck_assert_int_eq(strtol(cell(servers, "state", "active", "port"), NULL, 10), pg->port);
	/* the console, over a Unix socket, from this process */
	ck_assert_str_eq(cell(clients, "user", "pgbouncer", "addr"), "unix");
	ck_assert_int_eq(strtol(cell(clients, "user", "pgbouncer", "port"), NULL, 10), d->port);
	ck_assert_int_eq(strtol(cell(clients, "user", "pgbouncer", "remote_pid"), NULL, 10), getpid());
	PQclear(clients);
	PQclear(servers);
	PQfinish(a);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(a_waiter_shows_how_long)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *holder = daemon_connect(d), *waiter = daemon_try_connect(d, "application_name=waiter"), *console;
	PGresult *clients;

	query_ok(holder, "begin");
	query_send(waiter, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "maxwait_us") > 0, 5000));
	console = daemon_console(d);
	clients = PQexec(console, "SHOW CLIENTS");
	ck_assert_str_eq(cell(clients, "application_name", "waiter", "state"), "waiting");
	ck_assert_str_eq(cell(clients, "application_name", "waiter", "link"), "");
	ck_assert_int_gt(strtol(cell(clients, "application_name", "waiter", "wait_us"), NULL, 10), 0);
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "maxwait") > 0, 5000));
	query_ok(holder, "commit");
	ck_assert_str_eq(query_finish(waiter), "00000");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 0, 5000));
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "maxwait"), 0);
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "maxwait_us"), 0);
	PQclear(clients);
	PQfinish(console);
	PQfinish(holder);
	PQfinish(waiter);
	daemon_stop(d);
}
END_TEST

/* Clients are dealt to four proxies; every number is of all of them. */
START_TEST(rows_of_all_proxies_are_put_together)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 4\nsession_schedule = least-loaded\n"});
	PGconn *clients[8];

	for (int i = 0; i < 8; i++) {
		clients[i] = daemon_connect(d);
		query_ok(clients[i], "begin");
	}
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "cl_active"), 8);
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "sv_active"), 8);
	ck_assert_int_eq(daemon_count(d, "pools", "database", "app"), 1);
	ck_assert_int_eq(daemon_count(d, "clients", "database", "app"), 8);
	ck_assert_int_eq(daemon_count(d, "servers", "state", "active"), 8);
	ck_assert_int_eq(daemon_show(d, "databases", "name", "app", "current_connections"),
	                 daemon_count(d, "servers", "database", "app"));
	ck_assert_int_eq(daemon_show(d, "databases", "name", "app", "current_client_connections"), 8);
	ck_assert_int_eq(daemon_show(d, "users", "name", "app", "current_client_connections"), 8);
	ck_assert(
		wait_until(daemon_show(d, "lists", "list", "used_clients", "items") == 9, 5000)); /* and the console */
	if (daemon_is_pgweir()) {
		ck_assert(wait_until(daemon_show(d, "lists", "list", "login_clients", "items") == 0, 5000));
		for (int proxy = 0; proxy < 4; proxy++)
			ck_assert_int_gt(daemon_show(d, "proxies", "proxy", proc_fmt("%d", proxy), "sessions"), 0);
	}
	for (int i = 0; i < 8; i++)
		PQfinish(clients[i]);
	ck_assert(wait_until(daemon_show(d, "lists", "list", "used_clients", "items") == 1, 5000));
	daemon_stop(d);
}
END_TEST

START_TEST(averages_are_of_a_period)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "stats_period = 1\nproxies = 2\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	for (int i = 0; i < 10; i++) {
		query_ok(a, "begin");
		query_ok(a, "select repeat('x', 1000)");
		query_ok(a, "commit");
		query_ok(b, "select 1");
	}
	ck_assert(wait_until(daemon_show(d, "stats_totals", "database", "app", "xact_count") == 20, 5000));
	ck_assert_int_eq(daemon_show(d, "stats_totals", "database", "app", "query_count"), 40);
	ck_assert_int_eq(daemon_show(d, "totals", "name", "total_xact_count", "value"), 20);
	ck_assert_int_ge(daemon_show(d, "stats", "database", "app", "total_sent"), 10 * 1000);
	ck_assert_int_ge(daemon_show(d, "stats", "database", "app", "total_xact_time"),
	                 daemon_show(d, "stats", "database", "app", "total_query_time"));
	ck_assert(wait_until(daemon_logged(d, "stats: "), 5000));
	ck_assert(
		wait_until((query_ok(b, "select 1"), daemon_show(d, "stats", "database", "app", "avg_xact_count") > 0),
	                   5000));
	ck_assert_int_gt(daemon_show(d, "totals", "name", "avg_xact_count", "value"), 0);
	ck_assert_int_gt(daemon_show(d, "stats_averages", "database", "app", "xact_time"), 0);
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(databases_are_entries_and_those_the_fallback_stands_for)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.databases =
	                                                       "one = @pg dbname=app user=app pool_size=7\n* = @pg\n"});
	PGconn *client = daemon_connect(d), *console = daemon_console(d);
	PGresult *r;

	query_ok(client, "select 1");
	r = PQexec(console, "SHOW DATABASES");
	ck_assert_str_eq(cell(r, "name", "one", "database"), "app");
	ck_assert_str_eq(cell(r, "name", "one", "force_user"), "app");
	ck_assert_str_eq(cell(r, "name", "one", "pool_size"), "7");
	ck_assert_str_eq(cell(r, "name", "one", "current_connections"), "0");
	ck_assert_str_eq(cell(r, "name", "app", "current_connections"), "1");
	ck_assert_str_eq(cell(r, "name", "app", "current_client_connections"), "1");
	PQclear(r);
	PQfinish(client);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(prepared_statements_are_counted)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "pool_mode = transaction\ndefault_pool_size = 1\n"});
	PGconn *a = daemon_try_connect(d, "application_name=preparer"), *b = daemon_connect(d), *console;
	PGresult *r;

	PQclear(PQprepare(a, "one", "select 1", 0, NULL));
	PQclear(PQprepare(a, "two", "select 2", 0, NULL));
	PQclear(PQprepare(b, "other", "select 1", 0, NULL));
	for (int i = 0; i < 3; i++)
		PQclear(PQexecPrepared(i == 0 ? b : a, i == 0 ? "other" : "one", 0, NULL, NULL, NULL, 0));
	console = daemon_console(d);
	r = PQexec(console, "SHOW PREPARED");
	ck_assert_str_eq(cell(r, "database", "app", "client_parse_count"), "3");
	ck_assert_str_eq(cell(r, "database", "app", "bind_count"), "3");
	ck_assert_str_eq(cell(r, "database", "app", "evictions"), "0");
	ck_assert_str_eq(cell(r, "database", "(texts)", "statements"), "2");
	ck_assert_int_gt(strtol(cell(r, "database", "(texts)", "bytes"), NULL, 10), 0);
	ck_assert_int_ge(strtol(cell(r, "database", "app", "hits"), NULL, 10), 3);
	PQclear(r);
	r = PQexec(console, "SHOW CLIENTS");
	ck_assert_str_eq(cell(r, "application_name", "preparer", "prepared_statements"), "2");
	PQclear(r);
	ck_assert_int_eq(daemon_show(d, "servers", "database", "app", "prepared_statements"), 2);
	PQfinish(a);
	PQfinish(b);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

START_TEST(no_secret_is_shown)
{
	static const char *const shows[] = {"config", "databases", "users", "clients", "servers", "pools"};
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = "app = @pg user=app password=hunter2\n",
	                                                          .userlist = "\"app\" \"hunter2\"\n"});
	PGconn *client = daemon_connect(d), *console = daemon_console(d);

	query_ok(client, "select 1");
	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		PGresult *r = PQexec(console, proc_fmt("SHOW %s", shows[i]));

		ck_assert_int_eq(PQresultStatus(r), PGRES_TUPLES_OK);
		for (int row = 0; row < PQntuples(r); row++)
			for (int column = 0; column < PQnfields(r); column++)
				ck_assert(strstr(PQgetvalue(r, row, column), "hunter2") == NULL);
		PQclear(r);
	}
	PQfinish(client);
	PQfinish(console);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("console_rows", 30, a_client_and_its_server_name_each_other, a_waiter_shows_how_long,
           rows_of_all_proxies_are_put_together, averages_are_of_a_period,
           databases_are_entries_and_those_the_fallback_stands_for, prepared_statements_are_counted, no_secret_is_shown)
