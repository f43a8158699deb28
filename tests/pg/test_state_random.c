/* SPDX-License-Identifier: ISC */
/*
 * Session state, by comparison: random programs run in eight sessions that share three server connections, and at the same
 * time in twins of them that are connected to the server directly, in a database of their own. After each step the results
 * and what can be seen of the session must be the same. Nothing here knows how that is done.
 *
 *   STATE_SEED=n   only the program of that seed      STATE_STEPS=n   its length
 *   STATE_SEEDS=n  the seeds 1..n
 */
#include "suite.h"

#include <stdarg.h>

#define N_SESSIONS 8
#define N_SERVERS 3
#define HELD_MAX (N_SERVERS - 1) /* sessions that may keep a server connection: the others must be able to go on */
#define SQL_MAX 600

enum side { POOLED, DIRECT, N_SIDES };

struct session {
	PGconn *conn[N_SIDES];
	char *seen[N_SIDES]; /* notifications so far */
	bool is_held;        /* the twin has what only its own server connection can have, or is in a transaction */
	int n_logins;
};

struct program {
	struct daemon *daemon;
	const char *user;
	struct session sessions[N_SESSIONS];
	uint64_t seed, random;
	int n_steps, at;
	char **log; /* what was done, for whoever has to find out */
	int *log_of;
};

/* What of a session its own statements can see, a line each; its call says nothing of it. */
static const char observe_sql[] =
	"create or replace function public.observe() returns text language plpgsql as $f$ begin return "
	"concat_ws(chr(10),"
	" session_user || ' ' || current_user,"
	" 'temp ' || (select string_agg(name, ' ' order by name) from (select concat(relname, ' ', relkind) from "
	"pg_class"
	"  where relnamespace = pg_my_temp_schema() and relkind <> 'i' union all"
	"  select proname from pg_proc where pronamespace = pg_my_temp_schema()) t (name)),"
	" 'locks ' || (select string_agg(concat_ws('/', classid, objid, objsubid, mode), ' ' order by objid, mode)"
	"  from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),"
	" 'channels ' || (select string_agg(c, ' ' order by c) from pg_listening_channels() c),"
	" 'prepared ' || (select string_agg(name, ' ' order by name) from pg_prepared_statements where from_sql),"
	" 'held ' || (select string_agg(name, ' ' order by name) from pg_cursors where is_holdable),"
	" 'cursors ' || (select string_agg(name, ' ' order by name) from pg_cursors where name ~ '^c' and not "
	"is_holdable),"
	" format('own %s, %s', current_setting('my.a', true), current_setting('my.b', true)),"
	" (select string_agg(name || '=' || setting, chr(10) order by name) from pg_settings where name !~ '[.]'));"
	" end $f$";

/* ---- chance ---- */

static uint64_t
next_random(struct program *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random;
}

static size_t
pick_n(struct program *p, size_t n)
{
	return (size_t)(next_random(p) >> 11) % n;
}

static bool
one_in(struct program *p, size_t n)
{
	return pick_n(p, n) == 0;
}

#define PICK(p, list) ((list)[pick_n(p, sizeof(list) / sizeof((list)[0]))])

/* ---- what was done ---- */

