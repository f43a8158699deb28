/* SPDX-License-Identifier: ISC */
/* Protocol versions towards servers: 3.2 where they have it, 3.0 where not, found out once. */
#include "suite.h"

#define V3_0 0x30000u
#define V3_2 0x30002u
#define CANCEL_REQUEST 80877102u

static struct rawconn *
begin_login(const struct daemon *d)
{
	struct rawconn *c = raw_tcp(d->port);

	packet_login(&c->out, "app", "app");
	raw_flush(c);
	return c;
}

static struct rawconn *
expect_login(struct fake_server *server, uint32_t version)
{
	uint32_t code = 0;
	struct rawconn *c = fake_server_accept(server, RAW_TIMEOUT_MS, &code);

	ck_assert_msg(c != NULL && code == version, "version 0x%x", code);
	return c;
}

static void
refuse(struct rawconn *c, const char *sqlstate, const char *message)
{
	fake_reply_error(c, "FATAL", sqlstate, message);
	raw_flush(c);
	raw_close(c);
}

static void
serve_one(struct rawconn *backend, struct rawconn *client)
{
	raw_query(client, "select 1");
	raw_read_type(backend, 'Q');
	fake_reply_row(backend, "1");
	fake_reply_complete(backend, "SELECT 1");
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
	ck_assert_int_eq(raw_until_ready(client), 'I');
	ck_assert_str_eq(client->rows, "1;");
}

/* As PostgreSQL before 2018, and as a pooler that calls the packet broken. */
static void
refuse_once(const char *sqlstate)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 2\n",
	                                                          .databases = fake_server_databases(server)});
	struct rawconn *a = begin_login(d), *b, *backend_a, *backend_b;

	refuse(expect_login(server, V3_2), sqlstate, "unsupported frontend protocol 3.2: server supports 1.0 to 3.0");
	backend_a = expect_login(server, V3_0);
	fake_server_welcome(backend_a, 1, 2);
	ck_assert(raw_finish_login(a));
	serve_one(backend_a, a);

	/* The next connection knows. */
	b = begin_login(d);
	ck_assert(raw_finish_login(b));
	raw_query(a, "select 'keeps the first one busy'");
	raw_read_type(backend_a, 'Q');
	raw_query(b, "select 1");
	backend_b = expect_login(server, V3_0);
	raw_close(backend_b);
	raw_close(backend_a);
	raw_close(a);
	raw_close(b);
	daemon_stop(d);
	fake_server_free(server);
}

START_TEST(a_server_that_refuses_is_asked_for_less_once)
{
	static const char *const states[] = {"0A000", "08P01"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		refuse_once(states[i]);
}
END_TEST

static void
refuse_for_good(const char *sqlstate)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = fake_server_databases(server)});
	struct rawconn *a = begin_login(d), *backend = expect_login(server, V3_2);

	if (strcmp(sqlstate, "0A000") == 0) { /* behind a successful authentication it is about something else */
		packet_begin(&backend->out, 'R');
		packet_i32(&backend->out, 0);
		packet_end(&backend->out);
	}
	refuse(backend, sqlstate, "no");
	ck_assert(!raw_finish_login(a));
	ck_assert_str_eq(a->sqlstate, sqlstate);
	raw_close(a);
	daemon_stop(d);
	fake_server_free(server);
}

START_TEST(other_refusals_are_final)
{
	static const char *const states[] = {"28P01", "3D000", "0A000"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		refuse_for_good(states[i]);
}
END_TEST

START_TEST(a_server_that_negotiates_keeps_its_connection)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = fake_server_databases(server)});
	struct rawconn *a = begin_login(d), *backend = expect_login(server, V3_2);

	packet_begin(&backend->out, 'v');
	packet_i32(&backend->out, V3_0);
	packet_i32(&backend->out, 0);
	packet_end(&backend->out);
	fake_server_welcome(backend, 1, 2);
	ck_assert(raw_finish_login(a));
	serve_one(backend, a);
	raw_close(backend);
	raw_close(a);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* A key of every length that the protocol allows is kept whole and comes back whole. */
