/* SPDX-License-Identifier: ISC */
/* Base64 (RFC 4648, with padding), strict: no spaces, no missing padding, no stray bits. Pure. */
#ifndef PGWEIR_AUTH_BASE64_H
#define PGWEIR_AUTH_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BASE64_LEN(n) (((n) + 2) / 3 * 4) /* characters for n bytes, without a terminator */

void base64_encode(const uint8_t *bytes, size_t n, char *out); /* BASE64_LEN(n) + 1 bytes, terminated */
/* At most cap bytes into out; false: not base64, or more than cap bytes. */
bool base64_decode(const char *text, size_t n, uint8_t *out, size_t cap, size_t *out_n);

#endif
