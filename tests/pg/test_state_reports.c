/* SPDX-License-Identifier: ISC */
/* ParameterStatus: a session is told of each change of its own values as the server would tell it, and of no other's. */
#include "suite.h"

#define ONE_SERVER "default_pool_size = 1\nsession_state = preserve\nproxies = 1\n"

static struct rawconn *
login(uint16_t port, const char *options)
{
	const char *const pairs[] = {"user", "app", "database", "app", "options", options, NULL};
	struct rawconn *c = raw_tcp(port);

	packet_startup(&c->out, 0x30000, pairs);
	raw_flush(c);
	ck_assert_msg(raw_finish_login(c), "%s", c->message);
	return c;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Runs sql: "name=value;" of each ParameterStatus up to the ReadyForQuery, in order of names. tx: that message's status.
 */
static char *
reports_of(struct rawconn *c, const char *sql, char *tx)
{
	char *texts[16], *all = proc_fmt("%s", "");
	size_t n = 0;
	struct rawmsg m;

	raw_query(c, sql);
	do {
		m = raw_read(c);
		ck_assert_int_ne(m.type, 0);
		if (m.type == 'S' && n < sizeof(texts) / sizeof(texts[0]))
			texts[n++] = proc_fmt("%s=%s;", (char *)m.body, (char *)m.body + strlen((char *)m.body) + 1);
	} while (m.type != 'Z');
	*tx = (char)m.body[0];
	qsort(texts, n, sizeof(texts[0]), compare_texts);
	for (size_t i = 0; i < n; i++)
		all = proc_fmt("%s%s", all, texts[i]);
	return all;
}

/* What others do with the same server connection between any two statements. */
static void
others_turn(PGconn *other, int i)
{
	static const char *const texts[] = {
		"set datestyle = german; set timezone = 'Asia/Tokyo'; set application_name = 'other'",
		"reset all",
		"begin; set local intervalstyle = iso_8601; set default_transaction_read_only = on; rollback",
		"set client_encoding = latin1; set standard_conforming_strings = off",
		"discard all",
		"select 1",
	};

	query_ok(other, "%s", texts[(size_t)i % (sizeof(texts) / sizeof(texts[0]))]);
}

static const char *const statements[] = {
	"select 1",
	"set datestyle = 'sql, dmy'",
	"set datestyle = 'sql, dmy'",
	"select 1",
	"reset datestyle",
	"begin",
	"set timezone = 'Europe/Vienna'",
	"set application_name = 'mine'",
	"rollback",
	"begin",
	"set local timezone = 'Europe/Vienna'",
	"select 1",
	"commit",
	"begin",
	"set timezone = 'Europe/Vienna'",
	"savepoint s",
	"set timezone = 'America/Lima'",
	"rollback to s",
	"commit",
	"select set_config('intervalstyle', 'iso_8601', false)",
	"select set_config('intervalstyle', 'postgres_verbose', true)",
	"set intervalstyle to default",
	"set names 'latin1'",
	"reset client_encoding",
	"set standard_conforming_strings = off",
	"set standard_conforming_strings = on",
	"set session characteristics as transaction read only",
	"set default_transaction_read_only = off",
	"set application_name = 'a'; set application_name = 'b'",
	"begin; set application_name = 'c'; select 1/0",
	"rollback",
	"set datestyle = nonsense",
	"set time zone 'Africa/Cairo'",
	"reset all",
	"set datestyle = 'sql, mdy'; reset datestyle",
	"set datestyle = 'sql, mdy'; reset datestyle; set timezone = 'Africa/Cairo'",
	"reset intervalstyle; set intervalstyle = sql_standard; set timezone to default",
	"do $$ begin execute 'reset all'; end $$",
	"begin",
	"do $$ begin execute 'set datestyle = sql'; execute 'reset all'; end $$",
	"reset all; select 1/0",
	"rollback",
	"select set_config('datestyle', null, false), set_config('timezone', 'Africa/Cairo', false)",
	"discard all",
};

static void
compare_all(const char *options)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	struct rawconn *direct = login(pg->port, options), *through = login(d->port, options);
	PGconn *other = daemon_connect(d);

	for (int i = 0; i < (int)(sizeof(statements) / sizeof(statements[0])); i++) {
		char tx, tx_through;
		const char *want = reports_of(direct, statements[i], &tx),
			   *got = reports_of(through, statements[i], &tx_through);

		ck_assert_msg(strcmp(want, got) == 0, "with \"%s\", %s: told %s, and through the daemon %s", options,
		              statements[i], want, got);
		ck_assert_int_eq(tx, tx_through);
		if (tx == 'I')
			others_turn(other, i);
	}
	raw_close(direct);
	raw_close(through);
	PQfinish(other);
	daemon_stop(d);
}

START_TEST(without_startup_settings)
{
	compare_all("");
}
END_TEST

START_TEST(with_settings_that_no_statement_touches)
{
	compare_all("-c work_mem=8MB");
}
END_TEST

START_TEST(with_reported_startup_settings)
{
	compare_all("-c datestyle=german -c timezone=Asia/Tokyo -c intervalstyle=iso_8601 -c application_name=started");
}
END_TEST

/* A server that reads its configuration again tells everybody whose value that changes. */
START_TEST(reload_of_the_server)
{
	struct daemon *d = daemon_start(pg, &(struct daemon_conf){.settings = ONE_SERVER});
	PGconn *a = daemon_connect(d), *b = daemon_connect(d), *super = cluster_connect(pg, "app");

	query_ok(a, "set intervalstyle = sql_standard");
	query_ok(super, "alter system set intervalstyle = iso_8601");
	query_ok(super, "select pg_reload_conf()");
	ck_assert(wait_until(strcmp(query_text(b, "show intervalstyle"), "iso_8601") == 0, 5000));
	/* though it may have been while a's value was undone for b that the server said so */
	ck_assert_str_eq(PQparameterStatus(b, "IntervalStyle"), "iso_8601");
	ck_assert_str_eq(query_text(a, "show intervalstyle"), "sql_standard");
	ck_assert_str_eq(PQparameterStatus(a, "IntervalStyle"), "sql_standard");
	query_ok(super, "alter system reset intervalstyle");
	query_ok(super, "select pg_reload_conf()");
	PQfinish(a);
	PQfinish(b);
	PQfinish(super);
	daemon_stop(d);
}
END_TEST

SUITE_MAIN("state_reports", 30, without_startup_settings, with_settings_that_no_statement_touches,
           with_reported_startup_settings, reload_of_the_server)
