/* SPDX-License-Identifier: ISC */
#include "core/group.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/obj.h"
#include "base/secret.h"
#include "base/str.h"
#include "core/group_hosts.h"
#include "core/proxy.h"
#include "core/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MAX 1000 /* startup settings remembered per group */

struct group_known {
	struct settings *asked, *canonical;
	UT_hash_handle hh;
};

/* ---- registry; under weir.shared.lock ---- */

static struct tally *
tally_get(struct tally **table, const char *name)
{
	struct tally *t;

	HASH_FIND_STR(*table, name, t);
	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->schema = statement_new_generation();
	t->name = str_dup(name);
	if (t->name != NULL)
		HASH_ADD_KEYPTR(hh, *table, t->name, strlen(t->name), t);
	if (t->name == NULL || t->hh.tbl == NULL) {
		free(t->name);
		free(t);
		return NULL;
	}
	return t;
}

static void
group_free(struct group *g)
{
	struct group_known *k, *next;

	HASH_ITER (hh, g->shared.known, k, next) {
		HASH_DEL(g->shared.known, k);
		settings_unref(&k->asked);
		settings_unref(&k->canonical);
		free(k);
	}
	group_hosts_fini(g);
	settings_unref(&g->shared.welcome);
	secret_wipe_bytes(g->shared.client_key, sizeof(g->shared.client_key));
	secret_wipe_bytes(g->shared.server_key, sizeof(g->shared.server_key));
	pthread_mutex_destroy(&g->shared.lock);
	free(g->database);
	free(g);
}

/* The key: both names with their terminators, in one allocation. */
static char *
group_key(const char *database, const char *user, size_t *len)
{
	size_t n_database = strlen(database) + 1, n_user = strlen(user) + 1;
	char *key = malloc(n_database + n_user);

	if (key != NULL) {
		memcpy(key, database, n_database);
		memcpy(key + n_database, user, n_user);
		*len = n_database + n_user;
	}
	return key;
}

static struct group *
group_new(struct weir *w, char *key, size_t key_len, const struct database_conf *db)
{
	struct group *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->magic = GROUP_MAGIC;
	g->weir = w;
	g->database = key;
	g->user = key + strlen(key) + 1;
	g->db = db;
	g->user_conf = config_user(w->config, g->user);
	g->mode = config_pool_mode(w->config, db, g->user_conf);
	g->state_policy = config_session_state(w->config, db, g->user_conf);
	pthread_mutex_init(&g->shared.lock, NULL);
	/* the fallback entry counts each database that it stands for apart, as pgbouncer's auto-databases */
	g->limits.database = tally_get(&w->shared.databases, g->database);
	g->limits.user = tally_get(&w->shared.users, g->user);
	if (g->limits.database != NULL && g->limits.user != NULL && group_hosts_init(g))
		HASH_ADD_KEYPTR(hh, w->shared.groups, g->database, key_len, g);
	if (g->hh.tbl == NULL) {
		g->database = NULL;
		group_free(g);
		return NULL;
	}
	g->id = w->shared.n_groups++;
	return g;
}

struct group *
group_get(struct weir *w, const char *database, const struct database_conf *db, const char *user)
{
	struct group *g = NULL;
	size_t len = 0;
	char *key = group_key(database, user, &len);

	if (key == NULL)
		return NULL;
	pthread_mutex_lock(&w->shared.lock);
	HASH_FIND(hh, w->shared.groups, key, len, g);
	if (g == NULL) {
		g = group_new(w, key, len, db);
		if (g != NULL)
			key = NULL;
	}
	pthread_mutex_unlock(&w->shared.lock);
	free(key);
	return g;
}

static void
tally_free_all(struct tally **table)
{
	struct tally *t, *next;

	HASH_ITER (hh, *table, t, next) {
		HASH_DEL(*table, t);
		free(t->name);
		free(t);
	}
}

void
group_free_all(struct weir *w)
{
	struct group *g, *next;

	HASH_ITER (hh, w->shared.groups, g, next) {
		HASH_DEL(w->shared.groups, g);
		group_free(g);
	}
	tally_free_all(&w->shared.databases);
	tally_free_all(&w->shared.users);
}

/* ---- tokens ---- */

