/* SPDX-License-Identifier: ISC */
/*
 * SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it, both roles, without
 * sockets: bytes in, bytes out. Any thread; one exchange belongs to one thread.
 * Peers on either side are untrusted: nonces, salts and iteration counts are
 * bounded (iterations 1..1000000 from a server, nonce at most 256 bytes). Passwords
 * are SASLprep'ed as PostgreSQL does (RFC 4013; used unchanged where they are not
 * valid UTF-8 or prohibited). STATUS_NO_MEM everywhere means that memory or the
 * crypto library failed.
 */
#ifndef PGWEIR_AUTH_SCRAM_H
#define PGWEIR_AUTH_SCRAM_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRAM_MECHANISM "SCRAM-SHA-256"
#define SCRAM_KEY_LEN 32
#define SCRAM_SALT_MAX 128
#define SCRAM_DEFAULT_ITERATIONS 4096u /* the server's */

/* What a server stores: "SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>". */
struct scram_secret {
	uint32_t iterations;
	uint8_t salt[SCRAM_SALT_MAX];
	size_t salt_len;
	uint8_t stored_key[SCRAM_KEY_LEN];
	uint8_t server_key[SCRAM_KEY_LEN];
};

bool scram_is_secret(const char *text); /* one that scram_secret_parse takes; anything else is a plain password */
enum status scram_secret_parse(const char *text, struct scram_secret *out) must_check;
/* From a plain password with a fresh random salt of 16 bytes. Costs the iterations. */
enum status scram_secret_derive(const char *password, uint32_t iterations, struct scram_secret *out) must_check;
/* For an unknown user: salt from HMAC(process key, user), keys that no proof matches. Costs the same as _parse. */
void scram_secret_mock(const char *user, uint32_t iterations, struct scram_secret *out);
/* Whether a plain password is the one behind the secret. Costs the iterations, whatever the answer. */
bool scram_secret_check(const struct scram_secret *secret, const char *password);

/* Server role: one exchange with one client. The secret is copied, and wiped with the exchange. */
struct scram_server;
struct scram_server *scram_server_new(const struct scram_secret *secret); /* NULL: no memory */
void scram_server_free(struct scram_server **x);
/*
 * client-first-message -> server-first-message appended to out. msg NULL (a SASLInitialResponse without a response):
 * STATUS_MORE, nothing appended; send an empty challenge, the message comes as its answer.
 */
enum status scram_server_first(struct scram_server *x, const uint8_t *msg, size_t n, struct buf *out) must_check;
/*
 * client-final-message -> server-final-message appended. STATUS_REFUSED: wrong proof, to be answered like any wrong
 * password. STATUS_BAD: malformed. Whatever is not STATUS_OK ends the exchange.
 */
enum status scram_server_final(struct scram_server *x, const uint8_t *msg, size_t n, struct buf *out) must_check;
/* After STATUS_OK: the client's ClientKey, recovered from its proof (for pass-through login to the server). */
const uint8_t *scram_server_client_key(const struct scram_server *x);

/* After STATUS_BAD of the server role: what PostgreSQL would tell the client. */
struct scram_error {
	const char *sqlstate;
	const char *message;
	char detail[128]; /* "": none */
};
const struct scram_error *scram_server_error(const struct scram_server *x);

/* Client role: one login to one server. Either a password or (client_key + server_key, pass-through) is used. */
struct scram_client;
struct scram_client *scram_client_new(const char *password); /* NULL: no memory */
struct scram_client *scram_client_new_keys(const uint8_t client_key[SCRAM_KEY_LEN],
                                           const uint8_t server_key[SCRAM_KEY_LEN]);
void scram_client_free(struct scram_client **x);
/* client-first-message, the data of the SASLInitialResponse, appended to out. */
enum status scram_client_first(struct scram_client *x, struct buf *out) must_check;
/* server-first-message -> client-final-message. With a password it costs the iterations the server asks for. */
enum status scram_client_final(struct scram_client *x, const uint8_t *msg, size_t n, struct buf *out) must_check;
/*
 * server-final-message: STATUS_OK only when the server proved that it knows the secret. STATUS_REFUSED: it did not,
 * or says that the login failed. An AuthenticationOk without this message is a server to be refused.
 */
enum status scram_client_verify(struct scram_client *x, const uint8_t *msg, size_t n) must_check;

#endif
