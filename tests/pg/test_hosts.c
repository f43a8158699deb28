/* SPDX-License-Identifier: ISC */
/* host=a,b: one pool over two servers, of which one may be down. */
#include "suite.h"

#define RETRY "server_login_retry = 0.2\n"

/* In the order of the list. Only what a test has made it may stop: the first one is else the program's. */
static struct cluster *first, *other;

static const char *
databases(const char *more)
{
	return proc_fmt("* = host=%s,%s port=%d,%d %s\n", first->dir, other->dir, first->port, other->port, more);
}

static struct daemon *
start(const char *settings, const char *more)
{
	if (first == NULL)
		first = pg;
	other = cluster_new();
	return daemon_start(first, &(struct daemon_conf){.settings = settings, .databases = databases(more)});
}

static long
port_of(PGconn *conn)
{
	return query_int(conn, "select current_setting('port')::int");
}

/* How many connections to the server there are. */
static int
count(const struct daemon *d, const struct cluster *c)
{
	return daemon_count(d, "servers", "port", proc_fmt("%d", c->port));
}

static long
show_host(const struct daemon *d, const struct cluster *c, const char *column)
{
	return daemon_show(d, "hosts", "host", c->dir, column);
}

static bool
host_is(const struct daemon *d, const char *state)
{
	return daemon_count(d, "hosts", "state", state) > 0;
}

static void
connect_all(const struct daemon *d, PGconn **conns, int n)
{
	for (int i = 0; i < n; i++)
		conns[i] = daemon_connect(d);
}

static void
finish_all(PGconn **conns, int n)
{
	for (int i = 0; i < n; i++)
		PQfinish(conns[i]);
}

/* Each begins a transaction; how many of them are on the first. */
static int
begin_all(PGconn **conns, int n)
{
	int n_first = 0;

	for (int i = 0; i < n; i++) {
		query_ok(conns[i], "begin");
		n_first += port_of(conns[i]) == first->port;
	}
	return n_first;
}

static void
commit_all(PGconn **conns, int n)
{
	for (int i = 0; i < n; i++)
		query_ok(conns[i], "commit");
}

START_TEST(transactions_spread)
{
	struct daemon *d = start("default_pool_size = 8\nproxies = 1\n", "");
	PGconn *c[8];

	connect_all(d, c, 8);
	ck_assert_int_eq(begin_all(c, 8), 4); /* connections are opened in turn */
	commit_all(c, 8);
	ck_assert_int_eq(begin_all(c, 4), 2); /* all idle: the host with the fewest busy ones is next */
	ck_assert_int_eq(show_host(d, first, "active"), 2);
	ck_assert_int_eq(show_host(d, first, "idle"), 2);
	ck_assert_int_eq(show_host(d, other, "active"), 2);
	ck_assert_int_eq(daemon_count(d, "databases", "load_balance_hosts", "round-robin"), 1);
	commit_all(c, 4);
	finish_all(c, 8);
	daemon_stop(d);
}
END_TEST

START_TEST(connections_spread_over_proxies)
{
	struct daemon *d = start("default_pool_size = 8\nproxies = 2\n", "");
	PGconn *c[8];

	connect_all(d, c, 8);
	ck_assert_int_eq(begin_all(c, 8), 4);
	commit_all(c, 8);
	finish_all(c, 8);
	daemon_stop(d);
}
END_TEST

START_TEST(disable_takes_the_first)
{
	struct daemon *d;
	PGconn *c[4];

	first = cluster_new();
	d = start("default_pool_size = 4\n" RETRY, "load_balance_hosts=disable");
	connect_all(d, c, 4);
	ck_assert_int_eq(begin_all(c, 4), 4);
	commit_all(c, 4);
	ck_assert_int_eq(count(d, other), 0);
	cluster_stop(first);
	ck_assert(wait_until(count(d, first) == 0, 5000));
	ck_assert_int_eq(begin_all(c, 4), 0);
	commit_all(c, 4);
	cluster_start(first);
	ck_assert(wait_until(count(d, first) > 0 && count(d, other) == 0, 20000)); /* one after the other goes back */
	ck_assert_int_eq(begin_all(c, 4), 4);
	commit_all(c, 4);
	finish_all(c, 4);
	daemon_stop(d);
}
END_TEST

