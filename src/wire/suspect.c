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
		s->out->flags |= SUSPECT_PREPARES;
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
	{"listen", SUSPECT_LISTENS, NULL},
	{"unlisten", SUSPECT_LISTENS, NULL},
	{"prepare", 0, read_prepare},
	{"deallocate", SUSPECT_PREPARES, NULL},
	{"close", SUSPECT_HOLDS, NULL},
	{"drop", SUSPECT_DROPS, NULL},
	{"import", SUSPECT_CREATES, NULL},
	{"load", SUSPECT_LOADS, NULL},
	{"do", 0, read_do},
	{"call", SUSPECT_ASKABLE | SUSPECT_OPAQUE, NULL},
};

static void
look_at_first_word(struct suspect_state *s)
{
	if (sql_token_is(&s->token, "select")) /* by far the most */
		return;
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (!sql_token_is(&s->token, statements[i].word))
			continue;
		s->out->flags |= statements[i].flags;
		if (statements[i].read != NULL)
			statements[i].read(s);
		return;
	}
}

/* --- words anywhere -------------------------------------------------------------------------------------------------*/

/* The first four bytes of a word as a number, without regard to case. */
#define FOUR(a, b, c, d)                                                                                               \
	(((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24) | 0x20202020u)

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

static uint32_t
flag_if(bool condition, uint32_t flag)
{
	return condition ? flag : 0;
}

/* Functions whose doings belong to the server process, and can't be asked for. */
static bool
is_private(const uint8_t *p, size_t n)
{
	static const char *const starts[] = {
		"dblink_",
		"pg_replication_origin_session_",
		"pg_create_physical_replication_slot", /* the slot may be a temporary one */
		"pg_create_logical_replication_slot",
		"pg_copy_physical_replication_slot",
		"pg_copy_logical_replication_slot",
		"pg_backup_st", /* a backup is stopped in the session that started it */
		"pg_start_backup",
		"pg_stop_backup",
	};
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		if (begins_with(p, n, starts[i]))
			return true;
	}
	return false;
}

/* What a name stands for, quoted or not: functions and schemas. SUSPECT_SETTINGS: look_at_name() knows more. */
static uint32_t
name_flags(const uint8_t *p, size_t n)
{
	if (n < 4)
		return 0;
	switch (FOUR(p[0], p[1], p[2], p[3])) {
	case FOUR('s', 'e', 't', '_'):
		return flag_if(equals(p, n, "set_config") || equals(p, n, "set_limit"), SUSPECT_SETTINGS);
	case FOUR('p', 'g', '_', 't'):
		return flag_if(begins_with(p, n, "pg_temp"), SUSPECT_TEMP) |
		       flag_if(begins_with(p, n, "pg_try_advisory_") && !begins_with(p, n, "pg_try_advisory_xact_"),
		               SUSPECT_LOCKS);
	case FOUR('p', 'g', '_', 'a'):
		return flag_if(begins_with(p, n, "pg_advisory_") && !begins_with(p, n, "pg_advisory_xact_"),
		               SUSPECT_LOCKS);
	case FOUR('n', 'e', 'x', 't'):
		return flag_if(equals(p, n, "nextval"), SUSPECT_SEQUENCES);
	case FOUR('c', 'u', 'r', 'r'):
		return flag_if(equals(p, n, "currval"), SUSPECT_SEQUENCES);
	case FOUR('l', 'a', 's', 't'):
		return flag_if(equals(p, n, "lastval"), SUSPECT_SEQUENCES);
	case FOUR('s', 'e', 't', 'v'):
		return flag_if(equals(p, n, "setval"), SUSPECT_SEQUENCES);
	case FOUR('s', 'e', 't', 's'):
		return flag_if(equals(p, n, "setseed"), SUSPECT_SEEDS);
	case FOUR('d', 'b', 'l', 'i'):
	case FOUR('p', 'g', '_', 'r'):
	case FOUR('p', 'g', '_', 'c'):
	case FOUR('p', 'g', '_', 'b'):
	case FOUR('p', 'g', '_', 's'):
		return flag_if(is_private(p, n), SUSPECT_PRIVATE);
	default:
		return 0;
	}
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
	const uint8_t *p = s->token.p;
	if (s->token.n < 4)
		return 0;
	switch (FOUR(p[0], p[1], p[2], p[3])) {
	case FOUR('t', 'e', 'm', 'p'):
		return flag_if(is_temp_keyword(s), SUSPECT_TEMP);
	case FOUR('c', 'r', 'e', 'a'):
		return flag_if(sql_token_is(&s->token, "create"), SUSPECT_CREATES);
	case FOUR('i', 'n', 't', 'o'):
		return flag_if(is_select_into(s), SUSPECT_CREATES);
	case FOUR('e', 'x', 'e', 'c'):
		return flag_if(sql_token_is(&s->token, "execute"), SUSPECT_EXECUTES);
	case FOUR('e', 'x', 't', 'e'):
		return flag_if(is_extension(s), SUSPECT_ASKABLE | SUSPECT_OPAQUE);
	case FOUR('h', 'o', 'l', 'd'):
		return flag_if(sql_token_is(&s->token, "hold") && sql_token_is(&s->previous, "with"), SUSPECT_HOLDS);
	default:
		return 0;
	}
}

