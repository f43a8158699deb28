/* SPDX-License-Identifier: ISC */
#include "auth/base64.h"

#include <string.h>

#include "unit.h"

START_TEST(encodes_and_decodes_the_rfc_examples)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
		{"\xff\xef\xbe", "/+++"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[16];
		uint8_t bytes[16];
		size_t n = strlen(cases[i].bytes);
		base64_encode((const uint8_t *)cases[i].bytes, n, text);
		ck_assert_str_eq(text, cases[i].text);
		ck_assert_uint_eq(strlen(text), BASE64_LEN(n));
		size_t got;
		ck_assert(base64_decode(text, strlen(text), bytes, sizeof(bytes), &got));
		ck_assert_uint_eq(got, n);
		ck_assert_mem_eq(bytes, cases[i].bytes, n);
	}
}
END_TEST

START_TEST(gives_back_every_byte)
{
	uint8_t bytes[256], back[256];
	char text[BASE64_LEN(256) + 1];
	for (size_t n = 0; n <= 256; n++) {
		size_t got;
		for (size_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)(i * 7 + n);
		base64_encode(bytes, n, text);
		ck_assert(base64_decode(text, strlen(text), back, n, &got));
		ck_assert_uint_eq(got, n);
		ck_assert_mem_eq(back, bytes, n);
		if (n > 0)
			ck_assert(!base64_decode(text, strlen(text), back, n - 1, &got)); /* no room */
	}
}
END_TEST

START_TEST(refuses_what_is_not_base64)
{
	static const char *const cases[] = {
		"Z",    "Zg",   "Zg=",   "Zg===",    "=",        "==",   "===",
		"====", "Z===", "Zm9v=", "Zm9v====", "Zg==Zg==", "Zm=v", "Zh==",
		"Zm9=", "Zm9 ", " Zm9v", "Zm9v\n",   "Zm9-",     "Zm9_", "Zm\xc3\xa9",
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t out[16];
		size_t n;
		ck_assert_msg(!base64_decode(cases[i], strlen(cases[i]), out, sizeof(out), &n), "'%s'", cases[i]);
	}
	uint8_t out[16];
	size_t n;
	ck_assert(!base64_decode("Zm\0v", 4, out, sizeof(out), &n));
}
END_TEST

UNIT_MAIN("base64", encodes_and_decodes_the_rfc_examples, gives_back_every_byte, refuses_what_is_not_base64)
