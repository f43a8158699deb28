/* SPDX-License-Identifier: ISC */
/* SCRAM-SHA-256 without channel binding, the role of the server towards a client. */
#include "auth/scram.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/scram_parts.h"
#include "base/obj.h"
#include "base/secret.h"

#define SQLSTATE_PROTOCOL_VIOLATION "08P01"
#define SQLSTATE_NOT_SUPPORTED "0A000"

enum server_stage { STAGE_WANT_FIRST, STAGE_WANT_FINAL, STAGE_DONE, STAGE_FAILED };

struct scram_server {
	enum server_stage stage;
	struct scram_secret secret;
	char gs2_flag; /* 'n' or 'y', which the final message repeats */
	char own_nonce[SCRAM_OWN_NONCE_CAP];
	char nonce[SCRAM_NONCE_MAX + 1]; /* the client's half and ours */
	struct buf auth_message;         /* grows as the messages come */
	uint8_t client_key[SCRAM_KEY_LEN];
	struct scram_error error;
};

struct scram_server *
scram_server_new(const struct scram_secret *secret)
{
	struct scram_server *x = calloc(1, sizeof(*x));
	if (x == NULL)
		return NULL;
	x->secret = *secret;
	buf_init(&x->auth_message);
	return x;
}

void
scram_server_free(struct scram_server **x)
{
	if (*x == NULL)
		return;
	buf_wipe(&(*x)->auth_message);
	secret_wipe_bytes(*x, sizeof(**x));
	free(*x);
	*x = NULL;
}

void
scram_server_set_nonce(struct scram_server *x, const char *nonce)
{
	snprintf(x->own_nonce, sizeof(x->own_nonce), "%s", nonce);
}

const uint8_t *
scram_server_client_key(const struct scram_server *x)
{
	invariant(x->stage == STAGE_DONE);
	return x->client_key;
}

const struct scram_error *
scram_server_error(const struct scram_server *x)
{
	invariant(x->error.sqlstate != NULL);
	return &x->error;
}

/* ---- complaints, worded as PostgreSQL does ---- */

__attribute__((format(printf, 4, 5))) static enum status
refuse(struct scram_server *x, const char *sqlstate, const char *message, const char *detail, ...)
{
	va_list args;
	va_start(args, detail);
	vsnprintf(x->error.detail, sizeof(x->error.detail), detail, args);
	va_end(args);
	x->error.sqlstate = sqlstate;
	x->error.message = message;
	x->stage = STAGE_FAILED;
	return STATUS_BAD;
}

#define malformed(x, ...) refuse((x), SQLSTATE_PROTOCOL_VIOLATION, "malformed SCRAM message", __VA_ARGS__)

static enum status
out_of_memory(struct scram_server *x)
{
	x->stage = STAGE_FAILED;
	return STATUS_NO_MEM;
}

/* The next character in a form that can be shown; past the end it is a zero byte, as the server sees it. */
static const char *
show_next(struct scram_text rest, char shown[8])
{
	char c = rest.n == 0 ? 0 : rest.p[0];
	if (c >= '!' && c <= '~')
		snprintf(shown, 8, "'%c'", c);
	else
		snprintf(shown, 8, "0x%02x", (unsigned char)c);
	return shown;
}

static bool
next_is(struct scram_text rest, char c)
{
	return rest.n > 0 && rest.p[0] == c;
}

static void
skip_one(struct scram_text *rest)
{
	rest->p++;
	rest->n--;
}

static enum status
take_any(struct scram_server *x, struct scram_text *rest, char *name, struct scram_text *value)
{
	char shown[8];
	if (rest->n == 0)
		return malformed(x, "Attribute expected, but found end of string.");
	char c = rest->p[0];
	if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
		return malformed(x, "Attribute expected, but found invalid character \"%s\".", show_next(*rest, shown));
	if (!scram_take_attribute(rest, name, value))
		return malformed(x, "Expected character \"=\" for attribute \"%c\".", c);
	return STATUS_OK;
}

static enum status
take(struct scram_server *x, struct scram_text *rest, char want, struct scram_text *value)
{
	char shown[8], name;
	if (!next_is(*rest, want))
		return malformed(x, "Expected attribute \"%c\" but found \"%s\".", want, show_next(*rest, shown));
	return take_any(x, rest, &name, value);
}

