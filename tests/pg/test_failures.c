/* SPDX-License-Identifier: ISC */
/* Servers that go: one backend, all of them, before the start. */
#include "suite.h"

static long
pid_of(PGconn *conn)
{
	return query_int(conn, "select pg_backend_pid()");
}

static void
terminate(PGconn *direct, long pid)
{
	query_ok(direct, "select pg_terminate_backend(%ld)", pid);
	ck_assert(
		wait_until(query_int(direct, "select count(*) from pg_stat_activity where pid = %ld", pid) == 0, 5000));
}

START_TEST(idle_backend_that_ends_is_replaced_silently)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 2\n"});
	PGconn *a = daemon_connect(d), *direct = cluster_connect(pg, "app");

	for (int i = 0; i < 5; i++) {
		terminate(direct, pid_of(a));
		ck_assert(wait_until(daemon_count(d, "servers", "database", "app") == 0, 5000));
	}
	ck_assert_int_gt(pid_of(a), 0);
	PQfinish(a);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(serving_backend_that_ends_tells_its_session_only)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 3\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");
	long pid;

	query_ok(b, "begin");
	query_ok(a, "begin");
	pid = pid_of(a);
	query_send(a, "select pg_sleep(30)");
	ck_assert(
		wait_until(query_int(direct,
	                             "select count(*) from pg_stat_activity where pid = %ld and wait_event = 'PgSleep'",
	                             pid) == 1,
	                   5000));
	terminate(direct, pid);
	ck_assert_str_eq(query_finish(a), "57P01");
	query_ok(b, "select 1");
	query_ok(b, "commit");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(backend_that_ends_between_statements_of_a_transaction)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *direct = cluster_connect(pg, "app");
	char *state;

	query_ok(a, "begin");
	terminate(direct, pid_of(a));
	query_send(a, "select 1");
	state = query_finish(a);
	ck_assert_msg(strcmp(state, "57P01") == 0 || strcmp(state, "08006") == 0, "SQLSTATE %s: %s", state,
	              PQerrorMessage(a));
	query_ok(b, "select 1");
	PQfinish(a);
	PQfinish(b);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* ---- ordered by a fake server ---- */

struct staged {
	struct fake_server *server;
	struct daemon *d;
	struct rawconn *client, *backend;
};

static struct staged
stage(const char *settings)
{
	struct staged s = {.server = fake_server_new()};

	s.d = daemon_start(pg,
	                   &(struct daemon_conf){.settings =
	                                                 proc_fmt("default_pool_size = 1\nserver_login_retry = 1\n%s",
	                                                          settings),
	                                         .databases = fake_server_databases(s.server)});
	s.client = raw_tcp(s.d->port);
	packet_login(&s.client->out, "app", "app");
	raw_flush(s.client);
	s.backend = fake_server_login(s.server);
	ck_assert(raw_finish_login(s.client));
	return s;
}

static void
unstage(struct staged *s)
{
	raw_close(s->client);
	raw_close(s->backend);
	daemon_stop(s->d);
	fake_server_free(s->server);
}

static void
answer_query(struct rawconn *backend, const char *value)
{
	raw_read_type(backend, 'Q');
	fake_reply_row(backend, value);
	fake_reply_complete(backend, "SELECT 1");
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
}

/* The request was sent: it may have run, so it is never sent again. */
START_TEST(request_that_may_have_run_is_not_repeated)
{
	struct staged s = stage("");
	uint32_t code;

	raw_query(s.client, "insert into t values (1)");
	raw_read_type(s.backend, 'Q');
	raw_close(s.backend);
	s.backend = NULL;
	ck_assert_int_eq(raw_until_ready(s.client), 0);
	ck_assert_str_eq(s.client->sqlstate, daemon_is_pgweir() ? "08006" : "08P01");
	s.backend = fake_server_accept(s.server, 300, &code);
	if (s.backend != NULL) { /* a fresh backend is fine, the old request on it is not */
		fake_server_welcome(s.backend, 1, 2);
		ck_assert_msg(!raw_wait_message(s.backend, 300) || raw_read(s.backend).type != 'Q',
		              "the request was repeated");
	}
	unstage(&s);
}
END_TEST

START_TEST(last_words_of_a_serving_backend_reach_the_session)
{
	struct staged s = stage("");

	raw_query(s.client, "select 1");
	raw_read_type(s.backend, 'Q');
	fake_reply_row(s.backend, "partial");
	fake_reply_error(s.backend, "FATAL", "57P01", "terminating connection due to administrator command");
	raw_flush(s.backend);
	raw_close(s.backend);
	s.backend = NULL;
	ck_assert_int_eq(raw_until_ready(s.client), 0);
	ck_assert_str_eq(s.client->sqlstate, "57P01");
	query_assert_message(s.client->message, "terminating connection due to administrator command");
	unstage(&s);
}
END_TEST

