/* SPDX-License-Identifier: ISC */
#include "auth/users.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/base64.h"
#include "auth/md5.h"

#include "unit.h"

static struct users *
load(const char *text)
{
	char why[256] = "";
	struct users *u = users_new();
	enum status status = users_load_text(u, text, strlen(text), "users.txt", why, sizeof(why));
	ck_assert_msg(status == STATUS_OK, "%s", why);
	return u;
}

static void
assert_secret(const struct users *u, const char *name, const char *secret)
{
	const struct auth_user *user = users_find(u, name);
	ck_assert_msg(user != NULL, "no user '%s'", name);
	ck_assert_str_eq(user->name, name);
	ck_assert_str_eq(user->secret.text, secret);
}

/* What pgbouncer reads from the same bytes. */
START_TEST(reads_the_format)
{
	struct users *u = load("; a comment\n"
	                       "\"joe\" \"secret\"\n"
	                       "\n"
	                       "  \t ;\"not\" \"this\"\n"
	                       "\"ann\"\t\"pass word\" \"old\" trailing\n"
	                       " \"indented\" \"x\"\r\n"
	                       "\"quo\"\"te\" \"\"\"a\"\"b\"\"\"\n"
	                       "\"empty\" \"\"\n"
	                       "\"near\"\"\" \"x\"\n"
	                       "\"close\"\"by\"\"x\" \"y\"\n"
	                       "\"j\xc3\xb6rg\" \"p\xc3\xa4ss%s;=\"\n"
	                       "\"skips\" as md5: \"z\"\n"
	                       "\"last\" \"no newline\"");
	ck_assert_uint_eq(users_n(u), 10);
	assert_secret(u, "joe", "secret");
	assert_secret(u, "ann", "pass word");
	assert_secret(u, "indented", "x");
	assert_secret(u, "quo\"te", "\"a\"b\"");
	assert_secret(u, "empty", "");
	assert_secret(u, "near\"", "x");
	assert_secret(u, "close\"by\"x", "y");
	assert_secret(u, "j\xc3\xb6rg", "p\xc3\xa4ss%s;=");
	assert_secret(u, "skips", "z");
	assert_secret(u, "last", "no newline");
	ck_assert_ptr_null(users_find(u, "not"));
	ck_assert_ptr_null(users_find(u, "Joe"));
	users_free(&u);
	ck_assert_ptr_null(u);
	users_free(&u);
}
END_TEST

START_TEST(takes_the_later_of_two)
{
	struct users *u = load("\"joe\" \"one\"\n\"joe\" \"two\"\n");
	ck_assert_uint_eq(users_n(u), 1);
	assert_secret(u, "joe", "two");
	ck_assert_int_eq(users_add(u, "joe", "three"), STATUS_OK);
	ck_assert_uint_eq(users_n(u), 1);
	assert_secret(u, "joe", "three");
	users_free(&u);
}
END_TEST

