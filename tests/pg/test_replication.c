/* SPDX-License-Identifier: ISC */
/* Replication connections: PostgreSQL's own programs and the protocol by hand, each on a server connection of its own. */
#include "suite.h"

#include <sys/socket.h>

static const char roomy[] = "default_pool_size = 4\n";

/* Where the client programs of the server's own version are; NULL: they are not installed with it. */
static const char *
program(const char *name)
{
	char *path = proc_fmt("%s/%s", proc_pg_bindir(), name);

	return access(path, X_OK) == 0 ? path : NULL;
}

static PGconn *
replicate(const struct daemon *d, const char *extra)
{
	PGconn *conn = daemon_try_connect(d, proc_fmt("user=postgres replication=database %s", extra));

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
	return conn;
}

static void
make_slot(PGconn *direct, const char *name, const char *plugin)
{
	if (plugin != NULL)
		query_ok(direct, "select pg_create_logical_replication_slot('%s', '%s')", name, plugin);
	else
		query_ok(direct, "select pg_create_physical_replication_slot('%s', true)", name);
}

static bool
slot_is_active(PGconn *direct, const char *name)
{
	return query_int(direct, "select active::int from pg_replication_slots where slot_name = '%s'", name) == 1;
}

static void
drop_slot(PGconn *direct, const char *name)
{
	ck_assert(wait_until(!slot_is_active(direct, name), 10000));
	query_ok(direct, "select pg_drop_replication_slot('%s')", name);
}

/* From where the slot begins. */
static char *
streaming(PGconn *direct, const char *slot)
{
	return proc_fmt("START_REPLICATION SLOT %s PHYSICAL %s", slot,
	                query_text(direct, "select restart_lsn from pg_replication_slots where slot_name = '%s'",
	                           slot));
}

static void
start_streaming(PGconn *r, PGconn *direct, const char *slot)
{
	PGresult *res = PQexec(r, streaming(direct, slot));

	ck_assert_msg(PQresultStatus(res) == PGRES_COPY_BOTH, "%s", PQerrorMessage(r));
	PQclear(res);
}

static char *
log_of(const char *name)
{
	return proc_fmt("%s/%s-%d.log", proc_tmpdir(), name, (int)getpid());
}

static struct rawconn *
raw_replicate(const struct daemon *d)
{
	struct rawconn *c = raw_tcp(d->port);

	packet_startup(&c->out, 0x30000,
	               (const char *[]){"user", "postgres", "database", "app", "replication", "database", NULL});
	raw_flush(c);
	ck_assert(raw_finish_login(c));
	return c;
}

/* pg_receivewal in the background, streaming from the slot; -n: it does not come again after an error. */
static pid_t
start_receivewal(const struct daemon *d, const char *slot, const char *dir, const char *log)
{
	char *argv[] = {(char *)program("pg_receivewal"),
	                "-n",
	                "-h",
	                "127.0.0.1",
	                "-p",
	                proc_fmt("%d", d->port),
	                "-U",
	                "postgres",
	                "-D",
	                (char *)dir,
	                "-S",
	                (char *)slot,
	                NULL};

	return proc_spawn(log, SIGKILL, argv);
}

