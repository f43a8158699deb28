/* SPDX-License-Identifier: ISC */
/* A cancel hits the statement it was meant for, or nothing. */
#include "suite.h"

static bool
is_running(PGconn *direct, const char *mark)
{
	return query_int(direct,
	                 "select count(*) from pg_stat_activity where query like '%%%s%%' and state = 'active' and "
	                 "wait_event = 'PgSleep'",
	                 mark) > 0;
}

static void
send_cancel(PGconn *conn)
{
	PGcancel *cancel = PQgetCancel(conn);
	char error[256];

	ck_assert_msg(PQcancel(cancel, error, sizeof(error)) == 1, "%s", error);
	PQfreeCancel(cancel);
}

static struct daemon *
start(const char *settings)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = settings});
}

/* With the pool full: the connection that carries the cancel is no pooled one. Over four proxies: the cancel
 * arrives at another one than the session. */
static void
check_running(const char *settings)
{
	struct daemon *d = start(settings);
	PGconn *direct = cluster_connect(pg, "app");

	for (int i = 0; i < 5; i++) {
		PGconn *a = daemon_connect(d);
		char *mark = proc_fmt("cancel-me-%d", i);

		query_send(a, proc_fmt("select pg_sleep(30), '%s'", mark));
		ck_assert(wait_until(is_running(direct, mark), 5000));
		send_cancel(a);
		ck_assert_str_eq(query_finish(a), "57014");
		ck_assert_int_eq(query_int(a, "select 5"), 5);
		PQfinish(a);
	}
	PQfinish(direct);
	daemon_stop(d);
}

START_TEST(running_statement)
{
	check_running("default_pool_size = 1\nproxies = 1\n");
}
END_TEST

START_TEST(running_statement_over_proxies)
{
	check_running("default_pool_size = 1\nproxies = 4\nsession_schedule = round-robin\n");
}
END_TEST

/* A session in the queue: 57014, and it stays usable, in its old place in the conversation. */
static void
check_waiting(const char *settings)
{
	struct daemon *d = start(settings);
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *c = daemon_connect(d);

	query_ok(a, "begin");
	query_send(b, "select 'never runs'");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	query_send(c, "select 'runs'");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 2, 5000));
	send_cancel(b);
	ck_assert(wait_until(query_is_done(b), 5000));
	ck_assert_str_eq(query_finish(b), "57014");
	ck_assert_int_eq(PQstatus(b), CONNECTION_OK);
	ck_assert_int_eq(PQtransactionStatus(b), PQTRANS_IDLE);
	ck_assert_int_eq(daemon_show(d, "pools", "database", "app", "cl_waiting"), 1);
	query_ok(a, "commit");
	ck_assert_str_eq(query_finish(c), "00000");
	ck_assert_int_eq(query_int(b, "select 6"), 6);
	PQfinish(a);
	PQfinish(b);
	PQfinish(c);
	daemon_stop(d);
}

START_TEST(waiting_session)
{
	check_waiting("default_pool_size = 1\nproxies = 1\n");
}
END_TEST

START_TEST(waiting_session_over_proxies)
{
	check_waiting("default_pool_size = 1\nproxies = 4\nsession_schedule = round-robin\n");
}
END_TEST

