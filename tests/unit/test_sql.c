/* SPDX-License-Identifier: ISC */
#include "wire/sql.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kind_names[] = {
	[SQL_END] = "end",        [SQL_WORD] = "word",     [SQL_QUOTED] = "quoted",
	[SQL_STRING] = "string",  [SQL_NUMBER] = "number", [SQL_PARAM] = "param",
	[SQL_SEMICOLON] = "semi", [SQL_PUNCT] = "punct",   [SQL_CUT] = "cut",
};

static void
append(char *out, size_t n_out, const char *text, size_t n)
{
	size_t at = strlen(out);
	ck_assert_uint_lt(at + n, n_out);
	memcpy(out + at, text, n);
	out[at + n] = 0;
}

/* All tokens as "kind<bytes> ...", from a copy of exact size. */
static const char *
tokens_of(const char *text, bool standard_strings)
{
	static char out[2048];
	size_t n = strlen(text);
	uint8_t *copy = malloc(n > 0 ? n : 1);
	memcpy(copy, text, n);

	struct sql_lexer lx;
	struct sql_token t;
	sql_lexer_init(&lx, copy, n, standard_strings);
	out[0] = 0;
	while (sql_next(&lx, &t) != SQL_END) {
		const char *kind = kind_names[t.kind];
		append(out, sizeof(out), " ", out[0] != 0);
		append(out, sizeof(out), kind, strlen(kind));
		append(out, sizeof(out), "<", 1);
		append(out, sizeof(out), (const char *)t.p, t.n);
		append(out, sizeof(out), ">", 1);
	}
	ck_assert_int_eq(sql_next(&lx, &t), SQL_END); /* and stays there */
	free(copy);
	return out;
}

struct lex_case {
	const char *text;
	const char *want;
};

static void
check_lex(const struct lex_case *cases, size_t n, bool standard_strings)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(tokens_of(cases[i].text, standard_strings), cases[i].want);
}

