/* SPDX-License-Identifier: ISC */
#include "ops/admin_command.h"

#include "base/str.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"
#include "wire/build.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- commands that do something ---- */

static void
shut_down(struct admin_call *call, enum weir_phase phase)
{
	if (phase != WEIR_STOPPING && call->phase != WEIR_RUNNING) {
		reply_error(call->out, "08P01", "pooler is shutting down");
		return;
	}
	call->phase = phase;
	if (phase != WEIR_STOPPING) /* else the connection stays until the daemon has ended: that is the reply */
		build_command_complete(call->out, "SHUTDOWN");
}

static void
shutdown_at_once(struct admin_call *call)
{
	shut_down(call, WEIR_STOPPING);
}

static void
shutdown_wait_for_servers(struct admin_call *call)
{
	shut_down(call, WEIR_WAIT_SERVERS);
}

static void
shutdown_wait_for_clients(struct admin_call *call)
{
	shut_down(call, WEIR_WAIT_CLIENTS);
}

/* ---- the table ---- */

#define LINKS (ASK_CLIENTS | ASK_SERVERS)

static const struct admin_command commands[] = {
	{"SHOW VERSION", "", ADMIN_MAY_SHOW, 0, admin_show_version},
	{"SHOW HELP", "", ADMIN_MAY_SHOW, 0, admin_show_help},
	{"SHOW POOLS", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_pools},
	{"SHOW PREPARED", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_prepared},
	{"SHOW CLIENTS", "", ADMIN_MAY_SHOW, ASK_CLIENTS, admin_show_clients},
	{"SHOW SERVERS", "", ADMIN_MAY_SHOW, ASK_SERVERS, admin_show_servers},
	{"SHOW SOCKETS", "", ADMIN_MAY_SHOW, LINKS, admin_show_sockets},
	{"SHOW ACTIVE_SOCKETS", "", ADMIN_MAY_SHOW, LINKS, admin_show_active_sockets},
	{"SHOW STATS", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_stats},
	{"SHOW STATS_TOTALS", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_stats_totals},
	{"SHOW STATS_AVERAGES", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_stats_averages},
	{"SHOW TOTALS", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_totals},
	{"SHOW DATABASES", "", ADMIN_MAY_SHOW, 0, admin_show_databases},
	{"SHOW HOSTS", "", ADMIN_MAY_SHOW, ASK_SERVERS, admin_show_hosts},
	{"SHOW USERS", "", ADMIN_MAY_SHOW, 0, admin_show_users},
	{"SHOW PROXIES", "", ADMIN_MAY_SHOW, 0, admin_show_proxies},
	{"SHOW LISTS", "", ADMIN_MAY_SHOW, 0, admin_show_lists},
	{"SHOW CONFIG", "", ADMIN_MAY_SHOW, 0, admin_show_config},
	{"SHOW STATE", "", ADMIN_MAY_SHOW, 0, admin_show_state},
	{"SHOW SESSION_STATE", "", ADMIN_MAY_SHOW, ASK_POOLS, admin_show_session_state},
	{"SHOW PINS", "", ADMIN_MAY_SHOW, ASK_PINS, admin_show_pins},
	{"SHOW SETTINGS", "", ADMIN_MAY_SHOW, ASK_SETTINGS, admin_show_settings},
	{"SHOW PEERS", "", ADMIN_MAY_SHOW, 0, NULL},
	{"SHOW PEER_POOLS", "", ADMIN_MAY_SHOW, 0, NULL},
	{"SHOW DNS_HOSTS", "", ADMIN_MAY_SHOW, 0, NULL},
	{"SHOW DNS_ZONES", "", ADMIN_MAY_SHOW, 0, NULL},
	{"SHOW MEM", "", ADMIN_MAY_SHOW, 0, NULL},
	{"SHOW FDS", "", ADMIN_MAY_CHANGE, 0, NULL},
	{"SHOW", "parameter", ADMIN_MAY_SHOW, 0, admin_show_parameter},
	{"SET", "key = value", ADMIN_MAY_SHOW, 0, admin_set},
	{"RELOAD", "", ADMIN_MAY_CHANGE, 0, NULL},
	{"PAUSE", "[db]", ADMIN_MAY_CHANGE, 0, NULL},
	{"RESUME", "[db]", ADMIN_MAY_CHANGE, 0, NULL},
	{"SUSPEND", "", ADMIN_MAY_CHANGE, 0, NULL},
	{"DISABLE", "db", ADMIN_MAY_CHANGE, 0, NULL},
	{"ENABLE", "db", ADMIN_MAY_CHANGE, 0, NULL},
	{"RECONNECT", "[db]", ADMIN_MAY_CHANGE, 0, NULL},
	{"KILL", "[db]", ADMIN_MAY_CHANGE, 0, NULL},
	{"KILL_CLIENT", "id", ADMIN_MAY_CHANGE, 0, NULL},
	{"WAIT_CLOSE", "[db]", ADMIN_MAY_CHANGE, 0, NULL},
	{"SHUTDOWN", "", ADMIN_MAY_CHANGE, 0, shutdown_at_once},
	{"SHUTDOWN WAIT_FOR_SERVERS", "", ADMIN_MAY_CHANGE, 0, shutdown_wait_for_servers},
	{"SHUTDOWN WAIT_FOR_CLIENTS", "", ADMIN_MAY_CHANGE, 0, shutdown_wait_for_clients},
};

