/* SPDX-License-Identifier: ISC */
#include "wire/sql.h"

#include <string.h>

enum byte_class {
	BYTE_OTHER,
	BYTE_SPACE,
	BYTE_LETTER, /* begins an identifier: letters, _ and everything beyond ASCII */
	BYTE_DIGIT,
	BYTE_DOLLAR,
	BYTE_QUOTE,
	BYTE_DOUBLE_QUOTE,
	BYTE_DOT,
	BYTE_SEMICOLON,
};

static const uint8_t class_of[256] = {
	['\t' ... '\r'] = BYTE_SPACE, [' '] = BYTE_SPACE,  ['A' ... 'Z'] = BYTE_LETTER,
	['a' ... 'z'] = BYTE_LETTER,  ['_'] = BYTE_LETTER, [0x80 ... 0xff] = BYTE_LETTER,
	['0' ... '9'] = BYTE_DIGIT,   ['$'] = BYTE_DOLLAR, ['\''] = BYTE_QUOTE,
	['"'] = BYTE_DOUBLE_QUOTE,    ['.'] = BYTE_DOT,    [';'] = BYTE_SEMICOLON,
};

static bool
is_digit(uint8_t c)
{
	return class_of[c] == BYTE_DIGIT;
}

/* Inside an identifier; a $ too, though not inside the tag of a dollar quote. */
static bool
is_name_byte(uint8_t c)
{
	return class_of[c] >= BYTE_LETTER && class_of[c] <= BYTE_DOLLAR;
}

static bool
is_newline(uint8_t c)
{
	return c == '\n' || c == '\r';
}

/* True when the text at p begins with these two bytes. */
static bool
at_pair(const uint8_t *p, const uint8_t *end, char first, char second)
{
	return end - p >= 2 && p[0] == (uint8_t)first && p[1] == (uint8_t)second;
}

static const uint8_t *
skip_line(const uint8_t *p, const uint8_t *end)
{
	while (p < end && !is_newline(*p))
		p++;
	return p;
}

/* p is behind the first slash and star; these comments nest. NULL: it doesn't end. */
static const uint8_t *
skip_block_comment(const uint8_t *p, const uint8_t *end)
{
	size_t depth = 1;
	while (depth > 0) {
		if (end - p < 2)
			return NULL;
		if (at_pair(p, end, '*', '/')) {
			depth--;
			p += 2;
		} else if (at_pair(p, end, '/', '*')) {
			depth++;
			p += 2;
		} else {
			p++;
		}
	}
	return p;
}

/* Blanks and comments. NULL: a comment doesn't end. */
static const uint8_t *
skip_blanks(const uint8_t *p, const uint8_t *end)
{
	while (p != NULL && p < end) {
		if (class_of[*p] == BYTE_SPACE)
			p++;
		else if (at_pair(p, end, '-', '-'))
			p = skip_line(p, end);
		else if (at_pair(p, end, '/', '*'))
			p = skip_block_comment(p + 2, end);
		else
			break;
	}
	return p;
}

/*
 * p is behind a closing quote. If another quote follows with nothing but blanks and -- comments in between, and among
 * them a line's end, the string goes on behind that quote; NULL: it doesn't.
 */
static const uint8_t *
string_continued(const uint8_t *p, const uint8_t *end)
{
	bool has_newline = false;
	while (p < end) {
		if (class_of[*p] == BYTE_SPACE)
			has_newline |= is_newline(*p++);
		else if (at_pair(p, end, '-', '-'))
			p = skip_line(p, end);
		else
			break;
	}
	return has_newline && p < end && *p == '\'' ? p + 1 : NULL;
}

