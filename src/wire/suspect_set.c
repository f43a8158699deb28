/* SPDX-License-Identifier: ISC */
/* Which settings do SET, RESET and set_config() name? */
#include "wire/suspect_parts.h"

#include <string.h>

void
suspect_look_ahead(const struct suspect_state *s, struct suspect_ahead *a)
{
	struct sql_lexer lx = s->lexer;
	struct sql_token t;
	enum sql_token_kind kind = sql_next(&lx, &t);
	for (a->n = 0; a->n < SUSPECT_AHEAD_MAX && kind != SQL_END && kind != SQL_SEMICOLON; a->n++) {
		a->t[a->n] = t;
		kind = sql_next(&lx, &t);
	}
	a->is_last = kind == SQL_END || (kind == SQL_SEMICOLON && sql_next(&lx, &t) == SQL_END);
}

const struct sql_token *
suspect_ahead_at(const struct suspect_ahead *a, size_t i)
{
	static const struct sql_token end = {.kind = SQL_END};
	return i < a->n ? &a->t[i] : &end;
}

bool
suspect_ahead_is(const struct suspect_ahead *a, size_t i, const char *word)
{
	return sql_token_is(suspect_ahead_at(a, i), word);
}

bool
suspect_ahead_is_punct(const struct suspect_ahead *a, size_t i, char c)
{
	return sql_token_is_punct(suspect_ahead_at(a, i), c);
}

static void
suspect_any(struct suspect_state *s, uint32_t flags)
{
	s->out->flags |= SUSPECT_SETTINGS | SUSPECT_ANY_SETTING | flags;
}

static void
append_name(struct suspect_state *s, const char *name)
{
	struct suspicion *out = s->out;
	out->flags |= SUSPECT_SETTINGS;
	for (size_t i = 0; i < out->n_names; i++) {
		if (strcmp(out->names[i], name) == 0)
			return;
	}
	if (out->n_names == SUSPECT_NAMES_MAX)
		out->flags |= SUSPECT_ANY_SETTING;
	else
		memcpy(out->names[out->n_names++], name, strlen(name) + 1);
}

/* The server goes by these names too, or they are not what they seem. */
static const struct {
	const char *name;
	const char *other;
	enum { NAME_RENAMED, NAME_TAKES_ALONG, NAME_OF_TRANSACTION, NAME_OF_SEED } rule;
} special_names[] = {
	{"sort_mem", "work_mem", NAME_RENAMED},
	{"vacuum_mem", "maintenance_work_mem", NAME_RENAMED},
	{"session_authorization", "role", NAME_TAKES_ALONG}, /* it sets the role to none */
	{"transaction_isolation", NULL, NAME_OF_TRANSACTION},
	{"transaction_read_only", NULL, NAME_OF_TRANSACTION},
	{"transaction_deferrable", NULL, NAME_OF_TRANSACTION},
	{"seed", NULL, NAME_OF_SEED},
};

/* name[0..SQL_NAME_MAX), in any case. flags: SUSPECT_RESETS or 0. */
static void
suspect_name(struct suspect_state *s, char *name, uint32_t flags)
{
	for (char *c = name; *c != 0; c++)
		*c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
	for (size_t i = 0; i < sizeof(special_names) / sizeof(special_names[0]); i++) {
		if (strcmp(name, special_names[i].name) != 0)
			continue;
		switch (special_names[i].rule) {
		case NAME_TAKES_ALONG:
			append_name(s, name);
			append_name(s, special_names[i].other);
			break;
		case NAME_RENAMED:
			append_name(s, special_names[i].other);
			break;
		case NAME_OF_TRANSACTION:
			return;
		case NAME_OF_SEED:
			s->out->flags |= SUSPECT_SEEDS;
			return;
		}
		s->out->flags |= flags;
		return;
	}
	append_name(s, name);
	s->out->flags |= flags;
}

void
suspect_read_setting(struct suspect_state *s, const char *literal, uint32_t flags)
{
	char name[SQL_NAME_MAX];
	memcpy(name, literal, strlen(literal) + 1);
	suspect_name(s, name, flags);
}

/* Parts joined by dots, from *at on, which is moved behind them; false: not a name, or one that can't be known. */
static bool
read_name(const struct suspect_ahead *a, size_t *at, char name[SQL_NAME_MAX])
{
	size_t n = 0;
	for (;;) {
		size_t n_part = sql_token_name(suspect_ahead_at(a, *at), name + n, SQL_NAME_MAX - n);
		if (n_part == 0)
			return false;
		n += n_part;
		++*at;
		if (!suspect_ahead_is_punct(a, *at, '.'))
			return true;
		if (n + 1 >= SQL_NAME_MAX)
			return false;
		name[n++] = '.';
		++*at;
	}
}

