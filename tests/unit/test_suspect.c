/* SPDX-License-Identifier: ISC */
#include "wire/suspect.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Short names, for the table. */
#define SET SUSPECT_SETTINGS
#define ANY (SUSPECT_SETTINGS | SUSPECT_ANY_SETTING)
#define RESET SUSPECT_RESETS
#define LONE (SUSPECT_SETTINGS | SUSPECT_LONE_SET)
#define TEMP SUSPECT_TEMP
#define DROP SUSPECT_DROPS
#define MAKE SUSPECT_CREATES
#define LISTEN SUSPECT_LISTENS
#define LOCK SUSPECT_LOCKS
#define PREP SUSPECT_PREPARES
#define EXEC SUSPECT_EXECUTES
#define HOLD SUSPECT_HOLDS
#define LOAD SUSPECT_LOADS
#define SEED SUSPECT_SEEDS
#define SEQ SUSPECT_SEQUENCES
#define CURR (SUSPECT_SEQUENCES | SUSPECT_READS_SEQUENCE)
#define PRIVATE SUSPECT_PRIVATE
#define DISCARD (ANY | RESET | TEMP | DROP | LISTEN | LOCK | PREP | HOLD)
#define CODE (DISCARD | SUSPECT_OPAQUE)
#define ALL (DISCARD | MAKE | EXEC | SUSPECT_UNASKABLE | SUSPECT_UNSEEN)

struct scan_case {
	const char *text;
	uint32_t flags;
	const char *names; /* with blanks in between; behind "=" the value of a lone SET; NULL: none */
};

static struct suspicion
scan_copy(const char *text, bool standard_strings)
{
	size_t n = strlen(text);
	uint8_t *copy = malloc(n > 0 ? n : 1);
	memcpy(copy, text, n);
	struct suspicion found;
	suspect_scan(copy, n, true, standard_strings, &found);
	free(copy);
	return found;
}

static void
check_one(const struct scan_case *c, bool standard_strings)
{
	char names[SUSPECT_NAMES_MAX * SQL_NAME_MAX + SUSPECT_VALUE_MAX + 2] = "";
	struct suspicion found = scan_copy(c->text, standard_strings);
	size_t at = 0;
	ck_assert_uint_le(found.n_names, SUSPECT_NAMES_MAX);
	for (size_t i = 0; i < found.n_names; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, i > 0 ? " %s" : "%s", found.names[i]);
	if ((found.flags & SUSPECT_LONE_SET) != 0)
		snprintf(names + at, sizeof(names) - at, "=%s", found.value);
	found.flags &= ~(uint32_t)SUSPECT_TAKES; /* see takes_or_gives_back() */
	ck_assert_msg(found.flags == c->flags, "%s: flags %x, not %x", c->text, found.flags, c->flags);
	ck_assert_msg(strcmp(names, c->names != NULL ? c->names : "") == 0, "%s: names '%s'", c->text, names);
}

static void
check_all(const struct scan_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_one(&cases[i], true);
}

