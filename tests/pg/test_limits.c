/* SPDX-License-Identifier: ISC */
/* How many connections there are, on either side, and for how long. */
#include "suite.h"

static long
n_backends(PGconn *direct)
{
	return query_int(direct, SAMPLE_BACKENDS);
}

static const char *
work_or_stop(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	return client->n_done < 4 ? "select pg_sleep(0.001)" : NULL;
}

/* 500 clients through one limit: never one backend more, whatever the number of proxies. */
static void
check_exact_pool_size(int n_proxies)
{
	struct daemon *d = daemon_start(
		pg, &(struct daemon_conf){
			    .settings = proc_fmt("default_pool_size = 10\nmax_client_conn = 600\nproxies = %d\n",
	                                         n_proxies)});
	struct crowd crowd = {.port = d->port, .user = "app", .database = "app", .n = 500, .next = work_or_stop};
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);
	long max;

	ck_assert(crowd_open(&crowd, 20000));
	ck_assert_msg(crowd_run(&crowd, 40000), "%zu clients still wait", crowd.n_busy);
	ck_assert_uint_eq(crowd.n_errors, 0);
	ck_assert_uint_eq(crowd.n_done, 500 * 4);
	max = sampler_stop(sampler);
	ck_assert_msg(max <= 10 && max >= 5, "%ld backends at the most", max);
	crowd_close(&crowd);
	daemon_stop(d);
}

START_TEST(pool_size_is_exact_with_one_proxy)
{
	check_exact_pool_size(1);
}
END_TEST

START_TEST(pool_size_is_exact_with_two_proxies)
{
	check_exact_pool_size(2);
}
END_TEST

START_TEST(pool_size_is_exact_with_four_proxies)
{
	check_exact_pool_size(4);
}
END_TEST

/* Backends that end and are replaced all the time: those still closing count. */
START_TEST(pool_size_is_exact_while_backends_are_replaced)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){
					 .settings = "default_pool_size = 4\nmax_client_conn = 200\nproxies = 2\n"
						     "server_lifetime = 0\n"});
	struct crowd crowd = {.port = d->port, .user = "app", .database = "app", .n = 20, .next = work_or_stop};
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);

	ck_assert(crowd_open(&crowd, 20000));
	ck_assert(crowd_run(&crowd, 40000));
	ck_assert_uint_eq(crowd.n_errors, 0);
	ck_assert_int_le(sampler_stop(sampler), 4);
	crowd_close(&crowd);
	daemon_stop(d);
}
END_TEST

START_TEST(pool_size_per_database_and_user)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n",
	                                                          .databases = "app = @pg pool_size=2\nother = @pg\n"});
	PGconn *a[3], *o[2];

	for (int i = 0; i < 3; i++)
		a[i] = daemon_connect(d);
	for (int i = 0; i < 2; i++)
		o[i] = daemon_try_connect(d, "dbname=other");
	query_ok(a[0], "begin");
	query_ok(a[1], "begin");
	query_ok(o[0], "begin");
	query_send(a[2], "select 1");
	query_send(o[1], "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1 &&
	                             daemon_show(d, "pools", "database", "other", "cl_waiting") == 1,
	                     5000));
	query_ok(a[0], "commit");
	ck_assert_str_eq(query_finish(a[2]), "00000");
	ck_assert(!query_is_done(o[1]));
	query_ok(o[0], "commit");
	ck_assert_str_eq(query_finish(o[1]), "00000");
	for (int i = 0; i < 3; i++)
		PQfinish(a[i]);
	for (int i = 0; i < 2; i++)
		PQfinish(o[i]);
	daemon_stop(d);
}
END_TEST

