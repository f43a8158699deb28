/* SPDX-License-Identifier: ISC */
#include "auth/scram.h"

#include <stdio.h>
#include <string.h>

#include "auth/scram_parts.h"
#include "base/secret.h"

#include "unit.h"

/* The exchange of RFC 7677, section 3. */
#define RFC_CLIENT_NONCE "rOprNGfwEbeRWgbNEkqO"
#define RFC_SERVER_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define RFC_CLIENT_FIRST "n,,n=user,r=" RFC_CLIENT_NONCE
#define RFC_SERVER_FIRST "r=" RFC_CLIENT_NONCE RFC_SERVER_NONCE ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
#define RFC_CLIENT_FINAL "c=biws,r=" RFC_CLIENT_NONCE RFC_SERVER_NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
#define RFC_SERVER_FINAL "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

/* From pg_authid, for the password "pencil". */
#define PG_SECRET                                                                                                      \
	"SCRAM-SHA-256$4096:IpS7UAPa3XOKHTAIHY8o5Q==$gTzqFwn2WId56JcZAYMUo4BZUuzpnyWrG5CfTP6vVWc=:"                    \
	"36K5Q0Oul9jRSekytoXp25T/f20o7yI8/rsuWX3ZeNc="

#define TEXT(s) (const uint8_t *)(s), strlen(s)
#define assert_buf(b, text)                                                                                            \
	do {                                                                                                           \
		ck_assert_msg((b)->len == strlen(text) && memcmp(buf_head(b), text, (b)->len) == 0, "'%.*s'",          \
		              (int)(b)->len, (const char *)buf_head(b));                                               \
		buf_reset(b);                                                                                          \
	} while (0)

static struct scram_secret
rfc_secret(uint8_t client_key[SCRAM_KEY_LEN])
{
	struct scram_secret s = {.iterations = 4096};
	static const char salt[] = "W22ZaJ0SNY7soEsUEjb6gQ==";
	ck_assert(base64_decode(salt, strlen(salt), s.salt, sizeof(s.salt), &s.salt_len));
	ck_assert_int_eq(scram_derive_keys("pencil", s.salt, s.salt_len, 4096, client_key, s.server_key), STATUS_OK);
	ck_assert(scram_hash(client_key, s.stored_key));
	return s;
}

START_TEST(plays_the_server_of_the_rfc)
{
	uint8_t client_key[SCRAM_KEY_LEN];
	struct scram_secret secret = rfc_secret(client_key);
	struct scram_server *x = scram_server_new(&secret);
	struct buf out;
	buf_init(&out);
	scram_server_set_nonce(x, RFC_SERVER_NONCE);
	ck_assert_int_eq(scram_server_first(x, TEXT(RFC_CLIENT_FIRST), &out), STATUS_OK);
	assert_buf(&out, RFC_SERVER_FIRST);
	ck_assert_int_eq(scram_server_final(x, TEXT(RFC_CLIENT_FINAL), &out), STATUS_OK);
	assert_buf(&out, RFC_SERVER_FINAL);
	ck_assert_mem_eq(scram_server_client_key(x), client_key, SCRAM_KEY_LEN);
	scram_server_free(&x);
	ck_assert_ptr_null(x);
	scram_server_free(&x);
	buf_fini(&out);
}
END_TEST

static void
play_rfc_client(struct scram_client *x)
{
	struct buf out;
	buf_init(&out);
	scram_client_set_nonce(x, RFC_CLIENT_NONCE);
	scram_client_set_user(x, "user");
	ck_assert_int_eq(scram_client_first(x, &out), STATUS_OK);
	assert_buf(&out, RFC_CLIENT_FIRST);
	ck_assert_int_eq(scram_client_final(x, TEXT(RFC_SERVER_FIRST), &out), STATUS_OK);
	assert_buf(&out, RFC_CLIENT_FINAL);
	ck_assert_int_eq(scram_client_verify(x, TEXT(RFC_SERVER_FINAL)), STATUS_OK);
	buf_fini(&out);
}

