/* SPDX-License-Identifier: ISC */
/* Who may log in to the daemon, and how the daemon logs in to the server. */
#include "suite.h"

/* The secret of a role as the server stores it: md5... or SCRAM-SHA-256$... */
static char *
server_secret(const char *role)
{
	PGconn *direct = cluster_connect(pg, "postgres");
	char *secret = query_text(direct, "select rolpassword from pg_authid where rolname = '%s'", role);

	PQfinish(direct);
	return secret;
}

static struct daemon *
start(const char *auth_type, char *userlist)
{
	return daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("auth_type = %s\ndefault_pool_size = 2\n",
	                                                                   auth_type),
	                                              .databases = "app = @pg\nforced = @pg dbname=app user=app\n",
	                                              .userlist = userlist});
}

static void
assert_logs_in(const struct daemon *d, const char *conninfo, const char *expected_user)
{
	PGconn *conn = daemon_try_connect(d, conninfo);

	ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s: %s", conninfo, PQerrorMessage(conn));
	ck_assert_str_eq(query_text(conn, "select current_user"), expected_user);
	PQfinish(conn);
}

/* The error text, without the client's address in front. */
static char *
login_error(const struct daemon *d, const char *conninfo)
{
	PGconn *conn = daemon_try_connect(d, conninfo);
	char *text;

	ck_assert_msg(PQstatus(conn) == CONNECTION_BAD, "%s: should have failed", conninfo);
	text = strstr(PQerrorMessage(conn), "FATAL");
	ck_assert_msg(text != NULL, "%s: no error from the daemon: %s", conninfo, PQerrorMessage(conn));
	text = strdup(text);
	PQfinish(conn);
	return text;
}

static void
assert_unknown_user_looks_like_wrong_password(const struct daemon *d)
{
	char *wrong = login_error(d, "password=wrong"), *unknown = login_error(d, "user=bpp password=wrong");

	/* pgbouncer's text names no user, PostgreSQL's does: same length, so same apart from the name. */
	for (char *p; (p = strstr(unknown, "bpp")) != NULL;)
		p[0] = 'a';
	ck_assert_str_eq(wrong, unknown);
	query_assert_message(wrong, "authentication failed");
}

START_TEST(trust_asks_for_no_password)
{
	struct daemon *d = start("trust", NULL);

	assert_logs_in(d, "password=wrong", "app");
	query_assert_message(login_error(d, "user=stranger"), "authentication failed");
	daemon_stop(d);
}
END_TEST

/* auth_type = any takes every name where the database line forces the server's user. */
START_TEST(any_takes_every_name)
{
	struct daemon *d = start("any", NULL);

	assert_logs_in(d, "dbname=forced user=stranger", "app");
	assert_logs_in(d, "dbname=forced user=other_stranger password=whatever", "app");
	daemon_stop(d);
}
END_TEST

START_TEST(password_from_every_kind_of_secret)
{
	struct daemon *d = start("plain", proc_fmt("\"app\" \"secret\"\n\"user_md5\" \"%s\"\n\"user_scram\" \"%s\"\n",
	                                           server_secret("user_md5"), server_secret("user_scram")));
	PGconn *conn;

	assert_logs_in(d, "dbname=forced", "app");
	assert_logs_in(d, "dbname=forced user=user_md5", "app");
	query_assert_message(login_error(d, "dbname=forced user=user_md5 password=wrong"), "authentication failed");
	if (daemon_is_pgweir()) {
		assert_logs_in(d, "dbname=forced user=user_scram", "app");
		query_assert_message(login_error(d, "dbname=forced user=user_scram password=wrong"),
		                     "authentication failed");
	}
	assert_unknown_user_looks_like_wrong_password(d);
	conn = daemon_try_connect(d, "password=");
	ck_assert_int_eq(PQstatus(conn), CONNECTION_BAD);
	PQfinish(conn);
	daemon_stop(d);
}
END_TEST