/* A waiting session that has sent a whole pipeline: the first unit is cancelled, each owes one ReadyForQuery. */
START_TEST(waiting_session_with_a_pipeline)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *a = daemon_connect(d);
	struct rawconn *b = raw_login(d->port, "app", "app");

	query_ok(a, "begin");
	packet_parse(&b->out, "", "select 'first'");
	packet_bind(&b->out, "", "");
	packet_execute(&b->out, "", 0);
	packet_simple(&b->out, 'S');
	raw_flush(b);
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	raw_cancel(d->port, b->cancel_pid, b->cancel_key);
	ck_assert_int_eq(raw_until_ready(b), 'I');
	ck_assert_str_eq(b->sqlstate, "57014");
	query_ok(a, "commit");
	raw_query(b, "select 'second'");
	ck_assert_int_eq(raw_until_ready(b), 'I');
	ck_assert_str_eq(b->rows, "second;");
	raw_close(b);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(idle_sessions_are_left_alone)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");

	query_ok(a, "select 1");
	/* b now runs on the backend that a used last. */
	query_send(b, "select pg_sleep(0.5), 'not-to-be-cancelled'");
	ck_assert(wait_until(is_running(direct, "not-to-be-cancelled"), 5000));
	for (int i = 0; i < 5; i++)
		send_cancel(a);
	ck_assert_str_eq(query_finish(b), "00000");
	query_ok(a, "begin");
	send_cancel(a);
	query_ok(a, "select 1");
	query_ok(a, "commit");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(wrong_secrets_do_nothing)
{
	struct daemon *d = start("default_pool_size = 1\n");
	struct rawconn *a = raw_login(d->port, "app", "app");
	PGconn *direct = cluster_connect(pg, "app");

	raw_query(a, "select pg_sleep(0.5), 'wrong-secret'");
	ck_assert(wait_until(is_running(direct, "wrong-secret"), 5000));
	raw_cancel(d->port, a->cancel_pid, a->cancel_key ^ 1);
	raw_cancel(d->port, a->cancel_pid + 1, a->cancel_key);
	raw_cancel(d->port, 0, 0);
	ck_assert_int_eq(raw_until_ready(a), 'I');
	ck_assert_str_eq(a->sqlstate, "");
	raw_close(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(keys_differ_between_sessions)
{
	struct daemon *d = start(NULL);
	struct rawconn *c[20];

	for (int i = 0; i < 20; i++) {
		c[i] = raw_login(d->port, "app", "app");
		for (int j = 0; j < i; j++)
			ck_assert(c[i]->cancel_pid != c[j]->cancel_pid || c[i]->cancel_key != c[j]->cancel_key);
	}
	for (int i = 0; i < 20; i++)
		raw_close(c[i]);
	daemon_stop(d);
}
END_TEST

/*
 * The race that hurt other poolers, ordered by a fake server: the statement ends
 * while its cancel is under way. The next session must not get that backend
 * before the server has closed the cancel connection.
 */
START_TEST(backend_waits_for_its_cancel)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n",
	                                                          .databases = fake_server_databases(server)});
	struct rawconn *a = raw_tcp(d->port), *b = raw_tcp(d->port), *backend, *cancel, *requester;
	uint32_t code;

	packet_login(&a->out, "app", "app");
	raw_flush(a);
	backend = fake_server_login(server);
	ck_assert(raw_finish_login(a));
	packet_login(&b->out, "app", "app");
	raw_flush(b);
	ck_assert(raw_finish_login(b));

	raw_query(a, "select 'of a'");
	query_assert_message((char *)raw_read_type(backend, 'Q').body, "of a");
	raw_query(b, "select 'of b'");
	/* the requester's connection stays open until the server has closed its own */
	requester = raw_send_cancel(d->port, a->cancel_pid, a->cancel_key);
	cancel = fake_server_accept(server, 5000, &code);
	ck_assert_msg(cancel != NULL && code == 80877102, "the cancel does not reach the server");

	/* The statement ends by itself, its cancel is still open. */
	fake_reply_row(backend, "result of a");
	fake_reply_complete(backend, "SELECT 1");
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
	ck_assert_int_eq(raw_until_ready(a), 'I');
	ck_assert_str_eq(a->rows, "result of a;");
	ck_assert_msg(!raw_wait_message(backend, 300), "the backend was reused while its cancel was under way");

	ck_assert(!raw_wait_message(requester, 0));
	raw_close(cancel);
	ck_assert_int_eq(raw_read_byte(requester), -1);
	raw_close(requester);
	query_assert_message((char *)raw_read_type(backend, 'Q').body, "of b");
	fake_reply_row(backend, "result of b");
	fake_reply_complete(backend, "SELECT 1");
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
	ck_assert_int_eq(raw_until_ready(b), 'I');
	ck_assert_str_eq(b->rows, "result of b;");
	raw_close(a);
	raw_close(b);
	raw_close(backend);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* A cancel that comes after the reply is forwarded to nobody. */
START_TEST(late_cancel_goes_nowhere)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n",
	                                                          .databases = fake_server_databases(server)});
	struct rawconn *a = raw_tcp(d->port), *backend;
	uint32_t code;

	packet_login(&a->out, "app", "app");
	raw_flush(a);
	backend = fake_server_login(server);
	ck_assert(raw_finish_login(a));
	raw_query(a, "select 1");
	raw_read_type(backend, 'Q');
	fake_reply_complete(backend, "SELECT 0");
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
	ck_assert_int_eq(raw_until_ready(a), 'I');
	raw_cancel(d->port, a->cancel_pid, a->cancel_key);
	ck_assert_ptr_null(fake_server_accept(server, 300, &code));
	raw_close(a);
	raw_close(backend);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* ---- behind settings that are put back first ---- */

struct staged {
	struct fake_server *server;
	struct daemon *d;
	struct rawconn *a, *b, *backend;
};

static void
answer(struct staged *x, const char *tag)
{
	fake_reply_complete(x->backend, tag);
	fake_reply_ready(x->backend, 'I');
	raw_flush(x->backend);
}

