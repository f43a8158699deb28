/* SPDX-License-Identifier: ISC */
/*
 * SQL text as the server's lexer sees it: words, quoted names, strings, comments. No parser: whoever asks knows which
 * tokens it looks for. Pure, allocates nothing, results point into the caller's bytes.
 *
 * The server converts a text from client_encoding before it lexes it. In SJIS, SHIFT_JIS_2004, BIG5, GBK, GB18030,
 * JOHAB and UHC the second byte of a character can look like an ASCII one, a backslash for instance: what is read here
 * from such a text is a guess. See sql_encoding_is_safe().
 */
#ifndef PGWEIR_WIRE_SQL_H
#define PGWEIR_WIRE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQL_NAME_MAX 64 /* the server cuts names to 63 bytes; one for the terminator */

enum sql_token_kind {
	SQL_END,
	SQL_WORD,   /* unquoted identifier or keyword */
	SQL_QUOTED, /* "..." or U&"..." */
	SQL_STRING, /* '..', E'..', B'..', X'..', N'..', U&'..', $tag$..$tag$, with its continuations on further lines */
	SQL_NUMBER,    /* without a sign; what is stuck to it is the next token, as in servers before version 15 */
	SQL_PARAM,     /* $1 */
	SQL_SEMICOLON, /* ; */
	SQL_PUNCT,     /* any other byte; an operator of two characters is two of them */
	SQL_CUT,       /* the text ended inside a string, a quoted identifier or a comment; SQL_END comes next */
};

/* What the bytes between the quotes of an SQL_QUOTED or SQL_STRING mean. */
enum sql_quoting {
	SQL_QUOTING_NONE,    /* the token has no quotes */
	SQL_QUOTING_PLAIN,   /* a doubled quote is one, everything else is itself */
	SQL_QUOTING_ESCAPES, /* backslashes too: E'', and '' while standard_conforming_strings is off */
	SQL_QUOTING_UNICODE, /* U& */
	SQL_QUOTING_BITS,    /* B'' and X'' */
	SQL_QUOTING_DOLLAR,  /* everything is itself */
};

struct sql_token {
	enum sql_token_kind kind;
	enum sql_quoting quoting;
	const uint8_t *p; /* all of its bytes, prefix and quotes too */
	size_t n;
};

struct sql_lexer {
	const uint8_t *p, *end;
	bool standard_strings;
};

/* text[0..n) need not be terminated. standard_strings: the session's standard_conforming_strings. */
void sql_lexer_init(struct sql_lexer *lx, const uint8_t *text, size_t n, bool standard_strings);
enum sql_token_kind sql_next(struct sql_lexer *lx, struct sql_token *out);

/* The token is this word, unquoted, in any case. */
bool sql_token_is(const struct sql_token *t, const char *lower_word);
/* The token is this one byte of punctuation. */
bool sql_token_is_punct(const struct sql_token *t, char c);

/*
 * The identifier as the server knows it: unquoted in lower case, quoted without its quotes, cut to 63 bytes. Answers
 * its length; 0: not an identifier, too long for out, or known to the server only (U&"", and what depends on the
 * database's encoding: letters beyond ASCII unquoted, or where a name is cut). out is terminated in any case.
 */
size_t sql_token_name(const struct sql_token *t, char *out, size_t n_out);

/* The value of a '' or $$ literal, or of an E'' without escapes, terminated; false: not one, or too long for out. */
bool sql_token_string(const struct sql_token *t, char *out, size_t n_out);

/* In this client_encoding no part of a character beyond ASCII looks like ASCII. Name in any case, as clients write it. */
bool sql_encoding_is_safe(const char *client_encoding);

/* Where a text names a prepared statement. */
enum sql_mention_kind {
	SQL_DEALLOCATES, /* DEALLOCATE [PREPARE] name, but not ALL */
	SQL_EXECUTES,    /* EXECUTE name, also in EXPLAIN and in CREATE TABLE AS */
	SQL_PREPARES,    /* PREPARE name, but not PREPARE TRANSACTION */
};

struct sql_mention {
	enum sql_mention_kind kind;
	struct sql_token token;  /* the name as it is written */
	char name[SQL_NAME_MAX]; /* as the server knows it */
	size_t n_name;           /* 0: it can't be known (sql_token_name) */
};

struct sql_mentions {
	struct sql_lexer lexer;
	struct sql_token ahead; /* between calls the first token of a statement */
};

/* All mentions of a text in order of appearance; it ends where the text is cut. */
void sql_mentions_init(struct sql_mentions *m, const uint8_t *text, size_t n, bool standard_strings);
bool sql_mentions_next(struct sql_mentions *m, struct sql_mention *out); /* false: no more */

#endif
