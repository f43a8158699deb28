/* SPDX-License-Identifier: ISC */
#include "auth/saslprep.h"

#include <string.h>

#include "unit.h"

/* The first four are the examples of RFC 4013, section 3; a prohibited text stays as it is, as in PostgreSQL. */
START_TEST(prepares_passwords)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"I\xc2\xadX", "IX"},   /* soft hyphen: mapped to nothing */
		{"USER", "USER"},       /* no case folding */
		{"\xc2\xaa", "a"},      /* feminine ordinal */
		{"\xe2\x85\xa8", "IX"}, /* roman numeral nine */
		{"a\x07", "a\x07"},     /* ASCII is not looked at */
		{"", ""},
		{"a\xc2\xa0"
	         "b",
	         "a b"},                   /* no-break space */
		{"e\xcc\x81", "\xc3\xa9"}, /* composed */
		{"\xef\xac\x81", "fi"},    /* ligature */
		{"\xef\xbc\xa1", "A"},     /* full-width letter */
		{"p\xc3\xa4ss", "p\xc3\xa4ss"},
		{"\xc2\xad", "\xc2\xad"},                                         /* nothing would be left */
		{"\xc3\xa9\x07", "\xc3\xa9\x07"},                                 /* control character: prohibited */
		{"\xc2\xaa\xc2\x85", "\xc2\xaa\xc2\x85"},                         /* ... so the ordinal stays, too */
		{"\xe2\x85\xa8\xf0\x9f\x98\x80", "\xe2\x85\xa8\xf0\x9f\x98\x80"}, /* unassigned in Unicode 3.2 */
		{"\xd8\xa7\x31", "\xd8\xa7\x31"},                                 /* right-to-left must also end so */
		{"\xd8\xa7\xc2\xad\xd8\xa7", "\xd8\xa7\xd8\xa7"},                 /* right-to-left all along */
		{"\xd8\xa7\xc3\xa9\xd8\xa7", "\xd8\xa7\xc3\xa9\xd8\xa7"},         /* both directions */
		{"\xcd\x80\xcc\x81", "\xcd\x80\xcc\x81"},         /* prohibited before normalising makes it allowed */
		{"\xc2\xaa\xff", "\xc2\xaa\xff"},                 /* not UTF-8 */
		{"\xc2\xaa\xc3", "\xc2\xaa\xc3"},                 /* cut short */
		{"\xc2\xaa\xc0\xaf", "\xc2\xaa\xc0\xaf"},         /* overlong */
		{"\xc2\xaa\xed\xa0\x80", "\xc2\xaa\xed\xa0\x80"}, /* surrogate */
		{"\xc2\xaa\xf4\x90\x80\x80", "\xc2\xaa\xf4\x90\x80\x80"}, /* above U+10FFFF */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct secret out = {0};
		ck_assert_int_eq(saslprep(cases[i].in, &out), STATUS_OK);
		ck_assert_msg(strcmp(out.text, cases[i].out) == 0, "case %zu: '%s'", i, out.text);
		ck_assert_uint_eq(out.len, strlen(cases[i].out));
		secret_fini(&out);
	}
}
END_TEST

/* U+FDFA becomes 18 characters, the longest of all. */
START_TEST(has_room_for_what_grows)
{
	char in[3 * 300 + 1];
	struct secret out = {0};
	for (size_t i = 0; i < sizeof(in) - 1; i += 3)
		memcpy(in + i, "\xef\xb7\xba", 3);
	in[sizeof(in) - 1] = 0;
	ck_assert_int_eq(saslprep(in, &out), STATUS_OK);
	ck_assert_uint_eq(out.len, 300 * 33);
	secret_fini(&out);
}
END_TEST

UNIT_MAIN("saslprep", prepares_passwords, has_room_for_what_grows)