START_TEST(plays_the_client_of_the_rfc)
{
	struct scram_client *x = scram_client_new("pencil");
	play_rfc_client(x);
	scram_client_free(&x);
	ck_assert_ptr_null(x);
	scram_client_free(&x);
}
END_TEST

START_TEST(plays_the_client_with_keys_alone)
{
	uint8_t client_key[SCRAM_KEY_LEN];
	struct scram_secret secret = rfc_secret(client_key);
	struct scram_client *x = scram_client_new_keys(client_key, secret.server_key);
	play_rfc_client(x);
	scram_client_free(&x);
}
END_TEST

/* ---- both roles against each other ---- */

struct outcome {
	enum status final, verify;
};

static struct outcome
login(struct scram_client *client, const struct scram_secret *secret, uint8_t client_key[SCRAM_KEY_LEN])
{
	struct outcome got = {STATUS_CLOSED, STATUS_CLOSED};
	struct scram_server *server = scram_server_new(secret);
	struct buf to_server, to_client;
	buf_init(&to_server);
	buf_init(&to_client);
	ck_assert_int_eq(scram_client_first(client, &to_server), STATUS_OK);
	ck_assert_int_eq(scram_server_first(server, buf_head(&to_server), to_server.len, &to_client), STATUS_OK);
	buf_reset(&to_server);
	ck_assert_int_eq(scram_client_final(client, buf_head(&to_client), to_client.len, &to_server), STATUS_OK);
	buf_reset(&to_client);
	got.final = scram_server_final(server, buf_head(&to_server), to_server.len, &to_client);
	if (got.final == STATUS_OK) {
		got.verify = scram_client_verify(client, buf_head(&to_client), to_client.len);
		if (client_key != NULL)
			memcpy(client_key, scram_server_client_key(server), SCRAM_KEY_LEN);
	} else {
		ck_assert_uint_eq(to_client.len, 0);
	}
	scram_server_free(&server);
	buf_fini(&to_server);
	buf_fini(&to_client);
	return got;
}

static struct outcome
login_with_password(const char *password, const struct scram_secret *secret, uint8_t client_key[SCRAM_KEY_LEN])
{
	struct scram_client *client = scram_client_new(password);
	struct outcome got = login(client, secret, client_key);
	scram_client_free(&client);
	return got;
}

