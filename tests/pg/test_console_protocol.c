/* SPDX-License-Identifier: ISC */
/* The admin console: bytes it must bear, and the end it can bring. */
#include "suite.h"

static struct rawconn *
raw_console(const struct daemon *d)
{
	return raw_login(d->port, "postgres", "pgbouncer");
}

START_TEST(an_empty_query_is_answered_as_one)
{
	struct daemon *d;
	PGconn *c;
	PGresult *r;

	if (!daemon_is_pgweir()) /* to which it is an unknown command */
		return;
	d = daemon_start(pg, NULL);
	c = daemon_console(d);
	r = PQexec(c, " ; ");
	ck_assert_int_eq(PQresultStatus(r), PGRES_EMPTY_QUERY);
	PQclear(r);
	ck_assert_str_ne(query_text(c, "show version"), "");
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

/* What pgbouncer has and we don't yet is refused by name, and not as a typing error. */
START_TEST(missing_commands_say_so)
{
	static const char *const missing[] = {"RELOAD",     "PAUSE app",  "RESUME",        "SUSPEND",
	                                      "RECONNECT",  "KILL app",   "KILL_CLIENT 1", "DISABLE app",
	                                      "ENABLE app", "WAIT_CLOSE", "SHOW MEM"};
	struct daemon *d;
	PGconn *c;

	if (!daemon_is_pgweir())
		return;
	d = daemon_start(pg, NULL);
	c = daemon_console(d);
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		ck_assert_str_eq(query_sqlstate(c, "%s", missing[i]), "0A000");
	ck_assert_str_eq(query_sqlstate(c, "SET max_client_conn = 5"), "0A000");
	ck_assert_str_eq(query_sqlstate(c, "SET no_such_setting = 5"), "08P01");
	ck_assert_str_eq(query_sqlstate(c, "show version; show version"), "08P01");
	ck_assert_str_eq(query_sqlstate(c, "show \"version"), "08P01");
	ck_assert_str_eq(query_sqlstate(c, "what is this"), "08P01");
	query_assert_message(PQerrorMessage(c), "invalid command 'what is this', use SHOW HELP;");
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

START_TEST(pipelined_and_torn_queries_are_answered_in_order)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 2\n"});
	struct rawconn *c = raw_console(d);
	struct packet torn = {0};

	for (int i = 0; i < 20; i++) {
		packet_query(&c->out, "show version");
		packet_query(&c->out, "show pools"); /* waits for the proxies */
	}
	raw_flush(c);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(raw_until_ready(c), 'I');
		ck_assert_ptr_null(strstr(c->rows, "statement"));
		ck_assert_int_eq(raw_until_ready(c), 'I');
		ck_assert_ptr_nonnull(strstr(c->rows, "statement"));
	}
	packet_query(&torn, "show state");
	for (size_t i = 0; i < torn.n; i++)
		raw_send(c, torn.data + i, 1);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "active,yes;paused,no;suspended,no;");
	packet_free(&torn);
	raw_close(c);
	daemon_stop(d);
}
END_TEST

/* What is no message ends the connection that sent it, and nothing else. */
START_TEST(malformed_messages_end_their_connection_only)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *sqlstate; /* "": closed without a word */
	} bad[] = {
		{"Q\0\0\0\7"
	         "abc",
	         8, "08P01"}, /* no terminator */
		{"Q\0\0\0\4", 5, "08P01"},
		{"Q\0\0\0\x08"
	         "a\0b",
	         9, "08P01"}, /* bytes behind it */
		{"Q\0\0\0\1", 5, ""},
		{"Q\x7f\xff\xff\xff", 5, ""},
		{"z\0\0\0\4", 5, "08P01"},
		{"E\0\x10\0\0", 5, ""},
	};
	struct daemon *d;
	PGconn *other;

	if (!daemon_is_pgweir())
		return;
	d = daemon_start(pg, NULL);
	other = daemon_console(d);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rawconn *c = raw_console(d);

		raw_send(c, bad[i].bytes, bad[i].n);
		while (raw_until_ready(c) != 0)
			;
		ck_assert_str_eq(c->sqlstate, bad[i].sqlstate);
		raw_close(c);
		ck_assert_str_ne(query_text(other, "show version"), "");
	}
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

START_TEST(a_long_query_is_refused_and_not_kept)
{
	struct daemon *d;
	struct rawconn *c;
	size_t n = 50 * 1000 * 1000;
	char *sql = malloc(n + 1);
	long before_kib;

	if (!daemon_is_pgweir()) /* which closes the connection */
		return;
	ck_assert_ptr_nonnull(sql);
	memset(sql, 'x', n);
	sql[n] = '\0';
	d = daemon_start(pg, NULL);
	c = raw_console(d);
	before_kib = proc_rss_kib(d->pid);
	raw_query(c, sql);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "08P01");
	ck_assert_int_lt(proc_rss_kib(d->pid) - before_kib, 4096);
	raw_query(c, "show version");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_ne(c->rows, "");
	free(sql);
	raw_close(c);
	daemon_stop(d);
}
END_TEST

