/* SPDX-License-Identifier: ISC */
/*
 * The admin console: connections to the database `pgweir` (or `pgbouncer`), handed
 * over by the proxies once they are authenticated. Main thread.
 *
 *   admin.c             the connections as a whole, and the periods of the averages
 *   admin_console.c     one connection: the protocol
 *   admin_command.c     the table of commands and its parser
 *   admin_ask.c         rows of the proxies: asking for them and waiting
 *   admin_reply.c       writing result sets
 *   admin_show*.c       what the commands answer
 */
#ifndef PGWEIR_OPS_ADMIN_H
#define PGWEIR_OPS_ADMIN_H

#include "core/proxy.h"
#include "proxy/snapshot.h"

struct admin;
struct loop;

/*
 * shutdown: what SHUTDOWN does; WEIR_WAIT_CLIENTS, WEIR_WAIT_SERVERS or WEIR_STOPPING. Called from the loop. NULL: no
 * memory.
 */
struct admin *admin_new(struct weir *w, struct loop *loop, void (*shutdown)(enum weir_phase phase, void *arg),
                        void *arg);
void admin_free(struct admin **a);                       /* closes its connections; the loop must turn once more */
void admin_adopt(struct admin *a, struct mail_admin *m); /* consumes m */
void admin_snapshot(struct admin *a, struct mail_snapshot *m); /* consumes m */

#endif
