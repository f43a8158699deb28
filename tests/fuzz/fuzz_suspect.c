/* SPDX-License-Identifier: ISC */
/*
 * The lexer and the scan of SQL texts. The first byte's lowest bit is standard_conforming_strings; behind it come one
 * text or, with a byte 1 between them, two. What must hold besides no overrun: the same tokens with other blanks in
 * between are suspected of the same, two statements of what both of them are suspected of, and a text that is cut of
 * everything.
 */
#include "wire/suspect.h"

#include <stdlib.h>
#include <string.h>

#include "base/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
	const uint8_t *p;
	size_t n;
};

static bool is_standard;

/* A name or value fits its room, is terminated, and comes out the same in a room that just holds it. */
static void
check_values(const struct sql_token *t)
{
	char a[SQL_NAME_MAX], b[SQL_NAME_MAX];
	size_t n = sql_token_name(t, a, sizeof(a));
	invariant(n < sizeof(a) && strlen(a) <= n);
	invariant(n == 0 || (sql_token_name(t, b, n + 1) == n && memcmp(a, b, n + 1) == 0));
	invariant(n == 0 || sql_token_name(t, b, n) == 0);

	bool is_known = sql_token_string(t, a, sizeof(a));
	invariant(!is_known || t->kind == SQL_STRING);
	invariant(is_known || a[0] == 0);
	invariant(!is_known || t->n >= strlen(a) + 2);
}

/*
 * Walks the tokens; writes them to out, if it isn't NULL, with a comment between each two. Answers how many bytes it
 * wrote, 0 if the text is cut.
 */
static size_t
walk(struct text text, uint8_t *out)
{
	struct sql_lexer lx;
	struct sql_token t;
	const uint8_t *end = text.p;
	size_t n = 0;
	sql_lexer_init(&lx, text.p, text.n, is_standard);
	while (sql_next(&lx, &t) != SQL_END) {
		invariant(t.p >= end && t.n > 0 && t.n <= (size_t)(text.p + text.n - t.p));
		end = t.p + t.n;
		invariant(lx.p == end);
		check_values(&t);
		if (t.kind == SQL_CUT) {
			invariant(end == text.p + text.n && sql_next(&lx, &t) == SQL_END);
			return 0;
		}
		memcpy(out + n, t.p, t.n);
		memcpy(out + n + t.n, "/**/", 4);
		n += t.n + 4;
	}
	invariant(lx.p == text.p + text.n && sql_next(&lx, &t) == SQL_END);
	return n;
}

static void
check_mentions(struct text text)
{
	struct sql_mentions m;
	struct sql_mention mention;
	const uint8_t *end = text.p;
	sql_mentions_init(&m, text.p, text.n, is_standard);
	while (sql_mentions_next(&m, &mention)) {
		invariant(mention.token.p >= end);
		end = mention.token.p + mention.token.n;
		invariant(end <= text.p + text.n);
		invariant(mention.n_name < SQL_NAME_MAX);
	}
}

static bool
is_named(const struct suspicion *s, const char *name)
{
	for (size_t i = 0; i < s->n_names; i++) {
		if (strcmp(s->names[i], name) == 0)
			return true;
	}
	return false;
}

static void
check_form(const struct suspicion *s)
{
	bool is_any = (s->flags & SUSPECT_ANY_SETTING) != 0, is_lone = (s->flags & SUSPECT_LONE_SET) != 0;
	bool has_settings = (s->flags & SUSPECT_SETTINGS) != 0;
	invariant(s->n_names <= SUSPECT_NAMES_MAX);
	invariant(has_settings ? is_any == (s->n_names == 0) : !is_any && s->n_names == 0);
	invariant(!is_lone || (s->flags == (SUSPECT_SETTINGS | SUSPECT_LONE_SET) && s->n_names == 1));
	invariant(!is_lone || memchr(s->value, 0, sizeof(s->value)) != NULL);
}

/* All that `part` is suspected of, `whole` is too. */
static void
check_includes(const struct suspicion *whole, const struct suspicion *part)
{
	uint32_t flags = part->flags & ~(uint32_t)SUSPECT_LONE_SET;
	if ((whole->flags & SUSPECT_UNSEEN) != 0) /* reason enough, no other is given; and nobody is refused for it */
		flags &= ~(uint32_t)(SUSPECT_OPAQUE | SUSPECT_TAKES);
	invariant((whole->flags & flags) == flags);
	if ((whole->flags & SUSPECT_ANY_SETTING) != 0)
		return;
	for (size_t i = 0; i < part->n_names; i++)
		invariant(is_named(whole, part->names[i]));
}

static void
check_text(struct text text, struct suspicion *found)
{
	struct suspicion again, everything;
	uint8_t *spread = malloc(5 * text.n + 1); /* each token has a byte at least */
	size_t n = walk(text, spread);
	suspect_scan(text.p, text.n, true, is_standard, found);
	check_form(found);
	suspect_everything(&everything);
	if (n > 0) {
		suspect_scan(spread, n, true, is_standard, &again);
		invariant(again.flags == found->flags && again.n_names == found->n_names);
		check_includes(&again, found);
		if ((found->flags & SUSPECT_LONE_SET) != 0)
			invariant(strcmp(again.value, found->value) == 0);
	}
	suspect_scan(text.p, text.n, false, is_standard, &again);
	invariant(again.flags == everything.flags && again.n_names == 0);
	check_mentions(text);
	free(spread);
}

static void
check_two(struct text first, struct text second)
{
	struct suspicion one, two, both;
	size_t n = first.n + 2 + second.n;
	uint8_t *text = malloc(n);
	memcpy(text, first.p, first.n);
	memcpy(text + first.n, "\n;", 2); /* the line's end is for a comment */
	memcpy(text + first.n + 2, second.p, second.n);
	check_text(first, &one);
	check_text(second, &two);
	suspect_scan(text, n, true, is_standard, &both);
	check_form(&both);
	if ((one.flags & SUSPECT_UNSEEN) == 0) { /* else the second may have become part of a string */
		check_includes(&both, &one);
		check_includes(&both, &two);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct suspicion found;
	if (size == 0)
		return 0;
	is_standard = data[0] & 1;
	struct text text = {data + 1, size - 1};
	const uint8_t *cut = memchr(text.p, 1, text.n);
	if (cut == NULL) {
		check_text(text, &found);
		return 0;
	}
	struct text first = {text.p, (size_t)(cut - text.p)};
	check_two(first, (struct text){cut + 1, text.n - first.n - 1});
	return 0;
}
