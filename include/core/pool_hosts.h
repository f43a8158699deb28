/* SPDX-License-Identifier: ISC */
/*
 * A pool over several hosts: which of its idle backends is next, and what moves when a
 * host has come back. Each proxy balances the transactions that it serves itself; only
 * connections are counted over all proxies.
 */
#ifndef PGWEIR_CORE_POOL_HOSTS_H
#define PGWEIR_CORE_POOL_HOSTS_H

#include "core/pool.h"

/*
 * An idle backend of the host with the fewest busy ones (load_balance_hosts = disable: of the first host); there one that
 * carries these settings, else the most recently used. NULL: none idles.
 */
struct backend *pool_hosts_pick_idle(struct pool *pool, const struct settings *settings);
/* Now and then: moves one connection from the host that has too many to the one that has too few. */
void pool_hosts_balance(struct pool *pool);

/* Now and then: waiters stop counting on logins that take long, if another host may do. */
void pool_hosts_doubt_slow(struct pool *pool);

#endif