START_TEST(last_words_of_an_idle_backend_are_not_delivered)
{
	struct staged s = stage("");

	raw_query(s.client, "select 1");
	answer_query(s.backend, "first");
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	fake_reply_error(s.backend, "FATAL", "57P01", "terminating connection due to administrator command");
	raw_flush(s.backend);
	raw_close(s.backend);
	s.backend = NULL;
	ck_assert(wait_until(daemon_count(s.d, "servers", "database", "app") == 0, 5000));
	ck_assert_msg(!raw_wait_message(s.client, 100), "an idle session was told");
	raw_query(s.client, "select 2");
	s.backend = fake_server_login(s.server);
	answer_query(s.backend, "second");
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	ck_assert_str_eq(s.client->rows, "second;");
	unstage(&s);
}
END_TEST

/* The same in one segment with the reply of the last unit: behind its ReadyForQuery they are an idle backend's. */
START_TEST(last_words_behind_the_last_reply_are_not_delivered)
{
	struct staged s = stage("");

	raw_query(s.client, "select 1");
	raw_read_type(s.backend, 'Q');
	fake_reply_row(s.backend, "first");
	fake_reply_complete(s.backend, "SELECT 1");
	fake_reply_ready(s.backend, 'I');
	fake_reply_error(s.backend, "FATAL", "57P01", "terminating connection due to administrator command");
	raw_flush(s.backend);
	raw_close(s.backend);
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	ck_assert_str_eq(s.client->rows, "first;");
	ck_assert_msg(!raw_wait_message(s.client, 100), "the session was told");
	raw_query(s.client, "select 2");
	s.backend = fake_server_login(s.server);
	answer_query(s.backend, "second");
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	ck_assert_str_eq(s.client->rows, "second;");
	unstage(&s);
}
END_TEST

/* Asynchronous messages on an idle backend are nobody's. */
START_TEST(notices_of_an_idle_backend_are_not_delivered)
{
	struct staged s = stage("");

	raw_query(s.client, "select 1");
	answer_query(s.backend, "first");
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	packet_begin(&s.backend->out, 'N');
	packet_bytes(&s.backend->out, "SNOTICE\0C00000\0Mstray notice\0", 30);
	packet_end(&s.backend->out);
	raw_flush(s.backend);
	raw_query(s.client, "select 2");
	raw_read_type(s.backend, 'Q');
	fake_reply_row(s.backend, "second");
	fake_reply_complete(s.backend, "SELECT 1");
	fake_reply_ready(s.backend, 'I');
	raw_flush(s.backend);
	ck_assert_int_eq(raw_read(s.client).type, 'T');
	ck_assert_int_eq(raw_until_ready(s.client), 'I');
	unstage(&s);
}
END_TEST

/* Garbage from a server ends that backend and its session, nothing else. */
START_TEST(garbage_from_a_server_ends_that_backend)
{
	struct staged s = stage("");

	raw_query(s.client, "select 1");
	raw_read_type(s.backend, 'Q');
	raw_send(s.backend, "D\0\0\0\1garbage", 12);
	raw_expect_eof(s.backend);
	ck_assert_int_eq(raw_until_ready(s.client), 0);
	ck_assert_int_eq(strncmp(s.client->sqlstate, "08", 2), 0);
	unstage(&s);
}
END_TEST

/* What the server says at login reaches those who wait for it. */
static struct rawconn *
client_that_waits(struct daemon *d)
{
	struct rawconn *c = raw_tcp(d->port);

	packet_login(&c->out, "app", "app");
	raw_flush(c);
	return c;
}

static const char *
sqlstate_told(struct rawconn *c)
{
	if (raw_finish_login(c)) {
		raw_query(c, "select 1");
		raw_until_ready(c);
	}
	return c->sqlstate;
}

START_TEST(refusal_at_login_reaches_the_waiting_session)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nserver_login_retry = 1\n",
	                                               .databases = fake_server_databases(server)});
	struct rawconn *client = client_that_waits(d), *backend, *second;
	uint32_t code;

	backend = fake_server_accept(server, 5000, &code);
	ck_assert(backend != NULL);
	fake_reply_error(backend, "FATAL", "53300", "sorry, too many clients already");
	raw_flush(backend);
	raw_close(backend);
	ck_assert_str_eq(sqlstate_told(client), "53300");
	query_assert_message(client->message, "sorry, too many clients already");
	/* After the back-off it is tried again, and all is well. */
	ck_assert(wait_until(({
				     second = client_that_waits(d);
				     backend = fake_server_accept(server, 100, &code);
				     if (backend == NULL)
					     raw_close(second);
				     backend != NULL;
			     }),
	                     5000));
	fake_server_welcome(backend, 1, 2);
	ck_assert(raw_finish_login(second));
	raw_query(second, "select 1");
	answer_query(backend, "fine");
	ck_assert_int_eq(raw_until_ready(second), 'I');
	ck_assert_str_eq(second->rows, "fine;");
	raw_close(client);
	raw_close(second);
	raw_close(backend);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* A server asking for a method we do not have: an error, not a hot loop. */
