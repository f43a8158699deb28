/* SPDX-License-Identifier: ISC */
/* Junk from clients: a clear error for whoever sent it, nothing for anybody else. */
#include "suite.h"

#include <sys/socket.h>

struct junk {
	const char *what;
	const char *bytes;
	size_t n;
	const char *sqlstate; /* NULL: closed is enough */
};

#define JUNK(what, bytes, sqlstate)                                                                                    \
	{                                                                                                              \
		what, bytes, sizeof(bytes) - 1, sqlstate                                                               \
	}

static const struct junk startup_junk[] = {
	JUNK("length 0", "\0\0\0\0\0\3\0\0", "08P01"),
	JUNK("length 4", "\0\0\0\4\0\3\0\0", "08P01"),
	JUNK("length 7", "\0\0\0\7\0\3\0", "08P01"),
	JUNK("one above the limit of PostgreSQL", "\0\0\x27\x15\0\3\0\0user\0app\0", "08P01"),
	JUNK("two gigabytes", "\x7f\xff\xff\xff\0\3\0\0user\0app\0", "08P01"),
	JUNK("negative length", "\xff\xff\xff\xff\0\3\0\0user\0app\0", "08P01"),
	JUNK("HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", NULL),
	JUNK("TLS client hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", NULL),
	JUNK("protocol 2", "\0\0\0\x12\0\2\0\0user\0app\0\0", "0A000"),
	JUNK("protocol 4", "\0\0\0\x12\0\4\0\0user\0app\0\0", "0A000"),
	JUNK("no terminator", "\0\0\0\x11\0\3\0\0user\0app\0", "08P01"),
	JUNK("name without value", "\0\0\0\x0e\0\3\0\0user\0\0", NULL),
	JUNK("no user", "\0\0\0\x16\0\3\0\0database\0app\0\0", "28000"),
	JUNK("cancel of a wrong length", "\0\0\0\x0c\x04\xd2\x16\x2e\0\0\0\1", NULL),
	JUNK("bytes behind SSLRequest", "\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x12\0\3\0\0user\0app\0\0", "08P01"),
	JUNK("bytes behind GSSENCRequest", "\0\0\0\x08\x04\xd2\x16\x30\0\0\0\x12\0\3\0\0user\0app\0\0", "08P01"),
};

static const struct junk session_junk[] = {
	JUNK("length 0", "Q\0\0\0\0", "08P01"),
	JUNK("length 3", "Q\0\0\0\3", "08P01"),
	JUNK("negative length", "Q\xff\xff\xff\xff", "08P01"),
	JUNK("more than a gigabyte", "Q\x40\0\0\1", "08P01"),
	JUNK("unknown type", "y\0\0\0\4", "08P01"),
	JUNK("type zero", "\0\0\0\0\4", "08P01"),
	JUNK("a server's message", "Z\0\0\0\5I", "08P01"),
	JUNK("password after login", "p\0\0\0\x0bsecret\0", "08P01"),
	JUNK("startup packet again", "\0\0\0\x12\0\3\0\0user\0app\0\0", "08P01"),
};

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

/* Skips the answers N to encryption requests, then reads what is left to the end. */
static void
read_to_the_end(struct rawconn *c)
{
	uint8_t first;

	while (recv(c->fd, &first, 1, MSG_PEEK) == 1 && first == 'N')
		raw_read_byte(c);
	raw_expect_eof(c);
}

static void
check_junk(const struct junk *j, struct rawconn *c)
{
	/* It may be closed before all was sent: that is fine. */
	raw_try_send(c, j->bytes, j->n);
	shutdown(c->fd, SHUT_WR);
	read_to_the_end(c);
	if (j->sqlstate != NULL && daemon_is_pgweir())
		ck_assert_msg(strcmp(c->sqlstate, j->sqlstate) == 0, "%s: SQLSTATE \"%s\" (%s), expected %s", j->what,
		              c->sqlstate, c->message, j->sqlstate);
	raw_close(c);
}

START_TEST(junk_at_startup)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *other = daemon_connect(d);
	long pid = query_int(other, "select pg_backend_pid()");
	int n_fds = proc_n_fds(d->pid);
	long rss_kib = proc_rss_kib(d->pid);

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < N_OF(startup_junk); i++) {
			check_junk(&startup_junk[i], raw_tcp(d->port));
			ck_assert_int_eq(query_int(other, "select pg_backend_pid()"), pid);
		}
	ck_assert(wait_until(proc_n_fds(d->pid) == n_fds, 5000));
	ck_assert_int_le(proc_rss_kib(d->pid) - rss_kib, 4096);
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

