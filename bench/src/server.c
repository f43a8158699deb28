/* SPDX-License-Identifier: ISC */
#include "server.h"

#include "base/buf.h"
#include "base/str.h"
#include "child.h"
#include "files.h"
#include "ports.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_SECONDS 60
#define SOCKET_FOLDER_MAX 90 /* the address has room for 107 bytes, and the name of the socket follows */

bool
topology_parse(const char *text, struct topology *out, struct why *why)
{
	int64_t n = 0;

	*out = (struct topology){REPLICATION_NONE, 0};
	if (strcmp(text, "single") == 0)
		return true;
	if (strcmp(text, "sync") == 0) {
		*out = (struct topology){REPLICATION_SYNC, 1};
		return true;
	}
	if (strncmp(text, "replicas:", 9) == 0 && str_parse_int(text + 9, 1, SERVER_MAX_NODES - 1, &n)) {
		*out = (struct topology){REPLICATION_ASYNC, (int)n};
		return true;
	}
	return why_set(why, "unknown topology %s (single, replicas:1 to replicas:%d, sync)", text,
	               SERVER_MAX_NODES - 1);
}

static bool
has_server(const char *dir)
{
	char *initdb = text_fmt("%s/initdb", dir), *postgres = text_fmt("%s/postgres", dir);
	bool ok = access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;

	free(initdb);
	free(postgres);
	return ok;
}

static int
version_of(const char *path)
{
	const char *digits = strpbrk(path, "0123456789");

	return digits != NULL ? (int)strtol(digits, NULL, 10) : 0;
}

/* The newest of Debian's and the PGDG's layouts. */
static char *
find_newest(void)
{
	char *best = NULL;
	glob_t g;

	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &g) == 0)
		(void)glob("/usr/pgsql-*/bin", GLOB_APPEND, NULL, &g);
	else if (glob("/usr/pgsql-*/bin", 0, NULL, &g) != 0)
		return NULL;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (has_server(g.gl_pathv[i]) && (best == NULL || version_of(g.gl_pathv[i]) > version_of(best))) {
			free(best);
			best = text_dup(g.gl_pathv[i]);
		}
	globfree(&g);
	return best;
}

char *
server_find_bindir(void)
{
	const char *given = getenv("PG_BINDIR");
	char *best, *initdb, *slash;

	if (given != NULL && *given != '\0')
		return has_server(given) ? text_dup(given) : NULL;
	best = find_newest();
	if (best != NULL)
		return best;
	initdb = files_find_program("initdb");
	if (initdb == NULL)
		return NULL;
	slash = strrchr(initdb, '/');
	*slash = '\0';
	if (has_server(initdb))
		return initdb;
	free(initdb);
	return NULL;
}

/* ---- what a scratch cluster is started with ---- */

