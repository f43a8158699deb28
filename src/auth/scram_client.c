/* SPDX-License-Identifier: ISC */
/* SCRAM-SHA-256 without channel binding, the role of the client towards a server. */
#include "auth/scram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/scram_parts.h"
#include "base/obj.h"
#include "base/secret.h"

enum client_stage { STAGE_START, STAGE_WANT_CHALLENGE, STAGE_WANT_VERDICT, STAGE_DONE };

struct scram_client {
	enum client_stage stage;
	struct secret password; /* unset: the keys are given */
	const char *user;       /* NULL, but for tests: the server takes the one of the startup packet */
	uint8_t client_key[SCRAM_KEY_LEN];
	uint8_t server_key[SCRAM_KEY_LEN];
	char own_nonce[SCRAM_OWN_NONCE_CAP];
	struct buf auth_message; /* grows as the messages come */
};

static struct scram_client *
client_new(void)
{
	struct scram_client *x = calloc(1, sizeof(*x));
	if (x != NULL)
		buf_init(&x->auth_message);
	return x;
}

struct scram_client *
scram_client_new(const char *password)
{
	struct scram_client *x = client_new();
	if (x != NULL && !secret_set(&x->password, password, strlen(password)))
		scram_client_free(&x);
	return x;
}

struct scram_client *
scram_client_new_keys(const uint8_t client_key[SCRAM_KEY_LEN], const uint8_t server_key[SCRAM_KEY_LEN])
{
	struct scram_client *x = client_new();
	if (x == NULL)
		return NULL;
	memcpy(x->client_key, client_key, SCRAM_KEY_LEN);
	memcpy(x->server_key, server_key, SCRAM_KEY_LEN);
	return x;
}

void
scram_client_free(struct scram_client **x)
{
	if (*x == NULL)
		return;
	secret_fini(&(*x)->password);
	buf_wipe(&(*x)->auth_message);
	secret_wipe_bytes(*x, sizeof(**x));
	free(*x);
	*x = NULL;
}

void
scram_client_set_nonce(struct scram_client *x, const char *nonce)
{
	snprintf(x->own_nonce, sizeof(x->own_nonce), "%s", nonce);
}

void
scram_client_set_user(struct scram_client *x, const char *user)
{
	x->user = user;
}

enum status
scram_client_first(struct scram_client *x, struct buf *out)
{
	invariant(x->stage == STAGE_START);
	if (x->own_nonce[0] == 0 && !scram_new_nonce(x->own_nonce))
		return STATUS_NO_MEM;
	buf_printf(&x->auth_message, "n=%s,r=%s", x->user == NULL ? "" : x->user, x->own_nonce);
	if (x->auth_message.failed)
		return STATUS_NO_MEM;
	buf_append_str(out, "n,,");
	buf_append(out, buf_head(&x->auth_message), x->auth_message.len);
	x->stage = STAGE_WANT_CHALLENGE;
	return STATUS_OK;
}

/* ---- server-first-message: r=nonce,s=salt,i=iterations ---- */

struct challenge {
	struct scram_text nonce;
	uint8_t salt[SCRAM_SALT_MAX];
	size_t salt_len;
	uint32_t iterations;
};

static bool
take(struct scram_text *rest, char want, struct scram_text *value)
{
	char name;
	return scram_take_attribute(rest, &name, value) && name == want;
}

/* Our half first, then something of the server's. */
static bool
nonce_acceptable(const struct scram_client *x, struct scram_text nonce)
{
	size_t own = strlen(x->own_nonce);
	return scram_is_nonce(nonce) && nonce.n > own && nonce.n <= SCRAM_NONCE_MAX &&
	       memcmp(nonce.p, x->own_nonce, own) == 0;
}

static bool
parse_iterations(struct scram_text text, uint32_t *out)
{
	uint32_t value = 0;
	if (text.n == 0 || text.n > 7)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		value = value * 10 + (uint32_t)(text.p[i] - '0');
	}
	*out = value;
	return value >= 1 && value <= SCRAM_PEER_ITERATIONS_MAX;
}

