/* SPDX-License-Identifier: ISC */
/* Clients that go without a word. */
#include "suite.h"

static struct daemon *
start(void)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
}

static void
make_table(PGconn *direct)
{
	query_ok(direct, "set client_min_messages = warning; drop table if exists vanish; create table vanish (i int); "
	                 "grant all on vanish to app");
}

static bool
is_active(PGconn *direct, const char *mark)
{
	return query_int(direct,
	                 "select count(*) from pg_stat_activity where query like '%%%s%%' and state = 'active' and "
	                 "pid <> pg_backend_pid()",
	                 mark) > 0;
}

static bool
nothing_is_open(PGconn *direct)
{
	return query_int(direct, "select count(*) from pg_stat_activity where usename = 'app' and state <> 'idle'") ==
	       0;
}

static long
pid_of(struct rawconn *c)
{
	raw_query(c, "select pg_backend_pid()");
	ck_assert_int_ne(raw_until_ready(c), 0);
	return strtol(c->rows, NULL, 10);
}

/* The backend the next client gets. */
static long
pid_of_next(struct daemon *d)
{
	PGconn *b = daemon_connect(d);
	long pid = query_int(b, "select pg_backend_pid()");

	ck_assert_int_eq(query_int(b, "select count(*) from vanish"), query_int(b, "select count(*) from vanish"));
	PQfinish(b);
	return pid;
}

START_TEST(idle_client_is_forgotten)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");
	long pid;

	make_table(direct);
	pid = pid_of(a);
	raw_close(a);
	ck_assert_int_eq(pid_of_next(d), pid);
	ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 0, 5000));
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(open_transaction_is_rolled_back_and_the_backend_reused)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");
	long pid;

	make_table(direct);
	raw_query(a, "begin; insert into vanish values (1)");
	ck_assert_int_eq(raw_until_ready(a), 'T');
	pid = pid_of(a);
	raw_close(a);
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	ck_assert_int_eq(query_int(direct, "select count(*) from vanish"), 0);
	if (daemon_is_pgweir())
		ck_assert_int_eq(pid_of_next(d), pid);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(failed_transaction_is_rolled_back_and_the_backend_reused)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");
	long pid;

	make_table(direct);
	pid = pid_of(a);
	raw_query(a, "begin; select 1/0");
	ck_assert_int_eq(raw_until_ready(a), 'E');
	raw_close(a);
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	if (daemon_is_pgweir())
		ck_assert_int_eq(pid_of_next(d), pid);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A statement running inside a transaction serves nobody any more: cancelled, not waited for. */
START_TEST(running_statement_of_a_transaction_is_cancelled)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");

	make_table(direct);
	raw_query(a, "begin; insert into vanish values (1)");
	ck_assert_int_eq(raw_until_ready(a), 'T');
	raw_query(a, "select pg_sleep(60), 'vanish-running'");
	ck_assert(wait_until(is_active(direct, "vanish-running"), 5000));
	raw_close(a);
	ck_assert(wait_until(!is_active(direct, "vanish-running"), 10000));
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	ck_assert_int_eq(query_int(direct, "select count(*) from vanish"), 0);
	pid_of_next(d);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A whole autocommit statement would finish on PostgreSQL: it does here. */
START_TEST(autocommit_statement_finishes)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");

	make_table(direct);
	raw_query(a, "with s as (select pg_sleep(0.7)) insert into vanish select 1 from s /* vanish-autocommit */");
	ck_assert(wait_until(is_active(direct, "vanish-autocommit"), 5000));
	raw_close(a);
	ck_assert(wait_until(query_int(direct, "select count(*) from vanish") == 1, 10000));
	pid_of_next(d);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Also when the client vanishes while its statement still waits for a backend: whole, so it would have run. */
START_TEST(waiting_client_leaves_the_queue)
{
	struct daemon *d = start();
	struct rawconn *a = raw_login(d->port, "app", "app"), *b = raw_login(d->port, "app", "app");
	PGconn *c = daemon_connect(d);

	raw_query(a, "begin");
	ck_assert_int_eq(raw_until_ready(a), 'T');
	raw_query(b, "select 1");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	raw_close(b);
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 0, 5000));
	query_send(c, "select 3");
	raw_query(a, "commit");
	ck_assert_int_eq(raw_until_ready(a), 'I');
	ck_assert_str_eq(query_finish(c), "00000");
	raw_close(a);
	PQfinish(c);
	daemon_stop(d);
}
END_TEST

