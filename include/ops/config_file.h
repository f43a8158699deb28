/* SPDX-License-Identifier: ISC */
/*
 * Makes configuration snapshots: from a file in the format of pgbouncer.ini, or from
 * a libpq conninfo given in place of a file. Reads files, so for the main thread.
 *
 * Both answer STATUS_OK with a new snapshot in *out (one reference, the caller's),
 * or STATUS_BAD with *out NULL and the reasons in m. Warnings go to m either way.
 */
#ifndef PGWEIR_OPS_CONFIG_FILE_H
#define PGWEIR_OPS_CONFIG_FILE_H

#include "base/status.h"
#include "core/config.h"
#include "ops/config_messages.h"

/* The file with all it includes, auth_file loaded, everything checked that can be checked without listening. */
enum status config_file_load(const char *path, struct config **out, struct config_messages *m) must_check;

/* The same from memory, n bytes called `name` in messages. Touches no file: no %include, auth_file is not read. */
enum status config_file_load_text(const char *text, size_t n, const char *name, struct config **out,
                                  struct config_messages *m) must_check;

/* Whether a command line argument is a conninfo: it begins as a URI, or has a '=' and is not the name of a file. */
bool config_is_conninfo(const char *argument);

/*
 * One server for all databases, transaction pooling, no authentication but a Unix socket in /tmp that only this user
 * can open, port 6432. What the conninfo leaves out comes from libpq's environment variables and defaults.
 */
enum status config_conninfo_load(const char *conninfo, struct config **out, struct config_messages *m) must_check;

/* What matters at start only: -d needs a pidfile. False: said in m. */
bool config_check_start(const struct config *c, bool daemon, struct config_messages *m);

#endif
