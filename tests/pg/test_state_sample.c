/* SPDX-License-Identifier: ISC */
/* session_state_sample: what functions change unseen is found, told once, and kept for its session alone. */
#include "suite.h"

static struct daemon *
start(const char *more)
{
	PGconn *direct = cluster_connect(pg, "app");

	query_ok(direct, "create or replace function quiet_set(i int) returns text language sql as "
	                 "$$ select set_config('work_mem', '7MB', false) $$;"
	                 "create or replace function quiet_lock(i int) returns void language sql as "
	                 "$$ select pg_advisory_lock(i) $$");
	PQfinish(direct);
	return daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("session_state = preserve\nproxies = 1\n"
	                                                                   "session_state_sample = 1\n%s",
	                                                                   more)});
}

static long
n_leaks(const struct daemon *d)
{
	return daemon_show(d, "session_state", "database", "app", "total_leaks");
}

static int
n_logged(const struct daemon *d, const char *part)
{
	char *log = daemon_log(d), *at = log;
	int n = 0;

	for (; (at = strstr(at, part)) != NULL; at++)
		n++;
	free(log);
	return n;
}

/* Every second transaction is watched; which, is left to chance. */
START_TEST(an_unseen_setting_is_found_and_kept)
{
	struct daemon *d = start("default_pool_size = 1\n");
	PGconn *a = daemon_connect(d), *b = daemon_connect(d);

	for (int i = 0; i < 2000 && !daemon_logged(d, "a statement changes session state unseen"); i++) {
		query_ok(a, "select %d", i);
		query_ok(a, "select quiet_set( %d ) -- 4711", i);
	}
	ck_assert_msg(daemon_logged(d, "changed=work_mem fingerprint="), "%s", daemon_log_tail(d));
	ck_assert(daemon_logged(d, "statement=\"select quiet_set(?)\""));
	ck_assert(!daemon_logged(d, "4711"));
	ck_assert_int_gt(n_leaks(d), 0);
	ck_assert_str_eq(query_text(b, "show work_mem"), "4MB");
	ck_assert_str_eq(query_text(a, "show work_mem"), "7MB");
	ck_assert_str_eq(query_text(b, "show work_mem"), "4MB");
	PQfinish(a);
	PQfinish(b);
	daemon_stop(d);
}
END_TEST

/* By session after session, so that it is new each time. */
START_TEST(a_statement_is_told_once)
{
	struct daemon *d = start("default_pool_size = 1\n");

	for (int i = 0; i < 500 && n_leaks(d) < 6; i++) {
		PGconn *a = daemon_connect(d);

		query_ok(a, "select 1");
		query_ok(a, "begin");
		query_ok(a, "select quiet_set(%d)", i);
		query_ok(a, "commit");
		query_ok(a, "select 2");
		PQfinish(a);
	}
	ck_assert_int_ge(n_leaks(d), 6);
	ck_assert_int_le(n_logged(d, "statement=\"begin; select quiet_set(?); commit\""), 1);
	ck_assert_int_le(n_logged(d, "by which statement is not known"), 1);
	daemon_stop(d);
}
END_TEST

