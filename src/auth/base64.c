/* SPDX-License-Identifier: ISC */
#include "auth/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(const uint8_t *bytes, size_t n, char *out)
{
	while (n > 0) {
		size_t take = n < 3 ? n : 3;
		uint32_t group = (uint32_t)bytes[0] << 16;
		if (take > 1)
			group |= (uint32_t)bytes[1] << 8;
		if (take > 2)
			group |= bytes[2];
		*out++ = alphabet[group >> 18];
		*out++ = alphabet[group >> 12 & 63];
		*out++ = take > 1 ? alphabet[group >> 6 & 63] : '=';
		*out++ = take > 2 ? alphabet[group & 63] : '=';
		bytes += take;
		n -= take;
	}
	*out = 0;
}

/* The value of one group's four characters, `pad` of them '='; false: a character that is not base64. */
static bool
decode_group(const char *text, size_t pad, uint32_t *group)
{
	*group = 0;
	for (size_t i = 0; i < 4; i++) {
		uint32_t value = 0;
		if (i < 4 - pad) {
			const char *at = text[i] == 0 ? NULL : strchr(alphabet, text[i]);
			if (at == NULL)
				return false;
			value = (uint32_t)(at - alphabet);
		}
		*group = *group << 6 | value;
	}
	return true;
}

bool
base64_decode(const char *text, size_t n, uint8_t *out, size_t cap, size_t *out_n)
{
	*out_n = 0;
	if (n % 4 != 0)
		return false;
	for (size_t at = 0; at < n; at += 4) {
		size_t pad = 0;
		if (at + 4 == n && text[n - 1] == '=')
			pad = text[n - 2] == '=' ? 2 : 1;
		size_t bytes = 3 - pad;
		uint32_t group;
		if (!decode_group(text + at, pad, &group) || *out_n + bytes > cap)
			return false;
		if ((group & ((1u << 8 * pad) - 1)) != 0) /* bits behind the last byte */
			return false;
		for (size_t i = 0; i < bytes; i++)
			out[(*out_n)++] = (uint8_t)(group >> (16 - 8 * i));
	}
	return true;
}