static void note(struct program *p, int session, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void
note(struct program *p, int session, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	ck_assert(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	p->log[p->at] = text;
	p->log_of[p->at] = session;
}

/* All that the session did, and what the others did lately. */
static void
print_program(const struct program *p, int session)
{
	fprintf(stderr, "STATE_SEED=%llu STATE_STEPS=%d, user %s, step %d\n", (unsigned long long)p->seed, p->n_steps,
	        p->user, p->at);
	for (int i = 0; i <= p->at; i++)
		if (p->log[i] != NULL && (p->log_of[i] == session || i + 40 > p->at))
			fprintf(stderr, "%5d  session %d%s  %s\n", i, p->log_of[i], p->log_of[i] == session ? "*" : " ",
			        p->log[i]);
	fprintf(stderr, "held:");
	for (int i = 0; i < N_SESSIONS; i++)
		if (p->sessions[i].is_held)
			fprintf(stderr, " %d", i);
	fprintf(stderr, "\n");
}

#define program_fail(p, session, ...)                                                                                  \
	do {                                                                                                           \
		print_program(p, session);                                                                             \
		ck_abort_msg(__VA_ARGS__);                                                                             \
	} while (0)

/* ---- running a step on both sides ---- */

struct text {
	char *s;
	size_t n;
};

static void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	char *more;

	va_start(ap, fmt);
	ck_assert(vasprintf(&more, fmt, ap) >= 0);
	va_end(ap);
	t->s = realloc(t->s, t->n + strlen(more) + 1);
	ck_assert_ptr_nonnull(t->s);
	memcpy(t->s + t->n, more, strlen(more) + 1);
	t->n += strlen(more);
	free(more);
}

/* Messages name what differs on purpose (statements, pids): the SQLSTATE is what counts. */
static void
add_result(struct text *t, PGresult *r)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);

	text_add(t, "[%s %s %s", PQresStatus(PQresultStatus(r)), PQcmdStatus(r), state ? state : "");
	for (int i = 0; i < PQntuples(r); i++)
		for (int k = 0; k < PQnfields(r); k++)
			text_add(t, " %s", PQgetisnull(r, i, k) ? "NULL" : PQgetvalue(r, i, k));
	text_add(t, "]");
	if (state != NULL && strncmp(state, "57", 2) == 0)
		text_add(t, "%s", PQresultErrorMessage(r));
	PQclear(r);
}

static void
add_results(struct text *t, PGconn *conn)
{
	for (PGresult *r; (r = PQgetResult(conn)) != NULL;)
		add_result(t, r);
	if (PQstatus(conn) == CONNECTION_BAD)
		text_add(t, " lost: %s", PQerrorMessage(conn));
}

struct step {
	enum { SIMPLE, EXTENDED, PREPARE_NAMED, EXECUTE_NAMED, PIPELINE, RECONNECT } kind;
	bool may_hold; /* the session may keep its server connection then */
	char name[16];
	char sql[3][SQL_MAX]; /* PIPELINE: up to three; RECONNECT: connection string */
	int n_params;
	const char *params[3];
};

static void
run_pipeline(PGconn *conn, const struct step *step, struct text *out)
{
	int n = 0;

	ck_assert_int_eq(PQenterPipelineMode(conn), 1);
	for (int i = 0; i < 3 && step->sql[i][0] != '\0'; i++, n++)
		ck_assert_int_eq(PQsendQueryParams(conn, step->sql[i], 0, NULL, NULL, NULL, NULL, 0), 1);
	ck_assert_int_eq(PQpipelineSync(conn), 1);
	while (n >= 0 && PQstatus(conn) == CONNECTION_OK) {
		PGresult *r = PQgetResult(conn);

		if (r == NULL) {
			n--;
			continue;
		}
		if (PQresultStatus(r) == PGRES_PIPELINE_SYNC)
			n = -1;
		add_result(out, r);
	}
	PQexitPipelineMode(conn);
}

static char *
run_step(PGconn *conn, const struct step *step)
{
	struct text out = {0};
	int ok = 1;

	text_add(&out, "%s", "");
	switch (step->kind) {
	case SIMPLE:
		ok = PQsendQuery(conn, step->sql[0]);
		break;
	case EXTENDED:
		ok = PQsendQueryParams(conn, step->sql[0], step->n_params, NULL, step->params, NULL, NULL, 0);
		break;
	case PREPARE_NAMED:
		ok = PQsendPrepare(conn, step->name, step->sql[0], 0, NULL);
		break;
	case EXECUTE_NAMED:
		ok = PQsendQueryPrepared(conn, step->name, 0, NULL, NULL, NULL, 0);
		break;
	case PIPELINE:
		run_pipeline(conn, step, &out);
		return out.s;
	case RECONNECT:
		break;
	}
	if (!ok)
		text_add(&out, "not sent: %s", PQerrorMessage(conn));
	add_results(&out, conn);
	return out.s;
}

