/* SPDX-License-Identifier: ISC */
#include "system.h"

#include "base/str.h"
#include "child.h"
#include "files.h"
#include "poolconf.h"
#include "ports.h"

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_SECONDS 30
#define ANSWER_SECONDS 3

char *
system_find_program(const struct system_spec *spec, const char *given, const char *scratch, struct why *why)
{
	const char *name = system_spec_program(spec);
	char *path = files_find_program(given != NULL ? given : name), *copy;

	if (path == NULL) {
		if (given != NULL)
			why_set(why, "not installed: no program %s", given);
		else
			why_set(why, "not installed: package %s", system_spec_package(spec));
		return NULL;
	}
	if (child_user_can_run(path))
		return path;
	copy = text_fmt("%s/%s", scratch, name);
	if (!files_copy(path, copy, 0755, why)) {
		free(copy);
		copy = NULL;
	}
	free(path);
	return copy;
}

char *
system_version(const struct system_spec *spec, const char *program)
{
	const char *option = spec->kind == SYSTEM_HAPROXY ? "-v" : spec->kind == SYSTEM_ODYSSEY ? "--version" : "-V";
	char *command = text_fmt("'%s' %s 2>&1", program, option), line[128] = "";
	FILE *p = popen(command, "re");

	free(command);
	if (p != NULL) {
		if (fgets(line, sizeof(line), p) != NULL)
			line[strcspn(line, "\n")] = '\0';
		while (fgetc(p) != EOF)
			;
		pclose(p);
	}
	return text_dup(line);
}

static bool
has_ended(struct system *sys, int i, struct why *why)
{
	char *said, *line, *how;

	if (child_is_running(sys->pids[i]))
		return false;
	said = files_read_from(sys->log, sys->log_from);
	line = text_error_line(said);
	how = child_how_it_ended(sys->pids[i]);
	why_set(why, "%s has ended (%s)%s%.300s", sys->spec->name, how, *line != '\0' ? ": " : "", line);
	free(how);
	free(line);
	free(said);
	return true;
}

bool
system_is_alive(struct system *sys, struct why *why)
{
	for (int i = 0; i < sys->n_pids; i++)
		if (has_ended(sys, i, why))
			return false;
	return true;
}

char *
system_conninfo(const struct system *sys, bool tls)
{
	const char *host = sys->host, *security = tls ? "require" : "disable";

	if (sys->spec->kind == SYSTEM_OTHER)
		return text_fmt("%s connect_timeout=30", sys->spec->conninfo);
	return text_fmt("host=%s port=%d user=%s dbname=%s%s%s sslmode=%s gssencmode=disable connect_timeout=30", host,
	                sys->port, sys->user, sys->database, sys->password[0] != '\0' ? " password=" : "",
	                sys->password, security);
}

/* A pooler may keep us waiting for a server that is no more: both are to be looked at now and then. */
static bool
comes_in_time(PGconn *conn)
{
	struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
	double end = child_now() + ANSWER_SECONDS;

	while (PQconsumeInput(conn) && PQisBusy(conn)) {
		if (child_now() > end || child_stop_asked() != 0)
			return false;
		poll(&fd, 1, 100);
	}
	return true;
}

static bool
answers(const struct system *sys, struct why *why)
{
	char *base = system_conninfo(sys, false), *conninfo = text_fmt("%s connect_timeout=%d", base, ANSWER_SECONDS);
	PGconn *conn = PQconnectdb(conninfo);
	bool asked = PQstatus(conn) == CONNECTION_OK && PQsendQuery(conn, "select 1") == 1;
	PGresult *result = asked && comes_in_time(conn) ? PQgetResult(conn) : NULL;
	bool ok = PQresultStatus(result) == PGRES_TUPLES_OK;

	if (!ok)
		why_set(why, "%s does not answer%s%.*s", sys->spec->name, *PQerrorMessage(conn) != '\0' ? ": " : "",
		        (int)strcspn(PQerrorMessage(conn), "\n"), PQerrorMessage(conn));
	PQclear(result);
	PQfinish(conn);
	free(conninfo);
	free(base);
	return ok;
}

static bool
wait_until_it_answers(struct system *sys, struct server *server, struct why *why)
{
	double end = child_now() + START_SECONDS;

	for (int round = 0; !answers(sys, why); round++) {
		if (!system_is_alive(sys, why) || !server_is_alive(server, why) || child_now() > end)
			return false;
		if (!child_nap(round))
			return why_set(why, "interrupted");
	}
	return true;
}