START_TEST(suspects_no_common_statement)
{
	static const struct scan_case cases[] = {
		{"", 0, NULL},
		{";", 0, NULL},
		{"SELECT 1", 0, NULL},
		{"SELECT a, b FROM t WHERE c = $1 AND d > 5 ORDER BY e LIMIT 10", 0, NULL},
		{"INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = excluded.a RETURNING id", 0, NULL},
		{"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", 0, NULL},
		{"UPDATE t SET a = 1", 0, NULL},
		{"UPDATE t\nSET a = 1", 0, NULL},
		{"WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x", 0, NULL},
		{"MERGE INTO t USING u ON a = b WHEN MATCHED THEN DO NOTHING", 0, NULL},
		{"DELETE FROM t", 0, NULL},
		{"BEGIN", 0, NULL},
		{"BEGIN; UPDATE t SET a = 1; COMMIT", 0, NULL},
		{"START TRANSACTION ISOLATION LEVEL SERIALIZABLE", 0, NULL},
		{"SAVEPOINT a; ROLLBACK TO a; RELEASE a", 0, NULL},
		{"ALTER TABLE t ALTER c SET DEFAULT 1", 0, NULL},
		{"ALTER TABLE t SET (fillfactor = 70), RESET (autovacuum_enabled)", 0, NULL},
		{"ALTER SYSTEM SET work_mem = '1MB'", 0, NULL},
		{"ALTER ROLE r SET work_mem = '1MB'", 0, NULL},
		{"ALTER DATABASE d RESET ALL", 0, NULL},
		{"ALTER SEQUENCE s RESTART", 0, NULL},
		{"SHOW work_mem", 0, NULL},
		{"COPY t FROM STDIN", 0, NULL},
		{"COPY t FROM PROGRAM 'cat'", 0, NULL},
		{"NOTIFY c, 'x'", 0, NULL},
		{"SELECT pg_notify('c', 'x')", 0, NULL},
		{"LOCK TABLE t", 0, NULL},
		{"DECLARE c CURSOR FOR SELECT 1", 0, NULL},
		{"DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1", 0, NULL},
		{"FETCH 10 FROM c", 0, NULL},
		{"GRANT SELECT ON t TO r", 0, NULL},
		{"SELECT pg_advisory_xact_lock(1), pg_try_advisory_xact_lock_shared(2)", 0, NULL},
		{"SELECT reset, listen, load, discard, prepare, call, close, set FROM t", 0, NULL},
		{"SELECT temp, temporary FROM weather WHERE temp > 5", 0, NULL},
		{"SELECT hold FROM t", 0, NULL},
		{"VACUUM t; ANALYZE t; REINDEX TABLE t", 0, NULL},
		{"SELECT current_setting('work_mem')", 0, NULL},
		{"SELECT last_value, lastval1, next_val, currency, setting FROM t", 0, NULL},
		{"SELECT set_configuration, xset_config FROM t", 0, NULL},
		{"TABLE t", 0, NULL},
		{"VALUES (1), (2)", 0, NULL},
		{"(SELECT 1) UNION (SELECT 2)", 0, NULL},
		{"EXPLAIN ANALYZE UPDATE t SET a = 1", 0, NULL},
		{"PREPARE TRANSACTION 'x'", 0, NULL},
		{"COMMIT PREPARED 'x'", 0, NULL},
		{"DISCARD PLANS", 0, NULL},
		{"DISCARD SEQUENCES", 0, NULL},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(names_what_set_sets)
{
	static const struct scan_case cases[] = {
		{"SET work_mem = '64MB'", LONE, "work_mem=64MB"},
		{"set WORK_mem to '64MB';", LONE, "work_mem=64MB"},
		{"/* x */ SET -- y\n work_mem = '64MB' /* z */ ; -- w", LONE, "work_mem=64MB"},
		{"SET SESSION work_mem = 65536", LONE, "work_mem=65536"},
		{"SET extra_float_digits = 3", LONE, "extra_float_digits=3"},
		{"SET x.y = -1.5", LONE, "x.y=-1.5"},
		{"SET x.y = - 15", LONE, "x.y=-15"},
		{"SET x.y = 0", LONE, "x.y=0"},
		{"SET x.y = 0.5", LONE, "x.y=0.5"},
		{"SET x.y = .5e3", LONE, "x.y=.5e3"},
		{"SET x.y = 007", SET, "x.y"},
		{"SET x.y = -0", SET, "x.y"},
		{"SET x.y = +1", SET, "x.y"},
		{"SET x.y = 1_000", SET, "x.y"},
		{"SET x.y = 0x1f", SET, "x.y"},
		{"SET x.y = ON", LONE, "x.y=on"},
		{"SET x.y = \"On\"", LONE, "x.y=On"},
		{"SET x.y = ''", LONE, "x.y="},
		{"SET x.y = 'it''s'", LONE, "x.y=it's"},
		{"SET x.y = 'a'\n'b'", LONE, "x.y=ab"},
		{"SET x.y = $$a$$", LONE, "x.y=a"},
		{"SET x.y = E'a\\n'", SET, "x.y"},
		{"SET x.y = U&'a'", SET, "x.y"},
		{"SET \"X\".Y = 1", LONE, "x.y=1"},
		{"SET x.y.z = 1", LONE, "x.y.z=1"},
		{"SET x.y = a, b", SET, "x.y"},
		{"SET x.y = $1", SET, "x.y"},
		{"SET x.y FROM CURRENT", SET, "x.y"},
		{"SET search_path = a", SET, "search_path"},
		{"SET search_path TO a, public", SET, "search_path"},
		{"SET datestyle = 'ISO'", SET, "datestyle"},
		{"SET session.x = 1", LONE, "session.x=1"},
		{"SET SESSION session.x = 1", LONE, "session.x=1"},
		{"SET SESSION characteristics.x = 1", LONE, "characteristics.x=1"},
		{"SET local.x = 1", LONE, "local.x=1"},
		{"SET transaction.x = 1", LONE, "transaction.x=1"},
		{"SET constraints.x = 1", LONE, "constraints.x=1"},
		{"SET time.zone = 1", LONE, "time.zone=1"},
		{"SET role.x = 1", LONE, "role.x=1"},
		{"SET sort_mem = 100", LONE, "work_mem=100"},
		{"SET seed = 0.5", SEED, NULL},
		{"SET a.b.c.d.e.f.g.h.i.j.k = DEFAULT", SET | RESET, "a.b.c.d.e.f.g.h.i.j.k"},
		{"SET a.b.c.d.e.f.g.h.i.j.k.l = DEFAULT", ANY | RESET, NULL}, /* too far ahead */
		{"SET a.b.c.d.e.f.g.h.i.j.k.l.m.n = 1", ANY | RESET, NULL},
		{"SET a.a = 1; SET b.b = 2", SET, "a.a b.b"},
		{"SET a.a = 1; SET A.A = 2", SET, "a.a"},
		{"; SET a.a = 1", SET, "a.a"},
		{"SET a.a = 1;;", SET, "a.a"},
		{"BEGIN; SET a.a = 1; COMMIT", SET, "a.a"},
		{"SELECT 1;SET a.a = 1", SET, "a.a"},
		{"SET a.a=1;SET b.a=1;SET c.a=1;SET d.a=1;SET e.a=1;SET f.a=1;SET g.a=1;SET h.a=1", SET,
	         "a.a b.a c.a d.a e.a f.a g.a h.a"},
		{"SET a.a=1;SET b.a=1;SET c.a=1;SET d.a=1;SET e.a=1;SET f.a=1;SET g.a=1;SET h.a=1;SET i.a=1", ANY,
	         NULL},
		{"SET CATALOG 'x'", ANY | RESET, NULL},
		{"SET", ANY | RESET, NULL},
		{"SET \xc3\xa9.x = 1", ANY | RESET, NULL},
		{"SET x.y = pg_temp", SET | TEMP, "x.y"},
		{"SET search_path = 'pg_temp', public", SET | TEMP, "search_path"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(knows_the_forms_of_set)
{
	static const struct scan_case cases[] = {
		{"SET SCHEMA 'a'", SET, "search_path"},
		{"SET TIME ZONE 'UTC'", LONE, "timezone=UTC"},
		{"SET SESSION TIME ZONE 'UTC'", LONE, "timezone=UTC"},
		{"SET TIME ZONE -7", LONE, "timezone=-7"},
		{"SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE", SET, "timezone"},
		{"SET TimeZone = 'UTC'", LONE, "timezone=UTC"},
		{"SET NAMES 'utf8'", LONE, "client_encoding=utf8"},
		{"SET XML OPTION DOCUMENT", LONE, "xmloption=document"},
		{"SET ROLE admin", LONE, "role=admin"},
		{"SET ROLE NONE", LONE, "role=none"},
		{"SET SESSION ROLE \"A b\"", LONE, "role=A b"},
		{"SET role TO 'x'", LONE, "role=x"},
		{"SET SESSION AUTHORIZATION x", SET, "session_authorization role"},
		{"SET SESSION SESSION AUTHORIZATION x", SET, "session_authorization role"},
		{"SET session_authorization = x", SET, "session_authorization role"},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", SET,
	         "default_transaction_isolation default_transaction_read_only default_transaction_deferrable"},
		{"SET SESSION SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", SET,
	         "default_transaction_isolation default_transaction_read_only default_transaction_deferrable"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(leaves_out_what_a_transaction_forgets)
{
	static const struct scan_case cases[] = {
		{"SET LOCAL work_mem = '1MB'", 0, NULL},
		{"SET LOCAL TIME ZONE 'UTC'", 0, NULL},
		{"SET LOCAL ROLE x", 0, NULL},
		{"SET LOCAL SESSION AUTHORIZATION DEFAULT", 0, NULL},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", 0, NULL},
		{"SET SESSION TRANSACTION READ ONLY", 0, NULL},
		{"SET TRANSACTION SNAPSHOT 'x'", 0, NULL},
		{"SET CONSTRAINTS ALL DEFERRED", 0, NULL},
		{"SET transaction_isolation = 'serializable'", 0, NULL},
		{"SET transaction_read_only TO on", 0, NULL},
		{"RESET TRANSACTION ISOLATION LEVEL", 0, NULL},
		{"RESET transaction_deferrable", 0, NULL},
		{"SELECT set_config('a.b', 'c', true)", 0, NULL},
		{"SELECT set_config('a.b', $1, TRUE), set_config($2, (SELECT max(x, 1) FROM t), true)", 0, NULL},
		{"SET LOCAL a.b = 1; SET c.d = 2", SET, "c.d"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(finds_resets)
{
	static const struct scan_case cases[] = {
		{"RESET work_mem", SET | RESET, "work_mem"},
		{"reset A.b;", SET | RESET, "a.b"},
		{"RESET ALL", ANY | RESET, NULL},
		{"RESET a.b.c.d.e.f.g.h.i.j.k.l", SET | RESET, "a.b.c.d.e.f.g.h.i.j.k.l"},
		{"RESET a.b.c.d.e.f.g.h.i.j.k.l.m.n", ANY | RESET, NULL},
		{"RESET \"all\"", SET | RESET, "all"},
		{"RESET ROLE", SET | RESET, "role"},
		{"RESET SESSION AUTHORIZATION", SET | RESET, "session_authorization role"},
		{"RESET TIME ZONE", SET | RESET, "timezone"},
		{"RESET time.zone", SET | RESET, "time.zone"},
		{"RESET", ANY | RESET, NULL},
		{"SET work_mem TO DEFAULT", SET | RESET, "work_mem"},
		{"SET work_mem = default", SET | RESET, "work_mem"},
		{"SET work_mem = 'default'", LONE, "work_mem=default"},
		{"SET SESSION AUTHORIZATION DEFAULT", SET | RESET, "session_authorization role"},
		{"SET TIME ZONE LOCAL", SET | RESET, "timezone"},
		{"SET TIME ZONE DEFAULT", SET | RESET, "timezone"},
		{"SET TIME ZONE 'local'", LONE, "timezone=local"},
		{"SET NAMES", SET | RESET, "client_encoding"},
		{"SET NAMES DEFAULT", SET | RESET, "client_encoding"},
		{"SET a.b = 1; RESET c.d", SET | RESET, "a.b c.d"},
		{"DISCARD ALL", DISCARD, NULL},
		{"DISCARD TEMP", TEMP | DROP, NULL},
		{"discard temporary", TEMP | DROP, NULL},
		{"SELECT set_config('a.b', NULL, false)", SET | RESET, "a.b"},
		{"SELECT set_config('a.b', $1, false)", SET | RESET, "a.b"},
		{"SELECT set_config('a.b', x || 'y', false) FROM t", SET | RESET, "a.b"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(reads_set_config)
{
	static const struct scan_case cases[] = {
		{"SELECT set_config('a.b', 'c', false)", SET, "a.b"},
		{"SELECT SET_CONFIG ( 'A.B' , 'c' , false )", SET, "a.b"},
		{"SELECT pg_catalog.set_config('a.b', 'c', false)", SET, "a.b"},
		{"SELECT \"pg_catalog\".\"set_config\"('a.b', 'c', false)", SET, "a.b"},
		{"SELECT set_config/* x */('a.b'::text, 'c'::text, false)", SET, "a.b"},
		{"SELECT set_config('a.b', 'c', $1)", SET, "a.b"},
		{"SELECT set_config('a.b', 'c', not true)", SET, "a.b"},
		{"SELECT set_config('a.b', 'c', true and false)", SET, "a.b"},
		{"SELECT set_config(is_local => true, setting_name => 'a.b', new_value => 'c')", ANY | RESET, NULL},
		{"SELECT set_config($1, $2, $3)", ANY | RESET, NULL},
		{"SELECT set_config($1, 'x', false)", ANY, NULL},
		{"SELECT set_config('a' || '.b', 'x', false)", ANY, NULL},
		{"SELECT set_config(E'a\\056b', 'x', false)", ANY, NULL},
		{"SELECT set_config('', 'x', false)", ANY, NULL},
		{"SELECT set_config('a.b', 'c', false), set_config('d.e', 'f', false)", SET, "a.b d.e"},
		{"SELECT set_config('a.b', 'c', true), set_config('d.e', 'f', false)", SET, "d.e"},
		{"SELECT set_config('a.b', set_config('d.e', 'f', false), true)", SET, "d.e"},
		{"SELECT set_config('a.b', set_config('d.e', 'f', true), false)", SET | RESET, "a.b"},
		{"SELECT set_config('transaction_isolation', 'serializable', false)", 0, NULL},
		{"SELECT set_config('seed', '0.5', false)", SEED, NULL},
		{"SELECT set_config('session_authorization', 'x', false)", SET, "session_authorization role"},
		{"SELECT set_config('search_path', 'pg_temp', false)", SET | TEMP, "search_path"},
		{"SELECT set_config", ANY | RESET, NULL},
		{"SELECT set_config(", ANY | RESET, NULL},
		{"SELECT set_config('a.b', a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r, true)", SET | RESET, "a.b"},
		{"SELECT set_limit(0.5)", SET, "pg_trgm.similarity_threshold"},
		{"UPDATE pg_settings SET setting = '1MB' WHERE name = 'work_mem'", ANY, NULL},
		{"UPDATE pg_catalog.pg_settings SET setting = '1MB' WHERE name = 'work_mem'", ANY, NULL},
		{"UPDATE ONLY pg_catalog . pg_settings s SET setting = '1MB'", ANY, NULL},
		{"UPDATE \"pg_catalog\".\"pg_settings\" SET setting = '1MB'", ANY, NULL},
		{"SELECT setting FROM pg_settings WHERE name = 'work_mem'", 0, NULL},
		{"INSERT INTO t SELECT set_config('a.b', 'c', false)", SET, "a.b"},
		{"EXPLAIN ANALYZE SELECT set_config('a.b', 'c', false)", SET, "a.b"},
		{"COPY (SELECT set_config('a.b', 'c', false)) TO STDOUT", SET, "a.b"},
		{"DECLARE c CURSOR FOR SELECT set_config('a.b', 'c', false)", SET, "a.b"},
		{"PREPARE p AS SELECT set_config('a.b', $1, false)", SET | RESET | PREP, "a.b"},
		{"SELECT 1set_config('a.b', 'c', false)", SET, "a.b"},
		{"SELECT $1set_config('a.b', 'c', false)", SET, "a.b"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(finds_what_is_not_a_setting)
{
	static const struct scan_case cases[] = {
		{"CREATE TEMP TABLE t (a int)", TEMP | MAKE, NULL},
		{"create local temporary table t (a int) on commit drop", TEMP | MAKE, NULL},
		{"CREATE GLOBAL /* x */ TEMP TABLE t (a int)", TEMP | MAKE, NULL},
		{"CREATE OR REPLACE TEMP VIEW v AS SELECT 1", TEMP | MAKE, NULL},
		{"CREATE TEMPORARY SEQUENCE s", TEMP | MAKE, NULL},
		{"SELECT 1 AS a INTO TEMP t", TEMP | MAKE, NULL},
		{"SELECT 1 AS a INTO LOCAL TEMPORARY TABLE t", TEMP | MAKE, NULL},
		{"SELECT 1 AS a INTO t", MAKE, NULL},
		{"CREATE TABLE pg_temp.t (a int)", TEMP | MAKE, NULL},
		{"CREATE TABLE \"pg_temp_3\".t (a int)", TEMP | MAKE, NULL},
		{"SELECT 'PG_TEMP.t'::regclass", TEMP, NULL},
		{"SELECT 'x_pg_temp_3'", TEMP, NULL},
		{"SELECT '_temp', 'pg__temp', 'pg_tem'", 0, NULL},
		{"EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1", TEMP | MAKE, NULL},
		{"CREATE TABLE t (a int)", MAKE, NULL},
		{"CREATE FUNCTION f() RETURNS int SET work_mem = 1 AS $$ SELECT 1 $$ LANGUAGE sql", MAKE, NULL},
		{"CREATE FUNCTION f() RETURNS int AS $$ SET x.y = 1; CREATE TEMP TABLE t() $$ LANGUAGE sql", MAKE,
	         NULL},
		{"CREATE RULE r AS ON INSERT TO t DO ALSO (UPDATE u SET a = 1; NOTIFY c)", MAKE, NULL},
		{"CREATE SCHEMA s CREATE TABLE t (a int) CREATE VIEW v AS SELECT 1", MAKE, NULL},
		{"IMPORT FOREIGN SCHEMA s FROM SERVER f INTO t", MAKE, NULL},
		{"DROP TABLE t", DROP, NULL},
		{"drop view v", DROP, NULL},
		{"ALTER TABLE t DROP COLUMN c", 0, NULL},
		{"LISTEN c", LISTEN, NULL},
		{"UNLISTEN *", LISTEN, NULL},
		{"SELECT pg_advisory_lock(1)", LOCK, NULL},
		{"SELECT PG_TRY_ADVISORY_LOCK_SHARED(1, 2)", LOCK, NULL},
		{"SELECT pg_catalog.pg_advisory_unlock_all()", LOCK, NULL},
		{"SELECT \"pg_advisory_unlock\"(1)", LOCK, NULL},
		{"PREPARE a AS SELECT 1", PREP, NULL},
		{"PREPARE transaction AS SELECT 1", PREP, NULL},
		{"DEALLOCATE a", PREP, NULL},
		{"DEALLOCATE ALL", PREP, NULL},
		{"EXECUTE a", EXEC, NULL},
		{"EXPLAIN ANALYZE EXECUTE a", EXEC, NULL},
		{"CREATE TABLE t AS EXECUTE a", EXEC | MAKE, NULL},
		{"GRANT EXECUTE ON FUNCTION f TO r", EXEC, NULL}, /* no harm: there is no name to look up */
		{"DECLARE c CURSOR WITH HOLD FOR SELECT 1", HOLD, NULL},
		{"CLOSE c", HOLD, NULL},
		{"CLOSE ALL", HOLD, NULL},
		{"LOAD 'x'", LOAD, NULL},
		{"SELECT setseed(0.5)", SEED, NULL},
		{"SELECT nextval('s')", SEQ, NULL},
		{"SELECT Currval('s'), x", CURR, NULL},
		{"SELECT lastval()", CURR, NULL},
		{"SELECT setval('s', 1)", SEQ, NULL},
		{"SELECT dblink_connect('c', 'x')", PRIVATE, NULL},
		{"SELECT pg_create_physical_replication_slot('s', true, true)", PRIVATE, NULL},
		{"SELECT pg_replication_origin_session_setup('o')", PRIVATE, NULL},
		{"SELECT pg_backup_start('x')", PRIVATE, NULL},
		{"SELECT pg_stat_get_numscans(1), pg_relation_size('t'), pg_cancel_backend(1)", 0, NULL},
		{"CALL p()", CODE, NULL},
		{"CREATE EXTENSION e", CODE | MAKE, NULL},
		{"ALTER EXTENSION e UPDATE", CODE, NULL},
		{"CREATE TEMP TABLE t(); LISTEN c; SELECT pg_advisory_lock(1); SET a.b = 1",
	         TEMP | MAKE | LISTEN | LOCK | SET, "a.b"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(looks_into_code)
{
	static const struct scan_case cases[] = {
		{"DO $$ BEGIN PERFORM 1; END $$", CODE, NULL},
		{"do language plpgsql 'BEGIN PERFORM 1; END'", CODE, NULL},
		{"DO $$ BEGIN LOAD 'x'; END $$", CODE | LOAD, NULL},
		{"DO $$ BEGIN EXECUTE 'LOAD ''x'''; END $$", CODE | LOAD, NULL},
		{"DO 'BEGIN EXECUTE ''LOAD x''; END'", CODE | LOAD, NULL},
		{"DO $$ BEGIN PERFORM download(1); END $$", CODE, NULL},
		{"DO $$ BEGIN PERFORM setseed(1), nextval('s'), dblink_connect('x'); END $$",
	         CODE | SEED | SEQ | PRIVATE, NULL},
		{"DO $$ BEGIN SET seed = 1; END $$", CODE | SEED, NULL},
		{"DO E'BEGIN PERFORM \\x73etseed(1); END'", CODE | SUSPECT_UNASKABLE, NULL},
		{"DO E'BEGIN END'", CODE, NULL},
		{"DO $$ BEGIN END $$; SELECT 'nextval'", CODE, NULL},
		{"SELECT 1; DO $$ nextval $$", CODE | SEQ, NULL},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

/* Strings, names and comments that hide a word, and those that only seem to. */
START_TEST(sees_through_disguises)
{
	static const struct scan_case cases[] = {
		{"SELECT '; SET a.b = 1'", 0, NULL},
		{"SELECT 'set_config(', 'nextval', 'LISTEN'", 0, NULL},
		{"SELECT ''; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT '''; SET a.b = 1'", 0, NULL},
		{"SELECT '\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT E'\\'; SET a.b = 1; --'", 0, NULL},
		{"SELECT E'\\\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT e'\\\\\\'; SET a.b = 1; --'", 0, NULL},
		{"SELECT x'1f'; SET a.b = 1", SET, "a.b"},
		{"SELECT N'\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT U&'\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT 'a' -- it's\n '; SET a.b = 1'", 0, NULL},
		{"SELECT E'a'\n'\\'; SET a.b = 1; --'", 0, NULL},
		{"SELECT 'a'\n'\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT \"; SET a.b = 1\"", 0, NULL},
		{"SELECT \"\"\"; SET a.b = 1; --\"", 0, NULL},
		{"SELECT \"'\"; SET a.b = 1; --'\"", SET, "a.b"},
		{"SELECT \"\\\"; SET a.b = 1; --\"", SET, "a.b"},
		{"\"SET\" a.b = 1", 0, NULL},
		{"SELECT \"temp\"; CREATE \"temp\"", MAKE, NULL},
		{"SELECT $$; SET a.b = 1$$", 0, NULL},
		{"SELECT $a$ $$; SET a.b = 1; $$ $a$", 0, NULL},
		{"SELECT $a$ $A$; SET a.b = 1; $a$", 0, NULL},
		{"SELECT $$ $$; SET a.b = 1; $$ $$", SET, "a.b"},
		{"SELECT a$$; SET a.b = 1; SELECT a$$", SET, "a.b"},
		{"SELECT $1$$; SET a.b = 1; $$", 0, NULL},
		{"SELECT $1a$; SET a.b = 1; SELECT $1a$", SET, "a.b"},
		{"SELECT $$x$$set_config('a.b', 'c', false)", SET, "a.b"},
		{"-- ; SET a.b = 1", 0, NULL},
		{"--\rSET a.b = 1", LONE, "a.b=1"},
		{"--\nSET a.b = 1", LONE, "a.b=1"},
		{"SELECT 1 -- '\n; SET a.b = 1 --'", SET, "a.b"},
		{"/* ; SET a.b = 1 */", 0, NULL},
		{"/* /* */ ; SET a.b = 1 */", 0, NULL},
		{"/*/**/*/ SET a.b = 1", LONE, "a.b=1"},
		{"/* ' */ SET a.b = 1 /* ' */", LONE, "a.b=1"},
		{"SELECT 1 +/* */ 2; SET a.b = 1", SET, "a.b"},
		{"SELECT 1 */* ; SET a.b = 1 */ 2", 0, NULL},
		{"SELECT 1 +-- ; SET a.b = 1\n 2", 0, NULL},
		{"SELECT 1 - -1; SET a.b = 1", SET, "a.b"},
		{"/**/SET/**/a.b/**/=/**/1", LONE, "a.b=1"},
		{"set_config/**/--\n/**/ ('a.b', 'c', false)", SET, "a.b"},
		{"SELECT set_config--(\n('a.b', 'c', false)", SET, "a.b"},
		{"SELECT \"SET_CONFIG\"('a.b', 'c', false)", SET, "a.b"}, /* there is no such function; no harm */
		{"SELECT \"set\"\"_config\"", 0, NULL},
		{"SELECT \xc3\xa9set_config, set_config\xc3\xa9", 0, NULL},
		{"SELECT 8e1$nextval", SEQ, NULL}, /* no server takes these, but they are lexed so */
		{"SELECT 1.e5$nextval, .5e5$nextval", SEQ, NULL},
		{"SELECT $1e5$nextval", 0, NULL},
		{"SELECT 1.5, 1., .5, 1e5, 1.5e-5, 3set_config('a.b', 'c', false)", SET, "a.b"},
		{"\tSET\va.b\f=\r1", LONE, "a.b=1"},
	};
	check_all(cases, COUNT(cases));
}
END_TEST

START_TEST(minds_standard_conforming_strings)
{
	static const struct scan_case cases[] = {
		{"SELECT '\\'; SET a.b = 1; --'", 0, NULL},
		{"SELECT N'\\'; SET a.b = 1; --'", 0, NULL},
		{"SELECT '\\\\'; SET a.b = 1; --'", SET, "a.b"},
		{"SELECT '''; SET a.b = 1; --'", 0, NULL},
		{"SELECT $$\\$$; SET a.b = 1", SET, "a.b"},
		{"SELECT \"\\\"; SET a.b = 1", SET, "a.b"},
		{"SET a.b = 'c'", LONE, "a.b=c"},
		{"SET a.b = 'c\\d'", SET, "a.b"},
		{"SELECT set_config('a\\.b', 'c', false)", ANY, NULL},
		{"SELECT '\\'", ALL, NULL},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		check_one(&cases[i], false);
}
END_TEST

START_TEST(suspects_everything_unseen)
{
	static const struct scan_case cases[] = {
		{"SELECT 'a", ALL, NULL},
		{"SELECT \"a", ALL, NULL},
		{"SELECT $$a", ALL, NULL},
		{"SELECT /* a", ALL, NULL},
		{"SET a.b = 1; SELECT '", ALL, NULL},
		{"SELECT U&\"s\\0065t_config\"('a', 'b', false)", ALL, NULL},
		{"SELECT u&\"a\"", ALL, NULL},
	};
	check_all(cases, COUNT(cases));
	struct suspicion found;
	suspect_scan((const uint8_t *)"SELECT 1", 8, false, true, &found);
	ck_assert_uint_eq(found.flags, ALL);
	ck_assert_uint_eq(found.n_names, 0);
	suspect_everything(&found);
	ck_assert_uint_eq(found.flags, ALL);
}
END_TEST

START_TEST(takes_or_gives_back)
{
	static const char *const take[] = {"LISTEN a",
	                                   "SELECT pg_advisory_lock(1)",
	                                   "SELECT pg_try_advisory_lock_shared(1)",
	                                   "PREPARE p AS SELECT 1",
	                                   "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
	                                   "CREATE TEMP TABLE t ()",
	                                   "SELECT 1 INTO TEMP t",
	                                   "CREATE TABLE pg_temp.t ()",
	                                   "LOAD 'x'",
	                                   "SELECT setseed(0)",
	                                   "SELECT dblink_connect('c', 'x')",
	                                   "UNLISTEN a; LISTEN b"};
	static const char *const give_back[] = {"UNLISTEN *",
	                                        "SELECT pg_advisory_unlock(1)",
	                                        "SELECT pg_advisory_unlock_all()",
	                                        "DEALLOCATE p",
	                                        "DEALLOCATE ALL",
	                                        "CLOSE ALL",
	                                        "DISCARD ALL",
	                                        "DISCARD TEMP",
	                                        "DROP TABLE t",
	                                        "RESET ALL",
	                                        "SET a = 1",
	                                        "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;"};
	struct suspicion x;

	for (size_t i = 0; i < COUNT(take); i++) {
		suspect_scan((const uint8_t *)take[i], strlen(take[i]), true, true, &x);
		ck_assert_msg((x.flags & SUSPECT_TAKES) != 0, "%s", take[i]);
	}
	for (size_t i = 0; i < COUNT(give_back); i++) {
		suspect_scan((const uint8_t *)give_back[i], strlen(give_back[i]), true, true, &x);
		ck_assert_msg((x.flags & SUSPECT_TAKES) == 0, "%s", give_back[i]);
	}
}
END_TEST

/* Texts made to be slow: were looking ahead not bounded, this would not end in time. */
START_TEST(takes_time_in_proportion)
{
	static const char *const parts[] = {"set_config(", ";SET a", "/*", "''\n", "$a", "\"\"", ";RESET ", "_"};
	enum { N_BYTES = 1 << 20 };
	char *text = malloc(N_BYTES + 1);
	for (size_t i = 0; i < COUNT(parts); i++) {
		size_t n_part = strlen(parts[i]), n = 0;
		for (; n + n_part <= N_BYTES; n += n_part)
			memcpy(text + n, parts[i], n_part);
		struct suspicion found;
		suspect_scan((const uint8_t *)text, n, true, true, &found);
		ck_assert_uint_le(found.n_names, SUSPECT_NAMES_MAX);
	}
	free(text);
}
END_TEST

/* Reports only: what is asked for is less than 100 ns on an idle machine. */
START_TEST(reports_its_speed)
{
	static const char text[] =
		"SELECT id, name, balance, updated_at FROM accounts WHERE owner_id = $1 AND kind = 'A' "
		"ORDER BY id LIMIT 5";
	enum { ROUNDS = 20, N_SCANS = 10000 };
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		struct timespec a, b;
		uint32_t flags = 0;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int i = 0; i < N_SCANS; i++) {
			struct suspicion found;
			suspect_scan((const uint8_t *)text, sizeof(text) - 1, true, true, &found);
			flags |= found.flags;
		}
		clock_gettime(CLOCK_MONOTONIC, &b);
		ck_assert_uint_eq(flags, 0);
		double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
		best = ns / N_SCANS < best ? ns / N_SCANS : best;
	}
	printf("a SELECT of %zu bytes: %.0f ns\n", sizeof(text) - 1, best);
}
END_TEST

UNIT_MAIN("suspect", suspects_no_common_statement, names_what_set_sets, knows_the_forms_of_set,
          leaves_out_what_a_transaction_forgets, finds_resets, reads_set_config, finds_what_is_not_a_setting,
          looks_into_code, sees_through_disguises, minds_standard_conforming_strings, suspects_everything_unseen,
          takes_or_gives_back, takes_time_in_proportion, reports_its_speed)