START_TEST(server_that_dies_and_comes_back)
{
	struct daemon *d = start("default_pool_size = 4\n" RETRY, "");
	PGconn *c[4];
	int n_lost = 0;

	connect_all(d, c, 4);
	ck_assert_int_eq(begin_all(c, 4), 2);
	for (int i = 0; i < 4; i++)
		query_ok(c[i], "create temp table mine(x int) on commit drop");
	cluster_stop(other);
	for (int i = 0; i < 4; i++) {
		char *state;

		query_send(c[i], "insert into mine values (1)");
		state = query_finish(c[i]);
		if (strcmp(state, "00000") != 0) {
			ck_assert_msg(strcmp(state, "57P01") == 0 || strcmp(state, "57P02") == 0 ||
			                      strcmp(state, "08006") == 0,
			              "SQLSTATE %s", state);
			PQfinish(c[i]);
			c[i] = daemon_connect(d);
			n_lost++;
		} else {
			query_ok(c[i], "commit");
		}
	}
	ck_assert_int_eq(n_lost, 2);
	ck_assert_int_eq(begin_all(c, 4), 4); /* all on the one that is left */
	commit_all(c, 4);
	ck_assert(wait_until(show_host(d, other, "failures") > 0, 5000));
	ck_assert(!host_is(d, "up") || show_host(d, first, "failures") == 0);
	cluster_start(other);
	ck_assert(wait_until(count(d, other) == 2 && count(d, first) == 2, 20000)); /* though nobody needs more */
	ck_assert_int_eq(show_host(d, other, "failures"), 0);
	ck_assert_int_eq(begin_all(c, 4), 2);
	commit_all(c, 4);
	finish_all(c, 4);
	daemon_stop(d);
}
END_TEST