START_TEST(lets_the_right_password_in)
{
	static const struct {
		const char *stored, *given;
		bool right;
	} cases[] = {
		{"secret", "secret", true},   {"secret", "Secret", false},    {"secret", "", false},
		{"I\xc2\xadX", "IX", true}, /* the same after SASLprep */
		{"\xe2\x85\xa8", "IX", true}, {"\xff\xfe", "\xff\xfe", true}, {"100%s %n", "100%s %n", true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_secret secret;
		ck_assert_int_eq(scram_secret_derive(cases[i].stored, 10, &secret), STATUS_OK);
		struct outcome got = login_with_password(cases[i].given, &secret, NULL);
		ck_assert_msg(got.final == (cases[i].right ? STATUS_OK : STATUS_REFUSED), "case %zu", i);
		ck_assert_int_eq(got.verify, cases[i].right ? STATUS_OK : STATUS_CLOSED);
		ck_assert(scram_secret_check(&secret, cases[i].given) == cases[i].right);
	}
}
END_TEST

/* What the proxy does: the key from a client's proof logs in to another server with the same stored secret. */
START_TEST(passes_a_login_through)
{
	struct scram_secret secret, other;
	uint8_t client_key[SCRAM_KEY_LEN];
	ck_assert_int_eq(scram_secret_derive("secret", 10, &secret), STATUS_OK);
	ck_assert_int_eq(scram_secret_derive("secret", 10, &other), STATUS_OK);
	ck_assert_int_eq(login_with_password("secret", &secret, client_key).final, STATUS_OK);

	struct scram_client *client = scram_client_new_keys(client_key, secret.server_key);
	ck_assert_int_eq(login(client, &secret, NULL).verify, STATUS_OK);
	scram_client_free(&client);

	/* the same password under another salt: the keys don't fit */
	client = scram_client_new_keys(client_key, secret.server_key);
	ck_assert_int_eq(login(client, &other, NULL).final, STATUS_REFUSED);
	scram_client_free(&client);

	/* a server that knows StoredKey but not ServerKey is found out */
	secret.server_key[0] ^= 1;
	ck_assert_int_eq(login_with_password("secret", &secret, NULL).verify, STATUS_REFUSED);
}
END_TEST

START_TEST(mocks_a_secret_for_an_unknown_user)
{
	struct scram_secret a, again, b;
	scram_secret_mock("alice", 4096, &a);
	scram_secret_mock("alice", 4096, &again);
	scram_secret_mock("bob", 10, &b);
	ck_assert_uint_eq(a.iterations, 4096);
	ck_assert_uint_eq(b.iterations, 10);
	ck_assert_uint_eq(a.salt_len, 16); /* as the server's, and the same on each try */
	ck_assert_mem_eq(a.salt, again.salt, 16);
	ck_assert_mem_ne(a.salt, b.salt, 16);
	ck_assert_mem_ne(a.stored_key, again.stored_key, SCRAM_KEY_LEN);
	ck_assert_int_eq(login_with_password("", &b, NULL).final, STATUS_REFUSED);
	ck_assert(!scram_secret_check(&b, ""));
}
END_TEST

/* ---- stored secrets ---- */

START_TEST(parses_a_stored_secret)
{
	struct scram_secret s;
	ck_assert(scram_is_secret(PG_SECRET));
	ck_assert_int_eq(scram_secret_parse(PG_SECRET, &s), STATUS_OK);
	ck_assert_uint_eq(s.iterations, 4096);
	ck_assert_uint_eq(s.salt_len, 16);
	ck_assert(scram_secret_check(&s, "pencil"));
	ck_assert(!scram_secret_check(&s, "pencil "));
}
END_TEST

START_TEST(refuses_what_is_no_stored_secret)
{
#define SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define KEY "tJ+Y1j+ovuLH2+Ej6OMvrHyBiaNyhSXf6HbKyF9zJ2E="
#define LONG_KEY "dEorWTFqK292dUxIMitFajZPTXZySHlCaWFOeWhTWGY2SGJLeUY5ekoyRT0="
	static const char *const good[] = {
		"SCRAM-SHA-256$1:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$2147483647:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$4096:Zg==$" KEY ":" KEY,
	};
	static const char *const bad[] = {
		"",
		"SCRAM-SHA-256",
		"SCRAM-SHA-256$",
		"scram-sha-256$4096:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-1$4096:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$0:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$-1:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$ 4096:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$4096x:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$2147483648:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$18446744073709551617:" SALT "$" KEY ":" KEY,
		"SCRAM-SHA-256$4096:$" KEY ":" KEY,
		"SCRAM-SHA-256$4096:Zg=$" KEY ":" KEY,
		"SCRAM-SHA-256$4096:" SALT "$" KEY,
		"SCRAM-SHA-256$4096:" SALT "$" KEY ":",
		"SCRAM-SHA-256$4096:" SALT "$" KEY ":" SALT,
		"SCRAM-SHA-256$4096:" SALT "$" SALT ":" KEY,
		"SCRAM-SHA-256$4096:" SALT "$" LONG_KEY ":" KEY,
		"SCRAM-SHA-256$4096:" SALT "$" KEY ":" KEY " ",
		"SCRAM-SHA-256$4096:" SALT "$" KEY ":" KEY ":" KEY,
		" SCRAM-SHA-256$4096:" SALT "$" KEY ":" KEY,
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(scram_is_secret(good[i]), "'%s'", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scram_secret s;
		ck_assert_msg(scram_secret_parse(bad[i], &s) == STATUS_BAD, "'%s'", bad[i]);
		ck_assert(!scram_is_secret(bad[i]));
	}

	/* a salt of 128 bytes fits, one of 129 does not */
	for (size_t n = SCRAM_SALT_MAX; n <= SCRAM_SALT_MAX + 1; n++) {
		uint8_t bytes[SCRAM_SALT_MAX + 1] = {0};
		char salt[BASE64_LEN(SCRAM_SALT_MAX + 1) + 1], text[512];
		base64_encode(bytes, n, salt);
		snprintf(text, sizeof(text), "SCRAM-SHA-256$4096:%s$" KEY ":" KEY, salt);
		ck_assert(scram_is_secret(text) == (n == SCRAM_SALT_MAX));
	}
}
END_TEST

/* ---- malformed messages of a client; texts as PostgreSQL 15 ---- */

#define MALFORMED "malformed SCRAM message"

struct refusal {
	const char *msg, *sqlstate, *message, *detail;
};

static void
assert_refused(const struct scram_server *x, enum status status, const struct refusal *want)
{
	const struct scram_error *error = scram_server_error(x);
	ck_assert_msg(status == STATUS_BAD, "'%s'", want->msg);
	ck_assert_str_eq(error->sqlstate, want->sqlstate);
	ck_assert_str_eq(error->message, want->message);
	ck_assert_str_eq(error->detail, want->detail);
}

START_TEST(refuses_a_bad_first_message)
{
	static const struct refusal cases[] = {
		{"", "08P01", MALFORMED, "The message is empty."},
		{"x", "08P01", MALFORMED, "Unexpected channel-binding flag \"'x'\"."},
		{"\x01,,n=,r=a", "08P01", MALFORMED, "Unexpected channel-binding flag \"0x01\"."},
		{"p=tls-server-end-point,,n=,r=a", "08P01", MALFORMED,
	         "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel "
	         "binding data."},
		{"n", "08P01", MALFORMED, "Comma expected, but found character \"0x00\"."},
		{"nx", "08P01", MALFORMED, "Comma expected, but found character \"'x'\"."},
		{"n,a=joe,n=,r=a", "0A000", "client uses authorization identity, but it is not supported", ""},
		{"n,x,n=,r=a", "08P01", MALFORMED, "Unexpected attribute \"'x'\" in client-first-message."},
		{"n,", "08P01", MALFORMED, "Unexpected attribute \"0x00\" in client-first-message."},
		{"n,,m=x,n=,r=a", "0A000", "client requires an unsupported SCRAM extension", ""},
		{"n,,", "08P01", MALFORMED, "Expected attribute \"n\" but found \"0x00\"."},
		{"n,,r=a", "08P01", MALFORMED, "Expected attribute \"n\" but found \"'r'\"."},
		{"n,,n", "08P01", MALFORMED, "Expected character \"=\" for attribute \"n\"."},
		{"n,,n=joe", "08P01", MALFORMED, "Expected attribute \"r\" but found \"0x00\"."},
		{"n,,n=,r", "08P01", MALFORMED, "Expected character \"=\" for attribute \"r\"."},
		{"n,,n=,r=a b", "08P01", "non-printable characters in SCRAM nonce", ""},
		{"n,,n=,r=\xc3\xa9", "08P01", "non-printable characters in SCRAM nonce", ""},
		{"n,,n=,r=a,1=x", "08P01", MALFORMED, "Attribute expected, but found invalid character \"'1'\"."},
		{"n,,n=,r=a,x", "08P01", MALFORMED, "Expected character \"=\" for attribute \"x\"."},
	};
	struct scram_secret secret;
	scram_secret_mock("u", 10, &secret);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_server *x = scram_server_new(&secret);
		struct buf out;
		buf_init(&out);
		assert_refused(x, scram_server_first(x, TEXT(cases[i].msg), &out), &cases[i]);
		ck_assert_uint_eq(out.len, 0);
		/* and that is the end of it */
		ck_assert_int_eq(scram_server_first(x, TEXT("n,,n=,r=a"), &out), STATUS_BAD);
		scram_server_free(&x);
		buf_fini(&out);
	}
	struct scram_server *x = scram_server_new(&secret);
	struct buf out;
	buf_init(&out);
	static const struct refusal zero = {"n,,n=,r=a\\0", "08P01", MALFORMED,
	                                    "Message length does not match input length."};
	assert_refused(x, scram_server_first(x, (const uint8_t *)"n,,n=,r=a", 10, &out), &zero);
	scram_server_free(&x);
}
END_TEST

START_TEST(takes_every_good_first_message)
{
	static const struct {
		const char *msg, *nonce;
	} cases[] = {
		{"n,,n=,r=abc", "abc"}, {"y,,n=,r=abc", "abc"},        {"n,,n=joe=2C,r=!~", "!~"},
		{"n,,n=,r=", ""},       {"n,,n=,r=abc,x=1,y=", "abc"}, {"n,,n=,r=abc,", "abc"},
	};
	struct scram_secret secret;
	scram_secret_mock("u", 10, &secret);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_server *x = scram_server_new(&secret);
		struct buf out;
		char want[64];
		buf_init(&out);
		scram_server_set_nonce(x, "SERVER");
		ck_assert_int_eq(scram_server_first(x, TEXT(cases[i].msg), &out), STATUS_OK);
		int n = snprintf(want, sizeof(want), "r=%sSERVER,s=", cases[i].nonce);
		ck_assert_mem_eq(buf_head(&out), want, (size_t)n);
		scram_server_free(&x);
		buf_fini(&out);
	}
}
END_TEST

