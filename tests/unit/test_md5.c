/* SPDX-License-Identifier: ISC */
#include "auth/md5.h"

#include <string.h>

#include "unit.h"

START_TEST(hashes_as_the_server)
{
	static const uint8_t salt[4] = {1, 2, 3, 0xff};
	static const struct {
		const char *user, *password, *secret, *response;
	} cases[] = {
		{"postgres", "secret", "md553f48b7c4b76a86ce72276c5755f217d", "md55fd83a89d76c691d048ba124be308bbe"},
		{"u1", "secret", "md535a53ec164a78bb7375618b79dd88cf5", NULL}, /* from pg_authid */
		{"u", "", "md57b774effe4a349c6dd82ad4f4f21d34c", "md55bd977769cf5c0556014a7ca5354fe91"},
		{"j\xc3\xb6rg", "p\xc3\xa4ssword", "md545616ed254b2b13003d533a98c3171d6",
	         "md5bec17ed98e3ceaca70ac4290bac5c85a"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[MD5_SECRET_LEN + 1], response[MD5_SECRET_LEN + 1];
		ck_assert(md5_secret(cases[i].password, cases[i].user, out));
		ck_assert_str_eq(out, cases[i].secret);
		ck_assert(md5_response(out, salt, response));
		if (cases[i].response != NULL)
			ck_assert_str_eq(response, cases[i].response);
	}
}
END_TEST

START_TEST(knows_a_secret)
{
	static const struct {
		const char *text;
		bool is;
	} cases[] = {
		{"md535a53ec164a78bb7375618b79dd88cf5", true},
		{"md500000000000000000000000000000000", true},
		{"md535A53EC164A78BB7375618B79DD88CF5", false}, /* a plain password to the server, too */
		{"md535a53ec164a78bb7375618b79dd88cf", false},
		{"md535a53ec164a78bb7375618b79dd88cf55", false},
		{"md535a53ec164a78bb7375618b79dd88cfg", false},
		{"MD535a53ec164a78bb7375618b79dd88cf5", false},
		{"md5", false},
		{"md", false},
		{"", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(md5_is_secret(cases[i].text) == cases[i].is, "'%s'", cases[i].text);
}
END_TEST

START_TEST(answers_only_with_a_secret)
{
	static const uint8_t salt[4] = {0};
	char out[MD5_SECRET_LEN + 1] = "before";
	ck_assert(!md5_response("password", salt, out));
	ck_assert_str_eq(out, "");
}
END_TEST

UNIT_MAIN("md5", hashes_as_the_server, knows_a_secret, answers_only_with_a_secret)