static enum status
check_message(struct scram_server *x, enum server_stage stage, struct scram_text msg)
{
	if (x->stage != stage)
		return malformed(x, "The message is out of order.");
	if (msg.n == 0)
		return malformed(x, "The message is empty.");
	if (memchr(msg.p, 0, msg.n) != NULL)
		return malformed(x, "Message length does not match input length.");
	return STATUS_OK;
}

/* ---- client-first-message: gs2-header, then n=user,r=nonce and extensions ---- */

static enum status
read_gs2_header(struct scram_server *x, struct scram_text *rest)
{
	char shown[8];
	if (next_is(*rest, 'p'))
		return malformed(
			x, "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes "
			   "channel binding data.");
	/* 'y' is a client that could bind a channel and believes that we can't: right, as only the plain one is offered */
	if (!next_is(*rest, 'n') && !next_is(*rest, 'y'))
		return malformed(x, "Unexpected channel-binding flag \"%s\".", show_next(*rest, shown));
	x->gs2_flag = rest->p[0];
	skip_one(rest);
	if (!next_is(*rest, ','))
		return malformed(x, "Comma expected, but found character \"%s\".", show_next(*rest, shown));
	skip_one(rest);
	if (next_is(*rest, 'a'))
		return refuse(x, SQLSTATE_NOT_SUPPORTED, "client uses authorization identity, but it is not supported",
		              "%s", "");
	if (!next_is(*rest, ','))
		return malformed(x, "Unexpected attribute \"%s\" in client-first-message.", show_next(*rest, shown));
	skip_one(rest);
	return STATUS_OK;
}

static enum status
read_first_bare(struct scram_server *x, struct scram_text rest)
{
	struct scram_text ignored, nonce;
	char name;
	if (next_is(rest, 'm'))
		return refuse(x, SQLSTATE_NOT_SUPPORTED, "client requires an unsupported SCRAM extension", "%s", "");
	/* the user is the one of the startup packet, whatever is said here */
	enum status status = take(x, &rest, 'n', &ignored);
	if (status == STATUS_OK)
		status = take(x, &rest, 'r', &nonce);
	if (status != STATUS_OK)
		return status;
	if (!scram_is_nonce(nonce))
		return refuse(x, SQLSTATE_PROTOCOL_VIOLATION, "non-printable characters in SCRAM nonce", "%s", "");
	if (nonce.n + strlen(x->own_nonce) > SCRAM_NONCE_MAX)
		return malformed(x, "The nonce is too long.");
	while (rest.n > 0) {
		status = take_any(x, &rest, &name, &ignored);
		if (status != STATUS_OK)
			return status;
	}
	snprintf(x->nonce, sizeof(x->nonce), "%.*s%s", (int)nonce.n, nonce.p, x->own_nonce);
	return STATUS_OK;
}

enum status
scram_server_first(struct scram_server *x, const uint8_t *msg, size_t n, struct buf *out)
{
	struct scram_text rest = {(const char *)msg, n};
	char salt[BASE64_LEN(SCRAM_SALT_MAX) + 1];
	if (msg == NULL)
		return STATUS_MORE;
	if (x->own_nonce[0] == 0 && !scram_new_nonce(x->own_nonce))
		return out_of_memory(x);
	enum status status = check_message(x, STAGE_WANT_FIRST, rest);
	if (status == STATUS_OK)
		status = read_gs2_header(x, &rest);
	if (status == STATUS_OK)
		status = read_first_bare(x, rest);
	if (status != STATUS_OK)
		return status;

	base64_encode(x->secret.salt, x->secret.salt_len, salt);
	struct buf *auth = &x->auth_message;
	buf_append(auth, rest.p, rest.n);
	buf_append_u8(auth, ',');
	uint32_t reply_at = auth->len;
	buf_printf(auth, "r=%s,s=%s,i=%u", x->nonce, salt, x->secret.iterations);
	if (auth->failed)
		return out_of_memory(x);
	buf_append(out, buf_head(auth) + reply_at, auth->len - reply_at);
	x->stage = STAGE_WANT_FINAL;
	return STATUS_OK;
}