/* ---- what can be seen ---- */

static void
take_notifications(struct session *s, enum side side)
{
	struct text t = {s->seen[side], s->seen[side] ? strlen(s->seen[side]) : 0};

	PQconsumeInput(s->conn[side]);
	for (PGnotify *n; (n = PQnotifies(s->conn[side])) != NULL; PQfreemem(n))
		text_add(&t, "%s:%s ", n->relname, n->extra);
	s->seen[side] = t.s;
}

static bool
same_notifications(struct session *s)
{
	for (enum side side = POOLED; side < N_SIDES; side++)
		take_notifications(s, side);
	return strcmp(s->seen[POOLED] ? s->seen[POOLED] : "", s->seen[DIRECT] ? s->seen[DIRECT] : "") == 0;
}

static const char *const reported[] = {"client_encoding",  "DateStyle",
                                       "TimeZone",         "IntervalStyle",
                                       "application_name", "standard_conforming_strings",
                                       "is_superuser",     "session_authorization"};

static char *
observe(PGconn *conn)
{
	struct text out = {0};
	PGresult *r;

	text_add(&out, "transaction %d\n", (int)PQtransactionStatus(conn));
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++)
		text_add(&out, "reported %s=%s\n", reported[i], PQparameterStatus(conn, reported[i]));
	if (PQtransactionStatus(conn) == PQTRANS_INERROR)
		return out.s;
	r = PQexec(conn, "select public.observe()");
	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		text_add(&out, "%s", PQgetvalue(r, 0, 0));
	else
		text_add(&out, "%s seen by %p", PQresultErrorMessage(r), (void *)conn); /* equal to nothing */
	PQclear(r);
	return out.s;
}

static bool
is_held(PGconn *direct, const char *seen)
{
	return PQtransactionStatus(direct) != PQTRANS_IDLE || strstr(seen, "\ntemp ") != NULL ||
	       strstr(seen, "\nlocks ") != NULL || strstr(seen, "\nchannels ") != NULL ||
	       strstr(seen, "\nprepared ") != NULL || strstr(seen, "\nheld ") != NULL;
}

/* The lines in which they differ. */
static char *
difference(const char *a, const char *b)
{
	struct text out = {0};

	text_add(&out, "%s", "");
	while (*a != '\0' || *b != '\0') {
		size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");

		if (na != nb || memcmp(a, b, na) != 0)
			text_add(&out, "\n  pooled: %.*s\n  direct: %.*s", (int)na, a, (int)nb, b);
		a += na + (a[na] == '\n');
		b += nb + (b[nb] == '\n');
	}
	return out.s;
}

static void
compare(struct program *p, int i)
{
	struct session *s = &p->sessions[i];
	char *direct = observe(s->conn[DIRECT]), *pooled = observe(s->conn[POOLED]);

	s->is_held = is_held(s->conn[DIRECT], direct);
	if (strcmp(pooled, direct) != 0)
		program_fail(p, i, "session %d differs:%.3000s", i, difference(pooled, direct));
	if (!wait_until(same_notifications(s), 5000))
		program_fail(p, i, "session %d was notified of: %s\n  direct: %s", i,
		             s->seen[POOLED] ? s->seen[POOLED] : "", s->seen[DIRECT] ? s->seen[DIRECT] : "");
	free(direct);
	free(pooled);
}

/* ---- sessions ---- */

static void
ignore_notice(void *arg, const PGresult *r)
{
	(void)arg;
	(void)r;
}

