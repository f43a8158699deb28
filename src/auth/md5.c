/* SPDX-License-Identifier: ISC */
#include "auth/md5.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/secret.h"

#define MD5_BYTES 16

/* out = "md5" + hex(md5(head + tail)). False where the crypto library refuses MD5 (FIPS mode). */
static bool
md5_of_two(const void *head, size_t head_len, const void *tail, size_t tail_len, char *out)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t sum[MD5_BYTES];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_md5(), NULL) == 1 &&
	          EVP_DigestUpdate(ctx, head, head_len) == 1 && EVP_DigestUpdate(ctx, tail, tail_len) == 1 &&
	          EVP_DigestFinal_ex(ctx, sum, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	if (!ok) {
		out[0] = 0;
		return false;
	}
	memcpy(out, "md5", 3);
	for (int i = 0; i < MD5_BYTES; i++) {
		out[3 + 2 * i] = hex[sum[i] >> 4];
		out[4 + 2 * i] = hex[sum[i] & 15];
	}
	out[MD5_SECRET_LEN] = 0;
	secret_wipe_bytes(sum, sizeof(sum));
	return true;
}

bool
md5_secret(const char *password, const char *user, char *out)
{
	return md5_of_two(password, strlen(password), user, strlen(user), out);
}

bool
md5_response(const char *stored_secret, const uint8_t salt[4], char *out)
{
	if (!md5_is_secret(stored_secret)) {
		out[0] = 0;
		return false;
	}
	return md5_of_two(stored_secret + 3, MD5_SECRET_LEN - 3, salt, 4, out);
}

/* As the server tells it from a plain password: lower-case digits only. */
bool
md5_is_secret(const char *text)
{
	return strncmp(text, "md5", 3) == 0 && strlen(text) == MD5_SECRET_LEN &&
	       strspn(text + 3, "0123456789abcdef") == MD5_SECRET_LEN - 3;
}