/* p is behind the opening quote. Answers where the string has ended, or NULL. */
static const uint8_t *
string_end(const uint8_t *p, const uint8_t *end, enum sql_quoting quoting)
{
	while (p < end) {
		if (*p == '\\' && quoting == SQL_QUOTING_ESCAPES) {
			if (end - p < 2)
				return NULL;
			p += 2;
		} else if (*p != '\'') {
			p++;
		} else if (at_pair(p, end, '\'', '\'') && quoting != SQL_QUOTING_BITS) {
			p += 2;
		} else {
			const uint8_t *more = string_continued(p + 1, end);
			if (more == NULL)
				return p + 1;
			p = more;
		}
	}
	return NULL;
}

/* p is behind the opening quote. */
static const uint8_t *
quoted_end(const uint8_t *p, const uint8_t *end)
{
	while ((p = memchr(p, '"', (size_t)(end - p))) != NULL) {
		p++;
		if (p == end || *p != '"')
			return p;
		p++;
	}
	return NULL;
}

static const uint8_t *
skip_name(const uint8_t *p, const uint8_t *end)
{
	while (p < end && is_name_byte(*p))
		p++;
	return p;
}

static const uint8_t *
skip_digits(const uint8_t *p, const uint8_t *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

static const uint8_t *
number_end(const uint8_t *p, const uint8_t *end)
{
	p = skip_digits(p, end);
	if (p < end && *p == '.' && !at_pair(p, end, '.', '.')) /* two dots are a range in PL/pgSQL */
		p = skip_digits(p + 1, end);
	if (p < end && (*p | 0x20) == 'e') {
		const uint8_t *exponent = p + 1;
		if (exponent < end && (*exponent == '+' || *exponent == '-'))
			exponent++;
		if (exponent < end && is_digit(*exponent))
			p = skip_digits(exponent, end);
	}
	return p;
}

void
sql_lexer_init(struct sql_lexer *lx, const uint8_t *text, size_t n, bool standard_strings)
{
	*lx = (struct sql_lexer){text, text + n, standard_strings};
}

/* The token ends at `to`; NULL: not within the text. */
static enum sql_token_kind
end_token(struct sql_lexer *lx, struct sql_token *t, enum sql_token_kind kind, const uint8_t *to)
{
	t->kind = to == NULL ? SQL_CUT : kind;
	if (to == NULL)
		to = lx->end;
	t->n = (size_t)(to - t->p);
	lx->p = to;
	return t->kind;
}

/* A string whose opening quote is n_prefix bytes away. */
static enum sql_token_kind
next_string(struct sql_lexer *lx, struct sql_token *t, size_t n_prefix, enum sql_quoting quoting)
{
	t->quoting = quoting;
	return end_token(lx, t, SQL_STRING, string_end(t->p + n_prefix + 1, lx->end, quoting));
}

static enum sql_token_kind
next_quoted(struct sql_lexer *lx, struct sql_token *t, size_t n_prefix, enum sql_quoting quoting)
{
	t->quoting = quoting;
	return end_token(lx, t, SQL_QUOTED, quoted_end(t->p + n_prefix + 1, lx->end));
}

static enum sql_quoting
plain_quoting(const struct sql_lexer *lx)
{
	return lx->standard_strings ? SQL_QUOTING_PLAIN : SQL_QUOTING_ESCAPES;
}

/* A word, or a string or quoted name that begins with letters. */
static enum sql_token_kind
next_word(struct sql_lexer *lx, struct sql_token *t)
{
	const uint8_t *p = t->p;
	size_t left = (size_t)(lx->end - p);
	if (left >= 2 && p[1] == '\'') {
		switch (p[0] | 0x20) {
		case 'e':
			return next_string(lx, t, 1, SQL_QUOTING_ESCAPES);
		case 'b':
		case 'x':
			return next_string(lx, t, 1, SQL_QUOTING_BITS);
		case 'n': /* to the server a keyword, and then a string like any other */
			return next_string(lx, t, 1, plain_quoting(lx));
		default:
			break;
		}
	}
	if (left >= 3 && p[1] == '&' && (p[0] | 0x20) == 'u') {
		if (p[2] == '\'')
			return next_string(lx, t, 2, SQL_QUOTING_UNICODE);
		if (p[2] == '"')
			return next_quoted(lx, t, 2, SQL_QUOTING_UNICODE);
	}
	return end_token(lx, t, SQL_WORD, skip_name(p + 1, lx->end));
}

/* $1, $tag$...$tag$, or just a $. */
static enum sql_token_kind
next_dollar(struct sql_lexer *lx, struct sql_token *t)
{
	const uint8_t *p = t->p + 1, *end = lx->end;
	if (p < end && is_digit(*p))
		return end_token(lx, t, SQL_PARAM, skip_digits(p, end));
	if (p < end && class_of[*p] == BYTE_LETTER) {
		while (p < end && *p != '$' && is_name_byte(*p))
			p++;
	}
	if (p == end || *p != '$')
		return end_token(lx, t, SQL_PUNCT, t->p + 1);

	p++;
	size_t n_tag = (size_t)(p - t->p);
	const uint8_t *close = memmem(p, (size_t)(end - p), t->p, n_tag);
	t->quoting = SQL_QUOTING_DOLLAR;
	return end_token(lx, t, SQL_STRING, close == NULL ? NULL : close + n_tag);
}

enum sql_token_kind
sql_next(struct sql_lexer *lx, struct sql_token *t)
{
	const uint8_t *p = skip_blanks(lx->p, lx->end);
	t->quoting = SQL_QUOTING_NONE;
	t->p = p != NULL ? p : lx->p;
	if (p == NULL)
		return end_token(lx, t, SQL_CUT, lx->end);
	if (p == lx->end)
		return end_token(lx, t, SQL_END, p);

	switch ((enum byte_class)class_of[*p]) {
	case BYTE_LETTER:
		return next_word(lx, t);
	case BYTE_DIGIT:
		return end_token(lx, t, SQL_NUMBER, number_end(p, lx->end));
	case BYTE_DOLLAR:
		return next_dollar(lx, t);
	case BYTE_QUOTE:
		return next_string(lx, t, 0, plain_quoting(lx));
	case BYTE_DOUBLE_QUOTE:
		return next_quoted(lx, t, 0, SQL_QUOTING_PLAIN);
	case BYTE_DOT:
		if (lx->end - p >= 2 && is_digit(p[1]))
			return end_token(lx, t, SQL_NUMBER, number_end(p, lx->end));
		break;
	case BYTE_SEMICOLON:
		return end_token(lx, t, SQL_SEMICOLON, p + 1);
	case BYTE_SPACE: /* skipped above */
	case BYTE_OTHER:
		break;
	}
	return end_token(lx, t, SQL_PUNCT, p + 1);
}

static char
lower(uint8_t c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool
sql_token_is(const struct sql_token *t, const char *lower_word)
{
	if (t->kind != SQL_WORD)
		return false;
	size_t i = 0;
	while (i < t->n && lower(t->p[i]) == lower_word[i]) /* never past its terminator: no word has a zero byte */
		i++;
	return i == t->n && lower_word[i] == 0;
}

bool
sql_token_is_punct(const struct sql_token *t, char c)
{
	return t->kind == SQL_PUNCT && *t->p == (uint8_t)c;
}

/* Appends to out, which keeps room for the terminator; false: full. */
struct text_out {
	char *p;
	size_t n, room;
};

static bool
put(struct text_out *out, char c)
{
	if (out->n >= out->room)
		return false;
	out->p[out->n++] = c;
	return true;
}

static bool
is_ascii(const struct sql_token *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->p[i] >= 0x80)
			return false;
	}
	return true;
}

