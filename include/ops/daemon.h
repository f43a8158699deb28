/* SPDX-License-Identifier: ISC */
/*
 * What makes a process a daemon. Main thread, before other threads start, in this order:
 *
 *   daemon_fork, daemon_raise_nofile, daemon_drop_root, open the log, daemon_write_pidfile, listen, daemon_ready
 *
 * and daemon_remove_pidfile at the end. Those that can fail say why in a text for the operator.
 */
#ifndef PGWEIR_OPS_DAEMON_H
#define PGWEIR_OPS_DAEMON_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/*
 * Continues in the background, in a session of its own. The process that was started waits until the background one
 * calls daemon_ready, and exits 0, or ends before, and exits 1; so it never returns from here. stderr stays open
 * until daemon_ready, so that what fails at start is seen.
 */
enum status daemon_fork(char *why, size_t why_cap) must_check;
void daemon_ready(void); /* stdin, stdout and stderr become /dev/null; nothing happens without daemon_fork */

/*
 * As root: becomes `user` for good, or refuses when that is "" or root itself. As anybody else: OK if `user` is ""
 * or the name of who we are already.
 */
enum status daemon_drop_root(const char *user, char *why, size_t why_cap) must_check;

/*
 * Writes our process id and holds a lock on the file while we live. STATUS_REFUSED: another pooler has it. "": no
 * file is wanted. The file is left alone by daemon_remove_pidfile unless this process wrote it.
 */
enum status daemon_write_pidfile(const char *path, char *why, size_t why_cap) must_check;
void daemon_remove_pidfile(void);

/* File descriptors that clients and servers may need at most, so far as the configuration tells. */
uint64_t daemon_need_nofile(const struct config *c);
/* Raises the limit as far as allowed. STATUS_REFUSED: it stays below need; the daemon may run, but shall say so. */
enum status daemon_raise_nofile(uint64_t need, char *why, size_t why_cap) must_check;

#endif
