/* SPDX-License-Identifier: ISC */
/*
 * The only way into another thread: one queue of typed messages and an eventfd.
 * Any thread posts; the receiving loop detaches the whole list under the lock and
 * handles it unlocked. Order between two messages of one sender is kept.
 */
#ifndef PGWEIR_NET_MAILBOX_H
#define PGWEIR_NET_MAILBOX_H

#include <stdbool.h>

struct loop;
struct mailbox;

/* Embedded first in what is sent; the receiver's handler owns it from then on. */
struct mail {
	struct mail *next;
	int type; /* of the receiver's enum */
};

struct mailbox *mailbox_new(void (*on_mail)(struct mail *m, void *arg), void *arg); /* NULL: errno */
/* Begins delivery in this loop; call in the loop's thread before it runs, or before the thread starts. */
bool mailbox_attach(struct mailbox *mb, struct loop *loop);
void mailbox_free(struct mailbox **mb); /* queue must be empty; after mailbox_detach */
void mailbox_detach(struct mailbox *mb);
void mailbox_post(struct mailbox *mb, struct mail *m); /* consumes m */

#endif
