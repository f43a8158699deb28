/* SPDX-License-Identifier: ISC */
/* Many clients: what they cost, and what is left of them. */
#include "suite.h"

#define N_CLIENTS 2000

static const char *
one_query(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	return client->n_done < 3 ? "select 1" : NULL;
}

START_TEST(two_thousand_clients)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 16\nproxies = 2\n"
	                                                                      "max_client_conn = 2100\n"});
	struct crowd crowd = {.port = d->port, .user = "app", .database = "app", .n = N_CLIENTS, .next = one_query};
	PGconn *first = daemon_connect(d);
	long base_kib, full_kib;
	int base_fds;
	double cpu;
	int64_t start_ms;

	query_ok(first, "select 1");
	base_kib = proc_rss_kib(d->pid);
	base_fds = proc_n_fds(d->pid);
	ck_assert_msg(crowd_open(&crowd, 40000), "%zu of %d logged in", crowd.n_ready, N_CLIENTS);
	full_kib = proc_rss_kib(d->pid);
	/* At most 1 KiB for each, and something for what they share. */
	if (!daemon_is_sanitized())
		ck_assert_msg(full_kib - base_kib <= N_CLIENTS + 1024, "%d idle clients take %ld KiB", N_CLIENTS,
		              full_kib - base_kib);

	/* Idle clients cost no time. */
	cpu = proc_cpu_seconds(d->pid);
	start_ms = proc_now_ms();
	ck_assert(wait_until(proc_now_ms() - start_ms >= 1000, 5000));
	ck_assert_msg(proc_cpu_seconds(d->pid) - cpu <= 0.2, "the idle daemon used %.2f s of CPU in one second",
	              proc_cpu_seconds(d->pid) - cpu);

	ck_assert_msg(crowd_run(&crowd, 50000), "%zu clients wait", crowd.n_busy);
	ck_assert_uint_eq(crowd.n_errors, 0);
	ck_assert_uint_eq(crowd.n_done, N_CLIENTS * 3);
	crowd_close(&crowd);

	ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 1, 10000));
	ck_assert(wait_until(proc_n_fds(d->pid) <= base_fds + 16, 10000));
	/* Their memory is given back. */
	if (!daemon_is_sanitized())
		ck_assert_msg(wait_until(proc_rss_kib(d->pid) - base_kib <= 1024, 5000),
		              "%ld KiB stay when they have gone", proc_rss_kib(d->pid) - base_kib);
	query_ok(first, "select 1");
	PQfinish(first);
	daemon_stop(d);
}
END_TEST

#define N_HOLDERS 1000
#define N_STATEMENTS 50

static struct rawconn *
prepare_statements(uint16_t port)
{
	struct rawconn *c = raw_login(port, "app", "app");

	for (int i = 0; i < N_STATEMENTS; i++)
		packet_parse(&c->out, proc_fmt("statement_%d", i),
		             proc_fmt("select oid, relname from pg_class where oid > %d order by relname", i));
	packet_simple(&c->out, 'S');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "");
	return c;
}

/* Statements of the same texts: at most 6 KiB for each client's fifty, and given back when it leaves. */
START_TEST(clients_with_fifty_statements_each)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 4\nproxies = 2\n"
	                                                                      "max_client_conn = 1100\n"});
	struct rawconn *first = prepare_statements(d->port), *holders[N_HOLDERS];
	long base_kib = proc_rss_kib(d->pid), full_kib;

	for (int i = 0; i < N_HOLDERS; i++)
		holders[i] = prepare_statements(d->port);
	full_kib = proc_rss_kib(d->pid);
	if (!daemon_is_sanitized())
		ck_assert_msg(full_kib - base_kib <= 6 * N_HOLDERS, "%d clients take %ld KiB", N_HOLDERS,
		              full_kib - base_kib);
	for (int i = 0; i < N_HOLDERS; i++)
		raw_close(holders[i]);
	ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 1, 10000));
	if (!daemon_is_sanitized())
		ck_assert_msg(wait_until(proc_rss_kib(d->pid) - base_kib <= 1280, 5000),
		              "%ld KiB stay when they have gone", proc_rss_kib(d->pid) - base_kib);
	raw_close(first);
	daemon_stop(d);
}
END_TEST

/* Connections that come and go: descriptors and memory stay where they are. */
START_TEST(many_short_sessions)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 4\nproxies = 2\n"
	                                                                      "max_client_conn = 300\n"});
	long base_kib = 0;
	int base_fds = 0;

	for (int round = 0; round < 6; round++) {
		struct crowd crowd = {.port = d->port, .user = "app", .database = "app", .n = 200, .next = one_query};

		ck_assert(crowd_open(&crowd, 20000));
		ck_assert(crowd_run(&crowd, 20000));
		ck_assert_uint_eq(crowd.n_errors, 0);
		crowd_close(&crowd);
		ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 0, 10000));
		if (round == 1) {
			base_kib = proc_rss_kib(d->pid);
			base_fds = proc_n_fds(d->pid);
		}
	}
	ck_assert(wait_until(proc_n_fds(d->pid) <= base_fds + 2, 5000));
	ck_assert_msg(proc_rss_kib(d->pid) - base_kib <= 1024 * (daemon_is_sanitized() ? 32 : 1),
	              "%ld KiB more after 1000 sessions", proc_rss_kib(d->pid) - base_kib);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("many", 120, two_thousand_clients, clients_with_fifty_statements_each, many_short_sessions)
