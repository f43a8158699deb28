/* SPDX-License-Identifier: ISC */
/*
 * Asking every proxy for rows (proxy/snapshot.h) and waiting for the answers. A
 * proxy always answers. Main thread.
 */
#ifndef PGWEIR_OPS_ADMIN_ASK_H
#define PGWEIR_OPS_ADMIN_ASK_H

#include "proxy/snapshot.h"

#include <sys/queue.h>

#define ASK_CLIENTS (1u << SNAPSHOT_CLIENTS)
#define ASK_SERVERS (1u << SNAPSHOT_SERVERS)
#define ASK_POOLS (1u << SNAPSHOT_POOLS)
#define ASK_PINS (1u << SNAPSHOT_PINS)
#define ASK_SETTINGS (1u << SNAPSHOT_SETTINGS)
#define ASK_ANSWERS_MAX (SNAPSHOT_KIND_N * WEIR_MAX_PROXIES + 1) /* of all kinds, and one of ask_add() */

struct ask {
	uint64_t number;
	TAILQ_ENTRY(ask) link;
	void (*done)(struct ask *a, void *owner); /* must call ask_free */
	void *owner;
	unsigned n_missing;
	bool failed; /* somebody had no memory: rows are missing */
	size_t n;
	struct mail_snapshot *answer[ASK_ANSWERS_MAX];
};

struct asks {
	struct weir *weir;
	uint64_t last_number;
	TAILQ_HEAD(, ask) open;
};

void asks_init(struct asks *as, struct weir *w);
/* kinds: ASK_... ored. done is called from the loop, never from inside. NULL: no memory, nothing was asked. */
struct ask *ask_begin(struct asks *as, unsigned kinds, void (*done)(struct ask *a, void *owner), void *owner);
void ask_free(struct asks *as, struct ask **a);              /* also while answers are missing: done is not called */
void asks_deliver(struct asks *as, struct mail_snapshot *m); /* consumes m */

/* An answer of the main thread's own, as if it were a proxy: n zeroed rows. NULL: no memory. */
struct mail_snapshot *ask_add(struct ask *a, enum snapshot_kind kind, size_t n);

#endif