static bool
over_tally(const struct group *g)
{
	const struct config *c = g->weir->config;
	int64_t max_db = config_max_db_connections(c, g->db);
	int64_t max_user = config_max_user_connections(c, g->user_conf);

	return (max_db > 0 && g->limits.database->n_backends >= max_db) ||
	       (max_user > 0 && g->limits.user->n_backends >= max_user);
}

/* One that is due is not tried with what is then left for nobody who works. */
static bool
has_room_for_trial(const struct group *g, int64_t most)
{
	bool has_live = g->limits.n_backends > g->limits.n_connecting + g->limits.n_own;

	return has_live || most == 0 || g->limits.n_backends + 1 < most;
}

/* Under weir.shared.lock. most: 0 = no limit of connections in this group; n_kept of them are others' to take. */
static enum group_token
take_token_locked(struct group *g, int64_t most, uint32_t n_kept, struct group_hosts_state st, struct group_slot *slot)
{
	if (most > 0 && g->limits.n_backends + n_kept >= most)
		return GROUP_TOKEN_FULL;
	if (g->limits.n_connecting >= g->weir->config->max_connecting)
		return GROUP_TOKEN_CONNECTING;
	if (over_tally(g))
		return GROUP_TOKEN_TALLY;
	if (!group_hosts_pick(g, st, has_room_for_trial(g, most), slot))
		return GROUP_TOKEN_BACKOFF;
	g->hosts[slot->host].n_backends++;
	g->hosts[slot->host].n_connecting++;
	g->limits.n_backends++;
	g->limits.n_connecting++;
	g->limits.database->n_backends++;
	g->limits.user->n_backends++;
	return GROUP_TOKEN_OK;
}

static enum group_token
take_token(struct group *g, int64_t most, struct group_slot *slot)
{
	struct group_hosts_state st = group_hosts_state(g);
	enum group_token token;

	if ((st.well | st.due) == 0)
		return GROUP_TOKEN_BACKOFF;
	pthread_mutex_lock(&g->weir->shared.lock);
	token = take_token_locked(g, most, g->n_own_waiting_all, st, slot);
	pthread_mutex_unlock(&g->weir->shared.lock);
	return token;
}

static enum group_token
take_own_token(struct group *g, int64_t most, struct group_slot *slot)
{
	struct group_hosts_state st = group_hosts_state(g);
	enum group_token token;

	/* its one session is told what comes of it: no trial, but any of them if all fail */
	st.due = st.well != 0 ? 0 : UINT64_MAX;
	pthread_mutex_lock(&g->weir->shared.lock);
	token = take_token_locked(g, most, 0, st, slot);
	pthread_mutex_unlock(&g->weir->shared.lock);
	return token;
}

static enum group_token
take_with_reserve(struct group *g, uint64_t waited_us, struct group_slot *slot,
                  enum group_token (*take)(struct group *, int64_t, struct group_slot *))
{
	const struct config *c = g->weir->config;
	int64_t most = config_pool_size(c, g->db, g->user_conf);
	int64_t reserve = config_reserve_pool_size(c, g->db, g->user_conf);

	enum group_token token = take(g, most, slot);

	if (token != GROUP_TOKEN_FULL || reserve <= 0 || waited_us < (uint64_t)c->reserve_pool_timeout_us)
		return token;
	token = take(g, most + reserve, slot);
	if (token == GROUP_TOKEN_OK)
		log_event(LOG_INFO_, "reserve", LOG_S("db", g->database), LOG_S("user", g->user),
		          LOG_S("msg", "taking connection from reserve_pool"));
	return token;
}

enum group_token
group_take_token(struct group *g, uint64_t waited_us, struct group_slot *slot)
{
	return take_with_reserve(g, waited_us, slot, take_token);
}

enum group_token
group_take_own_token(struct group *g, uint64_t waited_us, struct group_slot *slot)
{
	return take_with_reserve(g, waited_us, slot, take_own_token);
}

enum group_token
group_take_token_below(struct group *g, unsigned most, struct group_slot *slot)
{
	return most == 0 ? GROUP_TOKEN_FULL : take_token(g, most, slot);
}