START_TEST(junk_in_a_session)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 1\n"});
	PGconn *other = daemon_connect(d);
	long pid = query_int(other, "select pg_backend_pid()");
	int n_fds = proc_n_fds(d->pid);

	for (size_t i = 0; i < N_OF(session_junk); i++)
		for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
			struct rawconn *c = raw_login(d->port, "app", "app");

			if (in_transaction) {
				raw_query(c, "begin");
				ck_assert_int_eq(raw_until_ready(c), 'T');
			}
			check_junk(&session_junk[i], c);
			/* The backend survives: nothing of it was forwarded. */
			if (daemon_is_pgweir())
				ck_assert_int_eq(query_int(other, "select pg_backend_pid()"), pid);
			ck_assert_str_eq(query_text(other, "select now() = statement_timestamp()"), "t");
		}
	ck_assert(wait_until(proc_n_fds(d->pid) == n_fds, 5000));
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

START_TEST(junk_instead_of_a_password)
{
	static const struct junk junk[] = {
		JUNK("a query", "Q\0\0\0\x0dselect 1\0", NULL),
		JUNK("a megabyte announced", "p\0\x10\0\0", "08P01"),
		JUNK("negative length", "p\xff\xff\xff\xff", "08P01"),
		JUNK("length 3", "p\0\0\0\3", "08P01"),
		JUNK("no terminator", "p\0\0\0\x0asecret", NULL),
		JUNK("empty", "p\0\0\0\5\0", NULL),
		JUNK("goodbye", "X\0\0\0\4", NULL),
	};
	static const char *const methods[] = {"plain", "md5", "scram-sha-256"};

	for (size_t m = 0; m < N_OF(methods); m++) {
		struct daemon *d =
			daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("auth_type = %s\n", methods[m])});
		PGconn *other = daemon_connect(d);
		int n_fds = proc_n_fds(d->pid);

		for (size_t i = 0; i < N_OF(junk); i++) {
			struct rawconn *c = raw_tcp(d->port);

			packet_login(&c->out, "app", "app");
			raw_flush(c);
			ck_assert_int_eq(raw_read(c).type, 'R');
			check_junk(&junk[i], c);
		}
		query_ok(other, "select 1");
		ck_assert(wait_until(proc_n_fds(d->pid) <= n_fds + 1, 5000));
		PQfinish(other);
		daemon_stop(d);
	}
}
END_TEST

/* SASL messages that lie about their parts. */
START_TEST(junk_in_scram)
{
	static const struct junk junk[] = {
		JUNK("unknown mechanism", "p\0\0\0\x12NOT-SCRAM\0\0\0\0\0", NULL),
		JUNK("mechanism without end", "p\0\0\0\x0cSCRAM-SH", NULL),
		JUNK("length beyond the message", "p\0\0\0\x1aSCRAM-SHA-256\0\x7f\xff\xff\xffn,,n", NULL),
		JUNK("no client-first-message", "p\0\0\0\x16SCRAM-SHA-256\0\xff\xff\xff\xff", NULL),
		JUNK("empty nonce", "p\0\0\0\x20SCRAM-SHA-256\0\0\0\0\x0an,,n=app,r", NULL),
	};
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "auth_type = scram-sha-256\n"});
	PGconn *other = daemon_connect(d);

	for (size_t i = 0; i < N_OF(junk); i++) {
		struct rawconn *c = raw_tcp(d->port);

		packet_login(&c->out, "app", "app");
		raw_flush(c);
		ck_assert_uint_eq(packet_read_u32(raw_read_type(c, 'R').body), 10);
		check_junk(&junk[i], c);
	}
	query_ok(other, "select 1");
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* Random bytes, before and after login. Seeded: a failure can be repeated. */
START_TEST(random_bytes)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = "default_pool_size = 2\n"
	                                                                      "client_login_timeout = 5\n"});
	PGconn *other = daemon_connect(d);
	int n_fds = proc_n_fds(d->pid);
	unsigned seed = 20;

	for (int i = 0; i < 200; i++) {
		struct rawconn *c = i % 2 == 0 ? raw_tcp(d->port) : raw_login(d->port, "app", "app");
		uint8_t bytes[300];
		size_t n = 1 + (size_t)rand_r(&seed) % sizeof(bytes);

		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)rand_r(&seed);
		raw_try_send(c, bytes, n);
		shutdown(c->fd, SHUT_WR);
		if (i % 5 != 0)
			raw_close(c); /* without reading */
		else
			read_to_the_end(c), raw_close(c);
		if (i % 20 == 0)
			query_ok(other, "select 1");
	}
	query_ok(other, "select 1");
	ck_assert(wait_until(proc_n_fds(d->pid) <= n_fds + 2, 10000));
	PQfinish(other);
	daemon_stop(d);
}
END_TEST

