/* SPDX-License-Identifier: ISC */
/* The `options` startup parameter: the server's own command line, as far as a client may give it. */
#include "wire/startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
	char *words; /* unescaped, each terminated, one after the other */
	const char *end;
	bool (*on_setting)(const char *name, const char *value, void *arg);
	void *arg;
	char *why;
	size_t why_cap;
};

/* isspace() of the C locale: what separates words must not depend on the locale of this process. */
static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Words are separated by spaces; a backslash takes the next character as it is. */
static bool
options_split(struct options *o, const char *text)
{
	char *out = malloc(strlen(text) + 1);
	o->words = out;
	if (out == NULL)
		return false;
	for (;;) {
		while (is_space(*text))
			text++;
		if (*text == 0)
			break;
		for (; *text != 0 && !is_space(*text); text++) {
			if (*text == '\\' && *++text == 0)
				break;
			*out++ = *text;
		}
		*out++ = 0;
	}
	o->end = out;
	return true;
}

static const char *
word_after(const char *word)
{
	return word + strlen(word) + 1;
}

/* ---- what each switch stands for; argument NULL for those without one ---- */

static enum status
set(const struct options *o, const char *name, const char *value)
{
	return o->on_setting(name, value, o->arg) ? STATUS_OK : STATUS_NO_MEM;
}

/* On a copy of the name: a complaint may still have to show the word as it was. */
static enum status
set_long(const struct options *o, char switch_char, const char *text)
{
	const char *equals = strchr(text, '=');
	if (equals == NULL) {
		snprintf(o->why, o->why_cap, "%s%s requires a value", switch_char == '-' ? "--" : "-c ", text);
		return STATUS_BAD;
	}
	char *name = strndup(text, (size_t)(equals - text));
	if (name == NULL)
		return STATUS_NO_MEM;
	for (char *c = name; *c != 0; c++) {
		if (*c == '-')
			*c = '_';
	}
	enum status status = set(o, name, equals + 1);
	free(name);
	return status;
}

static enum status
set_debug_level(const struct options *o, const char *argument)
{
	static const char *const at_level[] = {"debug_print_parse", "debug_print_plan", "debug_print_rewritten"};
	int level = atoi(argument); /* lint: as lenient as the server */
	char name[24];
	snprintf(name, sizeof(name), "debug%d", level);
	enum status status = set(o, "log_min_messages", level > 0 ? name : "notice");
	if (status == STATUS_OK && level >= 2)
		status = set(o, "log_statement", "all");
	for (int i = 0; i < 3 && status == STATUS_OK && level >= i + 3; i++)
		status = set(o, at_level[i], "true");
	return status;
}

/* STATUS_REFUSED: not an argument this switch takes. */
static enum status
set_plan_off(const struct options *o, char kind)
{
	static const struct {
		char kind;
		const char *setting;
	} kinds[] = {
		{'s', "enable_seqscan"},    {'i', "enable_indexscan"}, {'o', "enable_indexonlyscan"},
		{'b', "enable_bitmapscan"}, {'t', "enable_tidscan"},   {'n', "enable_nestloop"},
		{'m', "enable_mergejoin"},  {'h', "enable_hashjoin"},
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].kind == kind)
			return set(o, kinds[i].setting, "false");
	}
	return STATUS_REFUSED;
}

static enum status
set_stats(const struct options *o, const char *argument)
{
	if (strncmp(argument, "pa", 2) == 0)
		return set(o, "log_parser_stats", "true");
	if (strncmp(argument, "pl", 2) == 0)
		return set(o, "log_planner_stats", "true");
	if (argument[0] == 'e')
		return set(o, "log_executor_stats", "true");
	return STATUS_REFUSED;
}

/* The switches that are one setting. value NULL: the argument is the value. setting NULL: allowed and without effect. */
struct plain_switch {
	char letter;
	bool has_argument;
	const char *setting;
	const char *value;
};

static const struct plain_switch plain_switches[] = {
	{'B', true, "shared_buffers", NULL},
	{'b', false, NULL, NULL},
	{'C', true, NULL, NULL},
	{'D', true, NULL, NULL},
	{'E', false, NULL, NULL},
	{'e', false, "datestyle", "euro"},
	{'F', false, "fsync", "false"},
	{'h', true, "listen_addresses", NULL},
	{'i', false, "listen_addresses", "*"},
	{'j', false, NULL, NULL},
	{'k', true, "unix_socket_directories", NULL},
	{'l', false, "ssl", "true"},
	{'N', true, "max_connections", NULL},
	{'n', false, NULL, NULL},
	{'O', false, "allow_system_table_mods", "true"},
	{'P', false, "ignore_system_indexes", "true"},
	{'p', true, "port", NULL},
	{'r', true, NULL, NULL},
	{'S', true, "work_mem", NULL},
	{'s', false, "log_statement_stats", "true"},
	{'T', false, NULL, NULL},
	{'v', true, NULL, NULL},
	{'W', true, "post_auth_delay", NULL},
};