START_TEST(names_the_line_of_an_error)
{
#define START ": a line starts with a user name in double quotes, or with a semicolon"
#define MISSING ": behind the user name a secret in double quotes is missing"
#define UNCLOSED ": the closing double quote is missing"
	static const struct {
		const char *text;
		size_t n;
		const char *why;
	} cases[] = {
#define CASE(text) text, sizeof(text) - 1
		{CASE("joe secret\n"), "f:1" START},
		{CASE("\"a\" \"b\"\n\n# \"joe\" \"secret\"\n"), "f:3" START},
		{CASE("'joe' 'secret'"), "f:1" START},
		{CASE("\"joe\"\n\"ann\" \"x\"\n"), "f:1" MISSING},
		{CASE("\"joe\" secret\n\"ann\" \"x\"\n"), "f:1" MISSING},
		{CASE("\"joe\"\"ann\"\n"), "f:1" MISSING},
		{CASE("\"joe"), "f:1" UNCLOSED},
		{CASE(";\n\"joe\n\" \"x\"\n"), "f:2" UNCLOSED},
		{CASE("\"joe\" \"secret\n\"ann\" \"x\"\n"), "f:1" UNCLOSED},
		{CASE("\"joe\" \"secret\"\"\n"), "f:1" UNCLOSED},
		{CASE("\"joe\" \"\"\""), "f:1" UNCLOSED},
		{CASE("\""), "f:1" UNCLOSED},
		{CASE("\"jo\0e\" \"x\"\n"), "f:1: a zero byte in a string"},
		{CASE("\"joe\" \"x\0\"\n"), "f:1: a zero byte in a string"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char why[256] = "";
		struct users *u = users_new();
		char *copy = malloc(cases[i].n); /* exact size, for AddressSanitizer */
		memcpy(copy, cases[i].text, cases[i].n);
		ck_assert_msg(users_load_text(u, copy, cases[i].n, "f", why, sizeof(why)) == STATUS_BAD, "case %zu", i);
		ck_assert_str_eq(why, cases[i].why);
		users_free(&u);
		free(copy);
	}
}
END_TEST

START_TEST(bounds_names_and_secrets)
{
	static const struct {
		int name, secret;
		enum status status;
	} cases[] = {
		{USERS_NAME_MAX, USERS_SECRET_MAX, STATUS_OK},
		{USERS_NAME_MAX + 1, 1, STATUS_BAD},
		{1, USERS_SECRET_MAX + 1, STATUS_BAD},
		{5000, 5000, STATUS_BAD},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[12000], why[256];
		int n = snprintf(text, sizeof(text), "\"%0*d\" \"%0*d\"\n", cases[i].name, 0, cases[i].secret, 0);
		struct users *u = users_new();
		ck_assert_int_eq(users_load_text(u, text, (size_t)n, "f", why, sizeof(why)), cases[i].status);
		if (cases[i].status != STATUS_OK)
			ck_assert_str_eq(why, "f:1: too long: a user name has at most 127 bytes, a secret 2047");
		/* without a file */
		text[1 + cases[i].name] = 0;
		text[n - 2] = 0;
		ck_assert_int_eq(users_add(u, text + 1, text + cases[i].name + 4),
		                 cases[i].status == STATUS_OK ? STATUS_OK : STATUS_TOO_BIG);
		users_free(&u);
	}
}
END_TEST

START_TEST(reads_a_file)
{
	char path[] = "/tmp/pgweir-users-XXXXXX", why[256] = "";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	/* long enough to need more than one read of a pipe's buffer */
	FILE *f = fdopen(fd, "w");
	for (int i = 0; i < 3000; i++)
		fprintf(f, "\"user%d\" \"secret%d\"\n", i, i);
	fclose(f);

	struct users *u = users_new();
	ck_assert_int_eq(users_load_file(u, path, why, sizeof(why)), STATUS_OK);
	ck_assert_uint_eq(users_n(u), 3000);
	assert_secret(u, "user2999", "secret2999");
	users_free(&u);

	f = fopen(path, "w");
	fprintf(f, "\"a\" \"b\"\nbroken\n");
	fclose(f);
	u = users_new();
	ck_assert_int_eq(users_load_file(u, path, why, sizeof(why)), STATUS_BAD);
	ck_assert_ptr_nonnull(strstr(why, ":2: a line starts with"));
	ck_assert_ptr_nonnull(strstr(why, path));
	users_free(&u);
	unlink(path);

	u = users_new();
	ck_assert_int_eq(users_load_file(u, path, why, sizeof(why)), STATUS_CLOSED);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_ptr_nonnull(strstr(why, ": No such file or directory"));
	ck_assert_int_eq(users_load_file(u, "/tmp", why, sizeof(why)), STATUS_CLOSED);
	ck_assert_str_eq(why, "/tmp: Is a directory");
	ck_assert_int_eq(users_load_file(u, "/dev/null", why, sizeof(why)), STATUS_OK);
	ck_assert_uint_eq(users_n(u), 0);
	users_free(&u);
}
END_TEST

/* A file without a size before it is read. */
START_TEST(reads_a_pipe)
{
	char path[64], why[256];
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		FILE *f = fdopen(fds[1], "w");
		for (int i = 0; i < 20000; i++)
			fprintf(f, "\"user%d\" \"secret%d\"\n", i, i);
		_exit(fclose(f));
	}
	close(fds[1]);
	struct users *u = users_new();
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	ck_assert_int_eq(users_load_file(u, path, why, sizeof(why)), STATUS_OK);
	ck_assert_uint_eq(users_n(u), 20000);
	assert_secret(u, "user19999", "secret19999");
	users_free(&u);
	close(fds[0]);
	int result;
	ck_assert_int_eq(waitpid(pid, &result, 0), pid);
	ck_assert_int_eq(result, 0);
}
END_TEST