static void
connect_both(struct program *p, int i, const char *options)
{
	struct session *s = &p->sessions[i];
	bool ok[N_SIDES];

	for (enum side side = POOLED; side < N_SIDES; side++) {
		char *where = side == POOLED ? proc_fmt("host=127.0.0.1 port=%d dbname=app", p->daemon->port)
		                             : proc_fmt("host=%s port=%d dbname=other", pg->dir, pg->port);

		PQfinish(s->conn[side]);
		free(s->seen[side]);
		s->seen[side] = NULL;
		s->conn[side] = PQconnectdb(proc_fmt("user=%s %s %s", p->user, where, options));
		ok[side] = PQstatus(s->conn[side]) == CONNECTION_OK;
		PQsetNoticeReceiver(s->conn[side], ignore_notice, NULL);
		free(where);
	}
	s->n_logins++;
	s->is_held = false;
	if (ok[POOLED] != ok[DIRECT] || !ok[DIRECT])
		program_fail(p, i, "login with %s: %s", options, PQerrorMessage(s->conn[POOLED]));
}

/* ---- steps ---- */

static const struct {
	const char *name, *values[4];
} settings[] = {
	{"work_mem", {"'1MB'", "'2MB'", "4096", "'3000kB'"}},
	{"DateStyle", {"'ISO, DMY'", "German", "'SQL, MDY'", "ISO"}},
	{"TimeZone", {"'UTC'", "'Europe/Berlin'", "'America/New_York'", "-7"}},
	{"IntervalStyle", {"iso_8601", "postgres", "sql_standard", "'postgres_verbose'"}},
	{"extra_float_digits", {"0", "1", "3", "-3"}},
	{"search_path", {"public", "\"$user\", public", "'a b', pg_catalog", "''"}},
	{"client_encoding", {"UTF8", "LATIN1", "SQL_ASCII", "'latin9'"}},
	{"statement_timeout", {"'50s'", "0", "60000", "'2min'"}},
	{"lock_timeout", {"'50s'", "0", "60000", "'2min'"}},
	{"application_name", {"'a1'", "'b''2'", "\"C d\"", "''"}},
	{"standard_conforming_strings", {"on", "off", "on", "true"}},
	{"backslash_quote", {"on", "off", "safe_encoding", "'on'"}},
	{"default_transaction_read_only", {"on", "off", "false", "0"}},
	{"default_transaction_isolation", {"serializable", "'repeatable read'", "'read committed'", "'serializable'"}},
	{"default_transaction_deferrable", {"on", "off", "no", "1"}},
	{"enable_seqscan", {"on", "off", "no", "1"}},
	{"row_security", {"on", "off", "on", "off"}},
	{"bytea_output", {"escape", "hex", "'escape'", "hex"}},
	{"synchronous_commit", {"off", "local", "on", "'on'"}},
	{"lc_numeric", {"'C'", "\"POSIX\"", "'C'", "'C'"}},
	{"my.a", {"'x'", "''", "1", "'a long value with ''quotes'' and spaces'"}},
	{"my.b", {"'y'", "'z'", "on", "'0.5'"}},
	{"log_min_duration_statement", {"100", "-1", "'1s'", "0"}},
	{"session_replication_role", {"replica", "origin", "local", "origin"}},
	{"jit", {"on", "off", "on", "off"}},
};

struct setting {
	const char *name, *value;
	char bare[80]; /* the value as a string literal or without quotes */
};

static struct setting
some_setting(struct program *p)
{
	size_t i = pick_n(p, sizeof(settings) / sizeof(settings[0]));
	struct setting s = {settings[i].name, settings[i].values[pick_n(p, 4)], ""};

	if (s.value[0] == '\'' && strchr(s.value, ',') == NULL)
		snprintf(s.bare, sizeof(s.bare), "%s", s.value);
	else if (strchr(s.value, '\'') == NULL && strchr(s.value, '"') == NULL)
		snprintf(s.bare, sizeof(s.bare), "'%s'", s.value);
	else
		snprintf(s.bare, sizeof(s.bare), "'%s'", "nothing");
	return s;
}