START_TEST(md5_from_plain_and_md5_secrets)
{
	struct daemon *d =
		start("md5", proc_fmt("\"app\" \"secret\"\n\"user_md5\" \"%s\"\n", server_secret("user_md5")));

	assert_logs_in(d, "dbname=forced", "app");
	assert_logs_in(d, "dbname=forced user=user_md5", "app");
	query_assert_message(login_error(d, "dbname=forced user=user_md5 password=wrong"), "authentication failed");
	assert_unknown_user_looks_like_wrong_password(d);
	daemon_stop(d);
}
END_TEST

/* A SCRAM secret upgrades md5 to SCRAM, as in pgbouncer and PostgreSQL. */
START_TEST(md5_becomes_scram_for_a_scram_secret)
{
	struct daemon *d = start("md5", proc_fmt("\"user_scram\" \"%s\"\n", server_secret("user_scram")));

	assert_logs_in(d, "dbname=forced user=user_scram", "app");
	query_assert_message(login_error(d, "dbname=forced user=user_scram password=wrong"), "authentication failed");
	daemon_stop(d);
}
END_TEST

START_TEST(scram_from_plain_and_scram_secrets)
{
	struct daemon *d = start("scram-sha-256",
	                         proc_fmt("\"app\" \"secret\"\n\"user_scram\" \"%s\"\n", server_secret("user_scram")));

	assert_logs_in(d, "dbname=forced", "app");
	assert_logs_in(d, "dbname=forced user=user_scram", "app");
	query_assert_message(login_error(d, "dbname=forced user=user_scram password=wrong"), "authentication failed");
	assert_unknown_user_looks_like_wrong_password(d);
	daemon_stop(d);
}
END_TEST

/* md5 secrets cannot prove themselves by SCRAM: refused like a wrong password. */
START_TEST(scram_refuses_md5_secrets)
{
	struct daemon *d = start("scram-sha-256", proc_fmt("\"user_md5\" \"%s\"\n", server_secret("user_md5")));

	query_assert_message(login_error(d, "dbname=forced user=user_md5"), "authentication failed");
	daemon_stop(d);
}
END_TEST

START_TEST(sqlstate_of_a_wrong_password)
{
	struct daemon *d = start("plain", NULL);

	for (int known = 0; known < 2; known++) {
		struct rawconn *c = raw_tcp(d->port);

		packet_login(&c->out, known ? "app" : "stranger", "app");
		raw_flush(c);
		ck_assert_uint_eq(packet_read_u32(raw_read_type(c, 'R').body), 3);
		packet_begin(&c->out, 'p');
		packet_str(&c->out, "wrong");
		packet_end(&c->out);
		raw_flush(c);
		raw_read_type(c, 'E');
		if (daemon_is_pgweir())
			ck_assert_str_eq(c->sqlstate, "28P01");
		raw_expect_eof(c);
		raw_close(c);
	}
	daemon_stop(d);
}
END_TEST

START_TEST(long_and_strange_passwords)
{
	char long_password[1001];
	struct daemon *d;

	memset(long_password, 'p', 1000);
	long_password[1000] = '\0';
	d = start("scram-sha-256",
	          proc_fmt("\"app\" \"%s\"\n\"app2\" \"a%%s \"\"quoted\"\" gr\xc3\xbc\xc3\x9f\"\n", long_password));
	assert_logs_in(d, proc_fmt("dbname=forced password=%s", long_password), "app");
	assert_logs_in(d, "dbname=forced user=app2 password='a%s \"quoted\" gr\xc3\xbc\xc3\x9f'", "app");
	daemon_stop(d);
}
END_TEST

START_TEST(server_login_by_every_method)
{
	struct daemon *d = start("trust", NULL);

	assert_logs_in(d, "user=user_plain", "user_plain");
	assert_logs_in(d, "user=user_md5", "user_md5");
	assert_logs_in(d, "user=user_scram", "user_scram");
	daemon_stop(d);
}
END_TEST

