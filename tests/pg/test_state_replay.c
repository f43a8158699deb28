/* SPDX-License-Identifier: ISC */
/* Settings on their way to another server connection: late, never, cancelled, or under the time limits of whom it served. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nsession_state = preserve\nproxies = 1\n"

struct scene {
	struct daemon *d;
	PGconn *a, *b, *direct;
};

static struct scene
scene_begin(void)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});

	return (struct scene){.d = d,
	                      .a = daemon_connect(d),
	                      .b = daemon_connect(d),
	                      .direct = cluster_connect(pg, "app")};
}

static void
scene_end(struct scene *x)
{
	PQfinish(x->a);
	PQfinish(x->b);
	PQfinish(x->direct);
	daemon_stop(x->d);
}

/* The server process that waits for a lock. */
static long
pid_that_waits(struct scene *x)
{
	static const char sql[] = "select coalesce(max(pid), 0) from pg_stat_activity where usename = 'app' and "
				  "wait_event_type = 'Lock'";
	long pid = 0;

	ck_assert(wait_until((pid = query_int(x->direct, sql)) != 0, 5000));
	return pid;
}

/*
 * default_tablespace is looked up in pg_tablespace whenever it is set: with a lock on that, a replay of a's settings takes
 * as long as the test wants.
 */
static void
make_replay_wait(struct scene *x)
{
	query_ok(x->a, "set default_tablespace = pg_default");
	query_ok(x->a, "set my.own = 'a'");
	query_ok(x->b, "set my.own = 'b'");
	query_ok(x->direct, "begin; lock table pg_catalog.pg_tablespace in access exclusive mode");
}

static void
assert_b_has_its_own(struct scene *x)
{
	ck_assert_str_eq(query_text(x->b, "show my.own"), "b");
	ck_assert_str_eq(query_text(x->b, "show default_tablespace"), "");
}

static void
assert_both_have_their_own(struct scene *x)
{
	assert_b_has_its_own(x);
	ck_assert_str_eq(query_text(x->a, "show my.own"), "a");
	ck_assert_str_eq(query_text(x->a, "show default_tablespace"), "pg_default");
	assert_b_has_its_own(x);
}

/* It is meant for the client's statement: the settings in front of that are not hit. */
START_TEST(cancel_request_during_a_replay)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app"), *request;

	raw_query(c, "set default_tablespace = pg_default");
	raw_until_ready(c);
	make_replay_wait(&x);
	raw_query(c, "select pg_sleep(60)");
	pid_that_waits(&x);
	request = raw_send_cancel(x.d->port, c->cancel_pid, c->cancel_key);
	/* what came later, and through the same hands, is answered: the request is known */
	ck_assert_int_eq(daemon_show(x.d, "pools", "database", "app", "cl_active"), 3);
	query_ok(x.direct, "rollback");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "57014");
	raw_query(c, "show default_tablespace");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "pg_default;");
	assert_both_have_their_own(&x);
	raw_close(request);
	raw_close(c);
	scene_end(&x);
}
END_TEST

/* Somebody on the server cancels what the process does: nothing of the half that was set is anybody's. */
START_TEST(replay_that_the_server_cancels)
{
	struct scene x = scene_begin();

	make_replay_wait(&x);
	query_send(x.a, "select 1");
	query_ok(x.direct, "select pg_cancel_backend(%ld)", pid_that_waits(&x));
	ck_assert_str_eq(query_finish(x.a), "58000");
	query_assert_message(PQerrorMessage(x.a), "canceling statement due to user request");
	query_ok(x.direct, "rollback");
	assert_b_has_its_own(&x);
	scene_end(&x);
}
END_TEST

START_TEST(replay_whose_server_process_is_terminated)
{
	struct scene x = scene_begin();

	make_replay_wait(&x);
	query_send(x.a, "select 1");
	query_ok(x.direct, "select pg_terminate_backend(%ld)", pid_that_waits(&x));
	ck_assert_str_eq(query_finish(x.a), "57P01");
	query_ok(x.direct, "rollback");
	assert_b_has_its_own(&x);
	scene_end(&x);
}
END_TEST

/* The client goes while its settings are under way. */
START_TEST(client_that_vanishes_during_a_replay)
{
	struct scene x = scene_begin();

	make_replay_wait(&x);
	query_send(x.a, "select 1");
	pid_that_waits(&x);
	PQfinish(x.a);
	query_ok(x.direct, "rollback");
	assert_b_has_its_own(&x);
	x.a = daemon_connect(x.d);
	ck_assert_str_eq(query_text(x.a, "select coalesce(current_setting('my.own', true), '')"), "");
	scene_end(&x);
}
END_TEST