START_TEST(asks_again_without_an_initial_response)
{
	uint8_t client_key[SCRAM_KEY_LEN];
	struct scram_secret secret = rfc_secret(client_key);
	struct scram_server *x = scram_server_new(&secret);
	struct buf out;
	buf_init(&out);
	ck_assert_int_eq(scram_server_first(x, NULL, 0, &out), STATUS_MORE);
	ck_assert_uint_eq(out.len, 0);
	ck_assert_int_eq(scram_server_first(x, TEXT("n,,n=,r=a"), &out), STATUS_OK);
	scram_server_free(&x);
	buf_fini(&out);
}
END_TEST

START_TEST(bounds_the_nonce)
{
	struct scram_secret secret;
	scram_secret_mock("u", 10, &secret);
	for (size_t n = SCRAM_NONCE_MAX - SCRAM_OWN_NONCE_LEN; n <= SCRAM_NONCE_MAX - SCRAM_OWN_NONCE_LEN + 1; n++) {
		struct scram_server *x = scram_server_new(&secret);
		char msg[512] = "n,,n=,r=";
		struct buf out;
		buf_init(&out);
		memset(msg + 8, 'a', n);
		enum status status = scram_server_first(x, TEXT(msg), &out);
		ck_assert_int_eq(status, n + SCRAM_OWN_NONCE_LEN <= SCRAM_NONCE_MAX ? STATUS_OK : STATUS_BAD);
		if (status == STATUS_OK)
			ck_assert_mem_eq(buf_head(&out) + 2 + n + SCRAM_OWN_NONCE_LEN, ",s=", 3);
		scram_server_free(&x);
		buf_fini(&out);
	}
}
END_TEST