/* Tells every proxy with a waiter of g that a limit may have room. */
static void
poke_waiters(struct group *g)
{
	for (unsigned i = 0; i < g->weir->n_proxies; i++)
		if (atomic_load(&g->waiting_since_us[i]) != 0 || atomic_load(&g->n_own_waiting[i]) != 0)
			(void)proxy_post_group(g->weir->proxies[i], MAIL_POKE, g, i);
}

void
group_login_done(struct group *g, unsigned host, bool is_own)
{
	pthread_mutex_lock(&g->weir->shared.lock);
	g->hosts[host].n_connecting--;
	g->limits.n_connecting--;
	g->limits.n_own += is_own;
	pthread_mutex_unlock(&g->weir->shared.lock);
	poke_waiters(g);
}

void
group_return_token(struct group *g, unsigned host, bool was_connecting, bool is_own)
{
	struct weir *w = g->weir;
	struct group *other, *next;

	pthread_mutex_lock(&w->shared.lock);
	g->hosts[host].n_backends--;
	g->hosts[host].n_connecting -= was_connecting;
	g->limits.n_backends--;
	if (was_connecting)
		g->limits.n_connecting--;
	else
		g->limits.n_own -= is_own;
	g->limits.database->n_backends--;
	g->limits.user->n_backends--;
	HASH_ITER (hh, w->shared.groups, other, next) {
		if (other->limits.database == g->limits.database || other->limits.user == g->limits.user)
			poke_waiters(other);
	}
	pthread_mutex_unlock(&w->shared.lock);
}

void
group_want_own(struct group *g, unsigned proxy, int by)
{
	pthread_mutex_lock(&g->weir->shared.lock);
	g->n_own_waiting[proxy] += (uint32_t)by;
	g->n_own_waiting_all += (uint32_t)by;
	pthread_mutex_unlock(&g->weir->shared.lock);
}

bool
group_wants_room(struct group *g)
{
	int64_t most;
	bool wants;

	if (atomic_load_explicit(&g->n_own_waiting_all, memory_order_relaxed) == 0)
		return false;
	most = config_pool_size(g->weir->config, g->db, g->user_conf);
	pthread_mutex_lock(&g->weir->shared.lock);
	wants = g->n_own_waiting_all > 0 &&
	        ((most > 0 && g->limits.n_backends + g->n_own_waiting_all > most) || over_tally(g));
	pthread_mutex_unlock(&g->weir->shared.lock);
	return wants;
}

unsigned
group_n_backends(struct group *g)
{
	unsigned n;

	pthread_mutex_lock(&g->weir->shared.lock);
	n = g->limits.n_backends;
	pthread_mutex_unlock(&g->weir->shared.lock);
	return n;
}

unsigned
group_n_clients(struct group *g)
{
	unsigned n;

	pthread_mutex_lock(&g->weir->shared.lock);
	n = g->limits.n_clients;
	pthread_mutex_unlock(&g->weir->shared.lock);
	return n;
}

unsigned
group_n_live(struct group *g)
{
	unsigned n;

	pthread_mutex_lock(&g->weir->shared.lock);
	n = g->limits.n_backends - g->limits.n_connecting - g->limits.n_own;
	pthread_mutex_unlock(&g->weir->shared.lock);
	return n;
}

bool
group_find_victim(struct group *g, struct group **victim, unsigned *proxy)
{
	struct weir *w = g->weir;
	struct group *other, *next;
	bool found = false;

	pthread_mutex_lock(&w->shared.lock);
	HASH_ITER (hh, w->shared.groups, other, next) {
		if (found || other == g ||
		    (other->limits.database != g->limits.database && other->limits.user != g->limits.user))
			continue;
		for (unsigned i = 0; i < w->n_proxies && !found; i++) {
			found = atomic_load(&other->n_idle[i]) > 0;
			*proxy = i;
		}
		*victim = other;
	}
	pthread_mutex_unlock(&w->shared.lock);
	return found;
}

/* ---- clients ---- */