START_TEST(an_unseen_lock_pins)
{
	struct daemon *d = start("default_pool_size = 2\n");
	PGconn *a = daemon_connect(d);

	for (int i = 0; i < 2000 && !daemon_logged(d, "statement=\"select quiet_lock(?)\""); i++) {
		query_ok(a, "select %d", i);
		query_ok(a, "select quiet_lock(%d)", i);
	}
	ck_assert(daemon_logged(d, "changed=\"a lock\""));
	ck_assert_int_eq(daemon_count(d, "pins", "reason", "lock"), 1);
	query_ok(a, "select pg_advisory_unlock_all()");
	ck_assert(wait_until(daemon_count(d, "pins", "reason", "lock") == 0, 5000));
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* What texts show, in every way that a value may be spelled, is no leak. */
START_TEST(what_is_known_is_no_leak)
{
	static const char *const texts[] = {
		"set work_mem = 65536",
		"set work_mem = '64MB'",
		"set timezone = 'Asia/Tokyo'",
		"set timezone to default",
		"set datestyle = 'german'",
		"set search_path = pg_catalog, public",
		"set client_min_messages to 'warning'",
		"set standard_conforming_strings = off",
		"set standard_conforming_strings = on",
		"set statement_timeout = 50000",
		"select set_config('enable_seqscan', '0', false)",
		"set app.usr = 'x y'",
		"set role app2",
		"begin; set local work_mem = '1MB'; commit",
		"begin; set work_mem = '2MB'; rollback",
		"begin isolation level serializable read only; commit",
		"set session characteristics as transaction read write",
		"reset role",
		"set client_encoding = 'LATIN1'",
		"set client_encoding = 'UTF8'",
		"set extra_float_digits = 3",
		"set bytea_output = 'escape'",
		"set application_name = 'x'",
		"set lock_timeout = '2s'",
		"reset work_mem",
		"discard all",
	};
	struct daemon *d = start("default_pool_size = 2\n");
	PGconn *direct = cluster_connect(pg, "app"), *c[4];

	query_ok(direct, "grant app2 to app");
	PQfinish(direct);
	for (int i = 0; i < 4; i++)
		c[i] = daemon_try_connect(d, i == 1 ? "options='-c work_mem=2MB -c DateStyle=iso' application_name=one"
		                                    : "client_encoding=UTF8");
	for (size_t k = 0; k < 4 * sizeof(texts) / sizeof(texts[0]); k++) {
		for (size_t i = 0; i < 4; i++) {
			size_t n = sizeof(texts) / sizeof(texts[0]);

			query_ok(c[i], "%s", texts[(k * (2 * i + 1) + i) % n]);
			query_ok(c[i], "select 1");
			query_ok(c[(i + k) % 4], "select 2");
		}
	}
	ck_assert_int_gt(daemon_show(d, "session_state", "database", "app", "total_probes"), 500);
	ck_assert_msg(!daemon_logged(d, "state_leak"), "%s", daemon_log_tail(d));
	ck_assert_int_eq(n_leaks(d), 0);
	for (int i = 0; i < 4; i++)
		PQfinish(c[i]);
	daemon_stop(d);
}
END_TEST

/* ---- a server connection that ends while it is asked ---- */

struct staged {
	struct fake_server *server;
	struct daemon *d;
	struct rawconn *client, *backend;
};

static void
answer(struct staged *x, const char *value)
{
	raw_read_type(x->backend, 'Q');
	fake_reply_row(x->backend, value);
	fake_reply_complete(x->backend, "SELECT 1");
	fake_reply_ready(x->backend, 'I');
	raw_flush(x->backend);
}

/* The client's transaction is answered, and the server has just been asked what it has left. */
static struct staged
stage_question(void)
{
	struct staged x = {.server = fake_server_new()};

	x.d = daemon_start(
		pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nproxies = 1\nsession_state = preserve\n"
	                                              "session_state_sample = 1\n",
	                                  .databases = fake_server_databases(x.server)});
	x.client = raw_tcp(x.d->port);
	packet_login(&x.client->out, "app", "app");
	raw_flush(x.client);
	x.backend = fake_server_login(x.server);
	ck_assert(raw_finish_login(x.client));
	do {
		raw_query(x.client, "select 1");
		answer(&x, "first");
		ck_assert_int_eq(raw_until_ready(x.client), 'I');
	} while (!raw_wait_message(x.backend, 0)); /* the question goes out before the reply */
	return x;
}

static void
end_backend(struct staged *x)
{
	fake_reply_error(x->backend, "FATAL", "57P01", "terminating connection due to administrator command");
	raw_flush(x->backend);
	raw_close(x->backend);
	x->backend = NULL;
}

static void
unstage(struct staged *x)
{
	raw_close(x->client);
	raw_close(x->backend);
	daemon_stop(x->d);
	fake_server_free(x->server);
}

/* It has lost nothing, no more than with an idle server connection. */
START_TEST(session_outlives_what_it_is_watched_on)
{
	struct staged x = stage_question();

	end_backend(&x);
	ck_assert(wait_until(daemon_count(x.d, "servers", "database", "app") == 0, 5000));
	ck_assert_msg(!raw_wait_message(x.client, 100), "an idle session was told");
	raw_query(x.client, "select 2");
	x.backend = fake_server_login(x.server);
	answer(&x, "second");
	ck_assert_int_eq(raw_until_ready(x.client), 'I');
	ck_assert_str_eq(x.client->rows, "second;");
	unstage(&x);
}
END_TEST

/* What was sent behind the question is lost with it: in the server's words, once. */
START_TEST(request_behind_the_question_is_told)
{
	struct staged x = stage_question();

	raw_query(x.client, "select 2");
	raw_read_type(x.backend, 'Q');
	end_backend(&x);
	ck_assert_int_eq(raw_read(x.client).type, 'E');
	ck_assert_int_eq(raw_read(x.client).type, 0);
	ck_assert_str_eq(x.client->sqlstate, "57P01");
	unstage(&x);
}
END_TEST

SUITE_MAIN("state_sample", 60, an_unseen_setting_is_found_and_kept, a_statement_is_told_once, an_unseen_lock_pins,
           what_is_known_is_no_leak, session_outlives_what_it_is_watched_on, request_behind_the_question_is_told)