/* An md5 secret is enough for the server's md5; a client's SCRAM proof is not needed for it. */
START_TEST(server_login_by_md5_secret)
{
	struct daemon *d = start("md5", proc_fmt("\"user_md5\" \"%s\"\n", server_secret("user_md5")));

	assert_logs_in(d, "user=user_md5", "user_md5");
	daemon_stop(d);
}
END_TEST

/* The same SCRAM secret on both sides: the keys come from the client's proof, no plain password anywhere. */
START_TEST(server_login_by_scram_pass_through)
{
	struct daemon *d = start("scram-sha-256", proc_fmt("\"user_scram\" \"%s\"\n", server_secret("user_scram")));

	assert_logs_in(d, "user=user_scram", "user_scram");
	daemon_stop(d);
}
END_TEST

/* How a login (or, when that works, the first query) fails. */
static struct rawconn *
failing_login(const struct daemon *d, const char *user, const char *database)
{
	struct rawconn *c = raw_tcp(d->port);

	packet_login(&c->out, user, database);
	raw_flush(c);
	if (raw_finish_login(c)) {
		raw_query(c, "select 1");
		raw_until_ready(c);
	}
	ck_assert_str_ne(c->sqlstate, "");
	return c;
}

START_TEST(wrong_server_password_is_told_as_the_server_tells_it)
{
	struct daemon *d =
		start("trust", strdup("\"user_scram\" \"wrong\"\n\"user_md5\" \"wrong\"\n\"user_plain\" \"wrong\"\n"));
	static const char *const users[] = {"user_scram", "user_md5", "user_plain"};

	for (int i = 0; i < 3; i++) {
		struct rawconn *c = failing_login(d, users[i], "app");

		ck_assert_str_eq(c->sqlstate, "28P01");
		query_assert_message(c->message, proc_fmt("password authentication failed for user \"%s\"", users[i]));
		raw_close(c);
	}
	daemon_stop(d);
}
END_TEST

START_TEST(missing_database_is_told_as_the_server_tells_it)
{
	struct daemon *d = daemon_start(pg, NULL);
	struct rawconn *c = failing_login(d, "app", "nowhere");

	ck_assert_str_eq(c->sqlstate, "3D000");
	query_assert_message(c->message, "database \"nowhere\" does not exist");
	raw_close(c);
	/* One pool's failure is not another's. */
	assert_logs_in(d, "dbname=app", "app");
	daemon_stop(d);
}
END_TEST

START_TEST(missing_role_is_told_as_the_server_tells_it)
{
	struct daemon *d = start("trust", strdup("\"ghost\" \"secret\"\n\"app\" \"secret\"\n"));
	struct rawconn *c = failing_login(d, "ghost", "app");

	ck_assert_str_eq(c->sqlstate, "28000");
	query_assert_message(c->message, "role \"ghost\" does not exist");
	raw_close(c);
	assert_logs_in(d, "dbname=app", "app");
	daemon_stop(d);
}
END_TEST

/* Statements before the login is done are refused, and nothing reaches the server. */
START_TEST(query_before_the_password_is_refused)
{
	struct daemon *d = start("plain", NULL);
	struct rawconn *c = raw_tcp(d->port);

	packet_login(&c->out, "app", "app");
	packet_query(&c->out, "create table sneaked_in (i int)");
	raw_flush(c);
	raw_expect_eof(c);
	ck_assert_str_ne(c->sqlstate, "");
	raw_close(c);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("auth", 30, trust_asks_for_no_password, any_takes_every_name, password_from_every_kind_of_secret,
           md5_from_plain_and_md5_secrets, md5_becomes_scram_for_a_scram_secret, scram_from_plain_and_scram_secrets,
           scram_refuses_md5_secrets, sqlstate_of_a_wrong_password, long_and_strange_passwords,
           server_login_by_every_method, server_login_by_md5_secret, server_login_by_scram_pass_through,
           wrong_server_password_is_told_as_the_server_tells_it, missing_database_is_told_as_the_server_tells_it,
           missing_role_is_told_as_the_server_tells_it, query_before_the_password_is_refused)