START_TEST(all_servers_down)
{
	struct daemon *d;
	PGconn *a, *b;

	first = cluster_new();
	d = start("default_pool_size = 2\n" RETRY, "");
	a = daemon_connect(d);
	query_ok(a, "select 1");
	cluster_stop(other);
	query_ok(a, "select 1");
	cluster_stop(first);
	b = daemon_try_connect(d, "options='-c work_mem=77kB'"); /* needs a server */
	ck_assert_int_eq(PQstatus(b), CONNECTION_BAD);
	query_assert_message(PQerrorMessage(b), "connect failed");
	PQfinish(b);
	PQfinish(a);
	cluster_start(first);
	cluster_start(other);
	ck_assert(wait_until((b = daemon_try_connect(d, NULL), PQstatus(b) == CONNECTION_OK), 10000));
	query_ok(b, "select 1");
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(cancel_goes_to_the_right_server)
{
	struct daemon *d = start("default_pool_size = 4\n", "");
	PGconn *c[4];

	connect_all(d, c, 4);
	ck_assert_int_eq(begin_all(c, 4), 2);
	for (int i = 0; i < 4; i++) {
		PGcancel *cancel = PQgetCancel(c[i]);
		char why[256];

		query_send(c[i], "select pg_sleep(60)");
		do
			ck_assert_msg(PQcancel(cancel, why, sizeof(why)), "%s", why);
		while (!wait_until(query_is_done(c[i]), 500));
		ck_assert_str_eq(query_finish(c[i]), "57014");
		PQfreeCancel(cancel);
		query_ok(c[i], "rollback");
	}
	finish_all(c, 4);
	daemon_stop(d);
}
END_TEST

/* What a session was told at login holds wherever its transactions run. */
START_TEST(hosts_with_other_defaults)
{
	struct daemon *d = start("default_pool_size = 4\n", "");
	PGconn *direct = cluster_connect(other, "postgres"), *c[4];

	query_ok(direct, "alter role app set timezone = 'Asia/Tokyo'");
	connect_all(d, c, 4);
	ck_assert_int_eq(begin_all(c, 4), 2);
	for (int i = 0; i < 4; i++)
		ck_assert_str_eq(query_text(c[i], "show timezone"), PQparameterStatus(c[i], "TimeZone"));
	for (int i = 0; i < 4; i++) /* RESET goes there, too */
		ck_assert_str_eq(query_text(c[i], "reset timezone; show timezone"),
		                 PQparameterStatus(c[0], "TimeZone"));
	commit_all(c, 4);
	query_ok(direct, "alter role app reset timezone");
	PQfinish(direct);
	finish_all(c, 4);
	daemon_stop(d);
}
END_TEST

/* The kernel accepts for it, and then nothing comes: others need not wait until that times out. */
START_TEST(host_that_never_answers)
{
	struct fake_server *silent = fake_server_new();
	char *text = proc_fmt("* = host=127.0.0.1,%s port=%d,%d\n", pg->dir, silent->port, pg->port);
	struct daemon *d =
		daemon_start(pg,
	                     &(struct daemon_conf){.settings = "default_pool_size = 4\nserver_connect_timeout = 50\n",
	                                           .databases = text});
	int64_t began_ms = proc_now_ms();
	PGconn *c = daemon_connect(d);

	query_ok(c, "select 1");
	ck_assert_int_lt(proc_now_ms() - began_ms, 25000);
	ck_assert_int_eq(show_host(d, pg, "failures"), 0);
	ck_assert_int_eq(daemon_count(d, "hosts", "last_error", "no answer so far"), 1);
	PQfinish(c);
	daemon_stop(d);
	fake_server_free(silent);
}
END_TEST

/* Connections that are hardly ever idle are moved all the same. */
START_TEST(busy_pool_moves_too)
{
	struct daemon *d = start("default_pool_size = 2\nproxies = 1\n" RETRY, "");
	PGconn *c[2];
	bool is_even = false;

	cluster_stop(other);
	connect_all(d, c, 2);
	ck_assert_int_eq(begin_all(c, 2), 2);
	cluster_start(other);
	for (int64_t until = proc_now_ms() + 20000; !is_even && proc_now_ms() < until;) {
		for (int i = 0; i < 2; i++) { /* never both of them between two transactions */
			query_ok(c[i], "commit");
			query_ok(c[i], "begin");
		}
		is_even = port_of(c[0]) != port_of(c[1]);
	}
	ck_assert(is_even);
	commit_all(c, 2);
	finish_all(c, 2);
	daemon_stop(d);
}
END_TEST

START_TEST(server_that_dies_with_two_proxies)
{
	struct daemon *d = start("default_pool_size = 4\nproxies = 2\n" RETRY, "");
	PGconn *c[4];

	connect_all(d, c, 4);
	ck_assert_int_eq(begin_all(c, 4), 2);
	commit_all(c, 4);
	cluster_kill_all(other);
	ck_assert(wait_until(count(d, other) == 0, 5000));
	ck_assert_int_eq(begin_all(c, 4), 4);
	commit_all(c, 4);
	cluster_start(other);
	ck_assert(wait_until(count(d, other) == 2 && count(d, first) == 2, 20000));
	ck_assert_int_eq(begin_all(c, 4), 2);
	commit_all(c, 4);
	finish_all(c, 4);
	daemon_stop(d);
}
END_TEST

/* A host that refuses the login is as good as none; clients hear of it only when all of them do. */
START_TEST(login_refused_by_one_and_by_all)
{
	struct daemon *d = start("default_pool_size = 4\n" RETRY, "dbname=only_here");
	PGconn *direct = cluster_connect(first, "postgres"), *c[4];

	c[0] = daemon_try_connect(d, NULL);
	ck_assert_int_eq(PQstatus(c[0]), CONNECTION_BAD);
	query_assert_message(PQerrorMessage(c[0]), "database \"only_here\" does not exist");
	PQfinish(c[0]);
	query_ok(direct, "create database only_here");
	ck_assert(wait_until((c[0] = daemon_try_connect(d, NULL), PQstatus(c[0]) == CONNECTION_OK), 10000));
	connect_all(d, c + 1, 3);
	ck_assert_int_eq(begin_all(c, 4), 4);
	commit_all(c, 4);
	ck_assert_int_gt(show_host(d, other, "failures"), 0);
	finish_all(c, 4);
	daemon_stop(d);
	query_ok(direct, "drop database only_here with (force)");
	PQfinish(direct);
}
END_TEST

START_TEST(replication_goes_where_a_server_is)
{
	struct daemon *d;

	first = cluster_new();
	d = start(RETRY, "user=postgres");
	cluster_stop(first);
	for (int i = 0; i < 3; i++) {
		PGconn *c = daemon_try_connect(d, "replication=database");

		ck_assert_msg(PQstatus(c) == CONNECTION_OK, "%s", PQerrorMessage(c));
		ck_assert_int_eq(PQresultStatus(PQexec(c, "IDENTIFY_SYSTEM")), PGRES_TUPLES_OK);
		PQfinish(c);
	}
	ck_assert_int_gt(show_host(d, first, "failures"), 0);
	cluster_stop(other);
	ck_assert_int_eq(PQstatus(daemon_try_connect(d, "replication=database")), CONNECTION_BAD);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("hosts", 60, transactions_spread, connections_spread_over_proxies, disable_takes_the_first,
           server_that_dies_and_comes_back, all_servers_down, cancel_goes_to_the_right_server,
           hosts_with_other_defaults, host_that_never_answers, busy_pool_moves_too, server_that_dies_with_two_proxies,
           login_refused_by_one_and_by_all, replication_goes_where_a_server_is)