START_TEST(refuses_a_bad_final_message)
{
#define PROOF "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	static const struct refusal cases[] = {
		{"", "08P01", MALFORMED, "The message is empty."},
		{"r=cs,p=" PROOF, "08P01", MALFORMED, "Expected attribute \"c\" but found \"'r'\"."},
		{"c=eSws,r=cs,p=" PROOF, "08P01", "unexpected SCRAM channel-binding attribute in client-final-message",
	         ""},
		{"c=,r=cs,p=" PROOF, "08P01", "unexpected SCRAM channel-binding attribute in client-final-message", ""},
		{"c=biws,p=" PROOF, "08P01", MALFORMED, "Expected attribute \"r\" but found \"'p'\"."},
		{"c=biws,r=cs", "08P01", MALFORMED, "Attribute expected, but found end of string."},
		{"c=biws,r=cs,", "08P01", MALFORMED, "Attribute expected, but found end of string."},
		{"c=biws,r=cs,x=1", "08P01", MALFORMED, "Attribute expected, but found end of string."},
		{"c=biws,r=cs,p", "08P01", MALFORMED, "Expected character \"=\" for attribute \"p\"."},
		{"c=biws,r=cs,p=", "08P01", MALFORMED, "Malformed proof in client-final-message."},
		{"c=biws,r=cs,p=Zg==", "08P01", MALFORMED, "Malformed proof in client-final-message."},
		{"c=biws,r=cs,p=" PROOF "AAAA", "08P01", MALFORMED, "Malformed proof in client-final-message."},
		{"c=biws,r=cs,p=" PROOF ",x=1", "08P01", MALFORMED,
	         "Garbage found at the end of client-final-message."},
		{"c=biws,r=c,p=" PROOF, "08P01", "invalid SCRAM response", "Nonce does not match."},
		{"c=biws,r=csx,p=" PROOF, "08P01", "invalid SCRAM response", "Nonce does not match."},
		{"c=biws,r=,p=" PROOF, "08P01", "invalid SCRAM response", "Nonce does not match."},
	};
	struct scram_secret secret;
	scram_secret_mock("u", 10, &secret);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_server *x = scram_server_new(&secret);
		struct buf out;
		buf_init(&out);
		scram_server_set_nonce(x, "s");
		ck_assert_int_eq(scram_server_first(x, TEXT("n,,n=,r=c"), &out), STATUS_OK);
		buf_reset(&out);
		assert_refused(x, scram_server_final(x, TEXT(cases[i].msg), &out), &cases[i]);
		ck_assert_uint_eq(out.len, 0);
		scram_server_free(&x);
		buf_fini(&out);
	}
}
END_TEST