/* ---- checks ---- */

struct kinds {
	struct users *users;
	char md5[MD5_SECRET_LEN + 1];
	char scram[256];
};

/* One user of each kind; the password of all is "secret". */
static void
make_kinds(struct kinds *k)
{
	struct scram_secret s;
	char salt[64], stored[64], server[64];
	k->users = users_new();
	ck_assert(md5_secret("secret", "md5user", k->md5));
	ck_assert_int_eq(scram_secret_derive("secret", 10, &s), STATUS_OK);
	base64_encode(s.salt, s.salt_len, salt);
	base64_encode(s.stored_key, SCRAM_KEY_LEN, stored);
	base64_encode(s.server_key, SCRAM_KEY_LEN, server);
	snprintf(k->scram, sizeof(k->scram), "SCRAM-SHA-256$10:%s$%s:%s", salt, stored, server);
	ck_assert_int_eq(users_add(k->users, "plain", "secret"), STATUS_OK);
	ck_assert_int_eq(users_add(k->users, "md5user", k->md5), STATUS_OK);
	ck_assert_int_eq(users_add(k->users, "scram", k->scram), STATUS_OK);
	ck_assert_int_eq(users_add(k->users, "none", ""), STATUS_OK);
}

START_TEST(checks_passwords)
{
	static const struct {
		const char *name, *password;
		bool right;
	} cases[] = {
		{"plain", "secret", true}, {"plain", "secre", false},   {"plain", "secret2", false},
		{"plain", "", false},      {"plain", "SECRET", false},  {"md5user", "secret", true},
		{"md5user", "x", false},   {"md5user", "", false},      {"scram", "secret", true},
		{"scram", "x", false},     {"scram", "", false},        {"none", "", false},
		{"none", "secret", false}, {"nobody", "secret", false}, {"nobody", "", false},
	};
	struct kinds k;
	make_kinds(&k);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct auth_user *user = users_find(k.users, cases[i].name);
		ck_assert_msg(users_check_password(user, cases[i].name, cases[i].password) == cases[i].right,
		              "case %zu", i);
	}
	/* the stored text is not a password */
	ck_assert(!users_check_password(users_find(k.users, "md5user"), "md5user", k.md5));
	ck_assert(!users_check_password(users_find(k.users, "scram"), "scram", k.scram));
	users_free(&k.users);
}
END_TEST

START_TEST(checks_md5_responses)
{
	static const uint8_t salt[4] = {1, 2, 3, 4}, other_salt[4] = {1, 2, 3, 5};
	static const struct {
		const char *name, *password;
		bool right;
	} cases[] = {
		{"plain", "secret", true},  {"plain", "x", false}, {"md5user", "secret", true}, {"md5user", "x", false},
		{"scram", "secret", false}, {"none", "", false},   {"nobody", "secret", false}, {"nobody", "", false},
	};
	struct kinds k;
	make_kinds(&k);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char secret[MD5_SECRET_LEN + 1], response[MD5_SECRET_LEN + 1];
		const struct auth_user *user = users_find(k.users, cases[i].name);
		ck_assert(md5_secret(cases[i].password, cases[i].name, secret));
		ck_assert(md5_response(secret, salt, response));
		ck_assert_msg(users_check_md5(user, cases[i].name, salt, response) == cases[i].right, "case %zu", i);
		ck_assert(!users_check_md5(user, cases[i].name, other_salt, response));
		ck_assert(!users_check_md5(user, cases[i].name, salt, ""));
		ck_assert(!users_check_md5(user, cases[i].name, salt, secret));
		response[10] ^= 1;
		ck_assert(!users_check_md5(user, cases[i].name, salt, response));
	}
	/* a SCRAM secret hashed as if it were a password would be a way in for who stole it */
	char secret[MD5_SECRET_LEN + 1], response[MD5_SECRET_LEN + 1];
	ck_assert(md5_secret(k.scram, "scram", secret));
	ck_assert(md5_response(secret, salt, response));
	ck_assert(!users_check_md5(users_find(k.users, "scram"), "scram", salt, response));
	users_free(&k.users);
}
END_TEST

