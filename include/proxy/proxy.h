/* SPDX-License-Identifier: ISC */
/* Runs the proxies: one thread each, its mailbox, its start and its end. Called by the main thread. */
#ifndef PGWEIR_PROXY_PROXY_H
#define PGWEIR_PROXY_PROXY_H

#include "core/proxy.h"

struct proxy *proxy_new(struct weir *w, unsigned index); /* NULL: no memory or descriptors */
bool proxy_start(struct proxy *p);                       /* false: no thread */
/* weir.phase has moved on: each proxy acts on it; at WEIR_STOPPING its loop ends. */
void proxy_tell_phase(struct proxy *p);
void proxy_join(struct proxy *p);  /* after WEIR_STOPPING */
void proxy_drain(struct proxy *p); /* after all were joined: closes what other proxies sent meanwhile */
void proxy_free(struct proxy **p);

#endif
