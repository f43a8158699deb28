/* SPDX-License-Identifier: ISC */
#include "wire/suspect.h"

#include <string.h>
#include <strings.h>

#include "wire/suspect_parts.h"

/* What a body of code that isn't seen can do, as far as the server can be asked. */
#define SUSPECT_ASKABLE                                                                                                \
	(SUSPECT_SETTINGS | SUSPECT_ANY_SETTING | SUSPECT_RESETS | SUSPECT_TEMP | SUSPECT_DROPS | SUSPECT_LISTENS |    \
	 SUSPECT_LOCKS | SUSPECT_PREPARES | SUSPECT_HOLDS)

/* --- other statements -----------------------------------------------------------------------------------------------*/

static void
read_discard(struct suspect_state *s)
{
	struct suspect_ahead a;
	suspect_look_ahead(s, &a);
	if (suspect_ahead_is(&a, 0, "plans") || suspect_ahead_is(&a, 0, "sequences"))
		return;
	if (suspect_ahead_is(&a, 0, "temp") || suspect_ahead_is(&a, 0, "temporary"))
		s->out->flags |= SUSPECT_TEMP | SUSPECT_DROPS;
	else
		s->out->flags |= SUSPECT_ASKABLE;
}

static void
read_prepare(struct suspect_state *s)
{
	struct suspect_ahead a;
	suspect_look_ahead(s, &a);
	if (!suspect_ahead_is(&a, 0, "transaction") || suspect_ahead_at(&a, 1)->kind != SQL_STRING)
		s->out->flags |= SUSPECT_PREPARES | SUSPECT_TAKES;
}

static void
read_do(struct suspect_state *s)
{
	s->is_do = true;
	s->out->flags |= SUSPECT_ASKABLE | SUSPECT_OPAQUE;
}

/* Words that mean something only as the first of a statement. */
static const struct {
	const char *word;
	uint32_t flags;
	void (*read)(struct suspect_state *s);
} statements[] = {
	{"set", 0, suspect_read_set},
	{"reset", 0, suspect_read_reset},
	{"discard", 0, read_discard},
	{"listen", SUSPECT_LISTENS | SUSPECT_TAKES, NULL},
	{"unlisten", SUSPECT_LISTENS, NULL},
	{"prepare", 0, read_prepare},
	{"deallocate", SUSPECT_PREPARES, NULL},
	{"close", SUSPECT_HOLDS, NULL},
	{"drop", SUSPECT_DROPS, NULL},
	{"import", SUSPECT_CREATES, NULL},
	{"load", SUSPECT_LOADS | SUSPECT_TAKES, NULL},
	{"do", 0, read_do},
	{"call", SUSPECT_ASKABLE | SUSPECT_OPAQUE, NULL},
};

static void
look_at_first_word(struct suspect_state *s)
{
	char first = (char)(s->token.p[0] | 0x20);
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (statements[i].word[0] != first || !sql_token_is(&s->token, statements[i].word))
			continue;
		s->out->flags |= statements[i].flags;
		if (statements[i].read != NULL)
			statements[i].read(s);
		return;
	}
}

/* --- words anywhere -------------------------------------------------------------------------------------------------*/

static bool
begins_with(const uint8_t *p, size_t n, const char *lower_start)
{
	size_t n_start = strlen(lower_start);
	return n >= n_start && strncasecmp((const char *)p, lower_start, n_start) == 0;
}

static bool
equals(const uint8_t *p, size_t n, const char *lower_word)
{
	return n == strlen(lower_word) && begins_with(p, n, lower_word);
}

