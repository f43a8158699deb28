/* SPDX-License-Identifier: ISC */
/*
 * Name resolution that never blocks a proxy: a helper thread runs getaddrinfo() and
 * the answer comes through the asker's mailbox. Answers are kept for dns_max_ttl;
 * the last good answer is used when a later look-up fails.
 */
#ifndef PGWEIR_NET_RESOLVE_H
#define PGWEIR_NET_RESOLVE_H

#include "net/addr.h"
#include "net/mailbox.h"

#include <stdint.h>

struct resolver;
struct resolve;

/* mail_type: what resolve answers are posted as; the receiver hands them to resolve_deliver(). NULL: no memory/thread. */
struct resolver *resolver_new(uint64_t ttl_us, int mail_type);
void resolver_free(struct resolver **r); /* after the loops ended; joins the thread */

/*
 * Begins a look-up; done(r) is called in the asker's loop by resolve_deliver(), then r is gone. Several addresses of a
 * name are given in turn (round robin over calls). NULL: no memory.
 */
struct resolve *resolve_begin(struct resolver *rs, struct mailbox *reply_to, const char *host, uint16_t port,
                              void (*done)(struct resolve *r), void *owner);
/* The owner goes away: done will not be called. *r is nulled. */
void resolve_abandon(struct resolve **r);
void resolve_deliver(struct mail *m);

void *resolve_owner(const struct resolve *r);
const struct addr *resolve_addr(const struct resolve *r); /* NULL: failed */
const char *resolve_error(const struct resolve *r);       /* text of the failure */

#endif
