/* SPDX-License-Identifier: ISC */
#include "core/group_hosts.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RETRY_FIRST_US 100000u /* first pause after a failed login; doubles up to server_login_retry */

bool
group_hosts_init(struct group *g)
{
	g->n_hosts = g->db->n_hosts;
	g->hosts = calloc(g->n_hosts, sizeof(*g->hosts));
	if (g->hosts == NULL)
		return false;
	for (unsigned i = 0; i < g->n_hosts; i++)
		g->hosts[i].conf = &g->db->hosts[i];
	return true;
}

void
group_hosts_fini(struct group *g)
{
	for (unsigned i = 0; g->hosts != NULL && i < g->n_hosts; i++)
		settings_unref(&g->hosts[i].startup);
	free(g->hosts);
}

/* ---- choice ---- */

static bool
has(uint64_t bits, unsigned host)
{
	return (bits >> host & 1) != 0;
}

struct group_hosts_state
group_hosts_state(struct group *g)
{
	uint64_t now_us = clock_cached_us();
	struct group_hosts_state st = {0, 0};

	pthread_mutex_lock(&g->shared.lock);
	for (unsigned i = 0; i < g->n_hosts; i++) {
		const struct group_failure *f = &g->hosts[i].failure;

		if (f->n == 0)
			st.well |= UINT64_C(1) << i;
		else if (now_us >= f->retry_at_us)
			st.due |= UINT64_C(1) << i;
	}
	pthread_mutex_unlock(&g->shared.lock);
	return st;
}

bool
group_hosts_pick(const struct group *g, struct group_hosts_state st, bool with_trial, struct group_slot *slot)
{
	bool found = false;

	for (unsigned i = 0; i < g->n_hosts; i++) {
		const struct group_host *h = &g->hosts[i];
		bool is_trial = st.well != 0 && has(st.due, i);

		if (!has(st.well | st.due, i) || (is_trial && (!with_trial || h->n_connecting > 0)))
			continue;
		if (found && (g->db->load_balance == HOSTS_DISABLE || h->n_backends >= g->hosts[slot->host].n_backends))
			continue;
		*slot = (struct group_slot){.host = (uint8_t)i, .is_trial = is_trial};
		found = true;
	}
	return found;
}

/* Of the hosts in `from`, the one that has too many. false: the one for new connections has its share. */
static bool
has_too_many(const struct group *g, unsigned to, uint64_t from, unsigned *most)
{
	bool found = false;

	for (unsigned i = 0; i < g->n_hosts; i++) {
		unsigned n = g->hosts[i].n_backends;
		bool is_over = g->db->load_balance == HOSTS_DISABLE ? i > to : n >= g->hosts[to].n_backends + 2;

		if (has(from, i) && is_over && (!found || n > g->hosts[*most].n_backends)) {
			*most = i;
			found = true;
		}
	}
	return found;
}

bool
group_hosts_unbalanced(struct group *g, uint64_t from_which, unsigned *from)
{
	struct group_hosts_state st = group_hosts_state(g);
	int64_t most = config_pool_size(g->weir->config, g->db, g->user_conf);
	struct group_slot to;
	unsigned n_live;
	bool is_tight, unbalanced;

	pthread_mutex_lock(&g->weir->shared.lock);
	n_live = g->limits.n_backends - g->limits.n_connecting - g->limits.n_own;
	/* the last connection that works is not given up for a trial */
	is_tight = most > 0 && g->limits.n_backends >= most && n_live < 2;
	unbalanced = g->limits.n_connecting == 0 && group_hosts_pick(g, st, !is_tight, &to) &&
	             has_too_many(g, to.host, from_which, from);
	pthread_mutex_unlock(&g->weir->shared.lock);
	return unbalanced;
}

bool
group_hosts_claim_move(struct group *g, uint64_t pause_us)
{
	uint64_t now_us = clock_cached_us(), next_us = atomic_load(&g->next_move_us);

	return now_us >= next_us && atomic_compare_exchange_strong(&g->next_move_us, &next_us, now_us + pause_us);
}

/* ---- failures ---- */

void
group_failed(struct group *g, unsigned host, enum close_reason reason, bool is_final, const struct said *said)
{
	uint64_t now_us = clock_cached_us(), pause_us = RETRY_FIRST_US;
	uint64_t most_us = (uint64_t)g->weir->config->server_login_retry_us;
	struct group_failure *f = &g->hosts[host].failure;

	pthread_mutex_lock(&g->shared.lock);
	/* logins that failed together count as one attempt */
	if (f->n == 0 || now_us >= f->retry_at_us)
		f->n++;
	for (unsigned i = 1; i < f->n && pause_us < most_us; i++)
		pause_us *= 2;
	if (pause_us > most_us)
		pause_us = most_us;
	f->at_us = now_us;
	f->retry_at_us = now_us + pause_us;
	f->reason = reason;
	f->is_final = is_final;
	f->said = *said;
	pthread_mutex_unlock(&g->shared.lock);
}