/* Two pools below a common limit: exact, and each makes progress. */
static void
check_common_limit(const char *setting, const char *user2, const char *database2)
{
	struct daemon *d = daemon_start(
		pg, &(struct daemon_conf){
			    .settings = proc_fmt("default_pool_size = 5\nproxies = 2\nmax_client_conn = 200\n%s = 6\n",
	                                         setting)});
	struct crowd one = {.port = d->port, .user = "app", .database = "app", .n = 30, .next = work_or_stop};
	struct crowd two = {.port = d->port, .user = user2, .database = database2, .n = 30, .next = work_or_stop};
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);

	ck_assert(crowd_open(&one, 20000));
	ck_assert(crowd_run(&one, 20000));
	/* Five idle backends of the first pool must make room for the second one. */
	ck_assert(crowd_open(&two, 20000));
	ck_assert_msg(crowd_run(&two, 20000), "the second pool gets no backend");
	ck_assert_uint_eq(one.n_errors + two.n_errors, 0);
	ck_assert_int_le(sampler_stop(sampler), 6);
	crowd_close(&one);
	crowd_close(&two);
	daemon_stop(d);
}

START_TEST(max_db_connections_over_users)
{
	check_common_limit("max_db_connections", "app2", "app");
}
END_TEST

START_TEST(max_user_connections_over_databases)
{
	check_common_limit("max_user_connections", "app", "other");
}
END_TEST

START_TEST(reserve_pool_after_its_timeout)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nreserve_pool_size = 1\n"
	                                                           "reserve_pool_timeout = 0.5\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *c = daemon_connect(d);
	int64_t start_ms;

	query_ok(a, "begin");
	start_ms = proc_now_ms();
	query_ok(b, "begin");
	ck_assert_int_ge(proc_now_ms() - start_ms, 400);
	ck_assert(daemon_logged(d, "taking connection from reserve_pool"));
	/* There is no second reserve. */
	query_send(c, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	ck_assert(wait_until(proc_now_ms() - start_ms > 1500, 5000));
	ck_assert(!query_is_done(c));
	query_ok(a, "commit");
	ck_assert_str_eq(query_finish(c), "00000");
	PQfinish(a);
	PQfinish(b);
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

START_TEST(max_client_conn_refuses_with_a_reason)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "max_client_conn = 3\n"});
	PGconn *a[3];
	struct rawconn *c;

	for (int i = 0; i < 3; i++)
		a[i] = daemon_connect(d);
	c = raw_tcp(d->port);
	packet_login(&c->out, "app", "app");
	raw_flush(c);
	raw_expect_eof(c);
	query_assert_message(c->message, "max_client_conn");
	if (daemon_is_pgweir())
		ck_assert_str_eq(c->sqlstate, "53300");
	raw_close(c);
	PQfinish(a[0]);
	/* A slot is free again, at the latest when the daemon has seen the close. */
	ck_assert(wait_until((a[0] = daemon_try_connect(d, NULL), PQstatus(a[0]) == CONNECTION_OK), 5000));
	query_ok(a[0], "select 1");
	for (int i = 0; i < 3; i++)
		PQfinish(a[i]);
	daemon_stop(d);
}
END_TEST

START_TEST(min_pool_size_opens_backends_ahead)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 5\nmin_pool_size = 3\n"});
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "postgres");

	query_ok(a, "select 1");
	ck_assert(wait_until(n_backends(direct) == 3, 10000));
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(query_wait_timeout_ends_the_waiting_session)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nquery_wait_timeout = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	query_ok(a, "begin");
	query_send(b, "select 1");
	query_finish(b);
	query_assert_message(PQerrorMessage(b), "query_wait_timeout");
	ck_assert_int_eq(PQstatus(b), CONNECTION_BAD);
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "cl_waiting"), 0);
	query_ok(a, "commit");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

