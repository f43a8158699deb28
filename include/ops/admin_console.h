/* SPDX-License-Identifier: ISC */
/*
 * A connection to the console: simple queries in, replies out, one at a time.
 * Belongs to the main thread's loop. A client that does not read is not read from
 * either, so what is kept for it is one reply at most.
 */
#ifndef PGWEIR_OPS_ADMIN_CONSOLE_H
#define PGWEIR_OPS_ADMIN_CONSOLE_H

#include "net/stream.h"
#include "ops/admin_command.h"

enum console_state {
	CONSOLE_READY,   /* reads queries */
	CONSOLE_ASKING,  /* the proxies were asked for rows; not reading */
	CONSOLE_BLOCKED, /* the client does not take the reply; not reading */
	CONSOLE_CLOSED,
};

#define CONSOLE_MAGIC 0x636f6e73u

struct admin;

struct console {
	uint32_t magic;
	enum console_state state;
	uint32_t skip; /* bytes of a message under way that are dropped */
	struct stream stream;
	struct admin *admin;
	const struct admin_command *command; /* CONSOLE_ASKING */
	struct ask *ask;                     /* CONSOLE_ASKING */
	char user[128];
	bool may_change;
	uint64_t id, connected_us, request_us;
	struct loop_grave grave;
	TAILQ_ENTRY(console) link;
};

/* The connections and what they share. */
struct admin {
	struct weir *weir;
	struct loop *loop;
	struct asks asks;
	struct stats *stats;
	struct loop_timer period; /* of the averages */
	struct ask *period_ask;
	void (*shutdown)(enum weir_phase phase, void *arg);
	void *shutdown_arg;
	unsigned n_consoles;
	TAILQ_HEAD(, console) consoles;
};

/* Takes m->fd; on failure (no memory) it is closed. */
bool console_new(struct admin *a, const struct mail_admin *m);
/* sqlstate NULL: nothing is said to the client. */
void console_close(struct console *c, const char *sqlstate, const char *why);

#endif