/* Functions and schemas, quoted or not. The first row that fits counts. */
static const struct {
	const char *text;
	bool (*fits)(const uint8_t *p, size_t n, const char *text);
	uint32_t flags;
} names[] = {
	{"set_config", equals, SUSPECT_SETTINGS}, /* for these three see look_at_name() */
	{"set_limit", equals, SUSPECT_SETTINGS},
	{"pg_settings", equals, SUSPECT_SETTINGS}, /* an UPDATE of it sets them */
	{"pg_temp", begins_with, SUSPECT_TEMP | SUSPECT_TAKES},
	{"pg_advisory_xact_", begins_with, 0},
	{"pg_advisory_unlock", begins_with, SUSPECT_LOCKS},
	{"pg_advisory_", begins_with, SUSPECT_LOCKS | SUSPECT_TAKES},
	{"pg_try_advisory_xact_", begins_with, 0},
	{"pg_try_advisory_", begins_with, SUSPECT_LOCKS | SUSPECT_TAKES},
	{"nextval", equals, SUSPECT_SEQUENCES},
	{"currval", equals, SUSPECT_SEQUENCES | SUSPECT_READS_SEQUENCE},
	{"lastval", equals, SUSPECT_SEQUENCES | SUSPECT_READS_SEQUENCE},
	{"setval", equals, SUSPECT_SEQUENCES},
	{"setseed", equals, SUSPECT_SEEDS | SUSPECT_TAKES},
	{"dblink_", begins_with, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_replication_origin_session_", begins_with, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_create_physical_replication_slot", equals,
         SUSPECT_PRIVATE | SUSPECT_TAKES}, /* it may be a temporary one */
	{"pg_create_logical_replication_slot", equals, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_copy_physical_replication_slot", equals, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_copy_logical_replication_slot", equals, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_backup_st", begins_with,
         SUSPECT_PRIVATE | SUSPECT_TAKES}, /* a backup is stopped in the session that started it */
	{"pg_start_backup", equals, SUSPECT_PRIVATE | SUSPECT_TAKES},
	{"pg_stop_backup", equals, SUSPECT_PRIVATE | SUSPECT_TAKES},
};

/* The first four bytes of a word as a number, without regard to case. */
#define FOUR(a, b, c, d)                                                                                               \
	(((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24) | 0x20202020u)

/* Most words begin like none in the table above and none that keyword_flags() looks for. */
static bool
is_dull(const uint8_t *p, size_t n)
{
	if (n < 4)
		return true;
	switch (FOUR(p[0], p[1], p[2], p[3])) {
	case FOUR('s', 'e', 't', '_'):
	case FOUR('s', 'e', 't', 'v'):
	case FOUR('s', 'e', 't', 's'):
	case FOUR('n', 'e', 'x', 't'):
	case FOUR('c', 'u', 'r', 'r'):
	case FOUR('l', 'a', 's', 't'):
	case FOUR('p', 'g', '_', 'a'):
	case FOUR('p', 'g', '_', 'b'):
	case FOUR('p', 'g', '_', 'c'):
	case FOUR('p', 'g', '_', 'r'):
	case FOUR('p', 'g', '_', 's'):
	case FOUR('p', 'g', '_', 't'):
	case FOUR('d', 'b', 'l', 'i'):
	case FOUR('t', 'e', 'm', 'p'):
	case FOUR('c', 'r', 'e', 'a'):
	case FOUR('i', 'n', 't', 'o'):
	case FOUR('e', 'x', 'e', 'c'):
	case FOUR('e', 'x', 't', 'e'):
	case FOUR('h', 'o', 'l', 'd'):
		return false;
	default:
		return true;
	}
}

static uint32_t
name_flags(const uint8_t *p, size_t n)
{
	if (is_dull(p, n))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].text[0] == (char)(p[0] | 0x20) && names[i].fits(p, n, names[i].text))
			return names[i].flags;
	}
	return 0;
}

/* TEMP behind one of the words that can stand before it; elsewhere it's a name like any other. */
static bool
is_temp_keyword(const struct suspect_state *s)
{
	static const char *const before[] = {"create", "replace", "into", "local", "global"};
	if (!sql_token_is(&s->token, "temp") && !sql_token_is(&s->token, "temporary"))
		return false;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		if (sql_token_is(&s->previous, before[i]))
			return true;
	}
	return false;
}

static bool
is_extension(const struct suspect_state *s)
{
	return sql_token_is(&s->token, "extension") &&
	       (sql_token_is(&s->previous, "create") || sql_token_is(&s->previous, "alter"));
}

/* INSERT INTO and MERGE INTO make no table. */
static bool
is_select_into(const struct suspect_state *s)
{
	return sql_token_is(&s->token, "into") && !sql_token_is(&s->previous, "insert") &&
	       !sql_token_is(&s->previous, "merge");
}