static void
keep_key(uint32_t length)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = fake_server_databases(server)});
	struct rawconn *a = begin_login(d), *backend = expect_login(server, V3_2), *cancel, *requester;
	uint8_t key[256];
	uint32_t code = 0;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + 1);
	packet_begin(&backend->out, 'R');
	packet_i32(&backend->out, 0);
	packet_end(&backend->out);
	packet_begin(&backend->out, 'K');
	packet_i32(&backend->out, 4711);
	packet_bytes(&backend->out, key, length);
	packet_end(&backend->out);
	fake_reply_ready(backend, 'I');
	raw_flush(backend);
	ck_assert(raw_finish_login(a));
	raw_query(a, "select 1");
	raw_read_type(backend, 'Q');
	requester = raw_send_cancel(d->port, a->cancel_pid, a->cancel_key);
	cancel = fake_server_accept(server, RAW_TIMEOUT_MS, &code);
	ck_assert(cancel != NULL && code == CANCEL_REQUEST);
	ck_assert_uint_eq(server->n_first, 4 + length);
	ck_assert_uint_eq(packet_read_u32(server->first), 4711);
	ck_assert_mem_eq(server->first + 4, key, length);
	raw_close(cancel);
	raw_close(requester);
	raw_close(backend);
	raw_close(a);
	daemon_stop(d);
	fake_server_free(server);
}

START_TEST(long_cancel_keys_are_kept)
{
	static const uint32_t lengths[] = {4, 5, 32, 256};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		keep_key(lengths[i]);
}
END_TEST

/* The server's last words, said in answer to what the daemon had put in front of the client's request. */
START_TEST(last_words_to_a_hidden_unit_reach_the_client)
{
	struct fake_server *server = fake_server_new();
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.databases = fake_server_databases(server)});
	struct rawconn *first = begin_login(d), *a = raw_tcp(d->port), *backend = expect_login(server, V3_2);

	fake_server_welcome(backend, 1, 2);
	ck_assert(raw_finish_login(first));
	packet_startup(&a->out, (int32_t)V3_0,
	               (const char *[]){"user", "app", "database", "app", "application_name", "w_words", NULL});
	raw_flush(a);
	ck_assert(raw_finish_login(a));
	raw_query(a, "select 1");
	raw_read_type(backend, 'P'); /* its setting */
	raw_read_type(backend, 'Q');
	refuse(backend, "57P01", "terminating connection due to administrator command");
	raw_expect_eof(a);
	ck_assert_str_eq(a->sqlstate, "57P01");
	raw_close(a);
	raw_close(first);
	daemon_stop(d);
	fake_server_free(server);
}
END_TEST

/* The same against the real one, whatever it speaks. */
static void
cancel_as(uint32_t version)
{
	struct daemon *d = daemon_start(pg, NULL);
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *a = raw_tcp(d->port), *cancel;
	struct rawmsg m;
	struct packet request = {0};

	packet_startup(&a->out, (int32_t)version, (const char *[]){"user", "app", "database", "app", NULL});
	raw_flush(a);
	m = raw_read_type(a, 'K');
	ck_assert_uint_eq(m.n, version == V3_2 ? 4 + 32 : 4 + 4);
	packet_begin(&request, 0);
	packet_i32(&request, CANCEL_REQUEST);
	packet_bytes(&request, m.body, m.n);
	packet_end(&request);
	ck_assert_int_eq(raw_until_ready(a), 'I');
	raw_query(a, "select pg_sleep(1000) /* w_versions */");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_stat_activity where query like "
	                                       "'%%w_versions%%' and wait_event = 'PgSleep'") == 1,
	                     10000));
	cancel = raw_tcp(d->port);
	raw_send(cancel, request.data, request.n);
	ck_assert_int_eq(raw_read_byte(cancel), -1);
	ck_assert_int_eq(raw_until_ready(a), 'I');
	ck_assert_str_eq(a->sqlstate, "57014");
	packet_free(&request);
	raw_close(cancel);
	raw_close(a);
	PQfinish(direct);
	daemon_stop(d);
}

START_TEST(cancel_works_whatever_the_client_speaks)
{
	static const uint32_t versions[] = {V3_0, V3_2};

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		cancel_as(versions[i]);
}
END_TEST

SUITE_MAIN("protocol", 60, a_server_that_refuses_is_asked_for_less_once, other_refusals_are_final,
           a_server_that_negotiates_keeps_its_connection, long_cancel_keys_are_kept,
           last_words_to_a_hidden_unit_reach_the_client, cancel_works_whatever_the_client_speaks)
