/* SPDX-License-Identifier: ISC */
/* Who gets a backend next: the one who waits longest, in whichever proxy. */
#include "suite.h"

#define MAX_QUEUE 12

/* Sessions queue up one after the other behind the holder's transaction; released, they must run in the wanted order. */
static void
check_order(struct daemon *d, PGconn *holder, PGconn *waiters[], int n, const char *wanted)
{
	PGconn *direct = cluster_connect(pg, "app");

	query_ok(direct, "drop table if exists turns; create table turns (n serial, who int); grant all on turns, "
	                 "turns_n_seq to app");
	query_ok(holder, "begin");
	for (int i = 0; i < n; i++) {
		query_send(waiters[i], proc_fmt("insert into turns (who) values (%d)", i));
		ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == i + 1, 5000));
	}
	query_ok(holder, "commit");
	for (int i = 0; i < n; i++)
		ck_assert_str_eq(query_finish(waiters[i]), "00000");
	ck_assert_str_eq(query_text(direct, "select string_agg(who::text, ' ' order by n) from turns"), wanted);
	PQfinish(direct);
}

static struct daemon *
start_with_one_backend(int n_proxies)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("default_pool_size = 1\nproxies = %d\n"
	                                                                   "session_state = preserve\n"
	                                                                   "session_schedule = round-robin\n",
	                                                                   n_proxies)});
}

static void
check_fifo(int n_proxies)
{
	struct daemon *d = start_with_one_backend(n_proxies);
	PGconn *holder = daemon_connect(d), *waiters[MAX_QUEUE];

	for (int i = 0; i < MAX_QUEUE; i++)
		waiters[i] = daemon_connect(d);
	check_order(d, holder, waiters, MAX_QUEUE, "0 1 2 3 4 5 6 7 8 9 10 11");
	for (int i = 0; i < MAX_QUEUE; i++)
		PQfinish(waiters[i]);
	PQfinish(holder);
	daemon_stop(d);
}

START_TEST(waiters_are_served_in_order)
{
	check_fifo(1);
}
END_TEST

START_TEST(waiters_of_several_proxies_are_served_in_order)
{
	check_fifo(4);
}
END_TEST

/* Who has the backend's settings goes first, but not twice before the same waiter of a pool of one. */
START_TEST(settings_of_the_backend_go_first_once)
{
	static const char *const settings[] = {"5MB", "3MB", "3MB", "7MB", "5MB", "7MB"};
	enum { N = sizeof(settings) / sizeof(settings[0]) };
	struct daemon *d = start_with_one_backend(1);
	PGconn *holder = daemon_connect(d), *waiters[N];

	for (int i = 0; i < N; i++) {
		waiters[i] = daemon_connect(d);
		query_ok(waiters[i], "set work_mem = '%s'", settings[i]);
	}
	query_ok(holder, "set work_mem = '3MB'");
	/* 1 before 0; then 0 may not be overtaken again, nor 2 and 3 by 4 twice: 4 goes before them, with 0's settings */
	check_order(d, holder, waiters, N, "1 0 4 2 3 5");
	for (int i = 0; i < N; i++)
		ck_assert_str_eq(query_text(waiters[i], "show work_mem"), settings[i]);
	for (int i = 0; i < N; i++)
		PQfinish(waiters[i]);
	PQfinish(holder);
	daemon_stop(d);
}
END_TEST

#define TURNS 60

struct spread {
	unsigned max;
};

static const char *
take_turn(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	return client->n_done < TURNS ? "select 1" : NULL;
}

/*
 * On a busy machine the kernel itself may hold a client's packet back for several turns of the others; whom the daemon
 * forgets falls behind by nearly all of them.
 * Here: how far the luckiest client is ahead of the unluckiest, independent of how fast the machine is just now.
 */
static void
measure_spread(struct crowd *c, struct crowd_client *client)
{
	struct spread *spread = c->arg;
	unsigned least = client->n_done;

	for (size_t i = 0; i < c->n; i++)
		if (c->clients[i].n_done < least)
			least = c->clients[i].n_done;
	if (client->n_done - least > spread->max)
		spread->max = client->n_done - least;
}