START_TEST(receivewal_streams_until_it_is_told_to_stop)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	char *out, *dir = proc_fmt("%s/wal", proc_tmpdir()), *log = log_of("receivewal"), *segment;
	pid_t pid;

	if (program("pg_receivewal") == NULL)
		return;
	ck_assert_msg(proc_run(&out, "mkdir %s && %s -h 127.0.0.1 -p %d -U postgres -S w_wal --create-slot", dir,
	                       program("pg_receivewal"), d->port) == 0,
	              "%s", out);
	pid = start_receivewal(d, "w_wal", dir, log);
	ck_assert_msg(wait_until(slot_is_active(direct, "w_wal"), 10000), "%s", proc_read_file(log));
	ck_assert_int_eq(daemon_count(d, "clients", "replication", "physical"), 1);
	ck_assert_int_eq(daemon_count(d, "servers", "replication", "physical"), 1);
	ck_assert_int_eq(daemon_count(d, "servers", "application_name", "pg_receivewal"), 1);
	segment = query_text(direct, "select pg_walfile_name(pg_current_wal_lsn())");
	query_ok(direct, "create table w_wal as select generate_series(1, 1000); select pg_switch_wal()");
	ck_assert(wait_until(access(proc_fmt("%s/%s", dir, segment), F_OK) == 0, 20000));
	proc_kill(pid, SIGINT);
	ck_assert_int_eq(proc_wait(pid, 10000), 0);
	ck_assert_msg(!strstr(proc_read_file(log), "error"), "%s", proc_read_file(log));
	ck_assert(wait_until(daemon_count(d, "servers", "replication", "physical") == 0, 5000));
	drop_slot(direct, "w_wal");
	query_ok(direct, "drop table w_wal");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(recvlogical_gets_every_change)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	char *out, *common, *changes = proc_fmt("%s/changes", proc_tmpdir());

	if (program("pg_recvlogical") == NULL)
		return;
	common = proc_fmt("%s -h 127.0.0.1 -p %d -U postgres -d app -S w_logical", program("pg_recvlogical"), d->port);
	query_ok(direct, "create table w_changes (i int)");
	ck_assert_msg(proc_run(&out, "%s --create-slot -P test_decoding", common) == 0, "%s", out);
	query_ok(direct, "set synchronous_commit = on; insert into w_changes select generate_series(1, 2000)");
	ck_assert_msg(proc_run(&out, "%s --start -E %s -f %s", common,
	                       query_text(direct, "select pg_current_wal_lsn()"), changes) == 0,
	              "%s", out);
	proc_run(&out, "grep -c 'table public.w_changes: INSERT' %s", changes);
	ck_assert_int_eq(strtol(out, NULL, 10), 2000);
	ck_assert_msg(proc_run(&out, "%s --drop-slot", common) == 0, "%s", out);
	query_ok(direct, "drop table w_changes");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(basebackup_can_be_started)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	char *out, *dir = proc_fmt("%s/backup", proc_tmpdir());

	if (program("pg_basebackup") == NULL)
		return;
	ck_assert_msg(proc_run(&out, "%s -h 127.0.0.1 -p %d -U postgres -D %s -c fast -X stream",
	                       program("pg_basebackup"), d->port, dir) == 0,
	              "%s", out);
	ck_assert_msg(proc_run(&out, "%s %s", program("pg_verifybackup"), dir) == 0, "%s", out);
	ck_assert(wait_until(daemon_count(d, "servers", "replication", "physical") == 0, 5000));
	daemon_stop(d);
}
END_TEST

START_TEST(the_servers_last_words_reach_the_client)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app"), *r = replicate(d, "");
	PGresult *res;

	make_slot(direct, "w_killed", NULL);
	start_streaming(r, direct, "w_killed");
	query_ok(direct,
	         "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'w_killed'");
	for (char *data; PQgetCopyData(r, &data, 0) > 0;)
		PQfreemem(data);
	res = PQgetResult(r);
	ck_assert_str_eq(PQresultErrorField(res, PG_DIAG_SQLSTATE), "57P01");
	PQfinish(r);
	drop_slot(direct, "w_killed");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(a_dead_server_is_an_error)
{
	struct cluster *own = cluster_new();
	struct daemon *d = daemon_start(own, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(own, "app"), *r = replicate(d, "");
	PGresult *res;

	make_slot(direct, "w_dead", NULL);
	start_streaming(r, direct, "w_dead");
	PQfinish(direct);
	cluster_kill_all(own);
	for (char *data; PQgetCopyData(r, &data, 0) > 0;)
		PQfreemem(data);
	res = PQgetResult(r);
	ck_assert_int_eq(PQresultStatus(res), PGRES_FATAL_ERROR);
	query_assert_message(PQerrorMessage(r), "server conn crashed?");
	PQfinish(r);
	daemon_stop(d);
}
END_TEST

/* SIGINT waits for transactions, and a stream has no end to wait for. */
START_TEST(shutdown_ends_streams)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app"), *active = replicate(d, "");
	struct rawconn *idle = raw_replicate(d);
	PGresult *res;

	make_slot(direct, "w_shutdown", NULL);
	start_streaming(active, direct, "w_shutdown");
	proc_kill(d->pid, SIGINT);
	for (char *data; PQgetCopyData(active, &data, 0) > 0;)
		PQfreemem(data);
	res = PQgetResult(active);
	ck_assert_str_eq(PQresultErrorField(res, PG_DIAG_SQLSTATE), "57P01");
	raw_expect_eof(idle);
	ck_assert_str_eq(idle->sqlstate, "57P01");
	ck_assert(daemon_ended(d, 10000));
	ck_assert_int_eq(d->exit_code, 0);
	daemon_assert_clean_log(d);
	PQfinish(active);
	raw_close(idle);
	drop_slot(direct, "w_shutdown");
	PQfinish(direct);
}
END_TEST