/* In the middle of a result far larger than all buffers. */
START_TEST(half_read_result_does_not_block_the_backend)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");

	make_table(direct);
	for (int i = 0; i < 3; i++) {
		struct rawconn *a = raw_login(d->port, "app", "app");

		raw_query(a, i == 0 ? "copy (select repeat('x', 1000) from generate_series(1, 200000)) to stdout"
		                    : "select repeat('x', 1000) from generate_series(1, 200000)");
		raw_read_type(a, i == 0 ? 'd' : 'D');
		raw_close(a);
		pid_of_next(d);
	}
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(half_a_copy_in_leaves_nothing)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");

	make_table(direct);
	raw_query(a, "copy vanish from stdin");
	raw_read_type(a, 'G');
	packet_begin(&a->out, 'd');
	packet_bytes(&a->out, "1\n2\n", 4);
	packet_end(&a->out);
	raw_flush(a);
	raw_close(a);
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	ck_assert_int_eq(query_int(direct, "select count(*) from vanish"), 0);
	pid_of_next(d);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A message cut off in the middle never reaches the server's parser as something else. */
START_TEST(half_a_message_is_dropped)
{
	struct daemon *d = start();
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_login(d->port, "app", "app");

	make_table(direct);
	packet_query(&a->out, "insert into vanish values (1)");
	raw_send(a, a->out.data, a->out.n - 5);
	raw_close(a);
	pid_of_next(d);
	ck_assert(wait_until(nothing_is_open(direct), 5000));
	ck_assert_int_eq(query_int(direct, "select count(*) from vanish"), 0);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Clients that come, work and vanish at any point, many at once: the pool is whole afterwards. */
static const char *
restless_next(struct crowd *c, struct crowd_client *client)
{
	static const char *const statements[] = {"begin", "insert into vanish values (1)", "select pg_sleep(0.001)",
	                                         "select repeat('x', 100000)"};
	static unsigned seed = 7;

	if (client->n_done >= 6)
		return NULL;
	if (rand_r(&seed) % 8 == 0) {
		crowd_close_client(c, client);
		return NULL;
	}
	return statements[(unsigned)rand_r(&seed) % 4];
}

static void
restless_tick(struct crowd *c)
{
	static unsigned seed = 8;
	struct crowd_client *victim = &c->clients[(unsigned)rand_r(&seed) % c->n];

	if (victim->state == CROWD_BUSY)
		crowd_close_client(c, victim);
}

START_TEST(many_clients_vanish_at_random)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){
					 .settings = "default_pool_size = 4\nproxies = 2\nmax_client_conn = 200\n"});
	PGconn *direct = cluster_connect(pg, "app");

	make_table(direct);
	for (int round = 0; round < 3; round++) {
		struct crowd crowd = {.port = d->port,
		                      .user = "app",
		                      .database = "app",
		                      .n = 60,
		                      .next = restless_next,
		                      .tick = restless_tick};

		ck_assert(crowd_open(&crowd, 20000));
		/* Those left in a transaction hold their backends: the others may wait in vain. */
		crowd_run(&crowd, 1500);
		crowd_close(&crowd);
	}
	ck_assert(wait_until(nothing_is_open(direct), 10000));
	ck_assert(wait_until(daemon_count(d, "clients", "database", "app") == 0, 5000));
	for (int i = 0; i < 20; i++)
		pid_of_next(d);
	ck_assert_int_le(query_int(direct, SAMPLE_BACKENDS), 4);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("vanish", 60, idle_client_is_forgotten, open_transaction_is_rolled_back_and_the_backend_reused,
           failed_transaction_is_rolled_back_and_the_backend_reused, running_statement_of_a_transaction_is_cancelled,
           autocommit_statement_finishes, waiting_client_leaves_the_queue, half_read_result_does_not_block_the_backend,
           half_a_copy_in_leaves_nothing, half_a_message_is_dropped, many_clients_vanish_at_random)
