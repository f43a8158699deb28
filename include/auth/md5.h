/* SPDX-License-Identifier: ISC */
/* PostgreSQL's md5 password scheme (documentation: "Message Flow", AuthenticationMD5Password). Pure. */
#ifndef PGWEIR_AUTH_MD5_H
#define PGWEIR_AUTH_MD5_H

#include <stdbool.h>
#include <stdint.h>

#define MD5_SECRET_LEN 35 /* "md5" + 32 hex digits */

/* Both write MD5_SECRET_LEN + 1 bytes. False: the crypto library refuses MD5 (FIPS mode) or has no memory; out is "". */

/* "md5" + hex(md5(password + user)): the stored secret. */
bool md5_secret(const char *password, const char *user, char *out);
/* What a client sends for a salt: "md5" + hex(md5(hex part of the stored secret + salt)). False also: not such a secret. */
bool md5_response(const char *stored_secret, const uint8_t salt[4], char *out);

bool md5_is_secret(const char *text);

#endif
