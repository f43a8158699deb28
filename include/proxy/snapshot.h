/* SPDX-License-Identifier: ISC */
/*
 * What the console wants to know of sessions, backends and pools: the main thread
 * posts one request to each proxy, which fills in rows and posts it back. Rows are
 * plain values: nothing in them belongs to the proxy.
 */
#ifndef PGWEIR_PROXY_SNAPSHOT_H
#define PGWEIR_PROXY_SNAPSHOT_H

#include "core/proxy.h"
#include "core/state.h"
#include "net/addr.h"

enum snapshot_kind {
	SNAPSHOT_CLIENTS,
	SNAPSHOT_SERVERS,
	SNAPSHOT_POOLS,
	SNAPSHOT_PINS,
	SNAPSHOT_SETTINGS,
	SNAPSHOT_KIND_N
};

#define SNAPSHOT_TEXT 64

/* A client or a server connection. */
struct snapshot_link {
	char database[SNAPSHOT_TEXT], user[SNAPSHOT_TEXT], application_name[SNAPSHOT_TEXT];
	const char *state, *replication; /* static */
	struct addr peer, local;
	uint64_t connect_us, request_us, wait_us;    /* wait_us: how long it waits now, 0: it doesn't */
	const struct group *group;                   /* of a server connection; else NULL */
	unsigned host;                               /* of group->hosts */
	uint64_t id, link_id;                        /* link_id: of its other half, 0: none */
	uint32_t remote_pid;                         /* of clients over TCP 0 */
	uint32_t n_message_left, n_unused, n_unsent; /* bytes: of the message under way, received, to be sent */
	uint32_t n_prepared; /* of a client: its names; of a server: what is prepared there for them */
	bool close_needed;
	unsigned proxy;
};

/* A pool of one proxy. */
struct snapshot_pool {
	struct group *group;
	unsigned cl_active, cl_waiting, cl_active_cancel, cl_waiting_cancel;
	unsigned sv_active, sv_active_cancel, sv_being_canceled, sv_idle, sv_used, sv_tested, sv_login;
	uint64_t max_wait_us;
	uint64_t n_xacts, n_queries, n_assignments, n_client_logins, bytes_received, bytes_sent;
	uint64_t xact_us, query_us, wait_us, n_client_parses, n_server_parses, n_binds, n_prepared_hits, n_evictions;
	uint64_t n_prepared; /* on its servers now */
	uint64_t n_probes, n_replays, n_leaks, n_pins[PIN_N];
};

/* A session that keeps its server connection. */
struct snapshot_pin {
	char database[SNAPSHOT_TEXT], user[SNAPSHOT_TEXT];
	const char *state; /* static */
	uint64_t id, link_id, since_us;
	uint32_t server_pid;
	unsigned pins;          /* enum pin */
	struct state_text text; /* n_texts 0: not known */
};

/* Settings, and how many in this proxy have them. */
struct snapshot_settings {
	struct settings *settings; /* a reference: see snapshot_free */
	uint32_t n_sessions, n_backends;
};

struct mail_snapshot {
	struct mail mail;
	enum snapshot_kind kind;
	uint64_t request; /* the asker's number */
	unsigned proxy;
	bool failed; /* no memory: rows are missing */
	size_t n;
	union {
		struct snapshot_link *links;
		struct snapshot_pool *pools;
		struct snapshot_pin *pins;
		struct snapshot_settings *settings;
		void *rows; /* malloc'ed */
	};
};

/* peer, local and remote_pid of an open socket; -1: none. */
void snapshot_take_socket(struct snapshot_link *row, int fd);

void snapshot_free(struct mail_snapshot *m); /* NULL is a no-op */
size_t snapshot_row_size(enum snapshot_kind kind);

/* In the proxy: fills in m and posts it to the main thread. */
void snapshot_take(struct proxy *p, struct mail_snapshot *m);

#endif
