/* SPDX-License-Identifier: ISC */
#include "core/pool_hosts.h"

#include "base/clock.h"
#include "core/backend.h"
#include "core/group_hosts.h"

#include <string.h>

#define MOVE_US 300000u  /* between two moves in a group */
#define SLOW_US 1000000u /* a login that takes longer is not waited for while another host may do */

/* ---- which is next ---- */

/* What a transaction on each host costs: the smaller the better. */
static void
rank_hosts(const struct pool *pool, unsigned rank[CONFIG_MAX_HOSTS])
{
	const struct backend *b;

	for (unsigned i = 0; i < pool->group->n_hosts; i++)
		rank[i] = pool->group->db->load_balance == HOSTS_DISABLE
		                  ? i
		                  : pool->hosts[i].n_backends - pool->hosts[i].n_opening;
	if (pool->group->db->load_balance == HOSTS_DISABLE)
		return;
	TAILQ_FOREACH (b, &pool->idle, idle_link)
		rank[b->host]--;
}

struct backend *
pool_hosts_pick_idle(struct pool *pool, const struct settings *settings)
{
	bool wants_oldest = pool->group->weir->config->server_round_robin;
	unsigned rank[CONFIG_MAX_HOSTS];
	struct backend *b, *best = NULL;

	rank_hosts(pool, rank);
	TAILQ_FOREACH (b, &pool->idle, idle_link) {
		bool is_better = best == NULL || rank[b->host] < rank[best->host];
		bool is_equal = best != NULL && rank[b->host] == rank[best->host];

		if (is_better || (is_equal && (wants_oldest || (b->label == settings && best->label != settings))))
			best = b;
	}
	return best;
}

/* ---- moving ---- */

static uint64_t
hosts_here(const struct pool *pool)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < pool->group->n_hosts; i++)
		if (pool->hosts[i].n_backends > pool->hosts[i].n_opening)
			bits |= UINT64_C(1) << i;
	return bits;
}

static struct backend *
idle_of(const struct pool *pool, unsigned host)
{
	struct backend *b;

	TAILQ_FOREACH_REVERSE(b, &pool->idle, backend_list, idle_link)
	if (b->host == host)
		return b;
	return NULL;
}

/* All serve: one of them ends with what it does now. */
static void
retire_one(const struct pool *pool, unsigned host)
{
	struct backend *b, *found = NULL;

	TAILQ_FOREACH (b, &pool->proxy->backends, link) {
		if (b->pool != pool || b->host != host || b->is_own || b->state != BACKEND_ACTIVE)
			continue;
		if (b->retire_at_us == 0)
			return; /* this one is to end already */
		found = b;
	}
	if (found != NULL)
		found->retire_at_us = 0;
}

static void
move_one(struct pool *pool, unsigned from)
{
	struct backend *b = idle_of(pool, from);
	struct group_slot slot;
	enum group_token token = group_take_token(pool->group, 0, &slot);

	if (token == GROUP_TOKEN_OK)
		backend_open(pool, slot);
	if ((token == GROUP_TOKEN_OK && slot.is_trial) || token == GROUP_TOKEN_CONNECTING ||
	    token == GROUP_TOKEN_BACKOFF)
		return;
	if (b == NULL)
		retire_one(pool, from);
	else
		backend_close(b, CLOSE_SERVER_MOVED, NULL);
	if (b != NULL && token != GROUP_TOKEN_OK && group_take_token(pool->group, 0, &slot) == GROUP_TOKEN_OK)
		backend_open(pool, slot);
}

/* ---- hosts that don't answer ---- */

/* The attempt goes on: if it succeeds after all, the host is well again. */
static void
stop_counting_on(struct pool *pool, struct backend *b)
{
	struct said said;

	pool_count_opening(pool, b, -1);
	b->is_trial = true;
	pool_count_opening(pool, b, 1);
	said_set(&said, "08006", "no answer so far");
	group_failed(pool->group, b->host, CLOSE_CONNECT_TIMEOUT, false, &said);
}

void
pool_hosts_doubt_slow(struct pool *pool)
{
	uint64_t now_us = clock_cached_us();
	struct backend *b;

	if (pool->group->n_hosts == 1 || pool->n_opening == 0)
		return;
	TAILQ_FOREACH (b, &pool->proxy->backends, link) {
		bool is_opening = b->state == BACKEND_CONNECTING || b->state == BACKEND_LOGIN;

		if (b->pool == pool && is_opening && !b->is_own && !b->is_trial && now_us - b->connected_us > SLOW_US &&
		    (group_hosts_state(pool->group).well & ~(UINT64_C(1) << b->host)) != 0)
			stop_counting_on(pool, b);
	}
}

void
pool_hosts_balance(struct pool *pool)
{
	struct group *g = pool->group;
	unsigned from;

	if (g->n_hosts > 1 && weir_phase(g->weir) == WEIR_RUNNING &&
	    group_hosts_unbalanced(g, hosts_here(pool), &from) && group_hosts_claim_move(g, MOVE_US))
		move_one(pool, from);
}