static void
check_turns(int n_proxies, int pool_size, unsigned max_spread)
{
	struct daemon *d = daemon_start(
		pg, &(struct daemon_conf){
			    .settings = proc_fmt("default_pool_size = %d\nproxies = %d\nmax_client_conn = 200\n"
	                                         "session_schedule = round-robin\n",
	                                         pool_size, n_proxies)});
	struct spread spread = {0};
	struct crowd crowd = {.port = d->port,
	                      .user = "app",
	                      .database = "app",
	                      .n = 60,
	                      .next = take_turn,
	                      .done = measure_spread,
	                      .arg = &spread};

	ck_assert(crowd_open(&crowd, 20000));
	ck_assert(crowd_run(&crowd, 40000));
	ck_assert_uint_eq(crowd.n_errors, 0);
	ck_assert_uint_eq(crowd.n_done, 60 * TURNS);
	ck_assert_msg(spread.max <= max_spread, "one client was %u turns ahead of another", spread.max);
	crowd_close(&crowd);
	daemon_stop(d);
}

START_TEST(nobody_is_passed_over_in_one_proxy)
{
	check_turns(1, 2, TURNS / 2);
}
END_TEST

START_TEST(nobody_is_passed_over_in_several_proxies)
{
	check_turns(4, 2, TURNS * 3 / 4); /* a proxy that gets no processor passes turns by, too */
}
END_TEST

/* The one backend must follow the demand from proxy to proxy, whole: it is never opened anew. */
START_TEST(idle_backend_moves_to_the_proxy_that_needs_it)
{
	enum { N = 8 };
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nproxies = 4\n"
	                                                                      "session_schedule = round-robin\n"});
	PGconn *conns[N];
	long pid = 0;

	for (int i = 0; i < N; i++)
		conns[i] = daemon_connect(d);
	for (int round = 0; round < 5; round++)
		for (int i = 0; i < N; i++) {
			long got;

			query_send(conns[i], "select pg_backend_pid()");
			ck_assert_msg(wait_until(query_is_done(conns[i]), 5000), "client %d waits for an idle backend",
			              i);
			PGresult *r = PQgetResult(conns[i]);
			got = strtol(PQgetvalue(r, 0, 0), NULL, 10);
			PQclear(r);
			ck_assert_str_eq(query_finish(conns[i]), "00000");
			pid = pid == 0 ? got : pid;
			ck_assert_int_eq(got, pid);
		}
	for (int i = 0; i < N; i++)
		PQfinish(conns[i]);
	daemon_stop(d);
}
END_TEST

/* Every backend idles in the proxies that were busy first; clients of the others get them. */
START_TEST(backends_hogged_idle_by_one_proxy_are_shared)
{
	enum { N = 8, POOL = 4 };
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 4\nproxies = 2\n"
	                                                                      "session_schedule = round-robin\n"});
	PGconn *conns[N];

	for (int i = 0; i < N; i++)
		conns[i] = daemon_connect(d);
	for (int first = 0; first < 2; first++) {
		/* Connections 0, 2, 4 ... are of one proxy, the others of the other. */
		for (int i = first; i < N; i += 2)
			query_ok(conns[i], "begin");
		for (int i = first; i < N; i += 2)
			query_ok(conns[i], "commit");
	}
	ck_assert_int_le(daemon_count(d, "servers", "database", "app"), POOL);
	for (int i = 0; i < N; i++)
		PQfinish(conns[i]);
	daemon_stop(d);
}
END_TEST

/* One client with many short transactions in its own proxy must not keep the backend from an old waiter elsewhere. */
START_TEST(busy_proxy_gives_way_to_an_older_waiter)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nproxies = 2\n"
	                                                                      "session_schedule = round-robin\n"});
	struct rawconn *greedy = raw_login(d->port, "app", "app"), *modest = raw_login(d->port, "app", "app");
	int n_greedy = 0;

	/* 500 pipelined units: the backend comes free after each of them. */
	for (int i = 0; i < 500; i++)
		packet_query(&greedy->out, "select pg_sleep(0.002)");
	raw_flush(greedy);
	ck_assert_int_eq(raw_until_ready(greedy), 'I');
	raw_query(modest, "select 'served'");
	ck_assert_int_eq(raw_until_ready(modest), 'I');
	ck_assert_str_eq(modest->rows, "served;");
	while (raw_wait_message(greedy, 0) && n_greedy < 499) {
		raw_until_ready(greedy);
		n_greedy++;
	}
	ck_assert_msg(n_greedy < 400, "the waiter was served after %d units of another session", n_greedy);
	raw_close(greedy);
	raw_close(modest);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("fairness", 60, waiters_are_served_in_order, waiters_of_several_proxies_are_served_in_order,
           settings_of_the_backend_go_first_once, nobody_is_passed_over_in_one_proxy,
           nobody_is_passed_over_in_several_proxies, idle_backend_moves_to_the_proxy_that_needs_it,
           backends_hogged_idle_by_one_proxy_are_shared, busy_proxy_gives_way_to_an_older_waiter)