START_TEST(lexes_words_and_numbers)
{
	static const struct lex_case cases[] = {
		{"", ""},
		{" \t\n\r\f\v", ""},
		{"select", "word<select>"},
		{"SeLeCt 1", "word<SeLeCt> number<1>"},
		{"_a1$b,c", "word<_a1$b> punct<,> word<c>"},
		{"\xc3\xa9t\xc3\xa9=1", "word<\xc3\xa9t\xc3\xa9> punct<=> number<1>"},
		{"a;b;;", "word<a> semi<;> word<b> semi<;> semi<;>"},
		{"a.b", "word<a> punct<.> word<b>"},
		{"a.5", "word<a> number<.5>"},
		{"a. 5", "word<a> punct<.> number<5>"},
		{"1.5e+10", "number<1.5e+10>"},
		{"1.", "number<1.>"},
		{"1..2", "number<1> punct<.> number<.2>"},
		{"1e", "number<1> word<e>"},
		{"1e-", "number<1> word<e> punct<->"},
		{"1e--2", "number<1> word<e>"},
		{"12ab", "number<12> word<ab>"},
		{"-1", "punct<-> number<1>"},
		{"$1", "param<$1>"},
		{"$12ab", "param<$12> word<ab>"},
		{"$", "punct<$>"},
		{"$ 1", "punct<$> number<1>"},
		{"a::b", "word<a> punct<:> punct<:> word<b>"},
		{"(a)[1]", "punct<(> word<a> punct<)> punct<[> number<1> punct<]>"},
		{"\\", "punct<\\>"},
		{"u&b", "word<u> punct<&> word<b>"},
		{"U", "word<U>"},
		{"e", "word<e>"},
		{"be'x'", "word<be> string<'x'>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

START_TEST(skips_comments)
{
	static const struct lex_case cases[] = {
		{"-- a", ""},
		{"--", ""},
		{"a--b\nc", "word<a> word<c>"},
		{"a--b\rc", "word<a> word<c>"},
		{"a--b'\n'c'", "word<a> string<'c'>"},
		{"a - - b", "word<a> punct<-> punct<-> word<b>"},
		{"a+--b\nc", "word<a> punct<+> word<c>"},
		{"/**/a", "word<a>"},
		{"/*/a*/b", "word<b>"},
		{"/* /* */ a */ b", "word<b>"},
		{"/*/*/ a */ */ b", "word<b>"},
		{"/* ** */a", "word<a>"},
		{"/***/a", "word<a>"},
		{"/* -- */ a", "word<a>"},
		{"-- /*\na", "word<a>"},
		{"/* ' */ a /* \" $$ */ b", "word<a> word<b>"},
		{"a*/b", "word<a> punct<*> punct</> word<b>"},
		{"a*/*b*/c", "word<a> punct<*> word<c>"},
		{"a/*", "word<a> cut</*>"},
		{"a /*/", "word<a> cut< /*/>"},
		{"/*/**/", "cut</*/**/>"},
		{"/* *", "cut</* *>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

START_TEST(lexes_strings)
{
	static const struct lex_case cases[] = {
		{"''", "string<''>"},
		{"'a'b", "string<'a'> word<b>"},
		{"'a''b'", "string<'a''b'>"},
		{"'a\\'b", "string<'a\\'> word<b>"},
		{"'--'a", "string<'--'> word<a>"},
		{"'/*'a", "string<'/*'> word<a>"},
		{"'\n;'", "string<'\n;'>"},
		{"'\"'\"'\"", "string<'\"'> quoted<\"'\">"},
		{"E'a\\'b'c", "string<E'a\\'b'> word<c>"},
		{"e'\\\\'a", "string<e'\\\\'> word<a>"},
		{"E'\\\\\\''a", "string<E'\\\\\\''> word<a>"},
		{"E'a''b'", "string<E'a''b'>"},
		{"E 'a\\'b", "word<E> string<'a\\'> word<b>"},
		{"N'a\\'b", "string<N'a\\'> word<b>"},
		{"B'01'x'1f'", "string<B'01'> string<x'1f'>"},
		{"B'0''1'", "string<B'0'> string<'1'>"},
		{"U&'a\\'b", "string<U&'a\\'> word<b>"},
		{"u&'a''b'", "string<u&'a''b'>"},
		{"U& 'a'", "word<U> punct<&> string<'a'>"},
		{"'", "cut<'>"},
		{"'a", "cut<'a>"},
		{"'a''", "cut<'a''>"},
		{"E'\\'", "cut<E'\\'>"},
		{"E'\\", "cut<E'\\>"},
		{"a 'b;", "word<a> cut<'b;>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

START_TEST(continues_strings_on_the_next_line)
{
	static const struct lex_case cases[] = {
		{"'a' 'b'", "string<'a'> string<'b'>"},
		{"'a'\n'b'", "string<'a'\n'b'>"},
		{"'a'\r\t'b'c", "string<'a'\r\t'b'> word<c>"},
		{"'a' --x'\n 'b'", "string<'a' --x'\n 'b'>"},
		{"'a' --x\n --'y'\n 'b'\n'c'", "string<'a' --x\n --'y'\n 'b'\n'c'>"},
		{"'a' --x 'b'", "string<'a'>"},
		{"'a' /**/\n'b'", "string<'a'> string<'b'>"},
		{"'a'\n/**/'b'", "string<'a'> string<'b'>"},
		{"'a'\nb", "string<'a'> word<b>"},
		{"E'a'\n'\\'b'c", "string<E'a'\n'\\'b'> word<c>"},
		{"'a'\nE'b'", "string<'a'> string<E'b'>"},
		{"'a\\'\n'\\'b", "string<'a\\'\n'\\'> word<b>"},
		{"B'0'\n'1'", "string<B'0'\n'1'>"},
		{"'a'\n'b", "cut<'a'\n'b>"},
		{"\"a\"\n\"b\"", "quoted<\"a\"> quoted<\"b\">"},
		{"$$a$$\n$$b$$", "string<$$a$$> string<$$b$$>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

START_TEST(plain_strings_can_take_backslashes)
{
	static const struct lex_case cases[] = {
		{"'a\\'b'c", "string<'a\\'b'> word<c>"},
		{"N'a\\'b'c", "string<N'a\\'b'> word<c>"},
		{"'\\\\'a", "string<'\\\\'> word<a>"},
		{"'a'\n'\\'b'", "string<'a'\n'\\'b'>"},
		{"'\\'", "cut<'\\'>"},
		{"E'\\''a", "string<E'\\''> word<a>"},
		{"B'\\'a", "string<B'\\'> word<a>"},
		{"$$\\$$a", "string<$$\\$$> word<a>"},
		{"\"\\\"a", "quoted<\"\\\"> word<a>"},
	};
	check_lex(cases, N(cases), false);
}
END_TEST

START_TEST(lexes_quoted_names)
{
	static const struct lex_case cases[] = {
		{"\"a\"b", "quoted<\"a\"> word<b>"},
		{"\"a\"\"b\"", "quoted<\"a\"\"b\">"},
		{"\"\"", "quoted<\"\">"},
		{"\"'\"a", "quoted<\"'\"> word<a>"},
		{"\"a\\\"b", "quoted<\"a\\\"> word<b>"},
		{"\"--\"a", "quoted<\"--\"> word<a>"},
		{"U&\"\\0061\"a", "quoted<U&\"\\0061\"> word<a>"},
		{"u&\"a\"\"b\"", "quoted<u&\"a\"\"b\">"},
		{"E\"a\"", "word<E> quoted<\"a\">"},
		{"\"", "cut<\">"},
		{"\"a\"\"", "cut<\"a\"\">"},
		{"U&\"a", "cut<U&\"a>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

START_TEST(lexes_dollar_quotes)
{
	static const struct lex_case cases[] = {
		{"$$a'b$$c", "string<$$a'b$$> word<c>"},
		{"$$$$a", "string<$$$$> word<a>"},
		{"$a$b$$c$a$d", "string<$a$b$$c$a$> word<d>"},
		{"$a$ $A$ $a$", "string<$a$ $A$ $a$>"},
		{"$a$ $b$a$ c", "string<$a$ $b$a$> word<c>"},
		{"$$ $a$$ b", "string<$$ $a$$> word<b>"},
		{"$a1_$x$a1_$", "string<$a1_$x$a1_$>"},
		{"$\xc3\xa9$x$\xc3\xa9$", "string<$\xc3\xa9$x$\xc3\xa9$>"},
		{"a$$b$$", "word<a$$b$$>"},
		{"a$b$c", "word<a$b$c>"},
		{"1$$b$$", "number<1> string<$$b$$>"},
		{"$1$$b$$", "param<$1> string<$$b$$>"},
		{"$a b$", "punct<$> word<a> word<b$>"},
		{"$1a$ $1a$", "param<$1> word<a$> param<$1> word<a$>"},
		{"$$", "cut<$$>"},
		{"$a$b$a", "cut<$a$b$a>"},
		{"$a$ $$", "cut<$a$ $$>"},
		{"$$--$$ a", "string<$$--$$> word<a>"},
		{"$$/*$$ a", "string<$$/*$$> word<a>"},
	};
	check_lex(cases, N(cases), true);
}
END_TEST

static struct sql_token
only_token(const char *text, bool standard_strings)
{
	struct sql_lexer lx;
	struct sql_token t;
	sql_lexer_init(&lx, (const uint8_t *)text, strlen(text), standard_strings);
	sql_next(&lx, &t);
	ck_assert_uint_eq(t.n, strlen(text));
	return t;
}

#define TEN "abcdefghij"

START_TEST(reads_names)
{
	static const struct lex_case cases[] = {
		{"abc", "abc"},
		{"ABC_9$", "abc_9$"},
		{"\"ABC\"", "ABC"},
		{"\"a\"\"b\"", "a\"b"},
		{"\"\"\"\"", "\""},
		{"\"\"", ""},
		{"\"\xc3\x89\"", "\xc3\x89"},
		{"\xc3\xa9", ""},
		{"U&\"a\"", ""},
		{"'a'", ""},
		{"1", ""},
		{TEN TEN TEN TEN TEN TEN "ABC", TEN TEN TEN TEN TEN TEN "abc"},
		{TEN TEN TEN TEN TEN TEN "abcd", TEN TEN TEN TEN TEN TEN "abc"},
		{TEN TEN TEN TEN TEN TEN TEN TEN, TEN TEN TEN TEN TEN TEN "abc"},
		{"\"" TEN TEN TEN TEN TEN TEN "ABCD\"", TEN TEN TEN TEN TEN TEN "ABC"},
		{"\"\xc3\x89" TEN TEN TEN TEN TEN TEN "C\"", "\xc3\x89" TEN TEN TEN TEN TEN TEN "C"},
		{"\"\xc3\x89" TEN TEN TEN TEN TEN TEN "CD\"", ""},
	};
	for (size_t i = 0; i < N(cases); i++) {
		char name[SQL_NAME_MAX];
		struct sql_token t = only_token(cases[i].text, true);
		ck_assert_uint_eq(sql_token_name(&t, name, sizeof(name)), strlen(cases[i].want));
		ck_assert_str_eq(name, cases[i].want);
	}
}
END_TEST

START_TEST(names_keep_within_their_room)
{
	struct sql_token t = only_token("abcd", true);
	char name[8];
	memset(name, 'x', sizeof(name));
	ck_assert_uint_eq(sql_token_name(&t, name, 4), 0);
	ck_assert_int_eq(name[0], 0);
	ck_assert_int_eq(name[4], 'x');
	ck_assert_uint_eq(sql_token_name(&t, name, 5), 4);
	ck_assert_str_eq(name, "abcd");
	ck_assert_int_eq(name[5], 'x');
	ck_assert_uint_eq(sql_token_name(&t, name, 0), 0);
}
END_TEST

struct value_case {
	const char *text;
	const char *want; /* NULL: unknown */
	bool standard_strings;
};

START_TEST(reads_string_values)
{
	static const struct value_case cases[] = {
		{"''", "", true},
		{"'aB'", "aB", true},
		{"'a''b'''", "a'b'", true},
		{"''''", "'", true},
		{"'a\\b'", "a\\b", true},
		{"'a\\b'", NULL, false},
		{"'a''b'", "a'b", false},
		{"E'a''b'", "a'b", true},
		{"E'\\n'", NULL, true},
		{"'a'\n'b'", "ab", true},
		{"'a''' --it's\n --'x'\n'''b'\n''", "a''b", true},
		{"E'a'\n'\\b'", NULL, true},
		{"$$$$", "", true},
		{"$$a'b$$", "a'b", true},
		{"$t$a$$b$t$", "a$$b", true},
		{"$t$$t$", "", true},
		{"U&'a'", NULL, true},
		{"N'a'", NULL, true},
		{"B'1'", NULL, true},
		{"x'1'", NULL, true},
		{"abc", NULL, true},
		{"\"abc\"", NULL, true},
		{"'1234567'", "1234567", true},
		{"'12345678'", NULL, true}, /* too long below */
		{"$$1234567$$", "1234567", true},
		{"$$12345678$$", NULL, true},
	};
	for (size_t i = 0; i < N(cases); i++) {
		char value[9];
		value[8] = 'x';
		struct sql_token t = only_token(cases[i].text, cases[i].standard_strings);
		ck_assert_msg(sql_token_string(&t, value, 8) == (cases[i].want != NULL), "%s", cases[i].text);
		ck_assert_str_eq(value, cases[i].want != NULL ? cases[i].want : "");
		ck_assert_int_eq(value[8], 'x');
	}
}
END_TEST

START_TEST(compares_words)
{
	struct sql_token t = only_token("SelecT", true);
	ck_assert(sql_token_is(&t, "select"));
	ck_assert(!sql_token_is(&t, "selec"));
	ck_assert(!sql_token_is(&t, "selects"));
	ck_assert(!sql_token_is(&t, ""));
	t = only_token("\"select\"", true);
	ck_assert(!sql_token_is(&t, "select"));
	t = only_token("(", true);
	ck_assert(sql_token_is_punct(&t, '('));
	ck_assert(!sql_token_is_punct(&t, ')'));
	t = only_token("a", true);
	ck_assert(!sql_token_is_punct(&t, 'a'));
}
END_TEST

START_TEST(knows_encodings)
{
	static const char *const safe[] = {"UTF8", "utf-8", "SQL_ASCII", "LATIN1", "EUC_JP", "win1252", ""};
	static const char *const unsafe[] = {"SJIS", "Shift_JIS_2004", "big5", "GBK", "gb18030", "JOHAB", "UHC"};
	for (size_t i = 0; i < N(safe); i++)
		ck_assert(sql_encoding_is_safe(safe[i]));
	for (size_t i = 0; i < N(unsafe); i++)
		ck_assert(!sql_encoding_is_safe(unsafe[i]));
}
END_TEST

/* All mentions as "D:name E:name P:name". */
static const char *
mentions_of(const char *text)
{
	static char out[512];
	struct sql_mentions m;
	struct sql_mention mention;
	out[0] = 0;
	sql_mentions_init(&m, (const uint8_t *)text, strlen(text), true);
	while (sql_mentions_next(&m, &mention)) {
		char one[SQL_NAME_MAX + 3] = {"DEP"[mention.kind], ':', 0};
		ck_assert_uint_eq(strlen(mention.name), mention.n_name);
		ck_assert(mention.token.p >= (const uint8_t *)text);
		append(one, sizeof(one), mention.name, mention.n_name);
		append(out, sizeof(out), " ", out[0] != 0);
		append(out, sizeof(out), one, strlen(one));
	}
	ck_assert(!sql_mentions_next(&m, &mention));
	return out;
}

START_TEST(finds_mentions)
{
	static const struct lex_case cases[] = {
		{"", ""},
		{"SELECT 1", ""},
		{"DEALLOCATE a", "D:a"},
		{"deallocate prepare \"A b\"", "D:A b"},
		{"DEALLOCATE PREPARE", "D:prepare"},
		{"DEALLOCATE PREPARE;EXECUTE a", "D:prepare E:a"},
		{"DEALLOCATE PREPARE PREPARE", "D:prepare"},
		{"DEALLOCATE ALL", ""},
		{"DEALLOCATE PREPARE ALL", ""},
		{"DEALLOCATE \"all\"", "D:all"},
		{"DEALLOCATE", ""},
		{"DEALLOCATE U&\"a\"", "D:"},
		{"EXECUTE a", "E:a"},
		{"/* x */ execute -- y\n A(1, 'x;')", "E:a"},
		{"EXECUTE 'a'", ""},
		{"PREPARE a AS SELECT 1", "P:a"},
		{"PREPARE a (int, text) AS SELECT $1; EXECUTE a(1, 'x'); DEALLOCATE a", "P:a E:a D:a"},
		{"PREPARE TRANSACTION 'a'", ""},
		{"PREPARE transaction AS SELECT 1", "P:transaction"},
		{"PREPARE", ""},
		{"EXPLAIN EXECUTE a", "E:a"},
		{"EXPLAIN ANALYZE VERBOSE EXECUTE a(1)", "E:a"},
		{"EXPLAIN (ANALYZE, BUFFERS off) EXECUTE a; EXECUTE b", "E:a E:b"},
		{"EXPLAIN (FORMAT (json)) EXECUTE a", "E:a"},
		{"EXPLAIN SELECT execute FROM a", ""},
		{"EXPLAIN (", ""},
		{"CREATE TABLE t AS EXECUTE a", "E:a"},
		{"CREATE TEMP TABLE IF NOT EXISTS t (x, y) WITH (fillfactor = 10) ON COMMIT DROP AS EXECUTE a(1)",
	         "E:a"},
		{"EXPLAIN ANALYZE CREATE TABLE t AS EXECUTE a", "E:a"},
		{"CREATE VIEW v AS SELECT 1 AS execute FROM t", ""},
		{"CREATE CAST (a AS b) WITH FUNCTION f", ""},
		{"CREATE TABLE t (x int DEFAULT (1 + 1)); EXECUTE a", "E:a"},
		{"CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW EXECUTE FUNCTION f()", ""},
		{"CREATE TABLE t AS", ""},
		{"SELECT 'EXECUTE a; EXECUTE b'", ""},
		{"SELECT 1; EXECUTE a; ; EXECUTE b", "E:a E:b"},
		{"SELECT $$; EXECUTE a$$; EXECUTE b", "E:b"},
		{"SELECT \"; EXECUTE a\"", ""},
		{"SELECT execute a", ""},
		{"GRANT EXECUTE ON FUNCTION f TO u", ""},
		{"EXECUTE a; SELECT 'x; EXECUTE b", "E:a"},
		{"\"execute\" a", ""},
		{"EXECUTE a b c; EXECUTE d", "E:a E:d"},
	};
	for (size_t i = 0; i < N(cases); i++)
		ck_assert_msg(strcmp(mentions_of(cases[i].text), cases[i].want) == 0, "%s: %s", cases[i].text,
		              mentions_of(cases[i].text));
}
END_TEST

UNIT_MAIN("sql", lexes_words_and_numbers, skips_comments, lexes_strings, continues_strings_on_the_next_line,
          plain_strings_can_take_backslashes, lexes_quoted_names, lexes_dollar_quotes, reads_names,
          names_keep_within_their_room, reads_string_values, compares_words, knows_encodings, finds_mentions)