/* The time limits are a's: b's settings take longer, and a's own do. */
START_TEST(time_limits_do_not_end_a_replay)
{
	static const char *const limits[] = {"statement_timeout", "lock_timeout",
	                                     "idle_in_transaction_session_timeout"};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct scene x = scene_begin();

		make_replay_wait(&x);
		query_ok(x.direct, "rollback");
		query_ok(x.b, "set %s = '10ms'", limits[i]);
		query_ok(x.direct, "begin; lock table pg_catalog.pg_tablespace in access exclusive mode");
		query_send(x.a, "select 7");
		pid_that_waits(&x);
		ck_assert_int_eq(query_int(x.direct, "select 1 from pg_sleep(0.05)"), 1);
		query_ok(x.direct, "rollback");
		ck_assert_msg(strcmp(query_finish(x.a), "00000") == 0, "%s: %s", limits[i], PQerrorMessage(x.a));
		ck_assert_str_eq(query_text(x.a, "show %s", limits[i]), "0");
		ck_assert_str_eq(query_text(x.b, "show %s", limits[i]), "10ms");
		assert_b_has_its_own(&x);
		scene_end(&x);
	}
}
END_TEST

START_TEST(own_time_limits_do_not_end_a_replay)
{
	static const char *const limits[] = {"statement_timeout", "lock_timeout"};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct scene x = scene_begin();

		make_replay_wait(&x);
		query_ok(x.direct, "rollback");
		query_ok(x.a, "set %s = '20ms'", limits[i]);
		query_ok(x.b, "select 1");
		query_ok(x.direct, "begin; lock table pg_catalog.pg_tablespace in access exclusive mode");
		query_send(x.a, "select 7");
		pid_that_waits(&x);
		ck_assert_int_eq(query_int(x.direct, "select 1 from pg_sleep(0.05)"), 1);
		query_ok(x.direct, "rollback");
		ck_assert_msg(strcmp(query_finish(x.a), "00000") == 0, "%s: %s", limits[i], PQerrorMessage(x.a));
		ck_assert_str_eq(query_text(x.a, "show %s", limits[i]), "20ms");
		assert_both_have_their_own(&x);
		scene_end(&x);
	}
}
END_TEST

/*
 * While it has no server process nobody but the pooler can end it. The process must not end on its behalf: it may be serving
 * another session by then.
 */
START_TEST(idle_session_timeout_ends_its_session_only)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app");
	long pid = query_int(x.b, "select pg_backend_pid()");
	struct rawmsg m;

	raw_query(c, "set idle_session_timeout = '0.1s'");
	raw_until_ready(c);
	m = raw_read_type(c, 'E');
	ck_assert_str_eq(raw_error_field(&m, 'C'), "57P05");
	ck_assert_str_eq(raw_error_field(&m, 'M'), "terminating connection due to idle-session timeout");
	raw_expect_eof(c);
	raw_close(c);
	ck_assert_int_eq(query_int(x.b, "select pg_backend_pid()"), pid);
	ck_assert_str_eq(query_text(x.b, "show idle_session_timeout"), "0");
	scene_end(&x);
}
END_TEST

/* ---- settings that can't be had any more ---- */

/* a may no more have what it had: it ends with the server's reason, and nobody else has half of it. */
static void
assert_only_a_ends(struct scene *x, const char *reason)
{
	query_send(x->a, "select 1");
	ck_assert_str_eq(query_finish(x->a), "58000");
	query_assert_message(PQerrorMessage(x->a), reason);
	ck_assert_str_eq(query_text(x->b, "show my.own"), "b");
	ck_assert_str_eq(query_text(x->b, "show work_mem"), "4MB");
	ck_assert_str_eq(query_text(x->b, "select current_user"), "app");
}

/* All of them after work_mem, which has been set when they fail. */
static void
give_settings(struct scene *x)
{
	query_ok(x->a, "set my.own = 'a'");
	query_ok(x->a, "set work_mem = '3MB'");
	query_ok(x->b, "set my.own = 'b'");
}

START_TEST(role_that_was_revoked)
{
	struct scene x = scene_begin();

	give_settings(&x);
	query_ok(x.direct, "create role state_revoked; grant state_revoked to app");
	query_ok(x.a, "set role state_revoked");
	query_ok(x.b, "select 1");
	query_ok(x.direct, "revoke state_revoked from app");
	assert_only_a_ends(&x, "permission denied to set role \"state_revoked\"");
	query_ok(x.direct, "drop role state_revoked");
	scene_end(&x);
}
END_TEST

/* It was only a name with a dot until the library was loaded, which knows what it must be. */
START_TEST(setting_of_an_extension_that_is_loaded_by_others)
{
	struct scene x = scene_begin();

	give_settings(&x);
	query_ok(x.a, "set plpgsql.check_asserts = 'nonsense'");
	query_ok(x.b, "do $$ begin end $$");
	assert_only_a_ends(&x, "plpgsql.check_asserts");
	scene_end(&x);
}
END_TEST

SUITE_MAIN("state_replay", 30, cancel_request_during_a_replay, replay_that_the_server_cancels,
           replay_whose_server_process_is_terminated, client_that_vanishes_during_a_replay,
           time_limits_do_not_end_a_replay, own_time_limits_do_not_end_a_replay,
           idle_session_timeout_ends_its_session_only, role_that_was_revoked,
           setting_of_an_extension_that_is_loaded_by_others)
