/* SPDX-License-Identifier: ISC */
#include "tables.h"

#include "child.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static PGconn *
open_database(const char *conninfo, struct why *why)
{
	PGconn *conn = PQconnectdb(conninfo);

	if (PQstatus(conn) == CONNECTION_OK) {
		PQclear(PQexec(conn, "set client_min_messages = error"));
		return conn;
	}
	why_set(why, "%.*s", (int)strcspn(PQerrorMessage(conn), "\n"), PQerrorMessage(conn));
	PQfinish(conn);
	return NULL;
}

static bool
exec(PGconn *conn, const char *sql, struct why *why)
{
	PGresult *result = PQexec(conn, sql);
	bool ok = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;

	PQclear(result);
	return ok ? true
	          : why_set(why, "%.60s: %.*s", sql, (int)strcspn(PQerrorMessage(conn), "\n"), PQerrorMessage(conn));
}

static bool
exec_all(const char *conninfo, const struct text_list *statements, struct why *why)
{
	PGconn *conn = open_database(conninfo, why);
	bool ok = conn != NULL;

	for (size_t i = 0; ok && i < statements->n; i++)
		ok = exec(conn, statements->items[i], why);
	PQfinish(conn);
	return ok;
}

static bool
load_pgbench(int scale, const char *pgbench, const char *conninfo, const char *log, struct why *why)
{
	char *size = text_fmt("--scale=%d", scale);
	char *argv[] = {(char *)pgbench, "--initialize", "--quiet", size, (char *)conninfo, NULL};
	bool ok = child_run(&(struct child_how){.log = log, .stop_signal = SIGKILL}, argv, why);

	free(size);
	return ok;
}

static bool
load_ycsb(long rows, const char *conninfo, struct why *why)
{
	struct text_list sql = {0};
	char *fields = text_dup(""), *values = text_dup(""), *more;
	bool ok;

	for (int i = 0; i < 10; i++) {
		more = text_fmt("%s, field%d text not null", fields, i);
		free(fields);
		fields = more;
		more = text_fmt("%s, repeat(chr(%d + key %% 26), 100)", values, 'a');
		free(values);
		values = more;
	}
	text_list_add(&sql, "drop table if exists ycsb");
	text_list_addf(&sql, "create table ycsb (key int not null%s) with (fillfactor = 90)", fields);
	text_list_addf(&sql, "insert into ycsb select key%s from generate_series(0, %ld) as key", values, rows - 1);
	text_list_add(&sql, "alter table ycsb add primary key (key)");
	text_list_add(&sql, "vacuum analyze ycsb");
	ok = exec_all(conninfo, &sql, why);
	free(fields);
	free(values);
	text_list_fini(&sql);
	return ok;
}

static bool
make_copied(const char *conninfo, struct why *why)
{
	struct text_list sql = {0};
	bool ok;

	text_list_add(&sql, "drop table if exists copied");
	text_list_add(&sql, "create unlogged table copied (line text)");
	ok = exec_all(conninfo, &sql, why);
	text_list_fini(&sql);
	return ok;
}

bool
tables_prepare(struct tables_state *state, const struct cell *cell, const char *pgbench, const char *conninfo,
               const char *log, struct why *why)
{
	const struct workload *w = cell->workload;
	bool afresh = cell->data == DATA_AFRESH;

	if (w->kind == WORKLOAD_COPY_IN && !state->copied)
		return state->copied = make_copied(conninfo, why);
	switch (w->tables) {
	case TABLES_NONE:
		break;
	case TABLES_PGBENCH:
		if (state->pgbench_scale == cell->scale && !afresh)
			break;
		state->pgbench_scale = 0;
		if (!load_pgbench(cell->scale, pgbench, conninfo, log, why))
			return false;
		state->pgbench_scale = cell->scale;
		break;
	case TABLES_YCSB:
		if (state->ycsb_scale == cell->scale && !afresh)
			break;
		state->ycsb_scale = 0;
		if (!load_ycsb(workload_rows(w, cell->scale), conninfo, why))
			return false;
		state->ycsb_scale = cell->scale;
		break;
	}
	return true;
}

bool
tables_tidy(const struct cell *cell, const char *admin_conninfo, struct why *why)
{
	struct text_list sql = {0};
	struct why ignored;
	PGconn *conn;
	bool ok = true;

	if (!cell->workload->writes)
		return true;
	conn = open_database(admin_conninfo, why);
	if (conn == NULL)
		return false;
	if (cell->workload->kind == WORKLOAD_COPY_IN)
		text_list_add(&sql, "truncate copied");
	else if (cell->workload->tables == TABLES_YCSB)
		text_list_add(&sql, "vacuum ycsb");
	else
		text_list_split(&sql, "vacuum pgbench_branches;vacuum pgbench_tellers;truncate pgbench_history", ';');
	for (size_t i = 0; ok && i < sql.n; i++)
		ok = exec(conn, sql.items[i], why);
	if (ok)
		(void)exec(conn, "checkpoint", &ignored);
	PQfinish(conn);
	text_list_fini(&sql);
	return ok;
}
