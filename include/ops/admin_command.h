/* SPDX-License-Identifier: ISC */
/* The commands of the console as a table, and how a query becomes one of them. Pure but for the handlers. */
#ifndef PGWEIR_OPS_ADMIN_COMMAND_H
#define PGWEIR_OPS_ADMIN_COMMAND_H

#include "base/buf.h"
#include "core/weir.h"
#include "ops/admin_ask.h"

#include <stdbool.h>
#include <stddef.h>

#define ADMIN_DATABASE "pgweir"
#define ADMIN_QUERY_MAX 8192u /* bytes of a query, terminator included */
#define ADMIN_WORDS_MAX 16u   /* words of a query */

struct stats;

enum admin_rights { ADMIN_MAY_SHOW, ADMIN_MAY_CHANGE };

/* What a handler works with. It appends its reply to out, without the ReadyForQuery. */
struct admin_call {
	struct weir *weir;
	const struct ask *ask; /* the rows the command asks for; NULL: it asks for none */
	struct stats *stats;
	unsigned n_consoles;
	bool may_change; /* admin_users: may see texts and values, too */
	size_t n_args;
	char **args;
	struct buf *out;
	enum weir_phase phase; /* the handler may raise it: done once the reply is sent */
};

/*
 * A row. The last word of an argument tells the parser: "" none, "[db]" one or none, "key = value" several, other texts
 * one.
 */
struct admin_command {
	const char *words; /* separated by one space */
	const char *argument;
	enum admin_rights rights;
	unsigned asks;                        /* ASK_... of the proxies first; then it has no arguments */
	void (*run)(struct admin_call *call); /* NULL: not supported yet */
};

const struct admin_command *admin_commands(size_t *n);

/* The words of a query, unquoted. */
struct admin_words {
	size_t n;
	char *word[ADMIN_WORDS_MAX];
	char store[ADMIN_QUERY_MAX + ADMIN_WORDS_MAX];
};

/* False: too many words, an open quote, or something behind the semicolon. No words: an empty query. */
bool admin_split(const char *query, struct admin_words *w);

/* The command these words are, the first n_words of them its name; NULL: none. `select x` is `show x`. */
const struct admin_command *admin_find(const struct admin_words *w, size_t *n_words);

/* The text that SHOW HELP sends; appended without terminator. */
void admin_help(struct buf *b);

#endif