static struct rawconn *
staged_login(struct staged *x)
{
	struct rawconn *c = raw_tcp(x->d->port);

	packet_login(&c->out, "app", "app");
	raw_flush(c);
	if (x->backend == NULL)
		x->backend = fake_server_login(x->server);
	ck_assert(raw_finish_login(c));
	return c;
}

/* The server connection carries a's setting; b's statement has been sent behind what takes it away again. */
static struct staged
stage_replay(const char *sql)
{
	struct staged x = {.server = fake_server_new()};

	x.d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nproxies = 1\n"
	                                                         "session_state = preserve\nsession_state_sample = 0\n",
	                                             .databases = fake_server_databases(x.server)});
	x.a = staged_login(&x);
	x.b = staged_login(&x);
	raw_query(x.a, "set work_mem = '3MB'");
	raw_read_type(x.backend, 'Q');
	answer(&x, "SET");
	ck_assert_int_eq(raw_until_ready(x.a), 'I');
	raw_query(x.b, sql);
	ck_assert_int_eq(raw_read(x.backend).type, 'P');
	query_assert_message((char *)raw_read_type(x.backend, 'Q').body, sql);
	return x;
}

static void
unstage(struct staged *x)
{
	raw_close(x->a);
	raw_close(x->b);
	raw_close(x->backend);
	daemon_stop(x->d);
	fake_server_free(x->server);
}

/* A request comes, and the server takes notice of it. */
static void
take_request(struct staged *x)
{
	uint32_t code = 0;
	struct rawconn *request = fake_server_accept(x->server, 5000, &code);

	ck_assert_msg(request != NULL && code == 80877102, "the cancel does not reach the server");
	raw_close(request);
}

static void
answer_canceled(struct staged *x, char status)
{
	fake_reply_error(x->backend, "ERROR", "57014", "canceling statement due to user request");
	fake_reply_ready(x->backend, status);
	raw_flush(x->backend);
	ck_assert_int_eq(raw_until_ready(x->b), status);
	ck_assert_str_eq(x->b->sqlstate, "57014");
}

/* While the server may not have begun with the statement it may ignore it. */
START_TEST(cancel_behind_settings_is_kept_until_it_helps)
{
	struct staged x = stage_replay("select 'of b'");
	struct rawconn *requester = raw_send_cancel(x.d->port, x.b->cancel_pid, x.b->cancel_key);
	uint32_t code;

	ck_assert_ptr_null(fake_server_accept(x.server, 200, &code));
	ck_assert(!raw_wait_message(requester, 0));
	fake_reply_ready(x.backend, 'I');
	raw_flush(x.backend);
	take_request(&x);
	ck_assert_int_eq(raw_read_byte(requester), -1);
	raw_close(requester);
	take_request(&x);
	answer_canceled(&x, 'I');
	/* that was it */
	raw_query(x.b, "select 2");
	raw_read_type(x.backend, 'Q');
	ck_assert_ptr_null(fake_server_accept(x.server, 300, &code));
	answer(&x, "SELECT 0");
	ck_assert_int_eq(raw_until_ready(x.b), 'I');
	unstage(&x);
}
END_TEST

/* In a transaction the client's next statement has the same server process. */
START_TEST(next_statement_waits_for_a_cancel_on_its_way)
{
	struct staged x = stage_replay("begin; select pg_sleep(9)");
	struct rawconn *requester = raw_send_cancel(x.d->port, x.b->cancel_pid, x.b->cancel_key), *request;
	uint32_t code;

	ck_assert_int_eq(daemon_show(x.d, "pools", "database", "app", "cl_active"), 2);
	fake_reply_ready(x.backend, 'I');
	raw_flush(x.backend);
	take_request(&x);
	raw_close(requester);
	request = fake_server_accept(x.server, 5000, &code);
	ck_assert(request != NULL);
	answer_canceled(&x, 'E');
	raw_query(x.b, "rollback");
	ck_assert_msg(!raw_wait_message(x.backend, 200), "a statement was sent into a cancel");
	raw_close(request);
	raw_read_type(x.backend, 'Q');
	answer(&x, "ROLLBACK");
	ck_assert_int_eq(raw_until_ready(x.b), 'I');
	unstage(&x);
}
END_TEST

/* A request for a statement that began long ago is made once: what catches it may take its time. */
START_TEST(cancel_of_a_running_statement_is_not_repeated)
{
	struct staged x = stage_replay("select 'of b'");
	uint32_t code;

	fake_reply_ready(x.backend, 'I');
	fake_reply_row(x.backend, "first");
	raw_flush(x.backend);
	raw_read_type(x.b, 'D');
	ck_assert_ptr_null(fake_server_accept(x.server, 100, &code));
	raw_close(raw_send_cancel(x.d->port, x.b->cancel_pid, x.b->cancel_key));
	take_request(&x);
	ck_assert_ptr_null(fake_server_accept(x.server, 300, &code));
	answer_canceled(&x, 'I');
	unstage(&x);
}
END_TEST

