/* SPDX-License-Identifier: ISC */
/* Keys and stored secrets of SCRAM-SHA-256. */
#include "auth/scram.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>

#include "auth/saslprep.h"
#include "auth/scram_parts.h"
#include "base/obj.h"
#include "base/secret.h"

#define OWN_SALT_LEN 16

static const char secret_prefix[] = SCRAM_MECHANISM "$";

/* ---- pieces of messages ---- */

bool
scram_take_attribute(struct scram_text *rest, char *name, struct scram_text *value)
{
	if (rest->n < 2 || rest->p[1] != '=')
		return false;
	char c = rest->p[0];
	if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
		return false;
	*name = c;
	value->p = rest->p + 2;
	value->n = rest->n - 2;
	const char *comma = value->n == 0 ? NULL : memchr(value->p, ',', value->n);
	if (comma != NULL)
		value->n = (size_t)(comma - value->p);
	size_t taken = 2 + value->n + (comma != NULL);
	rest->p += taken;
	rest->n -= taken;
	return true;
}

bool
scram_is_nonce(struct scram_text text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c < '!' || c > '~' || c == ',')
			return false;
	}
	return true;
}

/* ---- keys ---- */

bool
scram_new_nonce(char nonce[SCRAM_OWN_NONCE_LEN + 1])
{
	uint8_t raw[SCRAM_OWN_NONCE_LEN / 4 * 3];
	if (RAND_bytes(raw, sizeof(raw)) != 1)
		return false;
	base64_encode(raw, sizeof(raw), nonce);
	return true;
}

bool
scram_hmac(const uint8_t key[SCRAM_KEY_LEN], const void *data, size_t n, uint8_t out[SCRAM_KEY_LEN])
{
	return HMAC(EVP_sha256(), key, SCRAM_KEY_LEN, data, n, out, NULL) != NULL;
}

bool
scram_hash(const uint8_t in[SCRAM_KEY_LEN], uint8_t out[SCRAM_KEY_LEN])
{
	return EVP_Digest(in, SCRAM_KEY_LEN, out, NULL, EVP_sha256(), NULL) == 1;
}

enum status
scram_derive_keys(const char *password, const uint8_t *salt, size_t salt_len, uint32_t iterations,
                  uint8_t client_key[SCRAM_KEY_LEN], uint8_t server_key[SCRAM_KEY_LEN])
{
	static const char client_label[] = "Client Key";
	static const char server_label[] = "Server Key";
	uint8_t salted[SCRAM_KEY_LEN];
	struct secret prepared = {0};
	enum status status = saslprep(password, &prepared);
	if (status != STATUS_OK)
		return status;
	bool ok = PKCS5_PBKDF2_HMAC(prepared.text, (int)prepared.len, salt, (int)salt_len, (int)iterations,
	                            EVP_sha256(), sizeof(salted), salted) == 1 &&
	          scram_hmac(salted, client_label, strlen(client_label), client_key) &&
	          scram_hmac(salted, server_label, strlen(server_label), server_key);
	secret_fini(&prepared);
	secret_wipe_bytes(salted, sizeof(salted));
	return ok ? STATUS_OK : STATUS_NO_MEM;
}

/* ---- stored secrets ---- */

/* The text up to a separator, which is taken off with it; false: there is none. */
static bool
take_until(const char **text, char separator, struct scram_text *out)
{
	const char *end = strchr(*text, separator);
	if (end == NULL)
		return false;
	out->p = *text;
	out->n = (size_t)(end - *text);
	*text = end + 1;
	return true;
}

static bool
parse_iterations(struct scram_text text, uint32_t *out)
{
	uint64_t value = 0;
	if (text.n == 0 || text.n > 10)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text.p[i] - '0');
	}
	*out = (uint32_t)value;
	return value >= 1 && value <= INT32_MAX;
}

static bool
parse_key(struct scram_text text, uint8_t key[SCRAM_KEY_LEN])
{
	size_t n;
	return base64_decode(text.p, text.n, key, SCRAM_KEY_LEN, &n) && n == SCRAM_KEY_LEN;
}

enum status
scram_secret_parse(const char *text, struct scram_secret *out)
{
	size_t prefix_len = strlen(secret_prefix);
	struct scram_text iterations, salt, stored_key;
	if (strncmp(text, secret_prefix, prefix_len) != 0)
		return STATUS_BAD;
	text += prefix_len;
	if (!take_until(&text, ':', &iterations) || !take_until(&text, '$', &salt) ||
	    !take_until(&text, ':', &stored_key))
		return STATUS_BAD;
	struct scram_text server_key = {text, strlen(text)};
	if (!parse_iterations(iterations, &out->iterations) ||
	    !base64_decode(salt.p, salt.n, out->salt, sizeof(out->salt), &out->salt_len) || out->salt_len == 0 ||
	    !parse_key(stored_key, out->stored_key) || !parse_key(server_key, out->server_key))
		return STATUS_BAD;
	return STATUS_OK;
}

bool
scram_is_secret(const char *text)
{
	struct scram_secret secret;
	bool is = scram_secret_parse(text, &secret) == STATUS_OK;
	secret_wipe_bytes(&secret, sizeof(secret));
	return is;
}

enum status
scram_secret_derive(const char *password, uint32_t iterations, struct scram_secret *out)
{
	uint8_t client_key[SCRAM_KEY_LEN];
	out->iterations = iterations;
	out->salt_len = OWN_SALT_LEN;
	if (RAND_bytes(out->salt, OWN_SALT_LEN) != 1)
		return STATUS_NO_MEM;
	enum status status =
		scram_derive_keys(password, out->salt, out->salt_len, iterations, client_key, out->server_key);
	if (status == STATUS_OK && !scram_hash(client_key, out->stored_key))
		status = STATUS_NO_MEM;
	secret_wipe_bytes(client_key, sizeof(client_key));
	return status;
}

bool
scram_secret_check(const struct scram_secret *secret, const char *password)
{
	uint8_t client_key[SCRAM_KEY_LEN], server_key[SCRAM_KEY_LEN];
	enum status status =
		scram_derive_keys(password, secret->salt, secret->salt_len, secret->iterations, client_key, server_key);
	bool same = status == STATUS_OK && secret_equal(secret->server_key, SCRAM_KEY_LEN, server_key, SCRAM_KEY_LEN);
	secret_wipe_bytes(client_key, sizeof(client_key));
	secret_wipe_bytes(server_key, sizeof(server_key));
	return same;
}

/* ---- secrets of users that are not there ---- */

static uint8_t mock_key[SCRAM_KEY_LEN]; /* keeps a name's salt the same for the life of the process */
static pthread_once_t mock_key_once = PTHREAD_ONCE_INIT;

static void
mock_key_make(void)
{
	/* Without random bytes no login is safe: better to stop. */
	invariant(RAND_bytes(mock_key, sizeof(mock_key)) == 1);
}

void
scram_secret_mock(const char *user, uint32_t iterations, struct scram_secret *out)
{
	uint8_t digest[SCRAM_KEY_LEN];
	pthread_once(&mock_key_once, mock_key_make);
	invariant(scram_hmac(mock_key, user, strlen(user), digest));
	out->iterations = iterations;
	memcpy(out->salt, digest, OWN_SALT_LEN);
	out->salt_len = OWN_SALT_LEN;
	/* A StoredKey nobody knows a ClientKey for: to find one is to invert SHA-256. */
	invariant(RAND_bytes(out->stored_key, SCRAM_KEY_LEN) == 1);
	invariant(RAND_bytes(out->server_key, SCRAM_KEY_LEN) == 1);
}
