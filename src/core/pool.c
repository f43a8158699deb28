/* SPDX-License-Identifier: ISC */
#include "core/pool.h"

#include "base/clock.h"
#include "base/obj.h"
#include "core/backend.h"
#include "core/group_hosts.h"
#include "core/pool_hosts.h"
#include "core/replication.h"
#include "core/session.h"

#include <stdlib.h>

#define TICK_US 300000u    /* how late idle timeouts, lifetimes and the reserve may come */
#define LOOK_AT_WAITERS 64 /* for one whose settings a free backend carries */

static void pool_tick(struct loop_timer *t);
static void ask_for_more(struct pool *pool);
static void settle(struct loop_task *t);
static void open_own(struct loop_task *t);

/* Makes the tick come no later than that. */
static void
tick_by(struct pool *pool, uint64_t at_us)
{
	if (at_us < pool->tick.deadline_us)
		loop_timer_set(pool->proxy->loop, &pool->tick, at_us);
}

/* ---- life ---- */

struct pool *
pool_get(struct proxy *p, struct group *g)
{
	struct pool *pool;

	HASH_FIND_PTR(p->pools, &g, pool);
	if (pool != NULL)
		return pool;
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL || (pool->hosts = calloc(g->n_hosts, sizeof(*pool->hosts))) == NULL) {
		free(pool);
		return NULL;
	}
	pool->magic = POOL_MAGIC;
	pool->group = g;
	pool->proxy = p;
	pool->tick.fire = pool_tick;
	pool->tick.deadline_us = LOOP_NEVER;
	pool->settle_task.run = settle;
	TAILQ_INIT(&pool->idle);
	TAILQ_INIT(&pool->waiters);
	TAILQ_INIT(&pool->own_waiters);
	pool->own_task.run = open_own;
	HASH_ADD_PTR(p->pools, group, pool);
	if (pool->hh.tbl == NULL) {
		free(pool->hosts);
		free(pool);
		return NULL;
	}
	counter_add(&p->n_pools, 1);
	tick_by(pool, clock_cached_us() + TICK_US);
	return pool;
}

void
pool_free_all(struct proxy *p)
{
	struct pool *pool, *next;

	HASH_ITER (hh, p->pools, pool, next) {
		invariant(pool->n_backends == 0 && pool->n_waiting == 0);
		loop_timer_remove(p->loop, &pool->tick);
		loop_cancel_task(p->loop, &pool->settle_task);
		loop_cancel_task(p->loop, &pool->own_task);
		HASH_DEL(p->pools, pool);
		free(pool->hosts);
		free(pool);
	}
}

void
pool_count_backend(struct pool *pool, const struct backend *b, int by)
{
	pool->n_backends += (unsigned)by;
	pool->hosts[b->host].n_backends += (unsigned)by;
}

void
pool_count_opening(struct pool *pool, const struct backend *b, int by)
{
	if (!b->is_trial)
		pool->n_opening += (unsigned)by;
	pool->hosts[b->host].n_opening += (unsigned)by;
}

/* ---- the idle list ---- */

static void
publish_idle(struct pool *pool)
{
	if (!group_is_alone(pool->group))
		atomic_store(&pool->group->n_idle[pool->proxy->index], pool->n_idle);
	else
		atomic_store_explicit(&pool->group->n_idle[0], pool->n_idle, memory_order_relaxed);
}

static void
add_idle(struct pool *pool, struct backend *b)
{
	/* most recently used first; server_round_robin takes from the other end */
	TAILQ_INSERT_HEAD(&pool->idle, b, idle_link);
	pool->n_idle++;
	counter_add(&pool->proxy->n_idle_backends, 1);
	publish_idle(pool);
}

void
pool_adopt_idle(struct pool *pool, struct backend *b)
{
	add_idle(pool, b);
}

void
pool_remove_idle(struct pool *pool, struct backend *b)
{
	TAILQ_REMOVE(&pool->idle, b, idle_link);
	pool->n_idle--;
	counter_add(&pool->proxy->n_idle_backends, (uint64_t)-1);
	publish_idle(pool);
}

