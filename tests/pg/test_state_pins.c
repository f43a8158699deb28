/* SPDX-License-Identifier: ISC */
/* Sessions that keep their server connection: what becomes of them when it dies, and when too many would. */
#include "suite.h"

#define TWO_SERVERS "default_pool_size = 2\nsession_state = preserve\nproxies = 1\nmax_pinned = 50\n"

struct scene {
	struct daemon *d;
	PGconn *other, *direct;
	struct rawconn *pinned;
	long pid; /* of the server process that it keeps */
};

static struct scene
scene_begin(void)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = TWO_SERVERS});
	struct scene x = {.d = d,
	                  .other = daemon_connect(d),
	                  .direct = cluster_connect(pg, "app"),
	                  .pinned = raw_login(d->port, "app", "app")};

	raw_query(x.pinned, "create temp table t (i int)");
	ck_assert_int_eq(raw_until_ready(x.pinned), 'I');
	ck_assert(wait_until(daemon_count(d, "pins", "reason", "temp") == 1, 5000));
	raw_query(x.pinned, "select pg_backend_pid()");
	raw_until_ready(x.pinned);
	x.pid = strtol(x.pinned->rows, NULL, 10);
	return x;
}

static void
scene_end(struct scene *x)
{
	PQfinish(x->other);
	PQfinish(x->direct);
	raw_close(x->pinned);
	daemon_stop(x->d);
}

/* The pinned session has ended in the server's words; its room is free, for a pin too, and nobody else has noticed. */
static void
assert_pinned_is_gone(struct scene *x)
{
	struct rawmsg m = raw_read_type(x->pinned, 'E');

	ck_assert_str_eq(raw_error_field(&m, 'S'), "FATAL");
	ck_assert_str_eq(raw_error_field(&m, 'C'), "57P01");
	ck_assert_str_eq(raw_error_field(&m, 'M'), "terminating connection due to administrator command");
	raw_expect_eof(x->pinned);
	ck_assert(wait_until(daemon_count(x->d, "pins", "reason", "temp") == 0, 5000));
	query_ok(x->other, "create temp table t (i int)");
	ck_assert(wait_until(daemon_count(x->d, "pins", "reason", "temp") == 1, 5000));
}

START_TEST(connection_that_dies_between_the_units)
{
	struct scene x = scene_begin();

	query_ok(x.direct, "select pg_terminate_backend(%ld)", x.pid);
	assert_pinned_is_gone(&x);
	scene_end(&x);
}
END_TEST

START_TEST(connection_that_dies_in_a_unit)
{
	struct scene x = scene_begin();

	raw_query(x.pinned, "select pg_sleep(60)");
	ck_assert(
		wait_until(query_int(x.direct,
	                             "select count(*) from pg_stat_activity where pid = %ld and wait_event = 'PgSleep'",
	                             x.pid) == 1,
	                   5000));
	query_ok(x.direct, "select pg_terminate_backend(%ld)", x.pid);
	assert_pinned_is_gone(&x);
	scene_end(&x);
}
END_TEST

START_TEST(connection_that_dies_in_a_transaction)
{
	struct scene x = scene_begin();

	raw_query(x.pinned, "begin");
	ck_assert_int_eq(raw_until_ready(x.pinned), 'T');
	query_ok(x.direct, "select pg_terminate_backend(%ld)", x.pid);
	assert_pinned_is_gone(&x);
	scene_end(&x);
}
END_TEST

/* ---- one pin too many, in the extended protocol ---- */

static void
send_group(struct rawconn *c, const char *sql)
{
	packet_parse(&c->out, "", sql);
	packet_bind(&c->out, "", "");
	packet_execute(&c->out, "", 0);
}

static void
sync_and_flush(struct rawconn *c)
{
	packet_simple(&c->out, 'S');
	raw_flush(c);
}

