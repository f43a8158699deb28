/* SPDX-License-Identifier: ISC */
#include "auth/users.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "auth/md5.h"
#include "base/hash.h"
#include "base/obj.h"
#include "base/str.h"

enum secret_kind { SECRET_NONE, SECRET_PLAIN, SECRET_MD5, SECRET_SCRAM };

struct entry {
	struct auth_user user;
	char *name; /* what user.name points to */
	enum secret_kind kind;
	struct {
		struct scram_secret *derived; /* of a plain password; NULL: not yet asked for */
	} shared;                             /* under users.lock */
	UT_hash_handle hh;
};

struct users {
	struct entry *by_name;
	pthread_mutex_t lock;
};

static enum secret_kind
secret_kind(const char *text)
{
	if (text[0] == 0)
		return SECRET_NONE;
	if (md5_is_secret(text))
		return SECRET_MD5;
	return scram_is_secret(text) ? SECRET_SCRAM : SECRET_PLAIN;
}

/* ---- the table ---- */

static void
entry_free(struct entry *e)
{
	if (e->shared.derived != NULL)
		secret_wipe_bytes(e->shared.derived, sizeof(*e->shared.derived));
	free(e->shared.derived);
	secret_fini(&e->user.secret);
	free(e->name);
	free(e);
}

struct users *
users_new(void)
{
	struct users *u = calloc(1, sizeof(*u));
	if (u != NULL)
		pthread_mutex_init(&u->lock, NULL);
	return u;
}

void
users_free(struct users **u)
{
	struct entry *e, *next;
	if (*u == NULL)
		return;
	HASH_ITER (hh, (*u)->by_name, e, next) {
		HASH_DEL((*u)->by_name, e);
		entry_free(e);
	}
	pthread_mutex_destroy(&(*u)->lock);
	free(*u);
	*u = NULL;
}

static struct entry *
entry_find(const struct users *u, const char *name)
{
	struct entry *e;
	HASH_FIND_STR(u->by_name, name, e);
	return e;
}

static struct entry *
entry_new(const char *name, const char *secret)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->name = str_dup(name);
	if (e->name == NULL || !secret_set(&e->user.secret, secret, strlen(secret))) {
		entry_free(e);
		return NULL;
	}
	e->user.name = e->name;
	e->kind = secret_kind(secret);
	return e;
}

enum status
users_add(struct users *u, const char *name, const char *secret)
{
	if (strlen(name) > USERS_NAME_MAX || strlen(secret) > USERS_SECRET_MAX)
		return STATUS_TOO_BIG;
	struct entry *e = entry_new(name, secret);
	if (e == NULL)
		return STATUS_NO_MEM;
	struct entry *old = entry_find(u, name);
	if (old != NULL) {
		HASH_DEL(u->by_name, old);
		entry_free(old);
	}
	HASH_ADD_KEYPTR(hh, u->by_name, e->name, strlen(e->name), e);
	if (e->hh.tbl == NULL) {
		entry_free(e);
		return STATUS_NO_MEM;
	}
	return STATUS_OK;
}

const struct auth_user *
users_find(const struct users *u, const char *name)
{
	const struct entry *e = entry_find(u, name);
	return e == NULL ? NULL : &e->user;
}

size_t
users_n(const struct users *u)
{
	return HASH_COUNT(u->by_name);
}

const struct auth_user *
users_next(const struct users *u, const struct auth_user *after)
{
	const struct entry *e = after == NULL ? u->by_name : container_of(after, struct entry, user)->hh.next;
	return e == NULL ? NULL : &e->user;
}

/* ---- checks ---- */

/* The derivation runs without the lock; when two threads do the same at once, the first result counts for both. */
static enum status
derive_once(struct users *u, struct entry *e, uint32_t iterations, struct scram_secret *out)
{
	pthread_mutex_lock(&u->lock);
	const struct scram_secret *kept = e->shared.derived;
	bool hit = kept != NULL && kept->iterations == iterations;
	if (hit)
		*out = *kept;
	pthread_mutex_unlock(&u->lock);
	if (hit)
		return STATUS_OK;

	enum status status = scram_secret_derive(e->user.secret.text, iterations, out);
	if (status != STATUS_OK)
		return status;
	pthread_mutex_lock(&u->lock);
	if (e->shared.derived == NULL)
		e->shared.derived = calloc(1, sizeof(*e->shared.derived)); /* no memory: derived again next time */
	if (e->shared.derived != NULL && e->shared.derived->iterations == iterations)
		*out = *e->shared.derived;
	else if (e->shared.derived != NULL)
		*e->shared.derived = *out;
	pthread_mutex_unlock(&u->lock);
	return STATUS_OK;
}

enum status
users_scram_secret(struct users *u, const char *name, uint32_t iterations, struct scram_secret *out, bool *is_mock)
{
	struct entry *e = entry_find(u, name);
	*is_mock = false;
	if (e != NULL && e->kind == SECRET_SCRAM)
		return scram_secret_parse(e->user.secret.text, out);
	if (e != NULL && e->kind == SECRET_PLAIN)
		return derive_once(u, e, iterations, out);
	*is_mock = true;
	scram_secret_mock(name, iterations, out);
	return STATUS_OK;
}

static bool
password_is_right(const char *secret, const char *name, const char *password)
{
	char md5[MD5_SECRET_LEN + 1];
	struct scram_secret scram;
	bool right = false;
	switch (secret_kind(secret)) {
	case SECRET_NONE:
		break;
	case SECRET_PLAIN:
		right = secret_equal(secret, strlen(secret), password, strlen(password));
		break;
	case SECRET_MD5:
		right = md5_secret(password, name, md5) && secret_equal(secret, MD5_SECRET_LEN, md5, MD5_SECRET_LEN);
		secret_wipe_bytes(md5, sizeof(md5));
		break;
	case SECRET_SCRAM:
		right = scram_secret_parse(secret, &scram) == STATUS_OK && scram_secret_check(&scram, password);
		secret_wipe_bytes(&scram, sizeof(scram));
		break;
	}
	return right;
}

bool
users_check_password(const struct auth_user *user, const char *name, const char *password)
{
	const char *secret = user == NULL ? "" : user->secret.text;
	if (password_is_right(secret, name, password))
		return true;
	if (secret_kind(secret) != SECRET_SCRAM) { /* which has paid already */
		struct scram_secret mock;
		scram_secret_mock(name, SCRAM_DEFAULT_ITERATIONS, &mock);
		(void)scram_secret_check(&mock, password);
	}
	return false;
}

bool
users_check_md5(const struct auth_user *user, const char *name, const uint8_t salt[4], const char *response)
{
	char stored[MD5_SECRET_LEN + 1], expected[MD5_SECRET_LEN + 1];
	const char *secret = user == NULL ? "" : user->secret.text;
	enum secret_kind kind = secret_kind(secret);
	/* computed for every kind, so that each costs the same */
	bool ok = md5_secret(secret, name, stored);
	ok = md5_response(kind == SECRET_MD5 ? secret : stored, salt, expected) && ok;
	bool same = secret_equal(expected, MD5_SECRET_LEN, response, strlen(response));
	secret_wipe_bytes(stored, sizeof(stored));
	secret_wipe_bytes(expected, sizeof(expected));
	return ok && same && (kind == SECRET_MD5 || kind == SECRET_PLAIN);
}
