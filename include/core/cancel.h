/* SPDX-License-Identifier: ISC */
/*
 * A cancel request on its way to a server: a short connection of its own. It is sent
 * only while the backend still serves the unit it was meant for, and the backend is
 * not reused, nor sent a later unit of its session, until this connection has closed:
 * by then the server has acted. While a hidden unit is in front it is kept.
 * Belongs to the proxy that owns the backend.
 */
#ifndef PGWEIR_CORE_CANCEL_H
#define PGWEIR_CORE_CANCEL_H

struct backend;
struct mail_cancel;
struct proxy;

/* For a client's request (told when it is done), or for us: requester NULL. Without memory or descriptors: nothing. */
void cancel_begin(struct backend *b, const struct mail_cancel *requester);
void cancel_hidden_unit_over(struct backend *b); /* send what waited for that */
void cancel_withdraw(struct backend *b);         /* the unit has ended: those that have not been sent are not */
void cancel_forget_backend(struct backend *b);   /* it is closed */
void cancel_answer(struct proxy *p, const struct mail_cancel *requester); /* tells the requester's proxy: done */
void cancel_free_all(struct proxy *p);

#endif
