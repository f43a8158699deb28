/* SPDX-License-Identifier: ISC */
/*
 * Listeners and the dealing of accepted sockets to proxies. Main thread, under
 * libevent.
 */
#ifndef PGWEIR_PROXY_DISPATCH_H
#define PGWEIR_PROXY_DISPATCH_H

#include "core/weir.h"

struct dispatch;
struct event_base;

/* Opens all listeners of the configuration. NULL: why says which one failed and why. */
struct dispatch *dispatch_new(struct weir *w, struct event_base *base, char *why, size_t why_cap);
void dispatch_stop_listening(struct dispatch *d); /* no new clients; removes Unix sockets */
void dispatch_free(struct dispatch **d);

#endif
