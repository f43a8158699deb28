/* SPDX-License-Identifier: ISC */
/*
 * What one proxy thread owns: its loop, sessions, pools and counters. Only that
 * thread touches it, but for the mailbox and the counters (single writer, read with
 * relaxed atomics). src/proxy/ runs it.
 */
#ifndef PGWEIR_CORE_PROXY_H
#define PGWEIR_CORE_PROXY_H

#include "core/weir.h"
#include "net/addr.h"
#include "net/mailbox.h"

#include <sys/queue.h>

struct backend;
struct group;
struct loop;
struct pool;
struct session;
struct slab;

#define PROXY_MAGIC 0x70726f78u

/* A counter of one writer that other threads may read. */
typedef _Atomic uint64_t counter;

static inline void
counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t
counter_get(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

struct proxy {
	uint32_t magic;
	unsigned index;
	struct weir *weir;
	struct loop *loop;
	struct mailbox *mailbox;
	struct slab *session_slab;
	TAILQ_HEAD(session_list, session) sessions;
	TAILQ_HEAD(backend_list, backend) backends;
	TAILQ_HEAD(cancel_list, cancel) cancels;
	struct session *sessions_by_key; /* hash by cancel_pid */
	struct pool *pools;              /* hash by group */
	uint64_t sample_at;              /* see core/state_sample.h: from so many transactions on; 0: not known yet */

	counter n_sessions, n_sessions_ended, n_backends, n_idle_backends, n_pinned, n_waiting, n_pools, n_cancels;
	counter bytes_from_clients, bytes_to_clients, n_transactions;
};

/* ---- what proxies and the main thread tell each other ---- */
enum mail_type {
	MAIL_CLIENT,      /* main -> proxy: a fresh client socket */
	MAIL_BACKEND,     /* proxy -> proxy: a free backend */
	MAIL_WANT_IDLE,   /* proxy -> proxy: a waiter of this group here, an idle backend there */
	MAIL_POKE,        /* any -> proxy: a limit of this group may have room, or its failure changed */
	MAIL_EVICT,       /* proxy -> proxy: close an idle backend of this group, another group needs the room */
	MAIL_CANCEL,      /* proxy -> owner of the key: a CancelRequest */
	MAIL_CANCEL_DONE, /* back: it was acted upon */
	MAIL_PHASE,       /* main -> proxy: weir.phase has changed */
	MAIL_SNAPSHOT,    /* main -> proxy -> main: rows for the console */
	MAIL_ADMIN,       /* proxy -> main: an authenticated connection to the console */
	MAIL_RESOLVED,    /* resolver -> proxy: a name's address */
};

struct mail_client {
	struct mail mail;
	int fd;
};

struct mail_backend {
	struct mail mail;
	struct group *group;
	struct backend *backend;
};

struct mail_group {
	struct mail mail;
	struct group *group;
	unsigned from; /* proxy index */
};

struct mail_cancel {
	struct mail mail;
	unsigned from;         /* proxy that holds the requester */
	uint64_t requester_id; /* its session id there */
	uint32_t pid;
	uint8_t secret[256];
	uint32_t secret_len;
};

struct mail_admin {
	struct mail mail;
	int fd;
	char user[128];
	bool may_change; /* admin_users; else stats_users */
	uint64_t id;
};

/* Posts to a proxy a message about a group; false: no memory. */
bool proxy_post_group(struct proxy *to, enum mail_type type, struct group *g, unsigned from);

#endif