/* An idle backend for these settings: one that carries them, else the most recently used. */
static struct backend *
pick_idle(struct pool *pool, const struct settings *settings)
{
	struct backend *b;

	if (pool->group->n_hosts > 1)
		return pool_hosts_pick_idle(pool, settings);
	if (pool->group->weir->config->server_round_robin)
		return TAILQ_LAST(&pool->idle, backend_list);
	TAILQ_FOREACH (b, &pool->idle, idle_link)
		if (b->label == settings)
			return b;
	return TAILQ_FIRST(&pool->idle);
}

static bool
is_check_due(const struct pool *pool, const struct backend *b)
{
	const struct config *c = pool->group->weir->config;

	return c->server_check_query[0] != '\0' &&
	       clock_cached_us() - b->idle_since_us > (uint64_t)c->server_check_delay_us;
}

struct backend *
pool_take(struct pool *pool, struct session *s)
{
	struct backend *b;

	if (pool->n_waiting > 0 || pool->settle_task.queued)
		return NULL; /* behind those who wait, here or elsewhere */
	b = pick_idle(pool, s->settings);
	if (b == NULL)
		return NULL;
	pool_remove_idle(pool, b);
	if (is_check_due(pool, b)) {
		/* the session waits; whoever is first gets it when it has answered */
		backend_check(b);
		return NULL;
	}
	counter_add(&pool->stats.n_assignments, 1);
	backend_attach_session(b, s);
	return b;
}

/* ---- waiting ---- */

/* Tells the group since when our oldest waiter waits. */
static void
publish_waiting(struct pool *pool)
{
	struct session *s = TAILQ_FIRST(&pool->waiters);
	uint64_t since_us = s ? s->wait_since_us : 0;

	if (group_is_alone(pool->group)) {
		atomic_store_explicit(&pool->group->waiting_since_us[0], since_us, memory_order_relaxed);
		return;
	}
	atomic_store(&pool->group->waiting_since_us[pool->proxy->index], since_us);
}

static void
wait_for_own(struct pool *pool, struct session *s)
{
	TAILQ_INSERT_TAIL(&pool->own_waiters, s, wait_link);
	s->is_queued = true;
	counter_add(&pool->proxy->n_waiting, 1);
	group_want_own(pool->group, pool->proxy->index, 1);
	tick_by(pool, clock_cached_us() + TICK_US);
	loop_defer(pool->proxy->loop, &pool->own_task);
}

static void
unwait_for_own(struct pool *pool, struct session *s)
{
	TAILQ_REMOVE(&pool->own_waiters, s, wait_link);
	s->is_queued = false;
	counter_add(&pool->proxy->n_waiting, (uint64_t)-1);
	group_want_own(pool->group, pool->proxy->index, -1);
}

void
pool_wait(struct pool *pool, struct session *s)
{
	if (s->replication != NULL) {
		wait_for_own(pool, s);
		return;
	}
	TAILQ_INSERT_TAIL(&pool->waiters, s, wait_link);
	s->is_queued = true;
	s->n_overtaken = 0;
	pool->n_waiting++;
	counter_add(&pool->proxy->n_waiting, 1);
	if (pool->n_waiting == 1)
		publish_waiting(pool);
	tick_by(pool, clock_cached_us() + TICK_US);
	ask_for_more(pool);
	/* the one that pool_take chose is being tested; who waits behind is not to wait while others idle */
	if (pool->n_idle > 0)
		loop_defer(pool->proxy->loop, &pool->settle_task);
}

void
pool_unwait(struct pool *pool, struct session *s)
{
	bool was_first = TAILQ_FIRST(&pool->waiters) == s;

	if (s->replication != NULL) {
		unwait_for_own(pool, s);
		return;
	}
	TAILQ_REMOVE(&pool->waiters, s, wait_link);
	s->is_queued = false;
	pool->n_waiting--;
	counter_add(&pool->proxy->n_waiting, (uint64_t)-1);
	if (was_first)
		publish_waiting(pool);
}