static uint32_t
keyword_flags(const struct suspect_state *s)
{
	if (is_temp_keyword(s))
		return SUSPECT_TEMP | SUSPECT_TAKES;
	if (sql_token_is(&s->token, "create") || is_select_into(s))
		return SUSPECT_CREATES;
	if (sql_token_is(&s->token, "execute"))
		return SUSPECT_EXECUTES;
	if (is_extension(s))
		return SUSPECT_ASKABLE | SUSPECT_OPAQUE;
	if (sql_token_is(&s->token, "hold") && sql_token_is(&s->previous, "with"))
		return SUSPECT_HOLDS | SUSPECT_TAKES;
	return 0;
}

/* The name just read, perhaps with its schema. */
static bool
is_updated(const struct suspect_state *s)
{
	return sql_token_is(&s->previous, "update") || sql_token_is(&s->previous, "only") ||
	       sql_token_is_punct(&s->previous, '.');
}

static void
look_at_name(struct suspect_state *s, const uint8_t *p, size_t n)
{
	uint32_t flags = name_flags(p, n);
	if ((flags & SUSPECT_SETTINGS) == 0)
		s->out->flags |= flags;
	else if (equals(p, n, "set_config"))
		suspect_read_set_config(s);
	else if (equals(p, n, "pg_settings"))
		s->out->flags |= is_updated(s) ? SUSPECT_SETTINGS | SUSPECT_ANY_SETTING : 0;
	else
		suspect_read_setting(s, "pg_trgm.similarity_threshold", 0); /* set_limit() */
}

static void
look_at_word(struct suspect_state *s)
{
	if (s->previous.kind == SQL_END)
		look_at_first_word(s);
	if (is_dull(s->token.p, s->token.n))
		return;
	look_at_name(s, s->token.p, s->token.n);
	s->out->flags |= keyword_flags(s);
}

static void
look_at_quoted(struct suspect_state *s)
{
	if (s->token.quoting == SQL_QUOTING_UNICODE)
		suspect_everything(s->out);
	else
		look_at_name(s, s->token.p + 1, s->token.n - 2);
}

/* --- strings --------------------------------------------------------------------------------------------------------*/

static bool
mentions_pg_temp(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	for (const uint8_t *at = p; (at = memchr(at, '_', (size_t)(end - at))) != NULL; at++) {
		if (at - p >= 2 && begins_with(at - 2, (size_t)(end - at) + 2, "pg_temp"))
			return true;
	}
	return false;
}

static bool
is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

/* A string of a DO, which the server takes for its body: words anywhere in it, in its comments and strings too. */
static void
look_through_body(struct suspect_state *s)
{
	const uint8_t *p = s->token.p, *end = p + s->token.n;
	if (s->token.quoting != SQL_QUOTING_PLAIN && s->token.quoting != SQL_QUOTING_DOLLAR &&
	    memchr(p, '\\', s->token.n) != NULL)
		s->out->flags |= SUSPECT_UNASKABLE;
	while (p < end) {
		const uint8_t *word = p;
		while (p < end && is_name_byte(*p))
			p++;
		size_t n = (size_t)(p - word);
		s->out->flags |= name_flags(word, n) & (SUSPECT_UNASKABLE | SUSPECT_READS_SEQUENCE);
		if (equals(word, n, "load"))
			s->out->flags |= SUSPECT_LOADS;
		else if (equals(word, n, "seed"))
			s->out->flags |= SUSPECT_SEEDS;
		p += n == 0;
	}
}

static void
look_at_string(struct suspect_state *s)
{
	if (mentions_pg_temp(s->token.p, s->token.n))
		s->out->flags |= SUSPECT_TEMP | SUSPECT_TAKES;
	if (s->is_do)
		look_through_body(s);
}

/* --- the scan -------------------------------------------------------------------------------------------------------*/

void
suspect_everything(struct suspicion *out)
{
	out->flags = SUSPECT_ASKABLE | SUSPECT_CREATES | SUSPECT_EXECUTES | SUSPECT_UNASKABLE | SUSPECT_UNSEEN;
	out->n_names = 0;
}

static void
begin_statement(struct suspect_state *s)
{
	s->token.kind = SQL_END;
	s->is_do = false;
	s->is_first = false;
}