static long
shared_buffers_mb(void)
{
	long mb = (long)((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 8 / 1048576);

	return mb < 64 ? 64 : mb > 1024 ? 1024 : mb;
}

char *
server_settings(const struct server_how *how)
{
	struct buf b;
	char *text;

	buf_init(&b);
	buf_printf(&b,
	           "max_connections = %d\n"
	           "shared_buffers = %ldMB\n"
	           "unix_socket_directories = ''\n"
	           "autovacuum = off\n"
	           "jit = off\n"
	           "max_wal_size = 4GB\n"
	           "checkpoint_timeout = 30min\n"
	           "max_wal_senders = 10\n"
	           "log_min_messages = warning\n"
	           "logging_collector = off\n",
	           how->max_connections, shared_buffers_mb());
	if (how->cert != NULL)
		buf_printf(&b, "ssl = on\nssl_cert_file = '%s'\nssl_key_file = '%s'\n", how->cert, how->key);
	for (size_t i = 0; how->settings != NULL && i < how->settings->n; i++)
		buf_printf(&b, "%s\n", how->settings->items[i]);
	buf_append_u8(&b, '\0');
	text = text_dup(b.failed ? "" : (const char *)buf_head(&b));
	buf_fini(&b);
	return text;
}

static bool
run_program(const struct server_how *how, const char *name, struct text_list *args, struct why *why)
{
	struct text_list argv = {0};
	bool ok;

	text_list_addf(&argv, "%s/%s", how->bindir, name);
	for (size_t i = 0; i < args->n; i++)
		text_list_add(&argv, args->items[i]);
	ok = child_run(&(struct child_how){.log = how->log, .unprivileged = true}, argv.items, why);
	text_list_fini(&argv);
	text_list_fini(args);
	return ok;
}

static bool
make_primary(struct server *s, const struct server_how *how, struct why *why)
{
	char *conf = text_fmt("%s/node0/postgresql.conf", s->folder), *settings = server_settings(how);
	struct text_list args = {0};
	bool ok;

	text_list_addf(&args, "--pgdata=%s/node0", s->folder);
	text_list_split(&args, "--username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync", ' ');
	ok = run_program(how, "initdb", &args, why) && files_append(conf, settings, why);
	free(conf);
	free(settings);
	return ok;
}

static bool
make_standby(struct server *s, const struct server_how *how, int node, struct why *why)
{
	struct text_list args = {0};

	text_list_addf(&args, "--pgdata=%s/node%d", s->folder, node);
	text_list_addf(&args, "--dbname=host=%s port=%d user=postgres application_name=node%d", s->host, s->port, node);
	text_list_split(&args, "--write-recovery-conf --wal-method=stream --checkpoint=fast --no-sync", ' ');
	return run_program(how, "pg_basebackup", &args, why);
}

/* ---- start ---- */

static bool
describe_death(const struct server *s, int node, struct why *why)
{
	char *said = files_read(s->log), *line = text_last_line(said);

	why_set(why, "PostgreSQL (node %d) has ended: %s", node, line);
	free(line);
	free(said);
	return false;
}

static bool
wait_until_up(struct server *s, int node, const char *host, struct why *why)
{
	char *conninfo = text_fmt("host=%s port=%d user=postgres dbname=postgres", host, s->port);
	double end = child_now() + START_SECONDS;
	bool up = false;

	for (int round = 0; !up && child_now() < end && child_is_running(s->pids[node]); round++) {
		up = PQping(conninfo) == PQPING_OK;
		if (!up && !child_nap(round))
			break;
	}
	free(conninfo);
	if (up)
		return true;
	if (child_stop_asked() != 0)
		return why_set(why, "interrupted");
	return child_is_running(s->pids[node]) ? why_set(why, "PostgreSQL does not answer (%s)", s->log)
	                                       : describe_death(s, node, why);
}

/* Where clients find a node. The data directory is as good a folder for its socket as any. Allocated. */
static char *
node_host(const struct server *s, const struct server_how *how, int node)
{
	return how->unix_sockets ? text_fmt("%s/node%d", s->folder, node) : text_fmt("127.0.0.%d", node + 1);
}

static bool
start_node(struct server *s, const struct server_how *how, int node, struct why *why)
{
	struct text_list argv = {0};
	char host[32];

	snprintf(host, sizeof(host), "127.0.0.%d", node + 1);
	text_list_addf(&argv, "%s/postgres", how->bindir);
	text_list_add(&argv, "-D");
	text_list_addf(&argv, "%s/node%d", s->folder, node);
	text_list_addf(&argv, "--listen_addresses=%s", host);
	text_list_addf(&argv, "--port=%d", s->port);
	if (how->unix_sockets)
		text_list_addf(&argv, "--unix_socket_directories=%s/node%d", s->folder, node);
	s->pids[node] = child_start(&(struct child_how){.log = how->log, .unprivileged = true, .stop_signal = SIGINT},
	                            argv.items, why);
	text_list_fini(&argv);
	if (s->pids[node] < 0) {
		s->pids[node] = 0;
		return false;
	}
	return wait_until_up(s, node, host, why);
}

static bool
start_primary(struct server *s, const struct server_how *how, struct why *why)
{
	int n_hosts = how->topology.n_standbys + 1;

	for (int tries = 0; tries < PORTS_TRIES; tries++) {
		s->port = ports_find(n_hosts);
		if (s->port == 0)
			return why_set(why, "no free port");
		snprintf(s->admin, sizeof(s->admin), "host=127.0.0.1 port=%d user=postgres", s->port);
		if (start_node(s, how, 0, why))
			return true;
		child_stop(s->pids[0]);
		s->pids[0] = 0;
		if (child_stop_asked() != 0 || ports_is_free(n_hosts, s->port))
			return false;
	}
	return false;
}

static bool
open_connection(struct server *s, const char *database, struct why *why)
{
	char *conninfo = text_fmt("%s dbname='%s' application_name=pgweir-bench", s->admin, database);

	PQfinish(s->conn);
	s->conn = PQconnectdb(conninfo);
	free(conninfo);
	if (PQstatus(s->conn) == CONNECTION_OK) {
		/* Notices are of no use on the terminal: "relation does not exist, skipping". */
		PQclear(PQexec(s->conn, "set client_min_messages = error"));
		return true;
	}
	why_set(why, "%s", PQerrorMessage(s->conn));
	why->text[strcspn(why->text, "\n")] = '\0';
	return false;
}

static bool
start_standbys(struct server *s, const struct server_how *how, struct why *why)
{
	for (int node = 1; node <= how->topology.n_standbys; node++) {
		size_t len = strlen(s->hosts);
		char *host;

		if (!make_standby(s, how, node, why) || !start_node(s, how, node, why))
			return false;
		host = node_host(s, how, node);
		snprintf(s->hosts + len, sizeof(s->hosts) - len, ",%s", host);
		free(host);
		s->n_nodes++;
	}
	if (how->topology.replication != REPLICATION_SYNC)
		return true;
	return server_exec(s, "alter system set synchronous_standby_names = '*'", why) &&
	       server_exec(s, "alter system set synchronous_commit = 'remote_apply'", why) &&
	       server_exec(s, "select pg_reload_conf()", why);
}

static bool
start_all(struct server *s, const struct server_how *how, struct why *why)
{
	char *host = node_host(s, how, 0);
	bool fits = strlen(host) <= SOCKET_FOLDER_MAX;

	str_copy(s->host, sizeof(s->host), host);
	str_copy(s->hosts, sizeof(s->hosts), host);
	free(host);
	if (!fits)
		return why_set(why, "%s: the path is too long for a Unix socket", s->folder);
	str_copy(s->database, sizeof(s->database), "bench");
	str_copy(s->user, sizeof(s->user), "bench");
	s->n_nodes = 1;
	return make_primary(s, how, why) && start_primary(s, how, why) && open_connection(s, "postgres", why) &&
	       server_exec(s, "create role bench login", why) &&
	       server_exec(s, "create database bench owner bench", why) && open_connection(s, "bench", why) &&
	       start_standbys(s, how, why);
}

struct server *
server_start(const struct server_how *how, struct why *why)
{
	struct server *s = text_alloc(sizeof(*s));

	str_copy(s->log, sizeof(s->log), how->log);
	snprintf(s->folder, sizeof(s->folder), "%s/pgweir-bench-data.XXXXXX", how->folder);
	if (mkdtemp(s->folder) == NULL) {
		why_set(why, "cannot make a folder in %s: %s", how->folder, strerror(errno));
		s->folder[0] = '\0';
	} else if (!child_give_folder(s->folder) || !child_user_can_enter(s->folder)) {
		why_set(why, "the user %s cannot use %s", child_user_name(), s->folder);
	} else if (start_all(s, how, why)) {
		return s;
	}
	server_stop(&s);
	return NULL;
}

void
server_stop(struct server **server)
{
	struct server *s = *server;

	*server = NULL;
	if (s == NULL)
		return;
	PQfinish(s->conn);
	/* Standbys first: then the primary does not wait for them. */
	for (int node = SERVER_MAX_NODES - 1; node >= 0; node--)
		child_stop(s->pids[node]);
	if (s->folder[0] != '\0')
		files_remove_tree(s->folder);
	free(s);
}

/* ---- one that runs ---- */

static void
adopt_option(struct server *s, const PQconninfoOption *option)
{
	const char *value = option->val;

	if (value == NULL || *value == '\0')
		return;
	if (strcmp(option->keyword, "host") == 0 || strcmp(option->keyword, "hostaddr") == 0)
		str_copy(s->host, sizeof(s->host), value);
	else if (strcmp(option->keyword, "port") == 0)
		s->port = (int)strtol(value, NULL, 10);
	else if (strcmp(option->keyword, "user") == 0)
		str_copy(s->user, sizeof(s->user), value);
	else if (strcmp(option->keyword, "password") == 0)
		str_copy(s->password, sizeof(s->password), value);
	else if (strcmp(option->keyword, "dbname") == 0)
		str_copy(s->database, sizeof(s->database), value);
}

struct server *
server_adopt(const char *conninfo, struct why *why)
{
	struct server *s = text_alloc(sizeof(*s));
	char *message = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &message);

	if (options == NULL) {
		why_set(why, "--server: %.*s", (int)strcspn(message, "\n"), message);
		PQfreemem(message);
		free(s);
		return NULL;
	}
	s->port = 5432;
	for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
		adopt_option(s, o);
	PQconninfoFree(options);
	str_copy(s->hosts, sizeof(s->hosts), s->host);
	s->n_nodes = 1;
	if (s->host[0] == '\0' || s->user[0] == '\0' || s->database[0] == '\0')
		why_set(why, "--server wants host, user and dbname in the conninfo, of a database to write into");
	else if (!str_copy(s->admin, sizeof(s->admin), conninfo))
		why_set(why, "--server: the conninfo is too long");
	else if (open_connection(s, s->database, why))
		return s;
	server_stop(&s);
	return NULL;
}