static bool
waits_for_lock(PGconn *direct)
{
	return query_int(direct, "select count(*) from pg_stat_activity where usename = 'app' and wait_event_type = "
	                         "'Lock'") > 0;
}

/* Its Parse on another server connection is part of the client's statement. */
START_TEST(statement_that_is_being_prepared_anew)
{
	struct daemon *d = start("default_pool_size = 2\nproxies = 1\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app"),
	       *watch = cluster_connect(pg, "app");

	query_ok(direct, "create table cancel_t (i int)");
	query_ok(direct, "grant select on cancel_t to app");
	ck_assert_int_eq(PQresultStatus(PQprepare(a, "s", "select count(*) from cancel_t", 0, NULL)), PGRES_COMMAND_OK);
	query_ok(b, "begin"); /* has the server connection now that knows it */
	query_ok(direct, "begin; lock table cancel_t in access exclusive mode");
	ck_assert_int_eq(PQsendQueryPrepared(a, "s", 0, NULL, NULL, NULL, 0), 1);
	ck_assert(wait_until(waits_for_lock(watch), 5000));
	send_cancel(a);
	ck_assert_str_eq(query_finish(a), "57014");
	query_ok(direct, "rollback");
	ck_assert_int_eq(PQresultStatus(PQexecPrepared(a, "s", 0, NULL, NULL, NULL, 0)), PGRES_TUPLES_OK);
	query_ok(direct, "drop table cancel_t");
	PQfinish(watch);
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* ---- the storm ---- */

#define STORM_TURNS 60

struct storm {
	uint16_t port;
	unsigned seed;
	int n_cancels;
};

static const char *
storm_next(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	return client->n_done < STORM_TURNS ? "select pg_sleep(0.003), 'storm'" : NULL;
}

/* Only clients with an odd number are ever cancelled. */
static void
storm_done(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	ck_assert_msg(client->state != CROWD_GONE, "client %zu lost its connection: %s", client->index,
	              client->sqlstate);
	if (client->sqlstate[0] == '\0')
		return;
	ck_assert_str_eq(client->sqlstate, "57014");
	ck_assert_msg(client->index % 2 == 1, "client %zu was cancelled and never asked for it", client->index);
}

static void
storm_tick(struct crowd *c)
{
	struct storm *storm = c->arg;

	for (int i = 0; i < 2; i++) {
		struct crowd_client *victim = &c->clients[(unsigned)rand_r(&storm->seed) % (c->n / 2) * 2 + 1];
		struct rawconn *conn = raw_try_tcp(storm->port);

		ck_assert(conn != NULL);
		packet_begin(&conn->out, 0);
		packet_i32(&conn->out, 80877102);
		packet_i32(&conn->out, victim->cancel_pid);
		packet_i32(&conn->out, victim->cancel_key);
		packet_end(&conn->out);
		raw_flush(conn);
		raw_close(conn);
		storm->n_cancels++;
	}
}

START_TEST(storm_of_cancels_hits_only_its_targets)
{
	struct daemon *d = start("default_pool_size = 8\nproxies = 2\nmax_client_conn = 400\n");
	struct storm storm = {.port = d->port, .seed = 42};
	struct crowd crowd = {.port = d->port,
	                      .user = "app",
	                      .database = "app",
	                      .n = 32,
	                      .next = storm_next,
	                      .done = storm_done,
	                      .tick = storm_tick,
	                      .arg = &storm};
	PGconn *a;

	ck_assert(crowd_open(&crowd, 20000));
	ck_assert(crowd_run(&crowd, 50000));
	ck_assert_uint_eq(crowd.n_done, 32 * STORM_TURNS);
	ck_assert_uint_gt(crowd.n_errors, 0);
	ck_assert_int_gt(storm.n_cancels, 50);
	crowd_close(&crowd);
	a = daemon_connect(d);
	for (int i = 0; i < 50; i++)
		query_ok(a, "select 1");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("cancel", 60, running_statement, running_statement_over_proxies, waiting_session,
           waiting_session_over_proxies, waiting_session_with_a_pipeline, idle_sessions_are_left_alone,
           wrong_secrets_do_nothing, keys_differ_between_sessions, backend_waits_for_its_cancel,
           late_cancel_goes_nowhere, cancel_behind_settings_is_kept_until_it_helps,
           next_statement_waits_for_a_cancel_on_its_way, cancel_of_a_running_statement_is_not_repeated,
           statement_that_is_being_prepared_anew, storm_of_cancels_hits_only_its_targets)