static void
make_set(struct program *p, struct step *st)
{
	struct setting s = some_setting(p), o = some_setting(p);
	char *sql = st->sql[0];

	switch (pick_n(p, 14)) {
	case 0:
	case 1:
	case 2:
		snprintf(sql, SQL_MAX, "set %s = %s", s.name, s.value);
		break;
	case 3:
		snprintf(sql, SQL_MAX, "SET SESSION %s TO %s;", s.name, s.value);
		break;
	case 4:
		snprintf(sql, SQL_MAX, "set local %s = %s", s.name, s.value);
		break;
	case 5:
		snprintf(sql, SQL_MAX, "set %s to default", s.name);
		break;
	case 6:
		snprintf(sql, SQL_MAX, "reset %s", s.name);
		break;
	case 7:
		snprintf(sql, SQL_MAX, "%s", one_in(p, 2) ? "reset all" : "set time zone 'Asia/Tokyo'");
		break;
	case 8:
		snprintf(sql, SQL_MAX, "select set_config('%s', %s, %s)", s.name, s.bare,
		         one_in(p, 4) ? "true" : "false");
		break;
	case 9:
		snprintf(sql, SQL_MAX, "do $$ begin perform set_config('%s', %s, false); end $$", s.name, s.bare);
		break;
	case 10:
		snprintf(sql, SQL_MAX, "set %s = %s; /* both */ set %s = %s; select 1", s.name, s.value, o.name,
		         o.value);
		break;
	case 11:
		snprintf(sql, SQL_MAX, "set %s = %s; select 1/0", s.name, s.value);
		break;
	case 12:
		snprintf(sql, SQL_MAX, "update pg_settings set setting = %s where name = '%s'", s.bare, s.name);
		break;
	default:
		snprintf(sql, SQL_MAX, "select %s from (values ('%s', %s)) v(a, b)", "set_config(a, b, false)", s.name,
		         s.bare);
		break;
	}
}

/* The values come as parameters, and are unquoted. */
static void
make_set_config(struct program *p, struct step *st)
{
	struct setting s = some_setting(p);
	size_t n = strlen(s.bare);

	st->kind = EXTENDED;
	st->n_params = 3;
	s.bare[n - 1] = '\0';
	st->params[0] = s.name;
	st->params[1] = strdup(s.bare + 1);
	st->params[2] = one_in(p, 4) ? "true" : "false";
	snprintf(st->sql[0], SQL_MAX, "select set_config($1, $2, $3)");
}