/* Reads the one refusal. */
static void
assert_refused(struct rawconn *c)
{
	struct rawmsg m = raw_read_type(c, 'E');

	ck_assert_str_eq(raw_error_field(&m, 'S'), "ERROR");
	ck_assert_str_eq(raw_error_field(&m, 'C'), "53300");
	ck_assert_ptr_nonnull(strstr(raw_error_field(&m, 'H'), "max_pinned"));
}

START_TEST(refused_in_the_extended_protocol)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app");

	/* what stands behind it is skipped up to the Sync, and the next group is served */
	send_group(c, "create temp table t (i int)");
	send_group(c, "select 1");
	packet_simple(&c->out, 'S');
	send_group(c, "select 2");
	sync_and_flush(c);
	assert_refused(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "2;");
	ck_assert_str_eq(c->sqlstate, "");
	/* who has one already may have more of it */
	send_group(x.pinned, "create temp table t2 (i int)");
	sync_and_flush(x.pinned);
	ck_assert_int_eq(raw_until_ready(x.pinned), 'I');
	ck_assert_str_eq(x.pinned->tags, "CREATE TABLE;");
	raw_close(c);
	scene_end(&x);
}
END_TEST

/* Of a prepared statement it is the execution that is refused, each time, and no more when there is room. */
START_TEST(refused_when_a_prepared_statement_is_executed)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app");

	packet_parse(&c->out, "p", "select pg_advisory_lock(7)");
	sync_and_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "");
	for (int i = 0; i < 2; i++) {
		packet_bind(&c->out, "", "p");
		packet_execute(&c->out, "", 0);
		sync_and_flush(c);
		assert_refused(c);
		ck_assert_int_eq(raw_until_ready(c), 'I');
	}
	raw_query(x.pinned, "drop table t");
	raw_until_ready(x.pinned);
	ck_assert(wait_until(daemon_count(x.d, "pins", "reason", "temp") == 0, 5000));
	packet_bind(&c->out, "", "p");
	packet_execute(&c->out, "", 0);
	sync_and_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "");
	ck_assert(wait_until(daemon_count(x.d, "pins", "reason", "lock") == 1, 5000));
	raw_close(c);
	scene_end(&x);
}
END_TEST

/* It fails the transaction as any statement would: nothing else of it may be committed. */
START_TEST(refused_in_a_transaction)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app");

	query_ok(x.direct, "create table public.state_pins (i int); grant all on public.state_pins to app");
	send_group(c, "begin");
	send_group(c, "insert into state_pins values (1)");
	sync_and_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'T');
	send_group(c, "listen c");
	sync_and_flush(c);
	assert_refused(c);
	ck_assert_int_eq(raw_until_ready(c), 'E');
	send_group(c, "select 1");
	sync_and_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'E');
	ck_assert_str_eq(c->sqlstate, "25P02");
	send_group(c, "commit");
	sync_and_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->tags, "ROLLBACK;");
	ck_assert_int_eq(query_int(x.direct, "select count(*) from public.state_pins"), 0);
	query_ok(x.direct, "drop table public.state_pins");
	raw_close(c);
	scene_end(&x);
}
END_TEST

/* Behind messages without a Sync a Query can't be refused: then it is executed, and pins for all that. */
START_TEST(a_query_in_the_middle_of_a_group_pins)
{
	struct scene x = scene_begin();
	struct rawconn *c = raw_login(x.d->port, "app", "app");

	packet_parse(&c->out, "", "select 1");
	packet_query(&c->out, "listen c");
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->tags, "LISTEN;");
	ck_assert(wait_until(daemon_count(x.d, "pins", "reason", "listen") == 1, 5000));
	raw_close(c);
	scene_end(&x);
}
END_TEST

SUITE_MAIN("state_pins", 30, connection_that_dies_between_the_units, connection_that_dies_in_a_unit,
           connection_that_dies_in_a_transaction, refused_in_the_extended_protocol,
           refused_when_a_prepared_statement_is_executed, refused_in_a_transaction,
           a_query_in_the_middle_of_a_group_pins)