static const struct plain_switch *
plain_switch_find(char letter)
{
	for (size_t i = 0; i < sizeof(plain_switches) / sizeof(plain_switches[0]); i++) {
		if (plain_switches[i].letter == letter)
			return &plain_switches[i];
	}
	return NULL;
}

/* -1: no such switch. */
static int
switch_has_argument(char letter)
{
	if (letter != 0 && strchr("c-dft", letter) != NULL)
		return 1;
	const struct plain_switch *plain = plain_switch_find(letter);
	return plain == NULL ? -1 : plain->has_argument;
}

static enum status
switch_apply(const struct options *o, char letter, const char *argument)
{
	switch (letter) {
	case 'c':
	case '-':
		return set_long(o, letter, argument);
	case 'd':
		return set_debug_level(o, argument);
	case 'f':
		return set_plan_off(o, argument[0]);
	case 't':
		return set_stats(o, argument);
	default:
		break;
	}
	const struct plain_switch *plain = plain_switch_find(letter);
	if (plain->setting == NULL)
		return STATUS_OK;
	return set(o, plain->setting, plain->value != NULL ? plain->value : argument);
}

/* Where the walk over the words is; the last two only to word a complaint as the server does. */
struct walk {
	const char *word;   /* being looked at */
	const char *next;   /* to go on with */
	const char *stray;  /* first word that is no switch, NULL: none so far */
	const char *before; /* what stands before word in the server's argument list */
};

/*
 * The server blames the argument before the one its getopt() would read next: the wrong word itself or its separate
 * argument, but the word before it when letters are left in the wrong word. ("-work_mem=1" alone: "postgres".)
 */
static enum status
complain(const struct options *o, const char *blamed)
{
	snprintf(o->why, o->why_cap, "invalid command-line argument for server process: %s", blamed);
	return STATUS_BAD;
}

/* One word that starts with '-', and the next word where a switch takes it. */
static enum status
switches_run(const struct options *o, struct walk *w)
{
	const char *last = w->word; /* word or its separate argument */
	for (const char *letter = w->word + 1; *letter != 0;) {
		char name = *letter++;
		int has_argument = switch_has_argument(name);
		if (has_argument < 0)
			return complain(o, *letter == 0 ? w->word : w->before);
		const char *argument = NULL;
		if (has_argument > 0) {
			argument = letter; /* the rest of this word, or else the next word */
			letter += strlen(letter);
			if (*argument == 0 && w->next == o->end)
				return complain(o, w->word);
			if (*argument == 0) {
				last = argument = w->next;
				w->next = word_after(argument);
			}
		}
		enum status status = switch_apply(o, name, argument);
		if (status == STATUS_REFUSED)
			return complain(o, last);
		if (status != STATUS_OK)
			return status;
	}
	if (w->stray == NULL)
		w->before = last;
	return STATUS_OK;
}

/*
 * As getopt() of the C library, which the server uses: words that are no switch are skipped, moved behind the switches
 * and complained about at the end, so that switches after them still take effect; "--" ends the switches.
 */
static enum status
options_run(const struct options *o)
{
	struct walk w = {.before = "postgres"};
	for (w.word = o->words; w.word != o->end; w.word = w.next) {
		w.next = word_after(w.word);
		bool is_end = strcmp(w.word, "--") == 0;
		if (is_end && w.next == o->end)
			break;
		if (is_end || w.word[0] != '-' || w.word[1] == 0) {
			if (w.stray == NULL)
				w.stray = is_end ? w.next : w.word;
			if (is_end)
				break;
			w.before = w.word;
			continue;
		}
		enum status status = switches_run(o, &w);
		if (status != STATUS_OK)
			return status;
	}
	return w.stray == NULL ? STATUS_OK : complain(o, w.stray);
}

enum status
startup_split_options(const char *options, bool (*on_setting)(const char *name, const char *value, void *arg),
                      void *arg, char *why, size_t why_cap)
{
	struct options o = {.on_setting = on_setting, .arg = arg, .why = why, .why_cap = why_cap};
	if (!options_split(&o, options))
		return STATUS_NO_MEM;
	enum status status = options_run(&o);
	free(o.words);
	return status;
}