/* ---- client-final-message: c=gs2-header in base64,r=nonce, extensions,p=proof ---- */

static bool
text_is(struct scram_text text, const char *s)
{
	return text.n == strlen(s) && memcmp(text.p, s, text.n) == 0;
}

/* *without_proof is the part the proof is about. */
static enum status
read_final(struct scram_server *x, struct scram_text msg, struct scram_text *without_proof,
           uint8_t proof[SCRAM_KEY_LEN])
{
	struct scram_text rest = msg, binding, nonce, value = {NULL, 0};
	size_t proof_len;
	char name = 0;
	enum status status = take(x, &rest, 'c', &binding);
	if (status != STATUS_OK)
		return status;
	if (!text_is(binding, x->gs2_flag == 'n' ? "biws" : "eSws")) /* "n,," and "y,,": nobody changed it on the way */
		return refuse(x, SQLSTATE_PROTOCOL_VIOLATION,
		              "unexpected SCRAM channel-binding attribute in client-final-message", "%s", "");
	status = take(x, &rest, 'r', &nonce);
	if (status != STATUS_OK)
		return status;
	while (name != 'p') {
		without_proof->p = msg.p;
		without_proof->n = (size_t)(rest.p - msg.p) - 1; /* without the comma */
		status = take_any(x, &rest, &name, &value);
		if (status != STATUS_OK)
			return status;
	}
	if (!base64_decode(value.p, value.n, proof, SCRAM_KEY_LEN, &proof_len) || proof_len != SCRAM_KEY_LEN)
		return malformed(x, "Malformed proof in client-final-message.");
	if (rest.n > 0)
		return malformed(x, "Garbage found at the end of client-final-message.");
	if (!text_is(nonce, x->nonce))
		return refuse(x, SQLSTATE_PROTOCOL_VIOLATION, "invalid SCRAM response", "Nonce does not match.");
	return STATUS_OK;
}

/* The proof is ClientKey XOR HMAC(StoredKey, messages): who knows ClientKey gave it, and StoredKey is its hash. */
static enum status
check_proof(struct scram_server *x, const uint8_t proof[SCRAM_KEY_LEN])
{
	uint8_t signature[SCRAM_KEY_LEN], hash[SCRAM_KEY_LEN];
	if (!scram_hmac(x->secret.stored_key, buf_head(&x->auth_message), x->auth_message.len, signature))
		return STATUS_NO_MEM;
	for (size_t i = 0; i < SCRAM_KEY_LEN; i++)
		x->client_key[i] = proof[i] ^ signature[i];
	if (!scram_hash(x->client_key, hash))
		return STATUS_NO_MEM;
	bool right = secret_equal(x->secret.stored_key, SCRAM_KEY_LEN, hash, SCRAM_KEY_LEN);
	return right ? STATUS_OK : STATUS_REFUSED;
}

static enum status
append_signature(struct scram_server *x, struct buf *out)
{
	uint8_t signature[SCRAM_KEY_LEN];
	char text[SCRAM_KEY_TEXT_LEN + 1];
	if (!scram_hmac(x->secret.server_key, buf_head(&x->auth_message), x->auth_message.len, signature))
		return STATUS_NO_MEM;
	base64_encode(signature, sizeof(signature), text);
	buf_printf(out, "v=%s", text);
	return STATUS_OK;
}

enum status
scram_server_final(struct scram_server *x, const uint8_t *msg, size_t n, struct buf *out)
{
	struct scram_text text = {(const char *)msg, n}, without_proof = {0};
	uint8_t proof[SCRAM_KEY_LEN];
	enum status status = check_message(x, STAGE_WANT_FINAL, text);
	if (status == STATUS_OK)
		status = read_final(x, text, &without_proof, proof);
	if (status != STATUS_OK)
		return status;

	buf_append_u8(&x->auth_message, ',');
	buf_append(&x->auth_message, without_proof.p, without_proof.n);
	status = x->auth_message.failed ? STATUS_NO_MEM : check_proof(x, proof);
	secret_wipe_bytes(proof, sizeof(proof));
	if (status == STATUS_OK)
		status = append_signature(x, out);
	x->stage = status == STATUS_OK ? STAGE_DONE : STAGE_FAILED;
	return status;
}