/* Whole numbers are read and written anew: 007 becomes 7. */
static bool
is_rewritten_number(const struct sql_token *t, bool is_negative)
{
	if (t->p[0] != '0' || (t->n == 1 && !is_negative))
		return false;
	for (size_t i = 0; i < t->n; i++) {
		if (t->p[i] < '0' || t->p[i] > '9')
			return false;
	}
	return true;
}

/*
 * The single value at `at`, in the text form that the server keeps; answers the number of its tokens, 0: something
 * else, or a form that is not kept.
 */
static size_t
read_value(const struct suspect_ahead *a, size_t at, char value[SUSPECT_VALUE_MAX])
{
	bool is_negative = suspect_ahead_is_punct(a, at, '-');
	const struct sql_token *t = suspect_ahead_at(a, at + is_negative);
	if (t->kind == SQL_NUMBER) {
		if (is_rewritten_number(t, is_negative) || t->n + 2 > SUSPECT_VALUE_MAX)
			return 0;
		value[0] = '-';
		memcpy(value + is_negative, t->p, t->n);
		value[t->n + is_negative] = 0;
		return 1 + is_negative;
	}
	if (is_negative)
		return 0;
	if (t->kind == SQL_STRING)
		return sql_token_string(t, value, SUSPECT_VALUE_MAX);
	return sql_token_name(t, value, SUSPECT_VALUE_MAX) > 0;
}

/* A value of it is kept in another form than it was given in, or its meaning depends on the value before. */
static bool
is_reworked(const char *name)
{
	static const char *const reworked[] = {
		"datestyle",
		"session_authorization",
		/* Lists of names, each of which the server quotes. */
		"search_path",
		"temp_tablespaces",
		"local_preload_libraries",
		"session_preload_libraries",
	};
	for (size_t i = 0; i < sizeof(reworked) / sizeof(reworked[0]); i++) {
		if (strcmp(name, reworked[i]) == 0)
			return true;
	}
	return false;
}

/* names[0] has just been set to the value at `at`: is that all that the text does? */
static void
find_lone_set(struct suspect_state *s, const struct suspect_ahead *a, size_t at)
{
	struct suspicion *out = s->out;
	if (!s->is_first || !a->is_last || out->flags != SUSPECT_SETTINGS || is_reworked(out->names[0]))
		return;
	size_t n = read_value(a, at, out->value);
	if (n > 0 && at + n == a->n)
		out->flags |= SUSPECT_LONE_SET;
}

/* SET name {=|TO} value, name behind a possible SESSION. */
static void
read_set_name(struct suspect_state *s, const struct suspect_ahead *a, size_t at)
{
	char name[SQL_NAME_MAX];
	if (!read_name(a, &at, name) || at + 1 >= a->n) { /* no value, as far as can be seen */
		suspect_any(s, SUSPECT_RESETS);
		return;
	}
	if (suspect_ahead_is(a, at, "from")) { /* CURRENT */
		suspect_name(s, name, 0);
		return;
	}
	bool is_reset = suspect_ahead_is(a, at + 1, "default");
	suspect_name(s, name, is_reset ? SUSPECT_RESETS : 0);
	if (!is_reset)
		find_lone_set(s, a, at + 1);
}

/* The forms of SET that have words of their own; without a value some of them reset. */
static const struct special_set {
	const char *words[2];
	const char *name;
	const char *reset_word; /* instead of a value, besides DEFAULT */
} special_sets[] = {
	{{"time", "zone"}, "timezone", "local"}, {{"names", NULL}, "client_encoding", NULL},
	{{"schema", NULL}, "search_path", NULL}, {{"xml", "option"}, "xmloption", NULL},
	{{"role", NULL}, "role", NULL},          {{"session", "authorization"}, "session_authorization", NULL},
};

static bool
read_special_set(struct suspect_state *s, const struct suspect_ahead *a, size_t at)
{
	for (size_t i = 0; i < sizeof(special_sets) / sizeof(special_sets[0]); i++) {
		const struct special_set *form = &special_sets[i];
		size_t n = form->words[1] != NULL ? 2 : 1;
		if (!suspect_ahead_is(a, at, form->words[0]) ||
		    (n == 2 && !suspect_ahead_is(a, at + 1, form->words[1])))
			continue;
		bool is_reset = at + n >= a->n || suspect_ahead_is(a, at + n, "default") ||
		                (form->reset_word != NULL && suspect_ahead_is(a, at + n, form->reset_word));
		suspect_read_setting(s, form->name, is_reset ? SUSPECT_RESETS : 0);
		if (!is_reset)
			find_lone_set(s, a, at + n);
		return true;
	}
	return false;
}

static bool
read_characteristics(struct suspect_state *s, const struct suspect_ahead *a, size_t at)
{
	if (!suspect_ahead_is(a, at, "session") || !suspect_ahead_is(a, at + 1, "characteristics"))
		return false;
	suspect_read_setting(s, "default_transaction_isolation", 0);
	suspect_read_setting(s, "default_transaction_read_only", 0);
	suspect_read_setting(s, "default_transaction_deferrable", 0);
	return true;
}