/* The name in full. */
static bool
copy_name(const struct sql_token *t, struct text_out *out)
{
	if (t->kind == SQL_WORD) {
		for (size_t i = 0; i < t->n && out->n < SQL_NAME_MAX; i++) {
			if (!put(out, lower(t->p[i])))
				return false;
		}
		return is_ascii(t); /* single-byte encodings have capitals beyond ASCII */
	}
	if (t->kind != SQL_QUOTED || t->quoting != SQL_QUOTING_PLAIN)
		return false;
	for (size_t i = 1; i < t->n - 1 && out->n < SQL_NAME_MAX; i++) {
		if (t->p[i] == '"')
			i++; /* the second of two */
		if (!put(out, (char)t->p[i]))
			return false;
	}
	return true;
}

size_t
sql_token_name(const struct sql_token *t, char *out, size_t n_out)
{
	char name[SQL_NAME_MAX]; /* a byte more than a name has, to see whether it is cut */
	struct text_out copy = {name, 0, sizeof(name)};
	if (n_out > 0)
		out[0] = 0;
	if (!copy_name(t, &copy))
		return 0;
	if (copy.n == SQL_NAME_MAX) {
		if (!is_ascii(t)) /* where the server cuts it depends on its encoding */
			return 0;
		copy.n--;
	}
	if (copy.n >= n_out)
		return 0;
	memcpy(out, name, copy.n);
	out[copy.n] = 0;
	return copy.n;
}