/* Strict, as libpq is: nothing behind the iterations. */
static bool
parse_challenge(const struct scram_client *x, struct scram_text rest, struct challenge *out)
{
	struct scram_text salt, iterations;
	return take(&rest, 'r', &out->nonce) && nonce_acceptable(x, out->nonce) && take(&rest, 's', &salt) &&
	       base64_decode(salt.p, salt.n, out->salt, sizeof(out->salt), &out->salt_len) && out->salt_len > 0 &&
	       take(&rest, 'i', &iterations) && parse_iterations(iterations, &out->iterations) && rest.n == 0;
}

static enum status
append_proof(struct scram_client *x, struct buf *out)
{
	uint8_t stored_key[SCRAM_KEY_LEN], proof[SCRAM_KEY_LEN];
	char text[SCRAM_KEY_TEXT_LEN + 1];
	if (!scram_hash(x->client_key, stored_key) ||
	    !scram_hmac(stored_key, buf_head(&x->auth_message), x->auth_message.len, proof))
		return STATUS_NO_MEM;
	for (size_t i = 0; i < SCRAM_KEY_LEN; i++)
		proof[i] ^= x->client_key[i];
	base64_encode(proof, sizeof(proof), text);
	buf_printf(out, ",p=%s", text);
	secret_wipe_bytes(proof, sizeof(proof));
	secret_wipe_bytes(text, sizeof(text));
	return STATUS_OK;
}

enum status
scram_client_final(struct scram_client *x, const uint8_t *msg, size_t n, struct buf *out)
{
	struct scram_text text = {(const char *)msg, n};
	struct challenge challenge;
	if (x->stage != STAGE_WANT_CHALLENGE || !parse_challenge(x, text, &challenge))
		return STATUS_BAD;
	if (secret_is_set(&x->password)) {
		enum status status = scram_derive_keys(x->password.text, challenge.salt, challenge.salt_len,
		                                       challenge.iterations, x->client_key, x->server_key);
		if (status != STATUS_OK)
			return status;
	}
	struct buf *auth = &x->auth_message;
	buf_append_u8(auth, ',');
	buf_append(auth, text.p, text.n);
	buf_append_u8(auth, ',');
	uint32_t reply_at = auth->len;
	buf_printf(auth, "c=biws,r=%.*s", (int)challenge.nonce.n, challenge.nonce.p); /* biws: "n,," */
	if (auth->failed)
		return STATUS_NO_MEM;
	buf_append(out, buf_head(auth) + reply_at, auth->len - reply_at);
	x->stage = STAGE_WANT_VERDICT;
	return append_proof(x, out);
}

/* ---- server-final-message: v=signature, or e=error ---- */

enum status
scram_client_verify(struct scram_client *x, const uint8_t *msg, size_t n)
{
	struct scram_text rest = {(const char *)msg, n}, value;
	uint8_t claimed[SCRAM_KEY_LEN], expected[SCRAM_KEY_LEN];
	size_t claimed_len;
	char name;
	if (x->stage != STAGE_WANT_VERDICT || !scram_take_attribute(&rest, &name, &value) ||
	    (name != 'v' && name != 'e'))
		return STATUS_BAD;
	if (name == 'e')
		return STATUS_REFUSED;
	if (rest.n != 0 || !base64_decode(value.p, value.n, claimed, sizeof(claimed), &claimed_len))
		return STATUS_BAD;
	if (!scram_hmac(x->server_key, buf_head(&x->auth_message), x->auth_message.len, expected))
		return STATUS_NO_MEM;
	if (!secret_equal(claimed, claimed_len, expected, sizeof(expected)))
		return STATUS_REFUSED;
	x->stage = STAGE_DONE;
	return STATUS_OK;
}
