/* SPDX-License-Identifier: ISC */
/*
 * A pool group: over all proxies, the shared limit and knowledge of one (database,
 * user). A group lives as long as the daemon.
 *
 * Tokens. A server connection exists only with a token of its group, from before its
 * socket is opened until after it is closed; so the limits (pool_size, reserve,
 * max_db_connections, max_user_connections) are exact over all proxies. Tokens are
 * given and returned under weir.shared.lock.
 *
 * Waiting. Each proxy publishes since when its oldest waiter of the group waits, and
 * how many of its backends idle. A proxy with a free backend looks at the first, a
 * proxy with a new waiter at the second; both store before they look, so one of the
 * two always sees the other.
 */
#ifndef PGWEIR_CORE_GROUP_H
#define PGWEIR_CORE_GROUP_H

#include "auth/scram.h"
#include "base/hash.h"
#include "core/close.h"
#include "core/config.h"
#include "core/settings.h"
#include "core/weir.h"

/* Server connections and clients of one database entry or one user, over all groups. Under weir.shared.lock. */
struct tally {
	char *name;
	unsigned n_backends;
	unsigned n_clients;
	_Atomic uint64_t
		schema; /* of a database: the generation of its schema, as far as statements through us changed it */
	UT_hash_handle hh;
};

/* Why no server connection could be opened lately. */
struct group_failure {
	unsigned n;           /* in a row; 0: none */
	uint64_t at_us;       /* the latest */
	uint64_t retry_at_us; /* no attempt before that */
	enum close_reason reason;
	bool is_final; /* the server refused the login itself: waiting longer won't help */
	struct said said;
};

/* One of the servers; see core/group_hosts.h. */
struct group_host {
	const struct host_conf *conf;
	unsigned n_backends;          /* tokens out for it; under weir.shared.lock */
	unsigned n_connecting;        /* of them: not logged in yet; the same */
	struct group_failure failure; /* under group.shared.lock */
	struct settings *startup;     /* what logins ask for, so that it is like the others; the same */
};

/* Where a token's connection goes. */
struct group_slot {
	uint8_t host;
	bool is_trial; /* this host failed lately and others don't: nobody waits for this one alone */
};

#define GROUP_MAGIC 0x67726f75u

struct group {
	uint32_t magic;
	unsigned id;
	char *database, *user; /* the key: entry name as clients give it, and the server's user */
	const struct database_conf *db;
	const struct user_conf *user_conf; /* may be NULL */
	enum pool_mode mode;
	enum session_state_policy state_policy;
	struct weir *weir;
	unsigned n_hosts;
	struct group_host *hosts;
	UT_hash_handle hh;

	_Atomic uint64_t next_move_us;                       /* no connection is moved to another host before that */
	_Atomic int n_pinned;                                /* sessions that keep a backend */
	_Atomic bool reads_sequences;                        /* a text has asked for currval() or lastval() */
	_Atomic uint64_t waiting_since_us[WEIR_MAX_PROXIES]; /* 0: nobody waits there */
	_Atomic uint32_t n_idle[WEIR_MAX_PROXIES];
	/* sessions that wait for room for a connection of their own; written under weir.shared.lock */
	_Atomic uint32_t n_own_waiting[WEIR_MAX_PROXIES], n_own_waiting_all;

	struct {                       /* under weir.shared.lock */
		unsigned n_backends;   /* tokens out */
		unsigned n_connecting; /* of them: not logged in yet */
		unsigned n_own;        /* of them: logged in, and one session's own */
		unsigned n_clients;    /* sessions logged in to this group */
		struct tally *database, *user;
	} limits;

	struct { /* under its lock */
		pthread_mutex_t lock;
		struct settings *welcome; /* ParameterStatus of the latest login there; NULL: there was none yet */
		unsigned welcome_host;
		struct group_known *known; /* startup settings a server has accepted -> as it spells them */
		bool has_scram_keys;
		uint8_t client_key[SCRAM_KEY_LEN], server_key[SCRAM_KEY_LEN];
	} shared;
};

/* Finds or makes the group. NULL: no memory. */
struct group *group_get(struct weir *w, const char *database, const struct database_conf *db, const char *user);
void group_free_all(struct weir *w);

/* ---- tokens ---- */
enum group_token {
	GROUP_TOKEN_OK,
	GROUP_TOKEN_FULL,       /* pool_size is reached */
	GROUP_TOKEN_CONNECTING, /* max_connecting logins are under way */
	GROUP_TOKEN_BACKOFF,    /* after a failure of each host: see group_failure() */
	GROUP_TOKEN_TALLY, /* max_db_connections or max_user_connections: another group's idle one may be evicted */
};
/* waited_us: of the oldest waiter, for the reserve. *slot is set with GROUP_TOKEN_OK. */
enum group_token group_take_token(struct group *g, uint64_t waited_us, struct group_slot *slot);
/* Only up to `most` connections in all: for min_pool_size. */
enum group_token group_take_token_below(struct group *g, unsigned most, struct group_slot *slot);
/* For a connection of one session's own: all others leave room for it (see group_want_own), failures don't hold it up. */
enum group_token group_take_own_token(struct group *g, uint64_t waited_us, struct group_slot *slot);
void group_login_done(struct group *g, unsigned host, bool is_own); /* the token's connection is logged in */
/* The connection is closed; was_connecting: it never got logged in. Wakes waiting proxies that may open one now. */
void group_return_token(struct group *g, unsigned host, bool was_connecting, bool is_own);
/* One more or one less (by = 1, -1) waits in this proxy for room for a connection of its own. */
void group_want_own(struct group *g, unsigned proxy, int by);
/* A free backend is to be closed to make that room. Cheap when nobody waits so. */
bool group_wants_room(struct group *g);
unsigned group_n_backends(struct group *g);
unsigned group_n_clients(struct group *g);
unsigned group_n_live(struct group *g); /* logged in, and for all */
/* Another group over the same full tally that has an idle backend, and the proxy that has it. False: none. */
bool group_find_victim(struct group *g, struct group **victim, unsigned *proxy);

/* Clients: false with the reason when max_db_client_connections or max_user_client_connections says no. */
bool group_add_client(struct group *g, const char *client_user, enum close_reason *why);
void group_remove_client(struct group *g, const char *client_user);

/* ---- waiting ---- */
static inline bool
group_is_alone(const struct group *g)
{
	return g->weir->n_proxies == 1;
}
/* The other proxy whose waiter is the oldest and waits since before `since_us`; -1: none. */
int group_older_waiter(const struct group *g, unsigned me, uint64_t since_us);
/* Takes that waiter's publication: it gets a backend from us. False: somebody else did, or it has gone. */
bool group_claim_waiter(struct group *g, unsigned proxy);
/* Another proxy with an idle backend; -1: none. */
int group_idle_proxy(const struct group *g, unsigned me);

/* ---- knowledge ---- */
/* Statements parsed before and after a change of the database's schema are different ones; see statement_new_generation(). */
static inline uint64_t
group_schema(const struct group *g)
{
	return g->limits.database->schema;
}
void group_schema_changed(struct group *g);
/* Startup settings known to be accepted: their canonical form (a reference), else NULL. */
struct settings *group_known_settings(struct group *g, struct settings *asked);
void group_know_settings(struct group *g, struct settings *asked, struct settings *canonical);
void group_set_scram_keys(struct group *g, const uint8_t *client_key, const uint8_t *server_key);
bool group_scram_keys(struct group *g, uint8_t *client_key, uint8_t *server_key);

#endif