/* Unknown attributes count in the proof; the flag 'y' must come back as it went. */
START_TEST(proves_over_the_whole_exchange)
{
	uint8_t client_key[SCRAM_KEY_LEN], proof[SCRAM_KEY_LEN];
	struct scram_secret secret = rfc_secret(client_key);
	static const struct {
		const char *first, *bare, *without_proof;
	} cases[] = {
		{"n,,n=,r=c", "n=,r=c", "c=biws,r=cs"},
		{"n,,n=u,r=c,x=1", "n=u,r=c,x=1", "c=biws,r=cs,y=2,z="},
		{"y,,n=,r=c", "n=,r=c", "c=eSws,r=cs"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int wrong = 0; wrong < 2; wrong++) {
			struct scram_server *x = scram_server_new(&secret);
			struct buf out, auth;
			char text[SCRAM_KEY_TEXT_LEN + 1];
			buf_init(&out);
			buf_init(&auth);
			scram_server_set_nonce(x, "s");
			ck_assert_int_eq(scram_server_first(x, TEXT(cases[i].first), &out), STATUS_OK);
			buf_printf(&auth, "%s,%.*s,%s", cases[i].bare, (int)out.len, (const char *)buf_head(&out),
			           cases[i].without_proof);
			ck_assert(scram_hmac(secret.stored_key, buf_head(&auth), auth.len, proof));
			for (size_t k = 0; k < SCRAM_KEY_LEN; k++)
				proof[k] ^= client_key[k];
			proof[31] ^= (uint8_t)wrong;
			base64_encode(proof, sizeof(proof), text);
			buf_reset(&auth);
			buf_reset(&out);
			buf_printf(&auth, "%s,p=%s", cases[i].without_proof, text);
			ck_assert_int_eq(scram_server_final(x, buf_head(&auth), auth.len, &out),
			                 wrong ? STATUS_REFUSED : STATUS_OK);
			ck_assert(wrong == (out.len == 0));
			scram_server_free(&x);
			buf_fini(&out);
			buf_fini(&auth);
		}
	}
}
END_TEST

