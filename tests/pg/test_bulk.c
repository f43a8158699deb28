/* SPDX-License-Identifier: ISC */
/* Much data in bounded memory, and readers that do not read. */
#include "suite.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define MIB (1024L * 1024)

/* A sanitized daemon is several times slower and larger. */
static long
total_bytes(void)
{
	return daemon_is_sanitized() ? 64 * MIB : 1024 * MIB;
}

static long
rss_slack_kib(void)
{
	return (daemon_is_sanitized() ? 96 : 8) * 1024;
}

/* Reads n_bytes of messages of this type raw, watching the daemon's memory. */
static void
drain(struct daemon *d, struct rawconn *c, long base_kib, long n_bytes)
{
	long got = 0, next_look = 0;

	while (got < n_bytes) {
		struct rawmsg m = raw_read(c);

		ck_assert_msg(m.type != 0 && m.type != 'E', "after %ld bytes: %s %s", got, c->sqlstate, c->message);
		got += (long)m.n + 5;
		if (got >= next_look) {
			long kib = proc_rss_kib(d->pid);

			ck_assert_msg(kib - base_kib <= rss_slack_kib(), "after %ld bytes the daemon has %ld KiB more",
			              got, kib - base_kib);
			next_look = got + 32 * MIB;
		}
	}
}

START_TEST(copy_out_in_bounded_memory)
{
	struct daemon *d = daemon_start(pg, NULL);
	struct rawconn *c = raw_login(d->port, "app", "app");
	long rows = total_bytes() / MIB, base_kib;

	raw_query(c, "select 1");
	raw_until_ready(c);
	base_kib = proc_rss_kib(d->pid);
	raw_query(c, proc_fmt("copy (select repeat('x', 1048575) from generate_series(1, %ld)) to stdout", rows));
	raw_read_type(c, 'H');
	drain(d, c, base_kib, rows * MIB);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->tags, proc_fmt("COPY %ld;", rows));
	raw_close(c);
	daemon_stop(d);
}
END_TEST

START_TEST(copy_in_in_bounded_memory)
{
	struct daemon *d = daemon_start(pg, NULL);
	struct rawconn *c = raw_login(d->port, "app", "app");
	PGconn *direct = cluster_connect(pg, "app");
	long rows = total_bytes() / MIB, base_kib;
	char *line = malloc((size_t)MIB);

	memset(line, 'y', (size_t)MIB);
	line[MIB - 1] = '\n';
	query_ok(direct, "create table bulk (t text); grant all on bulk to app");
	raw_query(c, "select 1");
	raw_until_ready(c);
	base_kib = proc_rss_kib(d->pid);
	raw_query(c, "copy bulk from stdin where length(t) < 10");
	raw_read_type(c, 'G');
	for (long i = 0; i < rows; i++) {
		packet_begin(&c->out, 'd');
		packet_bytes(&c->out, line, (size_t)MIB);
		packet_end(&c->out);
		raw_flush(c);
		if (i % 32 == 0)
			ck_assert_int_le(proc_rss_kib(d->pid) - base_kib, rss_slack_kib());
	}
	packet_simple(&c->out, 'c');
	raw_flush(c);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->tags, "COPY 0;");
	raw_close(c);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* One DataRow, and one Query, far larger than any buffer: framed, never held. */
START_TEST(huge_messages_stream)
{
	struct daemon *d = daemon_start(pg, NULL);
	struct rawconn *c = raw_login(d->port, "app", "app");
	long n = daemon_is_sanitized() ? 16 * MIB : 200 * MIB, base_kib;
	struct rawmsg m;
	char *text;

	raw_query(c, "select 1");
	raw_until_ready(c);
	base_kib = proc_rss_kib(d->pid);
	raw_query(c, proc_fmt("select repeat('z', %ld)", n));
	m = raw_read_type(c, 'D');
	ck_assert_int_eq((long)m.n, n + 6);
	ck_assert_int_eq(m.body[m.n - 1], 'z');
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_int_le(proc_rss_kib(d->pid) - base_kib, rss_slack_kib());

	text = malloc((size_t)n + 100);
	strcpy(text, "select length('"); /* lint: sized for it */
	memset(text + 15, 'q', (size_t)n);
	strcpy(text + 15 + n, "')"); /* lint: sized for it */
	raw_query(c, text);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->rows, proc_fmt("%ld;", n));
	ck_assert_int_le(proc_rss_kib(d->pid) - base_kib, rss_slack_kib());
	raw_close(c);
	daemon_stop(d);
}
END_TEST

