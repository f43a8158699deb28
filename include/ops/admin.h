/* SPDX-License-Identifier: ISC */
/*
 * The admin console: connections to the database `pgweir` (or `pgbouncer`), handed
 * over by the proxies once they are authenticated. Main thread.
 */
#ifndef PGWEIR_OPS_ADMIN_H
#define PGWEIR_OPS_ADMIN_H

#include "core/proxy.h"
#include "proxy/snapshot.h"

struct admin;
struct loop;

struct admin *admin_new(struct weir *w, struct loop *loop); /* NULL: no memory */
void admin_free(struct admin **a);                          /* closes its connections */
void admin_adopt(struct admin *a, struct mail_admin *m);    /* consumes m */
void admin_snapshot(struct admin *a, struct mail_snapshot *m); /* consumes m */

#endif