START_TEST(keeps_the_order_of_messages)
{
	struct scram_secret secret;
	struct buf out;
	buf_init(&out);
	scram_secret_mock("u", 10, &secret);
	struct scram_server *x = scram_server_new(&secret);
	ck_assert_int_eq(scram_server_final(x, TEXT(RFC_CLIENT_FINAL), &out), STATUS_BAD);
	scram_server_free(&x);
	x = scram_server_new(&secret);
	ck_assert_int_eq(scram_server_first(x, TEXT(RFC_CLIENT_FIRST), &out), STATUS_OK);
	ck_assert_int_eq(scram_server_first(x, TEXT(RFC_CLIENT_FIRST), &out), STATUS_BAD);
	scram_server_free(&x);

	struct scram_client *c = scram_client_new("pencil");
	ck_assert_int_eq(scram_client_final(c, TEXT(RFC_SERVER_FIRST), &out), STATUS_BAD);
	ck_assert_int_eq(scram_client_verify(c, TEXT(RFC_SERVER_FINAL)), STATUS_BAD);
	scram_client_set_nonce(c, RFC_CLIENT_NONCE);
	ck_assert_int_eq(scram_client_first(c, &out), STATUS_OK);
	ck_assert_int_eq(scram_client_verify(c, TEXT(RFC_SERVER_FINAL)), STATUS_BAD);
	ck_assert_int_eq(scram_client_final(c, TEXT(RFC_SERVER_FIRST), &out), STATUS_OK);
	ck_assert_int_eq(scram_client_final(c, TEXT(RFC_SERVER_FIRST), &out), STATUS_BAD);
	scram_client_free(&c);
	buf_fini(&out);
}
END_TEST

/* ---- a server that is not what it should be ---- */

START_TEST(client_refuses_a_bad_challenge)
{
	static const char *const bad[] = {
		"",
		"r",
		"r=",
		"e=other-error",
		"s=Zm9v,i=10",
		"r=nonce,s=Zm9v,i=10", /* nothing of the server's */
		"r=nonc,s=Zm9v,i=10",
		"r=Nonce1,s=Zm9v,i=10", /* not ours */
		"r=1nonce,s=Zm9v,i=10",
		"r=nonce1\x7f,s=Zm9v,i=10",
		"r=nonce1",
		"r=nonce1,i=10,s=Zm9v",
		"r=nonce1,s=,i=10",
		"r=nonce1,s=Zm9,i=10",
		"r=nonce1,s=Zm9v",
		"r=nonce1,s=Zm9v,i",
		"r=nonce1,s=Zm9v,i=",
		"r=nonce1,s=Zm9v,i=0",
		"r=nonce1,s=Zm9v,i=-1",
		"r=nonce1,s=Zm9v,i=1x",
		"r=nonce1,s=Zm9v,i=1000001",
		"r=nonce1,s=Zm9v,i=4294967297",
		"r=nonce1,s=Zm9v,i=10,x=1",
		"m=x,r=nonce1,s=Zm9v,i=10",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct scram_client *c = scram_client_new("x");
		struct buf out;
		buf_init(&out);
		scram_client_set_nonce(c, "nonce");
		ck_assert_int_eq(scram_client_first(c, &out), STATUS_OK);
		assert_buf(&out, "n,,n=,r=nonce");
		ck_assert_msg(scram_client_final(c, TEXT(bad[i]), &out) == STATUS_BAD, "'%s'", bad[i]);
		ck_assert_uint_eq(out.len, 0);
		scram_client_free(&c);
		buf_fini(&out);
	}
}
END_TEST

