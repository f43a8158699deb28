/* SPDX-License-Identifier: ISC */
/*
 * The hosts of a group: where the next connection is opened, and what is known of each
 * server apart. A host that can't be reached or refuses logins pauses alone, twice as
 * long each time; then one connection at a time tries it again, while the others serve.
 * Any thread, unless it says otherwise.
 */
#ifndef PGWEIR_CORE_GROUP_HOSTS_H
#define PGWEIR_CORE_GROUP_HOSTS_H

#include "core/group.h"

bool group_hosts_init(struct group *g); /* g->db is set; false: no memory */
void group_hosts_fini(struct group *g);

/* ---- choice ---- */
/* Bits of the hosts by how they do now. */
struct group_hosts_state {
	uint64_t well;
	uint64_t due; /* failed, and the pause is over */
};
struct group_hosts_state group_hosts_state(struct group *g);

/*
 * Under weir.shared.lock: the host for a new connection. round-robin: the one with the fewest connections; disable: the
 * first. false: all pause. One that is due is tried by one connection at a time, if with_trial or nobody is well.
 */
bool group_hosts_pick(const struct group *g, struct group_hosts_state st, bool with_trial, struct group_slot *slot);

/*
 * Whether a connection should move for the balance's sake. has: bits of the hosts that the asker has connections to; *from:
 * the one that should give one up. Never while connections are being opened.
 */
bool group_hosts_unbalanced(struct group *g, uint64_t has, unsigned *from);
/* The right to move one, now; other proxies have theirs a moment later. */
bool group_hosts_claim_move(struct group *g, uint64_t pause_us);

/* ---- failures ---- */
void group_failed(struct group *g, unsigned host, enum close_reason reason, bool is_final, const struct said *said);
void group_succeeded(struct group *g, unsigned host);
/* Of all hosts together, when each of them fails: false while there is one that doesn't. */
bool group_failure(struct group *g, struct group_failure *out);
void group_host_failure(struct group *g, unsigned host, struct group_failure *out); /* n = 0: none at present */

/* ---- what the servers report at login ---- */
struct settings *group_welcome(struct group *g); /* a reference, or NULL */
/* Taken from the host that was the first to log one in: the others are made to report the same. */
void group_set_welcome(struct group *g, unsigned host, struct settings *welcome);
/*
 * What a login to this host must ask for, so that a session finds there the defaults that it was told at its own login (a
 * reference, or NULL: nothing).
 */
struct settings *group_host_startup(struct group *g, unsigned host);
/* Reported, but nothing that a login or a session can set: each server has its own. */
bool group_is_server_fact(const char *name);
/* This is what a login reported. true: it differs from the welcome; a new login with group_host_startup() won't. */
bool group_host_must_align(struct group *g, unsigned host, const struct settings *reported);

#endif
