/* SPDX-License-Identifier: ISC */
/*
 * A scratch PostgreSQL server. Databases: postgres, app, other. Roles, all with
 * password "secret":
 *   postgres    superuser, trust       app, app2, app3   trust
 *   user_plain  hba method password    user_md5          md5     user_scram  scram-sha-256
 */
#ifndef PGWEIR_TEST_CLUSTER_H
#define PGWEIR_TEST_CLUSTER_H

#include <libpq-fe.h>
#include <stdint.h>
#include <sys/types.h>

struct cluster {
	char dir[80]; /* data folder, and the Unix socket's */
	uint16_t port;
	pid_t pid; /* postmaster; 0 while down */
};

/* From a template that initdb makes once per run ($PGWEIR_TEST_TEMPLATE) or per program. */
struct cluster *cluster_new(void);
void cluster_start(struct cluster *c);
void cluster_stop(struct cluster *c);     /* immediate shutdown, waits for it */
void cluster_kill_all(struct cluster *c); /* kill -9 of the postmaster and every process of it */

/* Direct connections, as the superuser. */
PGconn *cluster_connect(const struct cluster *c, const char *database);

#endif