/* A user's clients are counted under the name the client gave, which a forced server user may hide. */
bool
group_add_client(struct group *g, const char *client_user, enum close_reason *why)
{
	const struct config *c = g->weir->config;
	const struct user_conf *u = config_user(c, client_user);
	int64_t max_db = config_max_db_client_connections(c, g->db);
	int64_t max_user = config_max_user_client_connections(c, u);
	struct tally *user;

	*why = CLOSE_NONE;
	pthread_mutex_lock(&g->weir->shared.lock);
	user = tally_get(&g->weir->shared.users, client_user);
	if (user == NULL)
		*why = CLOSE_NO_MEMORY;
	else if (max_db > 0 && g->limits.database->n_clients >= max_db)
		*why = CLOSE_MAX_DB_CLIENTS;
	else if (max_user > 0 && user->n_clients >= max_user)
		*why = CLOSE_MAX_USER_CLIENTS;
	if (*why == CLOSE_NONE) {
		g->limits.n_clients++;
		g->limits.database->n_clients++;
		user->n_clients++;
	}
	pthread_mutex_unlock(&g->weir->shared.lock);
	return *why == CLOSE_NONE;
}

void
group_remove_client(struct group *g, const char *client_user)
{
	struct tally *user;

	pthread_mutex_lock(&g->weir->shared.lock);
	user = tally_get(&g->weir->shared.users, client_user);
	g->limits.n_clients--;
	g->limits.database->n_clients--;
	if (user != NULL)
		user->n_clients--;
	pthread_mutex_unlock(&g->weir->shared.lock);
}

/* ---- waiting ---- */

int
group_older_waiter(const struct group *g, unsigned me, uint64_t since_us)
{
	uint64_t oldest_us = since_us;
	int found = -1;

	for (unsigned i = 0; i < g->weir->n_proxies; i++) {
		uint64_t waiting_us = atomic_load(&g->waiting_since_us[i]);

		if (i != me && waiting_us != 0 && waiting_us < oldest_us) {
			oldest_us = waiting_us;
			found = (int)i;
		}
	}
	return found;
}

bool
group_claim_waiter(struct group *g, unsigned proxy)
{
	return atomic_exchange(&g->waiting_since_us[proxy], 0) != 0;
}

int
group_idle_proxy(const struct group *g, unsigned me)
{
	for (unsigned i = 0; i < g->weir->n_proxies; i++)
		if (i != me && atomic_load(&g->n_idle[i]) > 0)
			return (int)i;
	return -1;
}

/* ---- knowledge ---- */

void
group_schema_changed(struct group *g)
{
	g->limits.database->schema = statement_new_generation();
}

struct settings *
group_known_settings(struct group *g, struct settings *asked)
{
	struct settings *canonical = NULL;
	struct group_known *k;

	pthread_mutex_lock(&g->shared.lock);
	HASH_FIND_PTR(g->shared.known, &asked, k);
	if (k != NULL)
		canonical = settings_ref(k->canonical);
	pthread_mutex_unlock(&g->shared.lock);
	return canonical;
}

void
group_know_settings(struct group *g, struct settings *asked, struct settings *canonical)
{
	struct group_known *k = NULL;

	pthread_mutex_lock(&g->shared.lock);
	HASH_FIND_PTR(g->shared.known, &asked, k);
	if (k == NULL && HASH_COUNT(g->shared.known) < KNOWN_MAX && (k = calloc(1, sizeof(*k))) != NULL) {
		k->asked = settings_ref(asked);
		k->canonical = settings_ref(canonical);
		HASH_ADD_PTR(g->shared.known, asked, k);
		if (k->hh.tbl == NULL) {
			settings_unref(&k->asked);
			settings_unref(&k->canonical);
			free(k);
		}
	}
	pthread_mutex_unlock(&g->shared.lock);
}

void
group_set_scram_keys(struct group *g, const uint8_t *client_key, const uint8_t *server_key)
{
	pthread_mutex_lock(&g->shared.lock);
	memcpy(g->shared.client_key, client_key, SCRAM_KEY_LEN);
	memcpy(g->shared.server_key, server_key, SCRAM_KEY_LEN);
	g->shared.has_scram_keys = true;
	pthread_mutex_unlock(&g->shared.lock);
}

bool
group_scram_keys(struct group *g, uint8_t *client_key, uint8_t *server_key)
{
	bool has;

	pthread_mutex_lock(&g->shared.lock);
	has = g->shared.has_scram_keys;
	if (has) {
		memcpy(client_key, g->shared.client_key, SCRAM_KEY_LEN);
		memcpy(server_key, g->shared.server_key, SCRAM_KEY_LEN);
	}
	pthread_mutex_unlock(&g->shared.lock);
	return has;
}
