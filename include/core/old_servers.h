/* SPDX-License-Identifier: ISC */
/*
 * Servers that refuse a login in protocol 3.2 instead of negotiating 3.0 (PostgreSQL
 * before 2018, some poolers): remembered by address, so that finding out costs one
 * connection. Any thread; for the daemon's life.
 */
#ifndef PGWEIR_CORE_OLD_SERVERS_H
#define PGWEIR_CORE_OLD_SERVERS_H

#include "core/weir.h"
#include "net/addr.h"

bool old_servers_have(struct weir *w, const struct addr *a);
void old_servers_add(struct weir *w, const struct addr *a); /* without memory it is found out again */
void old_servers_free(struct weir *w);

#endif