START_TEST(gives_scram_secrets)
{
	struct scram_secret s, again, other;
	bool is_mock;
	struct kinds k;
	make_kinds(&k);

	ck_assert_int_eq(users_scram_secret(k.users, "scram", 4096, &s, &is_mock), STATUS_OK);
	ck_assert(!is_mock);
	ck_assert_uint_eq(s.iterations, 10); /* its own */
	ck_assert(scram_secret_check(&s, "secret"));

	ck_assert_int_eq(users_scram_secret(k.users, "plain", 20, &s, &is_mock), STATUS_OK);
	ck_assert(!is_mock);
	ck_assert_uint_eq(s.iterations, 20);
	ck_assert(scram_secret_check(&s, "secret"));
	ck_assert_int_eq(users_scram_secret(k.users, "plain", 20, &again, &is_mock), STATUS_OK);
	ck_assert_mem_eq(s.salt, again.salt, 16); /* kept, salt and all */
	ck_assert_int_eq(users_scram_secret(k.users, "plain", 30, &other, &is_mock), STATUS_OK);
	ck_assert_uint_eq(other.iterations, 30);
	ck_assert(scram_secret_check(&other, "secret"));

	static const char *const mocked[] = {"md5user", "none", "nobody"};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(users_scram_secret(k.users, mocked[i], 20, &s, &is_mock), STATUS_OK);
		ck_assert(is_mock);
		ck_assert_uint_eq(s.iterations, 20);
		ck_assert_uint_eq(s.salt_len, 16);
		ck_assert_int_eq(users_scram_secret(k.users, mocked[i], 20, &again, &is_mock), STATUS_OK);
		ck_assert_mem_eq(s.salt, again.salt, 16); /* as stable as that of a user who is there */
		ck_assert(!scram_secret_check(&s, "secret"));
	}
	users_free(&k.users);
}
END_TEST

struct race {
	struct users *users;
	struct scram_secret got;
};

static void *
ask_for_secret(void *arg)
{
	struct race *r = arg;
	bool is_mock;
	enum status status = users_scram_secret(r->users, "plain", 20, &r->got, &is_mock);
	return status == STATUS_OK && !is_mock ? r : NULL;
}

/* However they interleave, all threads get the one secret that is kept. */
START_TEST(derives_one_secret_for_all_threads)
{
	struct kinds k;
	make_kinds(&k);
	for (int round = 0; round < 20; round++) {
		enum { N = 4 };
		struct race races[N] = {0};
		pthread_t threads[N];
		ck_assert_int_eq(users_add(k.users, "plain", "secret"), STATUS_OK); /* forgets what was derived */
		for (int i = 0; i < N; i++) {
			races[i].users = k.users;
			ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_for_secret, &races[i]), 0);
		}
		for (int i = 0; i < N; i++) {
			void *result;
			ck_assert_int_eq(pthread_join(threads[i], &result), 0);
			ck_assert_ptr_eq(result, &races[i]);
			ck_assert_mem_eq(&races[i].got.salt, &races[0].got.salt, 16);
			ck_assert_mem_eq(races[i].got.stored_key, races[0].got.stored_key, SCRAM_KEY_LEN);
		}
	}
	users_free(&k.users);
}
END_TEST

UNIT_MAIN("users", reads_the_format, takes_the_later_of_two, names_the_line_of_an_error, bounds_names_and_secrets,
          reads_a_file, reads_a_pipe, checks_passwords, checks_md5_responses, gives_scram_secrets,
          derives_one_secret_for_all_threads)