/* ... but a command has. */
START_TEST(shutdown_waits_for_a_command)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app"), *r = replicate(d, "");

	query_ok(direct, "select pg_advisory_lock(77)");
	query_send(r, "SELECT pg_advisory_lock(77)");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_locks where locktype = 'advisory' and "
	                                       "objid = 77 and not granted") == 1,
	                     10000));
	proc_kill(d->pid, SIGINT);
	ck_assert(wait_until(daemon_logged(d, "SIGINT"), 5000));
	query_ok(direct, "select pg_advisory_unlock(77)");
	ck_assert_str_eq(query_finish(r), "00000");
	ck_assert(daemon_ended(d, 10000));
	PQfinish(r);
	PQfinish(direct);
}
END_TEST

/* A full pool with idle connections makes room at once, one with a transaction when that has ended. */
START_TEST(a_connection_of_its_own_takes_room_in_the_pool)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\nproxies = 4\n"});
	PGconn *a = daemon_try_connect(d, "user=postgres"), *r = NULL, *waits;

	query_ok(a, "select 1");
	r = replicate(d, "");
	ck_assert_str_eq(query_text(r, "SELECT 'own'"), "own");
	ck_assert_int_eq(daemon_count(d, "servers", "user", "postgres"), 1);
	query_send(a, "select 'pooled'");
	ck_assert(wait_until(daemon_show(d, "pools", "database", "app", "cl_waiting") == 1, 5000));
	PQfinish(r);
	ck_assert_str_eq(query_finish(a), "00000");

	query_ok(a, "begin");
	waits = PQconnectStart(
		proc_fmt("host=127.0.0.1 port=%d user=postgres dbname=app replication=database", d->port));
	ck_assert(wait_until((PQconnectPoll(waits), daemon_show(d, "pools", "database", "app", "cl_waiting")) == 1,
	                     5000));
	ck_assert_int_eq(daemon_count(d, "clients", "replication", "logical"), 1);
	query_ok(a, "commit");
	ck_assert(wait_until(PQconnectPoll(waits) == PGRES_POLLING_OK, 5000));
	ck_assert_str_eq(query_text(waits, "SELECT 'own'"), "own");
	PQfinish(waits);
	ck_assert_int_eq(query_int(a, "select 2"), 2);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

/* Neither the waiting one nor the many others starve, whichever proxy they are in. */
START_TEST(limits_hold_in_a_busy_pool)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 3\nproxies = 4\n"
	                                                                      "max_db_connections = 3\n"});
	struct sampler *sampler = sampler_start(pg, SAMPLE_BACKENDS " and usename = 'postgres'");
	PGconn *busy[12], *own[2];

	for (size_t i = 0; i < 12; i++)
		busy[i] = daemon_try_connect(d, "user=postgres");
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < 12; i++)
			query_send(busy[i], "begin; select pg_sleep(0.01); commit");
		own[0] = replicate(d, "");
		own[1] = replicate(d, "");
		ck_assert_str_eq(query_text(own[0], "SELECT 'own'"), "own");
		ck_assert_str_eq(query_text(own[1], "SELECT 'own'"), "own");
		PQfinish(own[0]);
		for (size_t i = 0; i < 12; i++)
			ck_assert_str_eq(query_finish(busy[i]), "00000");
		PQfinish(own[1]);
	}
	for (size_t i = 0; i < 12; i++)
		PQfinish(busy[i]);
	daemon_stop(d);
	/* a server process that is just going is still counted by the server, so one more may be seen */
	ck_assert_int_le(sampler_stop(sampler), 3 + 2);
}
END_TEST

