/* SPDX-License-Identifier: ISC */
/*
 * What all threads share: the configuration, the list of proxies and the registry of
 * pool groups. Made before the threads start and freed after they ended.
 */
#ifndef PGWEIR_CORE_WEIR_H
#define PGWEIR_CORE_WEIR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct config;
struct group;
struct mailbox;
struct old_server;
struct proxy;
struct resolver;
struct tally;

#define WEIR_MAX_PROXIES 8u

/* How far the end of the daemon has come; only the main thread moves it on. */
enum weir_phase {
	WEIR_RUNNING,
	WEIR_WAIT_CLIENTS, /* SIGTERM: no new clients; those that are connected go on */
	WEIR_WAIT_SERVERS, /* SIGINT: transactions end, sessions are closed between them */
	WEIR_STOPPING,     /* everything is closed at once */
};

struct weir {
	struct config *config; /* fixed after start */
	unsigned n_proxies;
	struct proxy *proxies[WEIR_MAX_PROXIES];
	struct mailbox *main_mailbox; /* the console's and the dispatcher's */
	struct resolver *resolver;
	uint64_t started_us; /* monotonic */
	time_t started_at;

	_Atomic int phase;         /* enum weir_phase */
	_Atomic int64_t n_clients; /* client sockets, from accept to close */
	_Atomic uint64_t last_id;  /* of sessions and backends */

	struct {
		pthread_mutex_t lock; /* registry of groups and tallies, and every token: never on the hot path */
		struct group *groups; /* hash by database and user */
		struct tally *databases, *users;
		unsigned n_groups;
		struct old_server *old_servers; /* see core/old_servers.h */
	} shared;
};

struct weir *weir_new(struct config *config, unsigned n_proxies); /* takes over the reference; NULL: no memory */
void weir_free(struct weir **w);                                  /* after the threads ended */

static inline enum weir_phase
weir_phase(const struct weir *w)
{
	return (enum weir_phase)atomic_load_explicit(&w->phase, memory_order_relaxed);
}

static inline uint64_t
weir_next_id(struct weir *w)
{
	return atomic_fetch_add_explicit(&w->last_id, 1, memory_order_relaxed) + 1;
}

#endif