void
group_succeeded(struct group *g, unsigned host)
{
	pthread_mutex_lock(&g->shared.lock);
	g->hosts[host].failure.n = 0;
	pthread_mutex_unlock(&g->shared.lock);
}

void
group_host_failure(struct group *g, unsigned host, struct group_failure *out)
{
	pthread_mutex_lock(&g->shared.lock);
	*out = g->hosts[host].failure;
	pthread_mutex_unlock(&g->shared.lock);
}

/* What a server said itself tells more than that another one can't be reached; else the latest. */
static bool
says_more(const struct group_failure *f, const struct group_failure *than)
{
	return f->is_final != than->is_final ? f->is_final : f->at_us > than->at_us;
}

bool
group_failure(struct group *g, struct group_failure *out)
{
	const struct group_failure *told = &g->hosts[0].failure;
	uint64_t retry_at_us = UINT64_MAX;
	bool failing = true, is_final = true;

	pthread_mutex_lock(&g->shared.lock);
	for (unsigned i = 0; i < g->n_hosts; i++) {
		const struct group_failure *f = &g->hosts[i].failure;

		failing = failing && f->n > 0;
		is_final = is_final && f->is_final;
		if (f->retry_at_us < retry_at_us)
			retry_at_us = f->retry_at_us;
		if (says_more(f, told))
			told = f;
	}
	if (failing) {
		*out = *told;
		out->is_final = is_final;
		out->retry_at_us = retry_at_us;
	}
	pthread_mutex_unlock(&g->shared.lock);
	return failing;
}

/* ---- what the servers report at login ---- */

struct settings *
group_welcome(struct group *g)
{
	struct settings *welcome;

	pthread_mutex_lock(&g->shared.lock);
	welcome = g->shared.welcome ? settings_ref(g->shared.welcome) : NULL;
	pthread_mutex_unlock(&g->shared.lock);
	return welcome;
}

void
group_set_welcome(struct group *g, unsigned host, struct settings *welcome)
{
	struct settings *old = NULL;

	pthread_mutex_lock(&g->shared.lock);
	if (g->shared.welcome == NULL || g->shared.welcome_host == host) {
		old = g->shared.welcome;
		g->shared.welcome = settings_ref(welcome);
		g->shared.welcome_host = host;
	}
	pthread_mutex_unlock(&g->shared.lock);
	settings_unref(&old);
}

struct settings *
group_host_startup(struct group *g, unsigned host)
{
	struct settings *startup;

	pthread_mutex_lock(&g->shared.lock);
	startup = g->hosts[host].startup ? settings_ref(g->hosts[host].startup) : NULL;
	pthread_mutex_unlock(&g->shared.lock);
	return startup;
}

bool
group_is_server_fact(const char *name)
{
	static const char *const facts[] = {"server_version", "server_encoding",       "integer_datetimes",
	                                    "is_superuser",   "session_authorization", "in_hot_standby"};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (strcasecmp(name, facts[i]) == 0)
			return true;
	return false;
}

static bool
is_equal(const struct settings *s, const char *name, const char *value)
{
	const char *own = s != NULL ? settings_get(s, name) : NULL;

	return own != NULL && strcmp(own, value) == 0;
}

/* *startup with one more value. false: it has that already, or there is no memory. */
static bool
add_startup(struct settings **startup, const char *name, const char *value)
{
	struct settings *base, *more;

	if (is_equal(*startup, name, value))
		return false; /* it was asked for, and the server reports something else all the same */
	base = *startup != NULL ? settings_ref(*startup) : settings_empty();
	more = base != NULL ? settings_with(base, name, value) : NULL;
	settings_unref(&base);
	if (more == NULL)
		return false;
	settings_unref(startup);
	*startup = more;
	return true;
}

bool
group_host_must_align(struct group *g, unsigned host, const struct settings *reported)
{
	struct group_host *h = &g->hosts[host];
	bool must = false;

	if (g->n_hosts == 1)
		return false;
	pthread_mutex_lock(&g->shared.lock);
	for (size_t i = 0;
	     g->shared.welcome != NULL && g->shared.welcome_host != host && i < settings_n(g->shared.welcome); i++) {
		const char *name = settings_name(g->shared.welcome, i), *value = settings_value(g->shared.welcome, i);

		if (!group_is_server_fact(name) && settings_get(reported, name) != NULL &&
		    !is_equal(reported, name, value))
			must = add_startup(&h->startup, name, value) || must;
	}
	pthread_mutex_unlock(&g->shared.lock);
	return must;
}