/* The word at `at` is a setting's name or the first part of it, whatever else it may mean. */
static bool
is_set_name(const struct suspect_ahead *a, size_t at)
{
	return suspect_ahead_is_punct(a, at + 1, '.') || suspect_ahead_is_punct(a, at + 1, '=') ||
	       suspect_ahead_is(a, at + 1, "to") || suspect_ahead_is(a, at + 1, "from");
}

void
suspect_read_set(struct suspect_state *s)
{
	struct suspect_ahead a;
	size_t at = 0;
	suspect_look_ahead(s, &a);
	if (suspect_ahead_is(&a, 0, "local") && !is_set_name(&a, 0))
		return;
	/* SET SESSION is SET, unless SESSION is part of SESSION AUTHORIZATION or SESSION CHARACTERISTICS. */
	if (suspect_ahead_is(&a, 0, "session") && !is_set_name(&a, 0) && !suspect_ahead_is(&a, 1, "authorization") &&
	    !(suspect_ahead_is(&a, 1, "characteristics") && !is_set_name(&a, 1)))
		at = 1;
	if (is_set_name(&a, at))
		read_set_name(s, &a, at);
	else if (suspect_ahead_is(&a, at, "transaction") || suspect_ahead_is(&a, at, "constraints"))
		return;
	else if (!read_characteristics(s, &a, at) && !read_special_set(s, &a, at))
		suspect_any(s, SUSPECT_RESETS);
}

void
suspect_read_reset(struct suspect_state *s)
{
	struct suspect_ahead a;
	char name[SQL_NAME_MAX];
	size_t at = 0;
	suspect_look_ahead(s, &a);
	if (suspect_ahead_is(&a, 0, "session") && suspect_ahead_is(&a, 1, "authorization"))
		suspect_read_setting(s, "session_authorization", SUSPECT_RESETS);
	else if (suspect_ahead_is(&a, 0, "time") && suspect_ahead_is(&a, 1, "zone"))
		suspect_read_setting(s, "timezone", SUSPECT_RESETS);
	else if (suspect_ahead_is(&a, 0, "transaction") && suspect_ahead_is(&a, 1, "isolation"))
		return;
	else if (!suspect_ahead_is(&a, 0, "all") && read_name(&a, &at, name) && at < SUSPECT_AHEAD_MAX)
		suspect_name(s, name, SUSPECT_RESETS);
	else
		suspect_any(s, SUSPECT_RESETS);
}

/* The end of the argument that begins at `at`: the comma or parenthesis behind it, or a->n. */
static size_t
argument_end(const struct suspect_ahead *a, size_t at)
{
	size_t depth = 0;
	for (; at < a->n; at++) {
		if (depth == 0 && (suspect_ahead_is_punct(a, at, ',') || suspect_ahead_is_punct(a, at, ')')))
			break;
		if (suspect_ahead_is_punct(a, at, '(') || suspect_ahead_is_punct(a, at, '['))
			depth++;
		else if ((suspect_ahead_is_punct(a, at, ')') || suspect_ahead_is_punct(a, at, ']')) && depth > 0)
			depth--;
	}
	return at;
}

/* t[at..end) is a string literal, with a cast to a type of one word or without. */
static bool
is_literal(const struct suspect_ahead *a, size_t at, size_t end)
{
	if (suspect_ahead_at(a, at)->kind != SQL_STRING)
		return false;
	return end == at + 1 ||
	       (end == at + 4 && suspect_ahead_is_punct(a, at + 1, ':') && suspect_ahead_is_punct(a, at + 2, ':') &&
	        suspect_ahead_at(a, at + 3)->kind == SQL_WORD);
}

/* Behind the word set_config. */
void
suspect_read_set_config(struct suspect_state *s)
{
	struct suspect_ahead a;
	char name[SQL_NAME_MAX];
	suspect_look_ahead(s, &a);
	size_t name_end = argument_end(&a, 1);
	size_t value_end = argument_end(&a, name_end + 1);
	if (!suspect_ahead_is_punct(&a, 0, '(') || !suspect_ahead_is_punct(&a, name_end, ',')) {
		suspect_any(s, SUSPECT_RESETS);
		return;
	}
	/* The third argument of three: the transaction's own. */
	if (suspect_ahead_is_punct(&a, value_end, ',') && suspect_ahead_is(&a, value_end + 1, "true") &&
	    suspect_ahead_is_punct(&a, value_end + 2, ')'))
		return;

	/* NULL as the value resets, and a parameter can be NULL. */
	bool is_value_known = suspect_ahead_is_punct(&a, value_end, ',') && is_literal(&a, name_end + 1, value_end);
	uint32_t flags = is_value_known ? 0 : SUSPECT_RESETS;
	if (is_literal(&a, 1, name_end) && sql_token_string(&a.t[1], name, sizeof(name)) && name[0] != 0)
		suspect_name(s, name, flags);
	else
		suspect_any(s, flags);
}
