/* SPDX-License-Identifier: ISC */
/*
 * A pool: in one proxy, the idle backends and the waiting sessions of one group.
 *
 * Who gets a free backend (pool_give): the oldest waiter of this pool at once; but an
 * older waiter of another proxy first; else the idle list. A session that asks
 * (pool_take) gets an idle backend or waits; whoever waits makes the pool open
 * connections as far as the group's limits go. pool_take answers NULL while others wait.
 *
 * Waiters are served in the order in which they came, but for one thing: a free backend
 * goes to the first of them whose settings it carries, since applying others costs a
 * round trip and, among many sessions of different settings, nearly every transaction
 * would pay it. Each waiter is overtaken at most once for each backend of the pool.
 *
 * A replication session does not want any of these, but room for a connection of its
 * own. Where the limits leave none, a backend is closed as soon as it is free: such
 * sessions are few, and would else never get one in a busy pool.
 */
#ifndef PGWEIR_CORE_POOL_H
#define PGWEIR_CORE_POOL_H

#include "core/group.h"
#include "core/proxy.h"
#include "core/state.h"
#include "net/loop.h"

#define POOL_MAGIC 0x706f6f6cu

struct pool_stats {
	counter n_xacts, n_queries, n_assignments, n_client_logins;
	counter bytes_received, bytes_sent; /* from clients, to clients */
	counter xact_us, query_us, wait_us;
	counter n_probes, n_replays, n_pins[PIN_N], n_leaks;
	counter n_client_parses, n_server_parses, n_binds, n_prepared_hits, n_evictions;
};

/* What this proxy has of one host. */
struct pool_host {
	unsigned n_backends, n_opening;
};

struct pool {
	uint32_t magic;
	struct group *group;
	struct proxy *proxy;
	TAILQ_HEAD(, backend) idle;                 /* most recently used first */
	TAILQ_HEAD(session_queue, session) waiters; /* oldest first */
	struct session_queue own_waiters; /* of them: those that wait for room for a connection of their own */
	unsigned n_idle, n_waiting, n_opening, n_backends;
	struct pool_host *hosts;      /* as in the group; kept, though not read, with one host */
	struct loop_timer tick;       /* idle timeouts, lifetimes, retries, reserve, min_pool_size */
	struct loop_task own_task;    /* connections of sessions' own are to be opened, if there is room */
	struct loop_task settle_task; /* free backends and older waiters of other proxies are to be brought together */
	struct pool_stats stats;
	UT_hash_handle hh;
};

struct pool *pool_get(struct proxy *p, struct group *g); /* finds or makes; NULL: no memory */
void pool_free_all(struct proxy *p);

/* An idle backend for s (now BACKEND_ACTIVE and s's), or NULL: then the caller calls pool_wait. */
struct backend *pool_take(struct pool *pool, struct session *s);
void pool_wait(struct pool *pool, struct session *s); /* s->wait_since_us must be set */
void pool_unwait(struct pool *pool, struct session *s);
/* A free, settled backend of this proxy: to a waiter, another proxy or the idle list. */
void pool_give(struct pool *pool, struct backend *b);
/* The same for one that another proxy has just handed over to our oldest waiter. */
void pool_receive(struct pool *pool, struct backend *b);
/* Something changed (a limit, a failure, a waiter): open what may be opened, fail waiters that can't be served. */
void pool_consider(struct pool *pool);
/* Another proxy wants an idle backend of ours; its waiter may have been served meanwhile. False: there is none to lend. */
bool pool_lend(struct pool *pool, unsigned to);
void pool_evict(struct pool *pool); /* closes the oldest idle backend */
/* A backend of this pool could not be opened or logged in; waiters may learn the reason. */
void pool_open_failed(struct pool *pool);
/* A backend (by = 1), or one less (-1); the same for those that are not logged in yet. */
void pool_count_backend(struct pool *pool, const struct backend *b, int by);
void pool_count_opening(struct pool *pool, const struct backend *b, int by);
void pool_remove_idle(struct pool *pool, struct backend *b);
void pool_adopt_idle(struct pool *pool, struct backend *b); /* into the idle list, whoever waits: to be closed next */
/* Here or in another proxy. */
static inline bool
pool_has_waiters_anywhere(const struct pool *pool)
{
	return pool->n_waiting > 0 || group_older_waiter(pool->group, pool->proxy->index, UINT64_MAX) >= 0;
}

#endif
