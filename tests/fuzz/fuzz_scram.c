/* SPDX-License-Identifier: ISC */
/*
 * The input is up to two messages, separated by a newline, given to both roles; and the first one is also read as a
 * stored secret. Nonces are fixed ("C" for the client, "S" for the server) so that an input can get past them. Keys in
 * place of a password keep the iterations out.
 */
#include "auth/scram.h"

#include <stdlib.h>
#include <string.h>

#include "auth/scram_parts.h"
#include "base/obj.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
fuzz_server(const struct scram_secret *secret, struct scram_text first, struct scram_text final)
{
	struct scram_server *x = scram_server_new(secret);
	struct buf out;
	buf_init(&out);
	scram_server_set_nonce(x, "S");
	enum status status = scram_server_first(x, (const uint8_t *)first.p, first.n, &out);
	if (status == STATUS_OK) {
		invariant(out.len > 2 && memcmp(buf_head(&out), "r=", 2) == 0);
		status = scram_server_final(x, (const uint8_t *) final.p, final.n, &out);
		invariant(status != STATUS_OK); /* would be a broken SHA-256 */
	}
	if (status == STATUS_BAD)
		invariant(scram_server_error(x)->message[0] != 0);
	scram_server_free(&x);
	buf_fini(&out);
}

static void
fuzz_client(struct scram_text challenge, struct scram_text verdict)
{
	static const uint8_t keys[2][SCRAM_KEY_LEN] = {{1}, {2}};
	struct scram_client *x = scram_client_new_keys(keys[0], keys[1]);
	struct buf out;
	buf_init(&out);
	scram_client_set_nonce(x, "C");
	invariant(scram_client_first(x, &out) == STATUS_OK);
	buf_reset(&out);
	if (scram_client_final(x, (const uint8_t *)challenge.p, challenge.n, &out) == STATUS_OK) {
		invariant(out.len > 10 && memcmp(buf_head(&out), "c=biws,r=C", 10) == 0);
		invariant(scram_client_verify(x, (const uint8_t *)verdict.p, verdict.n) != STATUS_OK);
	}
	scram_client_free(&x);
	buf_fini(&out);
}

static void
fuzz_secret(struct scram_text text)
{
	char *copy = strndup(text.p, text.n);
	struct scram_secret s;
	if (scram_secret_parse(copy, &s) == STATUS_OK)
		invariant(s.iterations >= 1 && s.salt_len >= 1 && s.salt_len <= SCRAM_SALT_MAX);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct scram_secret secret = {.iterations = 1, .salt = {1}, .salt_len = 1};
	const char *text = size == 0 ? "" : (const char *)data;
	const char *newline = size == 0 ? NULL : memchr(text, '\n', size);
	struct scram_text first = {text, newline == NULL ? size : (size_t)(newline - text)};
	struct scram_text second = {newline == NULL ? "" : newline + 1, newline == NULL ? 0 : size - first.n - 1};
	fuzz_server(&secret, first, second);
	fuzz_client(first, second);
	fuzz_secret(first);
	return 0;
}