START_TEST(client_bounds_nonce_and_salt)
{
	static const struct {
		size_t nonce, salt;
		enum status status;
	} cases[] = {
		{SCRAM_NONCE_MAX, 1, STATUS_OK}, {SCRAM_NONCE_MAX + 1, 1, STATUS_BAD}, {100000, 1, STATUS_BAD},
		{10, SCRAM_SALT_MAX, STATUS_OK}, {10, SCRAM_SALT_MAX + 1, STATUS_BAD}, {10, 60000, STATUS_BAD},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_client *c = scram_client_new("x");
		char *nonce = malloc(cases[i].nonce + 1), *salt = malloc(BASE64_LEN(cases[i].salt) + 1);
		uint8_t *bytes = calloc(1, cases[i].salt);
		struct buf out, msg;
		buf_init(&out);
		buf_init(&msg);
		memset(nonce, 'n', cases[i].nonce);
		nonce[cases[i].nonce] = 0;
		base64_encode(bytes, cases[i].salt, salt);
		buf_printf(&msg, "r=%s,s=%s,i=1", nonce, salt);
		scram_client_set_nonce(c, "nnn");
		ck_assert_int_eq(scram_client_first(c, &out), STATUS_OK);
		ck_assert_int_eq(scram_client_final(c, buf_head(&msg), msg.len, &out), cases[i].status);
		scram_client_free(&c);
		buf_fini(&out);
		buf_fini(&msg);
		free(nonce);
		free(salt);
		free(bytes);
	}
}
END_TEST

START_TEST(client_refuses_a_bad_verdict)
{
	static const struct {
		const char *msg;
		enum status status;
	} cases[] = {
		{RFC_SERVER_FINAL, STATUS_OK},
		{"e=invalid-proof", STATUS_REFUSED},
		{"e=", STATUS_REFUSED},
		{"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", STATUS_REFUSED},
		{"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==", STATUS_REFUSED}, /* one byte short */
		{"v=", STATUS_REFUSED},
		{"v=x", STATUS_BAD},
		{"v=" LONG_KEY, STATUS_BAD},
		{RFC_SERVER_FINAL ",x=1", STATUS_BAD},
		{"x=1", STATUS_BAD},
		{"", STATUS_BAD},
		{"v", STATUS_BAD},
	};
	uint8_t client_key[SCRAM_KEY_LEN];
	struct scram_secret secret = rfc_secret(client_key);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scram_client *c = scram_client_new_keys(client_key, secret.server_key);
		struct buf out;
		buf_init(&out);
		scram_client_set_nonce(c, RFC_CLIENT_NONCE);
		scram_client_set_user(c, "user");
		ck_assert_int_eq(scram_client_first(c, &out), STATUS_OK);
		ck_assert_int_eq(scram_client_final(c, TEXT(RFC_SERVER_FIRST), &out), STATUS_OK);
		ck_assert_msg(scram_client_verify(c, TEXT(cases[i].msg)) == cases[i].status, "'%s'", cases[i].msg);
		scram_client_free(&c);
		buf_fini(&out);
	}
}
END_TEST

START_TEST(makes_a_fresh_nonce_each_time)
{
	struct buf a, b;
	buf_init(&a);
	buf_init(&b);
	struct scram_client *x = scram_client_new("p"), *y = scram_client_new("p");
	ck_assert_int_eq(scram_client_first(x, &a), STATUS_OK);
	ck_assert_int_eq(scram_client_first(y, &b), STATUS_OK);
	ck_assert_uint_eq(a.len, strlen("n,,n=,r=") + SCRAM_OWN_NONCE_LEN);
	ck_assert_uint_eq(a.len, b.len);
	ck_assert_mem_ne(buf_head(&a), buf_head(&b), a.len);
	scram_client_free(&x);
	scram_client_free(&y);
	buf_fini(&a);
	buf_fini(&b);
}
END_TEST

UNIT_MAIN("scram", plays_the_server_of_the_rfc, plays_the_client_of_the_rfc, plays_the_client_with_keys_alone,
          lets_the_right_password_in, passes_a_login_through, mocks_a_secret_for_an_unknown_user,
          parses_a_stored_secret, refuses_what_is_no_stored_secret, refuses_a_bad_first_message,
          takes_every_good_first_message, asks_again_without_an_initial_response, bounds_the_nonce,
          refuses_a_bad_final_message, proves_over_the_whole_exchange, keeps_the_order_of_messages,
          client_refuses_a_bad_challenge, client_bounds_nonce_and_salt, client_refuses_a_bad_verdict,
          makes_a_fresh_nonce_each_time)
