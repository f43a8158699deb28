/* SPDX-License-Identifier: ISC */
/*
 * Entries of [databases] and [users]: `key=value key='other value' ...`, in which ''
 * inside quotes is a quote. Used by the file loader and for conninfos.
 */
#ifndef PGWEIR_OPS_CONFIG_ENTRY_H
#define PGWEIR_OPS_CONFIG_ENTRY_H

#include "core/config.h"
#include "ops/config_messages.h"

/* Parses `text` (changed while parsing) and adds the entry to c; what is wrong with it goes to m. */
void config_entry_add_database(struct config *c, const char *name, char *text, struct config_place where,
                               struct config_messages *m);
void config_entry_add_user(struct config *c, const char *name, char *text, struct config_place where,
                           struct config_messages *m);

/* Whether the socket of that folder and port has a name short enough for the system. */
bool config_entry_is_unix_path(const char *dir, int64_t port);
/* The first host of d whose socket has none; NULL: all have. */
const struct host_conf *config_entry_long_host(const struct database_conf *d);

#endif