START_TEST(unknown_authentication_method_is_an_error)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nserver_login_retry = 5\n",
	                                               .databases = fake_server_databases(server)});
	struct rawconn *client = client_that_waits(d), *backend;
	uint32_t code;
	int n_tries = 0;
	int64_t end_ms;

	backend = fake_server_accept(server, 5000, &code);
	ck_assert(backend != NULL);
	packet_begin(&backend->out, 'R');
	packet_i32(&backend->out, 7); /* GSSAPI */
	packet_end(&backend->out);
	raw_flush(backend);
	raw_expect_eof(backend);
	raw_close(backend);
	ck_assert_str_ne(sqlstate_told(client), "");
	for (end_ms = proc_now_ms() + 600; proc_now_ms() < end_ms; n_tries++) {
		backend = fake_server_accept(server, 100, &code);
		raw_close(backend);
	}
	ck_assert_int_le(n_tries, 20);
	raw_close(client);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* ---- the whole server ---- */

START_TEST(server_down_at_start)
{
	struct cluster *c = cluster_new();
	struct daemon *d;
	struct rawconn *client;
	PGconn *conn;

	cluster_stop(c);
	d = daemon_start(c, &(struct daemon_conf){.settings = "server_login_retry = 1\nquery_wait_timeout = 10\n"});
	client = client_that_waits(d);
	ck_assert_int_eq(strncmp(sqlstate_told(client), "08", 2), 0);
	ck_assert_msg(strstr(client->message, "query_wait_timeout") == NULL, "only a timeout was told, not the reason");
	raw_close(client);
	cluster_start(c);
	ck_assert(wait_until((conn = daemon_try_connect(d, NULL), PQstatus(conn) == CONNECTION_OK), 10000));
	query_ok(conn, "select 1");
	PQfinish(conn);
	daemon_stop(d);
	cluster_stop(c);
}
END_TEST

static const char *
endless(struct crowd *c, struct crowd_client *client)
{
	bool *stop = c->arg;

	(void)client;
	return *stop ? NULL : "begin; select pg_sleep(0.2); commit";
}

static struct cluster *victim;
static int64_t kill_at_ms;

static void
kill_server(struct crowd *c)
{
	bool *stop = c->arg;

	if (victim->pid != 0 && proc_now_ms() >= kill_at_ms) {
		cluster_kill_all(victim);
		*stop = true;
	}
}

/* kill -9 of every process of the server under load: sessions learn it, the daemon lives on. */
START_TEST(server_killed_under_load_and_restarted)
{
	bool stop = false;
	struct daemon *d;
	struct crowd crowd;
	PGconn *conn;
	int n_fds;

	victim = cluster_new();
	d = daemon_start(victim, &(struct daemon_conf){
					 .settings = "default_pool_size = 10\nmax_client_conn = 300\nproxies = 2\n"
						     "server_login_retry = 1\nquery_wait_timeout = 10\n"});
	conn = daemon_connect(d);
	query_ok(conn, "select 1");
	PQfinish(conn);
	n_fds = proc_n_fds(d->pid);
	for (int round = 0; round < 2; round++) {
		crowd = (struct crowd){.port = d->port,
		                       .user = "app",
		                       .database = "app",
		                       .n = 60,
		                       .next = endless,
		                       .tick = kill_server,
		                       .arg = &stop};
		stop = false;
		ck_assert(crowd_open(&crowd, 20000));
		kill_at_ms = proc_now_ms() + 300;
		/* Everybody gets an answer or an end, waiting sessions too. */
		ck_assert_msg(crowd_run(&crowd, 20000), "%zu sessions were left hanging", crowd.n_busy);
		ck_assert_uint_gt(crowd.n_errors, 0);
		for (size_t i = 0; i < crowd.n; i++)
			ck_assert_msg(crowd.clients[i].sqlstate[0] == '\0' ||
			                      strncmp(crowd.clients[i].sqlstate, "08", 2) == 0 ||
			                      strncmp(crowd.clients[i].sqlstate, "57P0", 4) == 0,
			              "SQLSTATE %s", crowd.clients[i].sqlstate);
		crowd_close(&crowd);
		cluster_start(victim);
		ck_assert(wait_until((conn = daemon_try_connect(d, NULL), PQstatus(conn) == CONNECTION_OK), 10000));
		ck_assert(wait_until(PQresultStatus(PQexec(conn, "select 1")) == PGRES_TUPLES_OK ||
		                             (PQreset(conn), false),
		                     10000));
		PQfinish(conn);
	}
	ck_assert(wait_until(proc_n_fds(d->pid) <= n_fds + 10, 5000));
	daemon_stop(d);
	cluster_stop(victim);
}
END_TEST