static void
look_at_name(struct suspect_state *s, const uint8_t *p, size_t n)
{
	uint32_t flags = name_flags(p, n);
	if ((flags & SUSPECT_SETTINGS) == 0)
		s->out->flags |= flags;
	else if (equals(p, n, "set_config"))
		suspect_read_set_config(s);
	else
		suspect_read_setting(s, "pg_trgm.similarity_threshold", 0); /* set_limit() */
}

static void
look_at_word(struct suspect_state *s)
{
	if (s->previous.kind == SQL_END)
		look_at_first_word(s);
	look_at_name(s, s->token.p, s->token.n);
	s->out->flags |= keyword_flags(s);
}

static void
look_at_quoted(struct suspect_state *s)
{
	if (s->token.quoting == SQL_QUOTING_UNICODE)
		*s->out = suspect_everything();
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
		s->out->flags |= name_flags(word, n) & SUSPECT_UNASKABLE;
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
		s->out->flags |= SUSPECT_TEMP;
	if (s->is_do)
		look_through_body(s);
}

/* --- the scan -------------------------------------------------------------------------------------------------------*/

struct suspicion
suspect_everything(void)
{
	struct suspicion all;
	all.flags = SUSPECT_ASKABLE | SUSPECT_CREATES | SUSPECT_EXECUTES | SUSPECT_UNASKABLE | SUSPECT_UNSEEN;
	all.n_names = 0;
	return all;
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
		*s->out = suspect_everything();
		break;
	case SQL_END:
	case SQL_NUMBER:
	case SQL_PARAM:
	case SQL_PUNCT:
		break;
	}
	return s->token.kind != SQL_CUT && (s->out->flags & SUSPECT_UNSEEN) == 0;
}

struct suspicion
suspect_scan(const uint8_t *sql, size_t n, bool is_whole, bool standard_strings)
{
	struct suspicion out;
	struct suspect_state s = {.token = {.kind = SQL_END}, .is_do = false, .is_first = true, .out = &out};
	if (!is_whole)
		return suspect_everything();
	out.flags = 0;
	out.n_names = 0;
	sql_lexer_init(&s.lexer, sql, n, standard_strings);
	do {
		s.previous = s.token;
	} while (sql_next(&s.lexer, &s.token) != SQL_END && look_at_token(&s));
	if ((out.flags & SUSPECT_ANY_SETTING) != 0)
		out.n_names = 0;
	if (out.flags != (SUSPECT_SETTINGS | SUSPECT_LONE_SET))
		out.flags &= ~(uint32_t)SUSPECT_LONE_SET;
	return out;
}
