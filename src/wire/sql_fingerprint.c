/* SPDX-License-Identifier: ISC */
#include "wire/sql_fingerprint.h"

#include "wire/sql.h"

#include <string.h>

struct print {
	uint64_t hash;
	char *shape;
	size_t n, cap;
	const struct sql_token *last; /* NULL: nothing was put yet */
};

/* FNV-1a. */
static void
hash_byte(struct print *out, uint8_t c)
{
	out->hash = (out->hash ^ c) * 0x100000001b3u;
}

static void
shape_byte(struct print *out, uint8_t c)
{
	if (out->n + 1 < out->cap)
		out->shape[out->n++] = (char)c;
}

static bool
is_value(const struct sql_token *t)
{
	return t->kind == SQL_STRING || t->kind == SQL_NUMBER || t->kind == SQL_PARAM || t->kind == SQL_CUT;
}

static bool
is_one_of(const struct sql_token *t, const char *bytes)
{
	return (t->kind == SQL_PUNCT || t->kind == SQL_SEMICOLON) && *t->p != '\0' && strchr(bytes, *t->p) != NULL;
}

/* For the reader only: the number does not depend on it. */
static bool
is_spaced(const struct sql_token *a, const struct sql_token *b)
{
	if (is_one_of(a, "([.") || is_one_of(b, ",;.()[]"))
		return false;
	return a->kind != SQL_PUNCT || b->kind != SQL_PUNCT || a->p + a->n != b->p || is_one_of(a, ",)");
}

static void
put_byte(struct print *out, uint8_t c)
{
	hash_byte(out, c);
	shape_byte(out, c);
}

static void
put_token(struct print *out, const struct sql_token *t)
{
	if (out->last != NULL && is_spaced(out->last, t))
		shape_byte(out, ' ');
	hash_byte(out, ' ');
	if (is_value(t)) {
		put_byte(out, '?');
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		uint8_t c = t->p[i];

		put_byte(out, t->kind == SQL_WORD && c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c);
	}
}

/*
 * A comma behind a value, and semicolons, are kept back until it is known what follows: one more value of the list, the
 * end of the text, or something else.
 */
uint64_t
sql_fingerprint(const uint8_t *sql, size_t n, bool standard_strings, char *shape, size_t cap)
{
	struct print out = {.hash = 0xcbf29ce484222325u, .shape = shape, .cap = cap};
	struct sql_token t, last, kept;
	bool has_kept = false;
	struct sql_lexer lx;

	sql_lexer_init(&lx, sql, n, standard_strings);
	while (sql_next(&lx, &t) != SQL_END) {
		bool is_comma = sql_token_is_punct(&t, ',') && out.last != NULL && is_value(&last);

		if (t.kind == SQL_SEMICOLON && (has_kept || out.last == NULL))
			continue;
		if (!has_kept && (is_comma || t.kind == SQL_SEMICOLON)) {
			kept = t;
			has_kept = true;
			continue;
		}
		if (has_kept && kept.kind == SQL_PUNCT && is_value(&t)) {
			has_kept = false;
			continue;
		}
		if (has_kept) {
			put_token(&out, &kept);
			last = kept;
			out.last = &last;
			has_kept = false;
		}
		put_token(&out, &t);
		last = t;
		out.last = &last;
	}
	if (cap > 0)
		shape[out.n] = '\0';
	return out.hash;
}