/* The first that the backend costs nothing extra, while the oldest may still be overtaken; else the oldest. */
static struct session *
next_waiter(struct pool *pool, const struct backend *b)
{
	struct session *first = TAILQ_FIRST(&pool->waiters), *s, *found = first;
	unsigned most = pool->n_backends < UINT8_MAX ? pool->n_backends : UINT8_MAX, n = 0;

	/* nobody behind the oldest has been overtaken more often */
	if (first->settings == b->label || first->n_overtaken >= most)
		return first;
	while (found != NULL && found->settings != b->label && n++ < LOOK_AT_WAITERS)
		found = TAILQ_NEXT(found, wait_link);
	if (found == NULL || found->settings != b->label)
		return first;
	for (s = first; s != found; s = TAILQ_NEXT(s, wait_link))
		s->n_overtaken++;
	return found;
}

static void
serve_waiter(struct pool *pool, struct backend *b)
{
	struct session *s = next_waiter(pool, b);

	pool_unwait(pool, s);
	counter_add(&pool->stats.n_assignments, 1);
	counter_add(&pool->stats.wait_us, clock_cached_us() - s->wait_since_us);
	backend_attach_session(b, s);
	session_given(s, b);
}

/* ---- handing over ---- */

static bool
hand_over(struct pool *pool, struct backend *b, unsigned to)
{
	struct mail_backend *m;

	m = calloc(1, sizeof(*m));
	/* claimed in any case: without memory its waiter is published again with its next change, rather late than lost */
	if (!group_claim_waiter(pool->group, to) || m == NULL) {
		free(m);
		return false;
	}
	m->mail.type = MAIL_BACKEND;
	m->group = pool->group;
	m->backend = b;
	stream_detach(&b->stream);
	TAILQ_REMOVE(&pool->proxy->backends, b, link);
	loop_timer_remove(pool->proxy->loop, &b->timer);
	counter_add(&pool->proxy->n_backends, (uint64_t)-1);
	pool_count_backend(pool, b, -1);
	b->pool = NULL;
	mailbox_post(pool->group->weir->proxies[to]->mailbox, &m->mail);
	return true;
}

/* Free ones to those who have waited longest, here or elsewhere. */
static void
settle(struct loop_task *t)
{
	struct pool *pool = container_of(t, struct pool, settle_task);
	unsigned n_checks = 0;
	struct backend *b;

	while ((b = TAILQ_FIRST(&pool->idle)) != NULL) {
		struct session *s = TAILQ_FIRST(&pool->waiters);
		int other = group_older_waiter(pool->group, pool->proxy->index, s ? s->wait_since_us : UINT64_MAX);

		if (other >= 0) {
			if (!pool_lend(pool, (unsigned)other))
				return;
		} else if (s != NULL && n_checks < pool->n_waiting) {
			pool_remove_idle(pool, b);
			if (is_check_due(pool, b)) {
				n_checks++;
				backend_check(b); /* then to the first who waits */
			} else {
				serve_waiter(pool, b);
			}
		} else {
			return;
		}
	}
}

void
pool_give(struct pool *pool, struct backend *b)
{
	struct session *s = TAILQ_FIRST(&pool->waiters);
	struct group *g = pool->group;

	if (group_wants_room(g)) {
		backend_park(b);
		add_idle(pool, b);
		backend_close(b, CLOSE_SERVER_EVICTED, NULL);
		return;
	}
	if (s != NULL && (group_is_alone(g) || group_older_waiter(g, pool->proxy->index, s->wait_since_us) < 0)) {
		serve_waiter(pool, b);
		return;
	}
	backend_park(b);
	/* store before looking: a new waiter elsewhere stores first, too, and then looks at our idle count */
	add_idle(pool, b);
	/* from a task, since b's own bytes may just be looked at */
	if (!group_is_alone(g) && group_older_waiter(g, pool->proxy->index, s ? s->wait_since_us : UINT64_MAX) >= 0)
		loop_defer(pool->proxy->loop, &pool->settle_task);
}

void
pool_receive(struct pool *pool, struct backend *b)
{
	/* the giver has claimed our oldest waiter's publication; if an even older one elsewhere gets b, ours waits on */
	publish_waiting(pool);
	pool_give(pool, b);
}