/* ---- ask it ---- */

bool
server_is_alive(struct server *server, struct why *why)
{
	for (int node = 0; node < server->n_nodes; node++)
		if (server->pids[node] != 0 && !child_is_running(server->pids[node]))
			return describe_death(server, node, why);
	return true;
}

bool
server_exec(struct server *server, const char *sql, struct why *why)
{
	PGresult *result = PQexec(server->conn, sql);
	bool ok = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;

	if (!ok)
		why_set(why, "%.60s: %.*s", sql, (int)strcspn(PQerrorMessage(server->conn), "\n"),
		        PQerrorMessage(server->conn));
	PQclear(result);
	return ok;
}

char *
server_value(struct server *server, const char *sql)
{
	PGresult *result = PQexec(server->conn, sql);
	char *value = text_dup(
		PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");

	PQclear(result);
	return value;
}

int
server_count_connections(struct server *server)
{
	char *value = server_value(server, "select count(*) from pg_stat_activity where datname = current_database() "
	                                   "and pid <> pg_backend_pid() and backend_type = 'client backend'");
	int64_t n = -1;

	if (!str_parse_int(value, 0, INT32_MAX, &n))
		n = -1;
	free(value);
	return (int)n;
}

static bool
is_settled(struct server *s)
{
	char *lagging = server_value(s, "select count(*) from pg_stat_replication where replay_lsn is distinct from "
	                                "pg_current_wal_lsn()");
	bool replayed = s->n_nodes == 1 || strcmp(lagging, "0") == 0;

	free(lagging);
	return replayed && (s->pids[0] == 0 || server_count_connections(s) == 0);
}

bool
server_settle(struct server *server, struct why *why)
{
	double end = child_now() + 120;

	for (int round = 0; child_now() < end; round++) {
		if (is_settled(server))
			return true;
		if (!server_is_alive(server, why))
			return false;
		if (!child_nap(round))
			return why_set(why, "interrupted");
	}
	return why_set(why, "the server's connections do not go away, or a standby does not catch up");
}

uint64_t
server_size_of_scale(int scale)
{
	return (uint64_t)scale * 16000000u;
}
