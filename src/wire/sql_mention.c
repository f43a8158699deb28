/* SPDX-License-Identifier: ISC */
#include "wire/sql.h"

static void
advance(struct sql_mentions *m)
{
	sql_next(&m->lexer, &m->ahead);
}

void
sql_mentions_init(struct sql_mentions *m, const uint8_t *text, size_t n, bool standard_strings)
{
	sql_lexer_init(&m->lexer, text, n, standard_strings);
	advance(m);
}

/* Goes on to the next token if this one is the word. */
static bool
accept(struct sql_mentions *m, const char *word)
{
	bool is_it = sql_token_is(&m->ahead, word);
	if (is_it)
		advance(m);
	return is_it;
}

static bool
at_name(const struct sql_mentions *m)
{
	return m->ahead.kind == SQL_WORD || m->ahead.kind == SQL_QUOTED;
}

static bool
is_text_end(const struct sql_mentions *m)
{
	return m->ahead.kind == SQL_END || m->ahead.kind == SQL_CUT;
}

static bool
mention(struct sql_mention *out, enum sql_mention_kind kind, const struct sql_token *name)
{
	out->kind = kind;
	out->token = *name;
	out->n_name = sql_token_name(name, out->name, sizeof(out->name));
	return true;
}

/* The name that follows, if it is one. */
static bool
mention_next(struct sql_mentions *m, struct sql_mention *out, enum sql_mention_kind kind)
{
	if (!at_name(m))
		return false;
	mention(out, kind, &m->ahead);
	advance(m);
	return true;
}

static bool
read_deallocate(struct sql_mentions *m, struct sql_mention *out)
{
	struct sql_token prepare = m->ahead;
	if (accept(m, "prepare") && !at_name(m))
		return mention(out, SQL_DEALLOCATES, &prepare); /* a statement of that name */
	if (sql_token_is(&m->ahead, "all"))
		return false;
	return mention_next(m, out, SQL_DEALLOCATES);
}

static bool
read_prepare(struct sql_mentions *m, struct sql_mention *out)
{
	struct sql_token name = m->ahead;
	if (!mention_next(m, out, SQL_PREPARES))
		return false;
	return !sql_token_is(&name, "transaction") || m->ahead.kind != SQL_STRING;
}

/* Counts the parentheses that are open after the token. */
static size_t
depth_after(const struct sql_token *t, size_t depth)
{
	if (sql_token_is_punct(t, '('))
		return depth + 1;
	return sql_token_is_punct(t, ')') && depth > 0 ? depth - 1 : depth;
}

/* CREATE TABLE ... AS EXECUTE name: the first AS outside parentheses decides. */
static bool
read_create(struct sql_mentions *m, struct sql_mention *out)
{
	size_t depth = 0;
	while (!is_text_end(m) && m->ahead.kind != SQL_SEMICOLON) {
		if (depth == 0 && accept(m, "as"))
			return accept(m, "execute") && mention_next(m, out, SQL_EXECUTES);
		depth = depth_after(&m->ahead, depth);
		advance(m);
	}
	return false;
}

static bool
read_explain(struct sql_mentions *m, struct sql_mention *out)
{
	size_t depth = 0;
	if (sql_token_is_punct(&m->ahead, '(')) {
		do {
			depth = depth_after(&m->ahead, depth);
			advance(m);
		} while (depth > 0 && !is_text_end(m));
	}
	while (accept(m, "analyze") || accept(m, "analyse") || accept(m, "verbose"))
		continue;
	if (accept(m, "execute"))
		return mention_next(m, out, SQL_EXECUTES);
	return accept(m, "create") && read_create(m, out);
}

/* One statement from its first word on, or the part of it that is of interest. */
static bool
read_statement(struct sql_mentions *m, struct sql_mention *out)
{
	if (accept(m, "execute"))
		return mention_next(m, out, SQL_EXECUTES);
	if (accept(m, "deallocate"))
		return read_deallocate(m, out);
	if (accept(m, "prepare"))
		return read_prepare(m, out);
	if (accept(m, "explain"))
		return read_explain(m, out);
	return accept(m, "create") && read_create(m, out);
}

/* Goes on behind the next semicolon: to the first word of a statement. */
static void
skip_statement(struct sql_mentions *m)
{
	while (!is_text_end(m) && m->ahead.kind != SQL_SEMICOLON)
		advance(m);
	if (m->ahead.kind == SQL_SEMICOLON)
		advance(m);
}

bool
sql_mentions_next(struct sql_mentions *m, struct sql_mention *out)
{
	while (!is_text_end(m)) {
		bool has_found = read_statement(m, out);
		skip_statement(m);
		if (has_found)
			return true;
	}
	return false;
}