/* The server's refusal is this client's alone: the pool neither pauses nor tells others. */
START_TEST(a_refused_login_harms_nobody_else)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *a = daemon_connect(d), *r;
	struct rawconn *c = raw_tcp(d->port);

	packet_startup(&c->out, 0x30000,
	               (const char *[]){"user", "app", "database", "app", "replication", "database", NULL});
	raw_flush(c);
	ck_assert(!raw_finish_login(c));
	ck_assert_str_eq(c->sqlstate, "42501");
	raw_close(c);
	ck_assert_int_eq(query_int(a, "select 1"), 1);
	r = daemon_try_connect(d, "user=postgres replication=database options='-c nonsense=1'");
	query_assert_message(PQerrorMessage(r), "unrecognized configuration parameter \"nonsense\"");
	PQfinish(r);
	r = daemon_try_connect(d, "replication=perhaps");
	query_assert_message(PQerrorMessage(r), "invalid value for parameter \"replication\": \"perhaps\"");
	PQfinish(r);
	r = daemon_try_connect(d, "replication=off");
	ck_assert_int_eq(query_int(r, "select 2"), 2);
	PQfinish(r);
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(startup_settings_are_passed_on)
{
	struct daemon *d =
		daemon_start(pg, &(struct daemon_conf){.settings = roomy,
	                                               .databases = "app = @pg datestyle=SQL timezone=Asia/Tokyo\n"});
	PGconn *r = replicate(d, "application_name=w_own options='-c statement_timeout=12345 -c DateStyle=German'");
	PGconn *a = daemon_try_connect(d, "user=postgres");

	ck_assert_str_eq(query_text(r, "SHOW statement_timeout"), "12345ms");
	ck_assert_str_eq(PQparameterStatus(r, "DateStyle"), "German, DMY");
	ck_assert_str_eq(PQparameterStatus(r, "TimeZone"), "Asia/Tokyo");
	ck_assert_str_eq(PQparameterStatus(r, "application_name"), "w_own");
	ck_assert_str_eq(query_text(a, "show statement_timeout"), "0");
	PQfinish(r);
	ck_assert_str_eq(query_text(a, "show statement_timeout"), "0");
	PQfinish(a);
	daemon_stop(d);
}
END_TEST

START_TEST(a_cancel_reaches_its_server)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app"), *r = replicate(d, "application_name=w_cancel");
	PGcancel *cancel = PQgetCancel(r);
	char text[256];

	query_send(r, "SELECT pg_sleep(1000)");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_stat_activity where application_name = "
	                                       "'w_cancel' and wait_event = 'PgSleep'") == 1,
	                     10000));
	ck_assert(PQcancel(cancel, text, sizeof(text)));
	ck_assert_str_eq(query_finish(r), "57014");
	ck_assert_str_eq(query_text(r, "SELECT 'still'"), "still");
	PQfreeCancel(cancel);
	PQfinish(r);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(a_goodbye_behind_a_command_comes_after_the_reply)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	struct rawconn *c = raw_replicate(d);

	packet_query(&c->out, "SELECT 'last words'");
	packet_simple(&c->out, 'X');
	for (size_t i = 0; i < c->out.n; i++)
		raw_send(c, c->out.data + i, 1);
	packet_clear(&c->out);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, "last words;");
	ck_assert_int_eq(raw_read(c).type, 0);
	raw_close(c);
	ck_assert(wait_until(daemon_count(d, "servers", "replication", "logical") == 0, 5000));
	daemon_stop(d);
}
END_TEST

