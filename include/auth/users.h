/* SPDX-License-Identifier: ISC */
/*
 * The auth file in pgbouncer's userlist.txt format: "user" "secret" a line, secret
 * plain, md5... or SCRAM-SHA-256$...; what follows them on the line is ignored; `;`
 * comments; "" inside quotes is a quote. An immutable table, shared by all threads
 * after loading. SCRAM keys derived from plain passwords are computed on first use
 * and kept (own lock).
 */
#ifndef PGWEIR_AUTH_USERS_H
#define PGWEIR_AUTH_USERS_H

#include "auth/scram.h"
#include "base/secret.h"
#include "base/status.h"

#define USERS_NAME_MAX 127    /* bytes, as pgbouncer */
#define USERS_SECRET_MAX 2047 /* bytes, as pgbouncer */

struct users;

struct auth_user {
	const char *name;
	struct secret secret; /* as in the file; text "" is a user that has no password and can't log in by one */
};

struct users *users_new(void); /* NULL: no memory */
void users_free(struct users **u);
/*
 * Adds all of a file. On an error: STATUS_BAD (or _CLOSED: can't be read, errno; or _NO_MEM), message with file:line in
 * why; what stood before it may have been added.
 */
enum status users_load_file(struct users *u, const char *path, char *why, size_t why_cap) must_check;
enum status users_load_text(struct users *u, const char *text, size_t n, const char *path, char *why,
                            size_t why_cap) must_check;
/* A later one of the same name wins, and ends what users_find() answered before. STATUS_TOO_BIG: over the limits above. */
enum status users_add(struct users *u, const char *name, const char *secret) must_check;
const struct auth_user *users_find(const struct users *u, const char *name); /* NULL: none */
size_t users_n(const struct users *u);
const struct auth_user *users_next(const struct users *u, const struct auth_user *after); /* NULL begins, NULL ends */

/*
 * The SCRAM secret to authenticate `name` with: parsed, or derived once with `iterations` from a plain password and
 * cached; for an unknown user, an empty or an md5 secret a mock one (same cost), *is_mock = true.
 */
enum status users_scram_secret(struct users *u, const char *name, uint32_t iterations, struct scram_secret *out,
                               bool *is_mock) must_check;

/*
 * Checks a cleartext password against any kind of secret. Every wrong one, and every unknown user (user == NULL), costs
 * about one SCRAM derivation, so that the time tells nothing.
 */
bool users_check_password(const struct auth_user *user, const char *name, const char *password);
/* Checks an md5 response; user NULL or a SCRAM secret: false at the same cost. */
bool users_check_md5(const struct auth_user *user, const char *name, const uint8_t salt[4], const char *response);

#endif