START_TEST(server_idle_timeout_closes_idle_backends)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "server_idle_timeout = 1\n"});
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "postgres");

	query_ok(a, "select 1");
	ck_assert_int_eq(n_backends(direct), 1);
	ck_assert(wait_until(n_backends(direct) == 0, 10000));
	query_ok(a, "select 1");
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A backend in steady use is replaced between two transactions, and nobody notices. */
START_TEST(server_lifetime_replaces_busy_backends)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nserver_lifetime = 1\n"});
	PGconn *a = daemon_connect(d);
	long pid = query_int(a, "select pg_backend_pid()");

	ck_assert(wait_until(query_int(a, "select pg_backend_pid()") != pid, 10000));
	query_ok(a, "begin");
	pid = query_int(a, "select pg_backend_pid()");
	/* Never in the middle of one. */
	ck_assert_int_eq(query_int(a, "select pg_backend_pid() from pg_sleep(1.5)"), pid);
	ck_assert_int_eq(query_int(a, "select pg_backend_pid()"), pid);
	query_ok(a, "commit");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(idle_transaction_timeout_ends_and_rolls_back)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){
					 .settings = "default_pool_size = 1\nidle_transaction_timeout = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(direct, "drop table if exists idle_tx; create table idle_tx (i int); grant all on idle_tx to app");
	/* A long statement is not idle. */
	query_ok(a, "begin; insert into idle_tx values (1); select pg_sleep(1.3)");
	query_send(b, "select count(*) from idle_tx");
	ck_assert_str_eq(query_finish(b), "00000");
	query_send(a, "select 1");
	query_finish(a);
	query_assert_message(PQerrorMessage(a), "idle transaction timeout");
	ck_assert_int_eq(query_int(direct, "select count(*) from idle_tx"), 0);
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(client_idle_timeout_ends_idle_clients)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "client_idle_timeout = 1\n"});
	struct rawconn *c = raw_login(d->port, "app", "app");

	raw_query(c, "select 1");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	raw_expect_eof(c);
	query_assert_message(c->message, "client_idle_timeout");
	raw_close(c);
	daemon_stop(d);
}
END_TEST

/* Half-open logins of every length end after client_login_timeout. */
START_TEST(client_login_timeout_ends_half_open_logins)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "client_login_timeout = 1\nauth_type = plain\n"});
	struct rawconn *silent = raw_tcp(d->port), *partial = raw_tcp(d->port), *no_password = raw_tcp(d->port);
	PGconn *fine = daemon_connect(d);

	raw_send(partial, "\0\0\0", 3);
	packet_login(&no_password->out, "app", "app");
	raw_flush(no_password);
	raw_expect_eof(silent);
	raw_expect_eof(partial);
	raw_expect_eof(no_password);
	query_assert_message(no_password->message, "client_login_timeout");
	query_ok(fine, "select 1");
	raw_close(silent);
	raw_close(partial);
	raw_close(no_password);
	PQfinish(fine);
	daemon_stop(d);
}
END_TEST

/* A server that accepts and then says nothing. */
START_TEST(server_connect_timeout_gives_up_on_a_silent_server)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "server_connect_timeout = 1\n"
	                                                                      "server_login_retry = 1\n"
	                                                                      "query_wait_timeout = 15\n",
	                                                          .databases = fake_server_databases(server)});
	struct rawconn *client = raw_tcp(d->port), *backend;
	uint32_t code;

	packet_login(&client->out, "app", "app");
	raw_flush(client);
	if (raw_wait_message(client, 200) && raw_finish_login(client))
		raw_query(client, "select 1");
	backend = fake_server_accept(server, 5000, &code);
	ck_assert(backend != NULL);
	raw_expect_eof(backend);
	raw_close(client);
	raw_close(backend);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

SUITE_MAIN("limits", 60, pool_size_is_exact_with_one_proxy, pool_size_is_exact_with_two_proxies,
           pool_size_is_exact_with_four_proxies, pool_size_is_exact_while_backends_are_replaced,
           pool_size_per_database_and_user, max_db_connections_over_users, max_user_connections_over_databases,
           reserve_pool_after_its_timeout, max_client_conn_refuses_with_a_reason, min_pool_size_opens_backends_ahead,
           query_wait_timeout_ends_the_waiting_session, server_idle_timeout_closes_idle_backends,
           server_lifetime_replaces_busy_backends, idle_transaction_timeout_ends_and_rolls_back,
           client_idle_timeout_ends_idle_clients, client_login_timeout_ends_half_open_logins,
           server_connect_timeout_gives_up_on_a_silent_server)