bool
pool_lend(struct pool *pool, unsigned to)
{
	struct backend *b;

	TAILQ_FOREACH (b, &pool->idle, idle_link)
		if (b->stream.in.len == 0 && b->stream.out.len == 0 && b->stream.error == 0)
			break;
	if (b == NULL)
		return false;
	pool_remove_idle(pool, b);
	if (!hand_over(pool, b, to))
		add_idle(pool, b);
	return true;
}

void
pool_evict(struct pool *pool)
{
	struct backend *b = TAILQ_LAST(&pool->idle, backend_list);

	if (b != NULL)
		backend_close(b, CLOSE_SERVER_EVICTED, NULL);
}

/* ---- opening ---- */

static uint64_t
waited_us(const struct pool *pool)
{
	const struct session *s = TAILQ_FIRST(&pool->waiters);
	uint64_t now_us = clock_cached_us();

	return s != NULL && now_us > s->wait_since_us ? now_us - s->wait_since_us : 0;
}

static void
evict_elsewhere(struct pool *pool)
{
	struct group *victim;
	unsigned proxy;

	if (group_find_victim(pool->group, &victim, &proxy))
		(void)proxy_post_group(pool->group->weir->proxies[proxy], MAIL_EVICT, victim, pool->proxy->index);
}

/* ---- connections of sessions' own ---- */

/* An idle backend of this group makes room, whichever proxy has it. False: there is none. */
static bool
evict_here(struct pool *pool)
{
	int other = group_is_alone(pool->group) ? -1 : group_idle_proxy(pool->group, pool->proxy->index);

	if (pool->n_idle > 0) {
		pool_evict(pool);
		return true;
	}
	if (other >= 0)
		(void)proxy_post_group(pool->group->weir->proxies[other], MAIL_EVICT, pool->group, pool->proxy->index);
	return other >= 0;
}

/* Where there is no room, whoever makes it pokes us. */
static void
open_own(struct loop_task *t)
{
	struct pool *pool = container_of(t, struct pool, own_task);
	struct group_slot slot;
	struct session *s;

	while ((s = TAILQ_FIRST(&pool->own_waiters)) != NULL) {
		switch (group_take_own_token(pool->group, clock_cached_us() - s->wait_since_us, &slot)) {
		case GROUP_TOKEN_OK:
			unwait_for_own(pool, s);
			backend_open_own(pool, s, slot);
			break;
		case GROUP_TOKEN_TALLY:
			if (!evict_here(pool))
				evict_elsewhere(pool);
			return;
		case GROUP_TOKEN_FULL:
			(void)evict_here(pool);
			return;
		case GROUP_TOKEN_CONNECTING:
		case GROUP_TOKEN_BACKOFF:
			return;
		}
	}
}

/* ---- opening for all ---- */

/* Opens a connection for each waiter that has none under way, as far as the limits go. */
static void
open_more(struct pool *pool)
{
	struct group_failure failure;
	struct group_slot slot;

	while (pool->n_opening < pool->n_waiting) {
		switch (group_take_token(pool->group, waited_us(pool), &slot)) {
		case GROUP_TOKEN_OK:
			backend_open(pool, slot);
			break;
		case GROUP_TOKEN_TALLY:
			evict_elsewhere(pool);
			return;
		case GROUP_TOKEN_BACKOFF:
			/* the tick also tells waiters the reason; not from here, where one may just be entering the queue */
			if (group_failure(pool->group, &failure))
				tick_by(pool, failure.is_final ? clock_cached_us() : failure.retry_at_us);
			return;
		case GROUP_TOKEN_FULL:
		case GROUP_TOKEN_CONNECTING: /* whoever finishes pokes us */
			return;
		}
	}
}

/*
 * Tells waiters the reason why no server connection can be had, when none is there and waiting is in vain: the server
 * refused the login itself, or it has been out of reach for server_login_retry.
 */
