/* SPDX-License-Identifier: ISC */
/*
 * What the two roles of SCRAM share, and the handles tests need. Only for
 * src/auth/scram*.c and their tests. Pure, any thread.
 */
#ifndef PGWEIR_AUTH_SCRAM_PARTS_H
#define PGWEIR_AUTH_SCRAM_PARTS_H

#include "auth/base64.h"
#include "auth/scram.h"

#define SCRAM_OWN_NONCE_LEN 24u /* 18 random bytes in base64 */
#define SCRAM_OWN_NONCE_CAP 64u /* room for the longer ones of published examples */
#define SCRAM_NONCE_MAX 256u    /* both halves */
#define SCRAM_KEY_TEXT_LEN BASE64_LEN(SCRAM_KEY_LEN)
#define SCRAM_PEER_ITERATIONS_MAX 1000000u

/* A piece of a message. */
struct scram_text {
	const char *p;
	size_t n;
};

/* Takes "x=value" and the comma behind it, if any, off the front. False: the rest is unchanged, no such thing there. */
bool scram_take_attribute(struct scram_text *rest, char *name, struct scram_text *value);
bool scram_is_nonce(struct scram_text text); /* printable ASCII without comma; may be empty */

bool scram_new_nonce(char nonce[SCRAM_OWN_NONCE_LEN + 1]);
bool scram_hmac(const uint8_t key[SCRAM_KEY_LEN], const void *data, size_t n, uint8_t out[SCRAM_KEY_LEN]);
bool scram_hash(const uint8_t in[SCRAM_KEY_LEN], uint8_t out[SCRAM_KEY_LEN]);
enum status scram_derive_keys(const char *password, const uint8_t *salt, size_t salt_len, uint32_t iterations,
                              uint8_t client_key[SCRAM_KEY_LEN], uint8_t server_key[SCRAM_KEY_LEN]) must_check;

/* Tests against published vectors fix this side's nonce; before scram_*_first. Less than SCRAM_OWN_NONCE_CAP long. */
void scram_server_set_nonce(struct scram_server *x, const char *nonce);
void scram_client_set_nonce(struct scram_client *x, const char *nonce);
/* ... and the user name, which PostgreSQL's clients leave empty. Not copied. */
void scram_client_set_user(struct scram_client *x, const char *user);

#endif