/* A client that never reads its result blocks one backend and nobody else, in the same proxy. */
START_TEST(slow_reader_blocks_only_its_own_backend)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 1\ndefault_pool_size = 2\n"});
	struct rawconn *slow = raw_login(d->port, "app", "app");
	PGconn *quick = daemon_connect(d), *direct = cluster_connect(pg, "app");
	long base_kib;

	query_ok(quick, "select 1");
	base_kib = proc_rss_kib(d->pid);
	raw_query(slow, "select repeat('x', 100000) from generate_series(1, 2000)");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_stat_activity where usename = 'app' and "
	                                       "wait_event = 'ClientWrite'") == 1,
	                     20000));
	for (int i = 0; i < 200; i++)
		query_ok(quick, "select 1");
	ck_assert_int_le(proc_rss_kib(d->pid) - base_kib, rss_slack_kib());
	/* When it reads at last, all is there. */
	drain(d, slow, base_kib, 2000 * 100000L);
	ck_assert_int_eq(raw_until_ready(slow), 'I');
	ck_assert_str_eq(slow->tags, "SELECT 2000;");
	raw_close(slow);
	PQfinish(quick);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A cancel gets through while the result is stuck. */
START_TEST(slow_reader_can_be_cancelled)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "proxies = 1\ndefault_pool_size = 1\n"});
	struct rawconn *slow = raw_login(d->port, "app", "app");
	PGconn *direct = cluster_connect(pg, "app");

	raw_query(slow, "copy (select repeat('x', 100000) from generate_series(1, 100000)) to stdout");
	ck_assert(wait_until(query_int(direct, "select count(*) from pg_stat_activity where usename = 'app' and "
	                                       "wait_event = 'ClientWrite'") == 1,
	                     20000));
	raw_cancel(d->port, slow->cancel_pid, slow->cancel_key);
	ck_assert_int_eq(raw_until_ready(slow), 'I');
	ck_assert_str_eq(slow->sqlstate, "57014");
	raw_query(slow, "select 'alive'");
	ck_assert_int_eq(raw_until_ready(slow), 'I');
	ck_assert_str_eq(slow->rows, "alive;");
	raw_close(slow);
	PQfinish(direct);
	daemon_stop(d);
}
END_TEST

/* A client that pipelines without end and does not read: neither side's buffers deadlock, memory is bounded. */
START_TEST(pipelining_without_reading_is_throttled)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	struct rawconn *c = raw_login(d->port, "app", "app");
	long base_kib, n_sent = 0;
	struct packet p = {0};

	raw_query(c, "select 1");
	raw_until_ready(c);
	base_kib = proc_rss_kib(d->pid);
	packet_query(&p, "select repeat('r', 20000)");
	/* Until the daemon stops reading: then send() has no room for a while. */
	for (size_t at = 0;;) {
		ssize_t n = send(c->fd, p.data + at, p.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
		struct pollfd pfd = {.fd = c->fd, .events = POLLOUT};

		if (n < 0 && errno == EAGAIN && poll(&pfd, 1, 500) == 0) {
			packet_bytes(&c->out, p.data + at, at > 0 ? p.n - at : 0);
			n_sent += at > 0;
			break;
		}
		if (n > 0 && (at += (size_t)n) == p.n) {
			at = 0;
			n_sent++;
		}
		ck_assert_int_lt(n_sent, 5000000);
	}
	ck_assert_int_le(proc_rss_kib(d->pid) - base_kib, rss_slack_kib());
	/* Now it reads, and gets every answer. */
	for (long i = 0; i < n_sent; i++) {
		if (c->out.n > 0 && i > n_sent / 2)
			raw_flush(c);
		ck_assert_int_eq(raw_until_ready(c), 'I');
	}
	packet_free(&p);
	raw_close(c);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("bulk", 90, copy_out_in_bounded_memory, copy_in_in_bounded_memory, huge_messages_stream,
           slow_reader_blocks_only_its_own_backend, slow_reader_can_be_cancelled,
           pipelining_without_reading_is_throttled)