/* The file it is started with lies where it may read it; the same text goes to the results. */
static bool
keep_config(const struct system_how *how, const char *name, const char *text, char **path, struct why *why)
{
	char *kept = text_fmt("%s/systems/%s", how->out, name);
	bool ok;

	*path = text_fmt("%s/%s", how->scratch, name);
	ok = files_write(*path, text, why) && files_write(kept, text, why);
	free(kept);
	return ok;
}

/* A name for files: no slash or colon. Allocated. */
static char *
file_name(const struct system_spec *spec, int process, const char *end)
{
	char *name = spec->n_processes > 1 ? text_fmt("%s-%d%s", spec->name, process, end)
	                                   : text_fmt("%s%s", spec->name, end);

	for (char *p = name; *p != '\0'; p++)
		if (*p == '/' || *p == ':')
			*p = '-';
	return name;
}

static bool
start_process(struct system *sys, const struct system_how *how, const char *config, struct why *why)
{
	char *haproxy[] = {(char *)sys->program, "-db", "-f", (char *)config, NULL};
	char *other[] = {(char *)sys->program, (char *)config, NULL};
	/* To pgbouncer and pgweir SIGINT would mean to wait for clients. */
	int stop_signal = sys->spec->kind == SYSTEM_PGBOUNCER || sys->spec->kind == SYSTEM_PGWEIR ? SIGQUIT : SIGTERM;
	struct child_how child = {.log = sys->log,
	                          .folder = how->scratch,
	                          .unprivileged = true,
	                          .stop_signal = stop_signal};
	pid_t pid = child_start(&child, sys->spec->kind == SYSTEM_HAPROXY ? haproxy : other, why);

	if (pid < 0)
		return false;
	sys->pids[sys->n_pids++] = pid;
	return true;
}

static bool
start_processes(struct system *sys, const struct system_how *how, const struct poolconf *conf, struct why *why)
{
	char *users_path = NULL, *users = poolconf_write_users(conf);
	bool ok = keep_config(how, "users.txt", users, &users_path, why);

	free(users);
	free(users_path);
	for (int i = 0; ok && i < sys->spec->n_processes; i++) {
		char *name = file_name(sys->spec, i, sys->spec->kind == SYSTEM_HAPROXY ? ".cfg" : ".ini");
		char *path = NULL, *text = poolconf_write(conf, i);

		ok = keep_config(how, name, text, &path, why) && start_process(sys, how, path, why);
		free(path);
		free(text);
		free(name);
	}
	return ok;
}

static bool
start_on_a_port(struct system *sys, const struct system_how *how, struct poolconf *conf, struct server *server,
                struct why *why)
{
	for (int tries = 0; tries < PORTS_TRIES; tries++) {
		sys->port = conf->port = ports_find(1);
		if (conf->port == 0)
			return why_set(why, "no free port");
		if (start_processes(sys, how, conf, why) && wait_until_it_answers(sys, server, why))
			return true;
		system_stop(sys);
		if (child_stop_asked() != 0 || ports_is_free(1, conf->port))
			return false;
	}
	return false;
}

bool
system_start(struct system *sys, const struct system_spec *spec, const char *program, const struct system_how *how,
             struct server *server, int max_clients, struct why *why)
{
	struct poolconf conf = {.spec = spec,
	                        .folder = how->scratch,
	                        .max_clients = max_clients,
	                        .cert = how->cert,
	                        .key = how->key,
	                        .socket = how->unix_sockets ? how->scratch : NULL,
	                        .server_hosts = how->hosts,
	                        .server_port = server->port,
	                        .database = server->database,
	                        .user = server->user,
	                        .password = server->password};
	char *log = file_name(spec, 0, ".log");

	memset(sys, 0, sizeof(*sys));
	sys->spec = spec;
	sys->program = program;
	sys->port = server->port;
	str_copy(sys->host, sizeof(sys->host), server->host);
	str_copy(sys->user, sizeof(sys->user), server->user);
	str_copy(sys->database, sizeof(sys->database), server->database);
	str_copy(sys->password, sizeof(sys->password), server->password);
	snprintf(sys->log, sizeof(sys->log), "%s/systems/%s", how->out, log);
	free(log);
	sys->log_from = files_size(sys->log);
	if (spec->n_processes == 0)
		return wait_until_it_answers(sys, server, why);
	str_copy(sys->host, sizeof(sys->host), how->unix_sockets ? how->scratch : "127.0.0.1");
	return start_on_a_port(sys, how, &conf, server, why);
}

void
system_stop(struct system *sys)
{
	while (sys->n_pids > 0)
		child_stop(sys->pids[--sys->n_pids]);
}
