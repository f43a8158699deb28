/* SPDX-License-Identifier: ISC */
/*
 * The daemon under test: an ini file in a folder of its own, started in the
 * foreground, stopped at the end of the test, which then checks its exit code
 * and that neither an invariant nor a sanitizer spoke up.
 */
#ifndef PGWEIR_TEST_DAEMON_H
#define PGWEIR_TEST_DAEMON_H

#include "cluster.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon_conf {
	const char *settings;  /* lines of the main section, over the harness's own; may be NULL */
	const char *databases; /* lines; "@pg" stands for host= and port= of the cluster; NULL: "* = @pg" */
	const char *users;     /* lines of [users]; may be NULL */
	const char *userlist;  /* the auth_file; NULL: every role of the cluster with its plain password */
	bool may_not_start;    /* return though it ends before it answers */
};

struct daemon {
	pid_t pid; /* 0 once it is waited for */
	uint16_t port;
	char dir[80]; /* of the ini file, log, pid file and Unix socket */
	int exit_code;
};

/* Waits until the console answers. pg may be NULL when databases is given. */
struct daemon *daemon_start(const struct cluster *pg, const struct daemon_conf *conf);
/* SIGTERM, again if sessions keep it alive; asserts exit code 0 and a clean log. */
void daemon_stop(struct daemon *d);
char *daemon_end(struct daemon *d); /* the same outside a Check test: what was wrong, or NULL */
void daemon_assert_clean_log(const struct daemon *d);
bool daemon_ended(struct daemon *d, int timeout_ms); /* true: exit_code is set */

/* True for pgweir, false when the tests are tried on pgbouncer. */
bool daemon_is_pgweir(void);
bool daemon_is_sanitized(void); /* slower and larger: tests of size and memory take smaller numbers */

char *daemon_log(const struct daemon *d); /* log file and stderr so far, malloc'd */
char *daemon_log_tail(const struct daemon *d);
bool daemon_logged(const struct daemon *d, const char *text);
char *daemon_ini_path(const struct daemon *d);

/* Client connections over TCP; NULL user or database: "app". Not checked: may be a failed one. */
PGconn *daemon_try_connect(const struct daemon *d, const char *extra_conninfo);
PGconn *daemon_connect(const struct daemon *d); /* user app, database app; asserts */
PGconn *daemon_console(const struct daemon *d); /* asserts */

/* A number of SHOW <what>: from the row whose key_column is key (NULL: the first row). -1: no such row. */
long daemon_show(const struct daemon *d, const char *what, const char *key_column, const char *key, const char *column);
/* How many rows of SHOW <what> have column = value. */
int daemon_count(const struct daemon *d, const char *what, const char *column, const char *value);

#endif