START_TEST(a_half_closed_stream_ends_at_the_server)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *c = raw_replicate(d);

	make_slot(direct, "w_half", NULL);
	raw_query(c, streaming(direct, "w_half"));
	raw_read_type(c, 'W');
	shutdown(c->fd, SHUT_WR);
	raw_expect_eof(c);
	ck_assert_str_eq(c->sqlstate, "");
	ck_assert(wait_until(!slot_is_active(direct, "w_half"), 10000));
	raw_close(c);
	drop_slot(direct, "w_half");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

START_TEST(a_vanished_client_frees_the_server)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *c = raw_replicate(d);

	make_slot(direct, "w_gone", NULL);
	raw_query(c, streaming(direct, "w_gone"));
	raw_read_type(c, 'W');
	raw_send(c, "d\0\0\0\x22r", 6); /* the beginning of a status update */
	raw_close(c);
	drop_slot(direct, "w_gone");
	ck_assert(wait_until(daemon_count(d, "servers", "replication", "logical") == 0, 5000));
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* CopyDone of the client ends the stream, and the connection goes on. */
START_TEST(a_stream_can_be_ended_and_another_begun)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *c = raw_replicate(d);

	make_slot(direct, "w_again", NULL);
	for (int round = 0; round < 3; round++) {
		raw_query(c, streaming(direct, "w_again"));
		raw_read_type(c, 'W');
		packet_simple(&c->out, 'c');
		raw_flush(c);
		raw_read_type(c, 'c');
		ck_assert_int_eq(raw_until_ready(c), 'I');
	}
	raw_query(c, "IDENTIFY_SYSTEM");
	ck_assert_int_eq(raw_until_ready(c), 'I');
	raw_close(c);
	drop_slot(direct, "w_again");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* Bytes of all messages up to one that contains `text`. */
static size_t
read_up_to(struct rawconn *c, const char *text)
{
	size_t n = 0;

	for (;;) {
		struct rawmsg m = raw_read(c);

		ck_assert_int_ne(m.type, 0);
		n += m.n;
		if (memmem(m.body, m.n, text, strlen(text)) != NULL)
			return n;
	}
}

START_TEST(a_client_that_does_not_read_costs_no_memory)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = roomy});
	PGconn *direct = cluster_connect(pg, "app");
	struct rawconn *c = raw_replicate(d);
	long before;

	query_ok(direct, "create table w_slow (t text); create publication w_slow for table w_slow");
	make_slot(direct, "w_slow", "pgoutput");
	query_ok(direct, "alter table w_slow alter t set storage external");
	query_ok(direct, "insert into w_slow select repeat('x', 1000000) from generate_series(1, 50)");
	query_ok(direct, "insert into w_slow values ('the end of it')");
	before = proc_rss_kib(d->pid);
	raw_query(c, "START_REPLICATION SLOT w_slow LOGICAL 0/0 (proto_version '1', publication_names 'w_slow')");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_stat_activity where backend_type = 'walsender' "
	                                       "and wait_event = 'WalSenderWriteData'") == 1,
	                     20000));
	ck_assert_int_le(proc_rss_kib(d->pid) - before, 4096 * (daemon_is_sanitized() ? 4 : 1));
	ck_assert_uint_ge(read_up_to(c, "the end of it"), 50000000);
	raw_close(c);
	drop_slot(direct, "w_slow");
	query_ok(direct, "drop publication w_slow; drop table w_slow");
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("replication", 60, receivewal_streams_until_it_is_told_to_stop, recvlogical_gets_every_change,
           basebackup_can_be_started, the_servers_last_words_reach_the_client, a_dead_server_is_an_error,
           shutdown_ends_streams, shutdown_waits_for_a_command, a_connection_of_its_own_takes_room_in_the_pool,
           limits_hold_in_a_busy_pool, a_refused_login_harms_nobody_else, startup_settings_are_passed_on,
           a_cancel_reaches_its_server, a_goodbye_behind_a_command_comes_after_the_reply,
           a_half_closed_stream_ends_at_the_server, a_vanished_client_frees_the_server,
           a_stream_can_be_ended_and_another_begun, a_client_that_does_not_read_costs_no_memory)