static void
make_role(struct program *p, struct step *st)
{
	static const char *const texts[] = {"set role app_a",
	                                    "set role app_b",
	                                    "set role none",
	                                    "reset role",
	                                    "set local role app_a",
	                                    "set session authorization app",
	                                    "set session authorization 'app2'",
	                                    "set session authorization default",
	                                    "reset session authorization",
	                                    "select set_config('role', 'app_b', false)",
	                                    "set role nobody_there",
	                                    "set session authorization app; set role app_a",
	                                    "set role app_a; set work_mem = '5MB'"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
}

static void
make_transaction(struct program *p, struct step *st)
{
	static const char *const texts[] = {"begin",
	                                    "begin",
	                                    "start transaction isolation level serializable, read only",
	                                    "commit",
	                                    "commit",
	                                    "rollback",
	                                    "commit and chain",
	                                    "savepoint s1",
	                                    "savepoint s1",
	                                    "release s1",
	                                    "rollback to s1",
	                                    "rollback to s1",
	                                    "set transaction read only",
	                                    "begin; set local work_mem = '9MB'; set my.a = 'tx'",
	                                    "begin; set my.b = 'gone'; rollback; begin"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
	st->may_hold = true;
}

static void
make_temp(struct program *p, struct step *st)
{
	static const char *const texts[] = {
		"create temp table t1 (i int)",
		"create temporary table t2 on commit drop as select 1 as i",
		"begin; create temp table t3 (i int) on commit drop; insert into t3 values (3)",
		"select 1 as i into temp t4",
		"create temp view v1 as select 1 as one",
		"create temp sequence q1",
		"select nextval('q1')",
		"create table pg_temp.t5 (i int)",
		"create function pg_temp.f1() returns int language sql as 'select 1'",
		"insert into t1 values (1)",
		"select count(*) from t1",
		"select count(*) from t4",
		"drop table if exists t1, t4",
		"drop view if exists v1",
		"drop sequence if exists q1",
		"drop table if exists pg_temp.t5, t1, t4 cascade",
		"drop function if exists pg_temp.f1",
		"discard temp",
		"do $$ begin create temp table t1 (i int); end $$",
		"set search_path = pg_temp, public; create table t6 (i int)",
		"alter table t1 rename to t7"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
	st->may_hold = true;
}

static void
make_channel(struct program *p, struct step *st)
{
	static const char *const texts[] = {"listen c1",
	                                    "listen c2",
	                                    "unlisten c1",
	                                    "unlisten *",
	                                    "listen c1; listen c2",
	                                    "unlisten c2; listen c1"};

	st->may_hold = true;
	if (one_in(p, 2))
		snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
	else if (one_in(p, 2))
		snprintf(st->sql[0], SQL_MAX, "notify c%zu, 'at %d'", 1 + pick_n(p, 2), p->at);
	else
		snprintf(st->sql[0], SQL_MAX, "select pg_notify('c%zu', 'said at %d')", 1 + pick_n(p, 2), p->at);
}

/* Keys of its own, and of this login: nobody waits. */
static void
make_lock(struct program *p, struct step *st, int i)
{
	static const char *const texts[] = {
		"select pg_advisory_lock(%d)",      "select pg_advisory_lock_shared(%d)",
		"select pg_try_advisory_lock(%d)",  "select pg_advisory_unlock(%d)",
		"select pg_advisory_unlock(%d)",    "select pg_advisory_unlock_shared(%d)",
		"select pg_advisory_xact_lock(%d)", "select pg_advisory_unlock_all() -- %d"};
	int key = i * 10000 + p->sessions[i].n_logins * 10 + (int)pick_n(p, 2);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(st->sql[0], SQL_MAX, PICK(p, texts), key);
#pragma GCC diagnostic pop
	st->may_hold = true;
}

static void
make_statement(struct program *p, struct step *st)
{
	static const char *const texts[] = {"prepare q1 as select 1",
	                                    "prepare q1 (int) as select $1 + 1",
	                                    "prepare q2 as select set_config('my.a', 'by q2', false)",
	                                    "execute q1",
	                                    "execute q1 (5)",
	                                    "execute q2",
	                                    "execute p1",
	                                    "deallocate q1",
	                                    "deallocate q2",
	                                    "deallocate p1",
	                                    "deallocate prepare p2",
	                                    "deallocate all",
	                                    "create temp table t8 as execute q1 (3)"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
	st->may_hold = true;
}

static void
make_protocol_statement(struct program *p, struct step *st)
{
	static const char *const texts[] = {"select 1", "select set_config('my.b', 'by protocol', false)",
	                                    "set work_mem = '7MB'", "reset all", "select current_setting('work_mem')"};

	st->kind = one_in(p, 2) ? PREPARE_NAMED : EXECUTE_NAMED;
	snprintf(st->name, sizeof(st->name), "p%zu", 1 + pick_n(p, 3));
	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
}

static void
make_cursor(struct program *p, struct step *st)
{
	static const char *const texts[] = {"declare c1 cursor with hold for select generate_series(1, 9)",
	                                    "declare c2 scroll cursor with hold for select 1",
	                                    "declare c3 cursor for select generate_series(1, 9)",
	                                    "fetch 2 from c1",
	                                    "fetch 2 from c3",
	                                    "move 1 in c1",
	                                    "close c1",
	                                    "close c2",
	                                    "close all"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
	st->may_hold = true;
}

static void
make_other(struct program *p, struct step *st)
{
	static const char *const texts[] = {"discard all",
	                                    "discard all",
	                                    "discard plans",
	                                    "discard sequences",
	                                    "select 1/0",
	                                    "select nothing",
	                                    "set work_mem = 'much'",
	                                    "selec",
	                                    "select 'set my.a = 1'",
	                                    "select now() - now()",
	                                    "",
	                                    "show work_mem",
	                                    "vacuum pg_catalog.pg_enum",
	                                    "select timestamptz '2020-01-01 00:00:00+00', interval '1 day 2 hours'"};

	snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, texts));
}

static void
make_login(struct program *p, struct step *st)
{
	static const char *const options[] = {"",
	                                      "application_name=worker",
	                                      "options='-c work_mem=3MB -c my.a=given'",
	                                      "options='-c DateStyle=German' application_name=w2",
	                                      "client_encoding=LATIN1",
	                                      "options='-c search_path=public -c my.b=b -c statement_timeout=40s'",
	                                      "options='-c TimeZone=Asia/Tokyo -c extra_float_digits=3'",
	                                      "options='-c default_transaction_read_only=on'",
	                                      "options='-c role=app_a -c work_mem=6MB'",
	                                      "options='-c IntervalStyle=iso_8601 --enable-seqscan=off'"};

	st->kind = RECONNECT;
	do
		snprintf(st->sql[0], SQL_MAX, "%s", PICK(p, options));
	while (strstr(st->sql[0], "role=") != NULL && strcmp(p->user, "postgres") == 0); /* is_superuser would differ */
}

static void
make_pipeline(struct program *p, struct step *st)
{
	static const char *const texts[] = {"select 1",
	                                    "set my.a = 'piped'",
	                                    "set work_mem = '8MB'",
	                                    "select set_config('extra_float_digits', '2', false)",
	                                    "select 1/0",
	                                    "select current_setting('work_mem')",
	                                    "set DateStyle = 'SQL, DMY'",
	                                    "select pg_notify('c1', 'piped')"};

	st->kind = PIPELINE;
	for (size_t i = 0, n = 1 + pick_n(p, 3); i < n; i++)
		snprintf(st->sql[i], SQL_MAX, "%s", PICK(p, texts));
}

static struct step
make_step(struct program *p, int i)
{
	struct step st = {.kind = SIMPLE};
	bool in_transaction = PQtransactionStatus(p->sessions[i].conn[DIRECT]) != PQTRANS_IDLE;

	switch (pick_n(p, in_transaction ? 30 : 24)) {
	case 0 ... 6:
		make_set(p, &st);
		break;
	case 7:
		make_set_config(p, &st);
		break;
	case 8 ... 9:
		make_role(p, &st);
		break;
	case 10 ... 11:
		make_temp(p, &st);
		break;
	case 12 ... 13:
		make_channel(p, &st);
		break;
	case 14:
		make_lock(p, &st, i);
		break;
	case 15:
		make_statement(p, &st);
		break;
	case 16:
		make_protocol_statement(p, &st);
		break;
	case 17:
		make_cursor(p, &st);
		break;
	case 18 ... 19:
		make_other(p, &st);
		break;
	case 20:
		make_pipeline(p, &st);
		break;
	case 21:
		if (one_in(p, 3))
			make_login(p, &st);
		else
			make_set(p, &st);
		break;
	default:
		make_transaction(p, &st);
		break;
	}
	if (st.kind == SIMPLE && one_in(p, 6))
		st.kind = EXTENDED; /* a text of several statements fails on both sides */
	return st;
}

/* A session that may come to keep a server connection while enough others do would let the rest wait for ever. */
static bool
is_allowed(const struct program *p, int i, const struct step *st)
{
	int n_held = 0;

	for (int k = 0; k < N_SESSIONS; k++)
		n_held += k != i && p->sessions[k].is_held;
	return !st->may_hold || p->sessions[i].is_held || n_held < HELD_MAX;
}

static void
note_step(struct program *p, int i, const struct step *st)
{
	static const char *const kinds[] = {"", "extended: ", "parse ", "execute ", "pipeline: ", "login: "};

	note(p, i, "%s%s%s%s%s%s%s%s %s %s", kinds[st->kind], st->name, st->name[0] ? " " : "", st->sql[0],
	     st->sql[1][0] ? " | " : "", st->sql[1], st->sql[2][0] ? " | " : "", st->sql[2],
	     st->n_params ? st->params[0] : "", st->n_params ? st->params[1] ? st->params[1] : "NULL" : "");
}

static void
do_step(struct program *p)
{
	int i = (int)pick_n(p, N_SESSIONS);
	struct session *s = &p->sessions[i];
	struct step st;
	char *results[N_SIDES];

	do
		st = make_step(p, i);
	while (!is_allowed(p, i, &st));
	note_step(p, i, &st);
	if (st.kind == RECONNECT) {
		connect_both(p, i, st.sql[0]);
	} else {
		results[DIRECT] = run_step(s->conn[DIRECT], &st);
		results[POOLED] = run_step(s->conn[POOLED], &st);
		if (strcmp(results[POOLED], results[DIRECT]) != 0)
			program_fail(p, i, "session %d: other results\n  pooled: %s\n  direct: %s", i, results[POOLED],
			             results[DIRECT]);
		free(results[DIRECT]);
		free(results[POOLED]);
	}
	compare(p, i);
	compare(p, (int)pick_n(p, N_SESSIONS));
}

/* ---- programs ---- */

static void
prepare_database(const char *database)
{
	PGconn *conn = cluster_connect(pg, database);

	if (query_int(conn, "select count(*) from pg_roles where rolname = 'app_a'") == 0)
		query_ok(conn, "create role app_a; create role app_b; grant app_a, app_b to app, app2");
	query_ok(conn, "%s", observe_sql);
	PQfinish(conn);
}

static void
run_program(uint64_t seed, int n_steps)
{
	struct program p = {.user = seed % 2 ? "postgres" : "app",
	                    .seed = seed,
	                    .random = seed * 0x9e3779b97f4a7c15u + 1,
	                    .n_steps = n_steps,
	                    .log = calloc((size_t)n_steps, sizeof(*p.log)),
	                    .log_of = calloc((size_t)n_steps, sizeof(*p.log_of))};

	ck_assert(p.log != NULL && p.log_of != NULL);
	/* in turn, so that what a step does is looked at on another connection */
	p.daemon = daemon_start(pg, &(struct daemon_conf){.settings = proc_fmt("default_pool_size = %d\n"
	                                                                       "max_pinned = 100\n"
	                                                                       "session_state = preserve\n"
	                                                                       "server_round_robin = 1\n"
	                                                                       "query_wait_timeout = 10\n"
	                                                                       "proxies = %d\n",
	                                                                       N_SERVERS, 1 + (int)(seed / 2 % 2))});
	for (int i = 0; i < N_SESSIONS; i++)
		connect_both(&p, i, "");
	for (p.at = 0; p.at < n_steps; p.at++)
		do_step(&p);
	p.at = n_steps - 1;
	for (int i = 0; i < N_SESSIONS; i++) {
		compare(&p, i);
		for (enum side side = POOLED; side < N_SIDES; side++)
			PQfinish(p.sessions[i].conn[side]);
	}
	daemon_stop(p.daemon);
	for (int i = 0; i < n_steps; i++)
		free(p.log[i]);
	free(p.log);
	free(p.log_of);
}

static int
from_environment(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text != NULL && atoi(text) > 0 ? atoi(text) : otherwise;
}

START_TEST(sessions_equal_their_twins)
{
	int only = from_environment("STATE_SEED", 0), n_steps = from_environment("STATE_STEPS", 250);

	prepare_database("app");
	prepare_database("other");
	for (int seed = only ? only : 1; seed <= (only ? only : from_environment("STATE_SEEDS", 4)); seed++)
		run_program((uint64_t)seed, n_steps);
}
END_TEST

SUITE_MAIN("state_random", 3600, sessions_equal_their_twins)