/* False: there is no need to look further. */
static bool
look_at_token(struct suspect_state *s)
{
	switch (s->token.kind) {
	case SQL_WORD:
		look_at_word(s);
		break;
	case SQL_QUOTED:
		look_at_quoted(s);
		break;
	case SQL_STRING:
		look_at_string(s);
		break;
	case SQL_SEMICOLON:
		begin_statement(s);
		break;
	case SQL_CUT:
		suspect_everything(s->out);
		break;
	case SQL_END:
	case SQL_NUMBER:
	case SQL_PARAM:
	case SQL_PUNCT:
		break;
	}
	return s->token.kind != SQL_CUT && (s->out->flags & SUSPECT_UNSEEN) == 0;
}

/* How skim() goes on at a byte. */
enum skim { SKIM_STOP, SKIM_BLANK, SKIM_PUNCT, SKIM_DIGIT, SKIM_DOLLAR, SKIM_LETTER };

static const uint8_t skim_of[256] = {
	['\t' ... '\r'] = SKIM_BLANK, [' '] = SKIM_BLANK,          ['('] = SKIM_PUNCT,  [')'] = SKIM_PUNCT,
	['*'] = SKIM_PUNCT,           ['+'] = SKIM_PUNCT,          [','] = SKIM_PUNCT,  ['.'] = SKIM_PUNCT,
	['0' ... '9'] = SKIM_DIGIT,   [':'] = SKIM_PUNCT,          ['<'] = SKIM_PUNCT,  ['='] = SKIM_PUNCT,
	['>'] = SKIM_PUNCT,           ['['] = SKIM_PUNCT,          [']'] = SKIM_PUNCT,  ['$'] = SKIM_DOLLAR,
	['A' ... 'Z'] = SKIM_LETTER,  ['a' ... 'z'] = SKIM_LETTER, ['_'] = SKIM_LETTER, [0x80 ... 0xff] = SKIM_LETTER,
};

/*
 * Goes past what can't matter, as fast as possible: dull words, numbers, parameters and punctuation, from within a
 * statement. The lexer takes over at whatever is none of these, or could be more than it seems. Scans would find the
 * same without this.
 */
static void
skim(struct suspect_state *s)
{
	const uint8_t *p = s->lexer.p, *end = s->lexer.end, *start;
	while ((start = p) < end) {
		enum skim kind = (enum skim)skim_of[*p++];
		if (kind == SKIM_BLANK)
			continue;
		if (kind == SKIM_LETTER) {
			while (p < end && skim_of[*p] >= SKIM_DIGIT)
				p++;
			size_t n = (size_t)(p - start);
			if ((n == 1 && p < end && (*p == '\'' || *p == '&')) || !is_dull(start, n))
				break;
			s->previous = (struct sql_token){SQL_WORD, SQL_QUOTING_NONE, start, n};
			continue;
		}
		if (kind == SKIM_STOP || (kind == SKIM_DOLLAR && (p == end || skim_of[*p] != SKIM_DIGIT)))
			break;
		if (kind >= SKIM_DIGIT) {
			while (p < end && skim_of[*p] == SKIM_DIGIT)
				p++;
			if (kind == SKIM_DIGIT && p < end && (*p == '.' || skim_of[*p] == SKIM_LETTER))
				break; /* a fraction, an exponent, or what is stuck to a number */
		}
		s->previous = (struct sql_token){SQL_PUNCT, SQL_QUOTING_NONE, start, 1};
	}
	s->lexer.p = start;
}

void
suspect_scan(const uint8_t *sql, size_t n, bool is_whole, bool standard_strings, struct suspicion *out)
{
	struct suspect_state s = {.token = {.kind = SQL_END}, .is_do = false, .is_first = true, .out = out};
	if (!is_whole) {
		suspect_everything(out);
		return;
	}
	out->flags = 0;
	out->n_names = 0;
	sql_lexer_init(&s.lexer, sql, n, standard_strings);
	do {
		s.previous = s.token;
		if (s.previous.kind != SQL_END)
			skim(&s);
	} while (sql_next(&s.lexer, &s.token) != SQL_END && look_at_token(&s));
	if ((out->flags & SUSPECT_ANY_SETTING) != 0)
		out->n_names = 0;
	if (out->flags != (SUSPECT_SETTINGS | SUSPECT_LONE_SET))
		out->flags &= ~(uint32_t)SUSPECT_LONE_SET;
}