/* kill -9 of one serving backend: PostgreSQL restarts, and tells the others so. */
START_TEST(backend_killed_hard)
{
	struct cluster *c = cluster_new();
	struct daemon *d =
		daemon_start(c, &(struct daemon_conf){.settings = "default_pool_size = 4\nserver_login_retry = 1\n"});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *again;
	char *state;

	query_ok(a, "begin");
	query_ok(b, "begin");
	proc_kill((pid_t)pid_of(a), SIGKILL);
	query_send(a, "select 1");
	state = query_finish(a);
	ck_assert_msg(strcmp(state, "08006") == 0 || !daemon_is_pgweir(), "SQLSTATE %s", state);
	/* the postmaster may not have told it yet: then it still answers */
	ck_assert(wait_until((query_send(b, "select 1"), state = query_finish(b), strcmp(state, "00000") != 0), 15000));
	ck_assert_msg(strcmp(state, "57P02") == 0 || strcmp(state, "08006") == 0 || !daemon_is_pgweir(), "SQLSTATE %s",
	              state);
	ck_assert(wait_until((again = daemon_try_connect(d, NULL), PQstatus(again) == CONNECTION_OK) &&
	                             PQresultStatus(PQexec(again, "select 1")) == PGRES_TUPLES_OK,
	                     15000));
	PQfinish(a);
	PQfinish(b);
	PQfinish(again);
	daemon_stop(d);
	cluster_stop(c);
}
END_TEST

/* Backends that are terminated all the time under load: the limit holds, only those hit are told. */
static const char *
many_turns(struct crowd *c, struct crowd_client *client)
{
	(void)c;
	return client->n_done < 30 ? "select pg_sleep(0.003)" : NULL;
}

static void
terminate_one(struct crowd *c)
{
	PGconn *direct = c->arg;

	query_ok(direct,
	         "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and application_name <> "
	         "'direct' order by random() limit 1");
}

/* The last one that was terminated may be about to end. */
static bool
serves_well(struct daemon *d)
{
	PGconn *conn = daemon_connect(d);
	int n = 0;

	while (n < 20 && PQresultStatus(PQexec(conn, "select 1")) == PGRES_TUPLES_OK)
		n++;
	PQfinish(conn);
	return n == 20;
}

START_TEST(backends_terminated_under_load)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){
					 .settings = "default_pool_size = 6\nmax_client_conn = 200\nproxies = 2\n"});
	PGconn *direct = cluster_connect(pg, "app");
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS);
	struct crowd crowd = {.port = d->port,
	                      .user = "app",
	                      .database = "app",
	                      .n = 40,
	                      .next = many_turns,
	                      .tick = terminate_one,
	                      .arg = direct};

	ck_assert(crowd_open(&crowd, 20000));
	ck_assert(crowd_run(&crowd, 30000));
	for (size_t i = 0; i < crowd.n; i++)
		ck_assert_msg(crowd.clients[i].n_done == 30 || strcmp(crowd.clients[i].sqlstate, "57P01") == 0 ||
		                      strcmp(crowd.clients[i].sqlstate, "08006") == 0,
		              "client %zu ended after %u turns with SQLSTATE \"%s\" (%zu gone): %s", i,
		              crowd.clients[i].n_done, crowd.clients[i].sqlstate, crowd.n_gone, daemon_log_tail(d));
	ck_assert_int_le(sampler_stop(sampler), 6);
	crowd_close(&crowd);
	ck_assert(wait_until(serves_well(d), 10000));
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("failures", 60, idle_backend_that_ends_is_replaced_silently,
           serving_backend_that_ends_tells_its_session_only, backend_that_ends_between_statements_of_a_transaction,
           request_that_may_have_run_is_not_repeated, last_words_of_a_serving_backend_reach_the_session,
           last_words_of_an_idle_backend_are_not_delivered, last_words_behind_the_last_reply_are_not_delivered,
           notices_of_an_idle_backend_are_not_delivered, garbage_from_a_server_ends_that_backend,
           refusal_at_login_reaches_the_waiting_session, unknown_authentication_method_is_an_error,
           server_down_at_start, server_killed_under_load_and_restarted, backend_killed_hard,
           backends_terminated_under_load)