/* Load balancers look whether the port is open, all day long. */
START_TEST(connect_and_close)
{
	struct daemon *d = daemon_start(pg, NULL);
	int n_fds = proc_n_fds(d->pid);
	size_t log_size = strlen(daemon_log(d));

	for (int i = 0; i < 200; i++)
		raw_close(raw_tcp(d->port));
	ck_assert(wait_until(proc_n_fds(d->pid) <= n_fds, 5000));
	if (daemon_is_pgweir())
		ck_assert_msg(strlen(daemon_log(d)) < log_size + 2000, "200 probes fill the log:\n%s",
		              daemon_log_tail(d));
	daemon_stop(d);
}
END_TEST

/* Protocol 3.2 has long keys; minor versions beyond are negotiated down, before the login. */
START_TEST(protocol_versions_are_negotiated)
{
	static const struct {
		int32_t version;
		bool negotiates;
		bool long_key;
	} versions[] = {{3 << 16, false, false}, {3 << 16 | 2, false, true}, {3 << 16 | 9999, true, true}};
	struct daemon *d;

	if (!daemon_is_pgweir())
		return;
	d = daemon_start(pg, NULL);
	for (size_t i = 0; i < N_OF(versions); i++) {
		struct rawconn *c = raw_tcp(d->port);
		struct rawmsg m;

		packet_startup(&c->out, versions[i].version, (const char *[]){"user", "app", "database", "app", NULL});
		raw_flush(c);
		m = raw_read(c);
		ck_assert_int_eq(m.type, versions[i].negotiates ? 'v' : 'R');
		if (versions[i].negotiates) {
			ck_assert_uint_eq(packet_read_u32(m.body), 3 << 16 | 2);
			ck_assert_uint_eq(packet_read_u32(m.body + 4), 0);
		}
		m = raw_read_type(c, 'K');
		ck_assert_msg(versions[i].long_key ? m.n > 8 && m.n <= 260 : m.n == 8, "key of %u bytes", m.n - 4);
		ck_assert_int_eq(raw_until_ready(c), 'I');
		raw_close(c);
	}
	daemon_stop(d);
}
END_TEST

/* The long key of protocol 3.2 cancels, a truncated one does not. */
START_TEST(long_keys_cancel)
{
	struct daemon *d;
	struct rawconn *c, *cancel;
	struct packet request = {0};
	struct rawmsg m;

	if (!daemon_is_pgweir())
		return;
	d = daemon_start(pg, NULL);
	c = raw_tcp(d->port);
	packet_startup(&c->out, 3 << 16 | 2, (const char *[]){"user", "app", "database", "app", NULL});
	raw_flush(c);
	m = raw_read_type(c, 'K');
	packet_begin(&request, 0);
	packet_i32(&request, 80877102);
	packet_bytes(&request, m.body, m.n);
	packet_end(&request);
	ck_assert_int_eq(raw_until_ready(c), 'I');
	raw_query(c, "select pg_sleep(30)");
	/* The statement may not have reached the server yet: again until it is hit. */
	ck_assert(wait_until(({
				     cancel = raw_tcp(d->port);
				     raw_send(cancel, request.data, request.n);
				     raw_expect_eof(cancel);
				     raw_close(cancel);
				     raw_wait_message(c, 50);
			     }),
	                     5000));
	ck_assert_int_eq(raw_until_ready(c), 'I');
	ck_assert_str_eq(c->sqlstate, "57014");
	raw_close(c);
	packet_free(&request);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("bad input", 60, junk_at_startup, junk_in_a_session, junk_instead_of_a_password, junk_in_scram, random_bytes,
           connect_and_close, protocol_versions_are_negotiated, long_keys_cancel)