const struct admin_command *
admin_commands(size_t *n)
{
	*n = sizeof(commands) / sizeof(commands[0]);
	return commands;
}

void
admin_help(struct buf *b)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct admin_command *c = &commands[i];

		if (c->run != NULL && c->run != admin_show_parameter && c->run != admin_set) /* those are for drivers */
			buf_printf(b, "\n\t%s%s%s", c->words, c->argument[0] != '\0' ? " " : "", c->argument);
	}
}

/* ---- the parser ---- */

/* One word at *p into *to; quotes are taken off. False: the quote is never closed. */
static bool
copy_word(const char **p, char **to)
{
	char quote = **p == '\'' || **p == '"' ? *(*p)++ : '\0';

	if (quote == '\0' && **p == '=') {
		*(*to)++ = *(*p)++;
	} else if (quote == '\0') {
		while (**p != '\0' && !isspace((unsigned char)**p) && strchr("='\";", **p) == NULL)
			*(*to)++ = *(*p)++;
	} else {
		for (; **p != quote || (*p)[1] == quote; (*p)++) {
			if (**p == '\0')
				return false;
			if (**p == quote)
				(*p)++; /* doubled: one of it */
			*(*to)++ = **p;
		}
		(*p)++;
	}
	*(*to)++ = '\0';
	return true;
}

bool
admin_split(const char *query, struct admin_words *w)
{
	char *to = w->store;

	w->n = 0;
	if (strlen(query) >= ADMIN_QUERY_MAX)
		return false;
	for (const char *p = query;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (*p == '\0')
			return true;
		if (*p == ';')
			return p[strspn(p, "; \t\r\n\f\v")] == '\0';
		if (w->n == ADMIN_WORDS_MAX)
			return false;
		w->word[w->n++] = to;
		if (!copy_word(&p, &to))
			return false;
	}
}

/* How many words of w are the name in words (one space between them); 0: they are not. */
static size_t
match_name(const char *words, const struct admin_words *w)
{
	size_t n = 0;

	for (const char *p = words; *p != '\0'; n++) {
		size_t len = strcspn(p, " ");
		const char *word;

		if (n == w->n)
			return 0;
		word = n == 0 && str_equal_nocase(w->word[0], "select") ? "SHOW" : w->word[n];
		if (strlen(word) != len || strncasecmp(word, p, len) != 0)
			return 0;
		p += len;
		p += *p == ' ';
	}
	return n;
}

static bool
fits_argument(const char *argument, size_t n_args)
{
	if (argument[0] == '\0')
		return n_args == 0;
	if (argument[0] == '[')
		return n_args <= 1;
	return strchr(argument, ' ') != NULL ? n_args > 0 : n_args == 1;
}

const struct admin_command *
admin_find(const struct admin_words *w, size_t *n_words)
{
	const struct admin_command *found = NULL;

	*n_words = 0;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		size_t n = match_name(commands[i].words, w);

		/* of SHUTDOWN and SHUTDOWN WAIT_FOR_CLIENTS the longer one is meant */
		if (n > *n_words && fits_argument(commands[i].argument, w->n - n)) {
			found = &commands[i];
			*n_words = n;
		}
	}
	return found;
}