static void
fail_waiters(struct pool *pool)
{
	struct group_failure f;
	uint64_t most_us = (uint64_t)pool->group->weir->config->server_login_retry_us;

	if (pool->n_waiting == 0 || !group_failure(pool->group, &f) || group_n_live(pool->group) > 0)
		return;
	if (clock_cached_us() >= f.retry_at_us && f.is_final)
		return; /* the pause is over: try again first */
	if (!f.is_final && waited_us(pool) < most_us)
		return;
	/* refusing takes a session out of the list; whoever enters it meanwhile is behind the last */
	for (unsigned n = pool->n_waiting; n > 0 && pool->n_waiting > 0; n--) {
		struct session *s = TAILQ_FIRST(&pool->waiters);

		if (!f.is_final && clock_cached_us() - s->wait_since_us < most_us)
			return;
		session_refused(s, f.reason, &f.said);
	}
}

/* Backends for our waiters: idle ones of other proxies, new ones. */
static void
ask_for_more(struct pool *pool)
{
	int other = group_is_alone(pool->group) ? -1 : group_idle_proxy(pool->group, pool->proxy->index);

	if (other >= 0)
		(void)proxy_post_group(pool->group->weir->proxies[other], MAIL_WANT_IDLE, pool->group,
		                       pool->proxy->index);
	open_more(pool);
}

void
pool_consider(struct pool *pool)
{
	fail_waiters(pool);
	if (!TAILQ_EMPTY(&pool->own_waiters))
		loop_defer(pool->proxy->loop, &pool->own_task);
	if (pool->n_waiting == 0)
		return;
	/* a claim may have been lost (the giver ran out of memory, the backend died): say it again */
	publish_waiting(pool);
	ask_for_more(pool);
}

void
pool_open_failed(struct pool *pool)
{
	struct group *g = pool->group;

	for (unsigned i = 0; i < g->weir->n_proxies; i++)
		if (i != pool->proxy->index && atomic_load(&g->waiting_since_us[i]) != 0)
			(void)proxy_post_group(g->weir->proxies[i], MAIL_POKE, g, pool->proxy->index);
	pool_consider(pool);
}

/* ---- upkeep ---- */

static void
close_expired(struct pool *pool)
{
	const struct config *c = pool->group->weir->config;
	uint64_t now_us = clock_cached_us();
	int64_t keep = config_min_pool_size(c, pool->group->db);
	struct backend *b = TAILQ_LAST(&pool->idle, backend_list), *prev;

	for (; b != NULL; b = prev) {
		prev = TAILQ_PREV(b, backend_list, idle_link);
		if (now_us >= b->retire_at_us)
			backend_close(b, CLOSE_SERVER_LIFETIME, NULL);
		else if (c->server_idle_timeout_us > 0 &&
		         now_us - b->idle_since_us >= (uint64_t)c->server_idle_timeout_us &&
		         group_n_backends(pool->group) > (unsigned)keep)
			backend_close(b, CLOSE_SERVER_IDLE_TIMEOUT, NULL);
	}
}

/* min_pool_size: while the group has clients, or where the database entry forces the user. */
static void
keep_minimum(struct pool *pool)
{
	const struct config *c = pool->group->weir->config;
	int64_t least = config_min_pool_size(c, pool->group->db);
	int64_t most = config_pool_size(c, pool->group->db, pool->group->user_conf);
	struct group_slot slot;

	if (least <= 0 || weir_phase(pool->group->weir) != WEIR_RUNNING)
		return;
	if (most > 0 && least > most)
		least = most;
	if (group_n_clients(pool->group) == 0 && pool->group->db->user == NULL)
		return;
	while (group_take_token_below(pool->group, (unsigned)least, &slot) == GROUP_TOKEN_OK)
		backend_open(pool, slot);
}

static void
pool_tick(struct loop_timer *t)
{
	struct pool *pool = container_of(t, struct pool, tick);

	obj_check(pool, POOL_MAGIC);
	close_expired(pool);
	keep_minimum(pool);
	pool_hosts_balance(pool);
	pool_hosts_doubt_slow(pool);
	if (pool->n_backends > 0 || pool->n_waiting > 0 || group_n_clients(pool->group) > 0)
		tick_by(pool, clock_cached_us() + TICK_US);
	pool_consider(pool);
}