/* It asks for megabytes and takes none: it is not read from any more, and replies are not made in advance. */
START_TEST(a_console_that_does_not_read_is_bounded)
{
	struct daemon *d = daemon_start(pg, NULL);
	struct rawconn *c = raw_console(d);
	PGconn *other = daemon_console(d);
	long before_kib = proc_rss_kib(d->pid);

	for (int i = 0; i < 10000; i++) /* 170 KB, to be answered with 100 MB */
		packet_query(&c->out, "show config");
	raw_flush(c);
	for (int i = 0; i < 50; i++)
		ck_assert_str_ne(query_text(other, "show config"), "");
	ck_assert_int_lt(proc_rss_kib(d->pid) - before_kib,
	                 32 * 1024); /* a sanitizer keeps what is freed for a while */
	for (int i = 0; i < 2000; i++)
		ck_assert_int_eq(raw_until_ready(c), 'I');
	raw_close(c);
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* The proxies' answers come to nobody. */
START_TEST(consoles_that_vanish_while_asking_leave_nothing)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 4\n"});

	for (int i = 0; i < 50; i++) {
		struct rawconn *c = raw_console(d);

		for (int k = 0; k < 10; k++)
			packet_query(&c->out, "show sockets");
		raw_flush(c);
		raw_close(c);
	}
	ck_assert(wait_until(daemon_show(d, "lists", "list", "used_clients", "items") == 1, 5000));
	daemon_stop(d);
}
END_TEST

/* A query that follows the login at once must not get lost on the way to the console's thread. */
START_TEST(no_query_is_lost_at_the_handover)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 2\n"});

	for (int i = 0; i < 500; i++) {
		struct rawconn *c = raw_console(d);

		raw_query(c, "show state");
		ck_assert_int_eq(raw_until_ready(c), 'I');
		raw_close(c);
	}
	daemon_stop(d);
}
END_TEST

START_TEST(stats_users_may_not_shut_down)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "stats_users = app2, app3\n"});
	PGconn *c = daemon_try_connect(d, "user=app3 dbname=pgbouncer");

	ck_assert_str_eq(query_sqlstate(c, "shutdown"), "08P01");
	query_assert_message(PQerrorMessage(c), "admin access needed");
	ck_assert_str_ne(query_text(c, "show version"), "");
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

static void
check_ended(struct daemon *d)
{
	ck_assert(daemon_ended(d, 10000));
	ck_assert_int_eq(d->exit_code, 0);
	daemon_assert_clean_log(d);
}

START_TEST(shutdown_ends_the_daemon_at_once)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *client = daemon_connect(d), *idle = daemon_console(d), *c = daemon_console(d);

	query_ok(client, "begin");
	query_sqlstate(c, "SHUTDOWN"); /* the connection stays until the daemon has ended */
	ck_assert_int_eq(PQstatus(c), CONNECTION_BAD);
	check_ended(d);
	query_sqlstate(idle, "SHOW VERSION");
	if (daemon_is_pgweir())
		query_assert_message(PQerrorMessage(idle), "pooler is shutting down");
	PQfinish(idle);
	PQfinish(client);
	PQfinish(c);
}
END_TEST

START_TEST(shutdown_wait_for_clients_lets_them_finish)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *client = daemon_connect(d), *c = daemon_console(d), *late;

	query_ok(client, "begin");
	query_ok(c, "SHUTDOWN WAIT_FOR_CLIENTS");
	late = daemon_try_connect(d, NULL);
	ck_assert_int_eq(PQstatus(late), CONNECTION_BAD);
	query_ok(client, "commit");
	query_ok(client, "select 1");
	ck_assert(!daemon_ended(d, 0));
	ck_assert_str_ne(query_text(c, "SHOW POOLS"), "");
	PQfinish(client);
	check_ended(d); /* the console does not hold it */
	PQfinish(late);
	PQfinish(c);
}
END_TEST

START_TEST(shutdown_wait_for_servers_lets_transactions_finish)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *client = daemon_connect(d), *c = daemon_console(d);

	query_ok(client, "begin");
	query_ok(c, "SHUTDOWN WAIT_FOR_SERVERS");
	query_ok(client, "select 1");
	if (daemon_is_pgweir()) {
		ck_assert_str_eq(query_text(c, "SHOW STATE"), "active");
		ck_assert_str_eq(query_sqlstate(c, "SHUTDOWN WAIT_FOR_SERVERS"), "08P01");
	}
	query_ok(client, "commit");
	check_ended(d);
	PQfinish(client);
	PQfinish(c);
}
END_TEST

SUITE_MAIN("console_protocol", 30, an_empty_query_is_answered_as_one, missing_commands_say_so,
           pipelined_and_torn_queries_are_answered_in_order, malformed_messages_end_their_connection_only,
           a_long_query_is_refused_and_not_kept, a_console_that_does_not_read_is_bounded,
           consoles_that_vanish_while_asking_leave_nothing, no_query_is_lost_at_the_handover,
           stats_users_may_not_shut_down, shutdown_ends_the_daemon_at_once, shutdown_wait_for_clients_lets_them_finish,
           shutdown_wait_for_servers_lets_transactions_finish)