static bool
copy_dollar_string(const struct sql_token *t, struct text_out *out)
{
	const uint8_t *body = (const uint8_t *)memchr(t->p + 1, '$', t->n - 1) + 1;
	const uint8_t *end = t->p + t->n - (body - t->p);
	while (body < end) {
		if (!put(out, (char)*body++))
			return false;
	}
	return true;
}

/* p is behind the opening quote. */
static bool
copy_quoted_string(const uint8_t *p, const uint8_t *end, enum sql_quoting quoting, struct text_out *out)
{
	for (; p < end; p++) {
		if (*p == '\\' && quoting == SQL_QUOTING_ESCAPES)
			return false;
		if (*p == '\'' && !at_pair(p, end, '\'', '\'')) {
			p = string_continued(p + 1, end);
			if (p == NULL)
				return true;
			p--; /* at the quote; the loop goes behind it */
			continue;
		}
		if (*p == '\'')
			p++;
		if (!put(out, (char)*p))
			return false;
	}
	return true;
}

static bool
copy_string(const struct sql_token *t, struct text_out *out)
{
	if (t->kind != SQL_STRING)
		return false;
	if (t->quoting == SQL_QUOTING_DOLLAR)
		return copy_dollar_string(t, out);
	if (t->quoting != SQL_QUOTING_PLAIN && t->quoting != SQL_QUOTING_ESCAPES)
		return false;
	if ((t->p[0] | 0x20) == 'n') /* N'': another type */
		return false;
	const uint8_t *open = t->p[0] == '\'' ? t->p : t->p + 1;
	return copy_quoted_string(open + 1, t->p + t->n, t->quoting, out);
}

bool
sql_token_string(const struct sql_token *t, char *out, size_t n_out)
{
	if (n_out == 0)
		return false;
	struct text_out copy = {out, 0, n_out - 1};
	bool is_known = copy_string(t, &copy);
	out[is_known ? copy.n : 0] = 0;
	return is_known;
}

/* The server ignores case and punctuation in the names of encodings. */
static void
fold_encoding(const char *name, char *out, size_t n_out)
{
	size_t n = 0;
	for (; *name != 0 && n < n_out - 1; name++) {
		if (class_of[(uint8_t)*name] == BYTE_DIGIT || (class_of[(uint8_t)*name] == BYTE_LETTER && *name != '_'))
			out[n++] = lower((uint8_t)*name);
	}
	out[n] = 0;
}

bool
sql_encoding_is_safe(const char *client_encoding)
{
	static const char *const unsafe[] = {"sjis",         "shiftjis", "mskanji",    "win932",  "windows932",
	                                     "shiftjis2004", "sjis2004", "big5",       "win950",  "windows950",
	                                     "gbk",          "win936",   "windows936", "gb18030", "johab",
	                                     "uhc",          "win949",   "windows949"};
	char folded[SQL_NAME_MAX];
	fold_encoding(client_encoding, folded, sizeof(folded));
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		if (strcmp(folded, unsafe[i]) == 0)
			return false;
	}
	return true;
}
