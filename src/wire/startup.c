/* SPDX-License-Identifier: ISC */
#include "wire/startup.h"

#include <stdio.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/pgmsg.h"

#define LENGTH_WORD 4u
#define PACKET_MIN 8u   /* length word and version or request code */
#define CANCEL_HEAD 12u /* ... and the pid */

static const char bad_length[] = "invalid length of startup packet";
static const char bad_layout[] = "invalid startup packet layout: expected terminator as last byte";

/*
 * True when text[0..n) is pairs of strings, no name empty, and one more zero byte as the very last: the only layout
 * in which a walk by strlen() stays inside.
 */
static bool
params_well_formed(const char *text, size_t n)
{
	size_t at = 0;
	while (at < n && text[at] != 0) {
		for (int string = 0; string < 2; string++) {
			const char *end = at < n ? memchr(text + at, 0, n - at) : NULL;
			if (end == NULL)
				return false;
			at = (size_t)(end - text) + 1;
		}
	}
	return n > 0 && at == n - 1;
}

static enum status
parse_login(const uint8_t *p, struct startup_packet *out, const char **why)
{
	out->kind = STARTUP_LOGIN;
	out->params = (const char *)p + PACKET_MIN;
	out->params_len = out->len - PACKET_MIN;
	if (params_well_formed(out->params, out->params_len))
		return STATUS_OK;
	*why = bad_layout;
	return STATUS_BAD;
}

static enum status
parse_cancel(const uint8_t *p, struct startup_packet *out, const char **why)
{
	out->kind = STARTUP_CANCEL;
	if (out->len < CANCEL_HEAD + KEY_SECRET_MIN || out->len > CANCEL_HEAD + KEY_SECRET_MAX) {
		*why = bad_length;
		return STATUS_BAD;
	}
	out->cancel_pid = frame_get_u32(p + PACKET_MIN);
	out->cancel_secret = p + CANCEL_HEAD;
	out->cancel_secret_len = out->len - CANCEL_HEAD;
	return STATUS_OK;
}

enum status
startup_parse(const uint8_t *p, size_t n, struct startup_packet *out, const char **why)
{
	memset(out, 0, sizeof(*out));
	if (n >= 1 && p[0] == 0x16) { /* as a length it would be over the maximum anyway */
		out->kind = STARTUP_TLS_HELLO;
		return STATUS_OK;
	}
	if (n < LENGTH_WORD)
		return STATUS_MORE;
	out->len = frame_get_u32(p);
	if (out->len < PACKET_MIN || out->len > STARTUP_MAX) {
		*why = bad_length;
		return out->len > STARTUP_MAX ? STATUS_TOO_BIG : STATUS_BAD;
	}
	if (n < out->len)
		return STATUS_MORE;

	out->protocol = frame_get_u32(p + LENGTH_WORD);
	switch (out->protocol) {
	case PROTO_CANCEL:
		return parse_cancel(p, out, why);
	case PROTO_SSL: /* bytes behind the code, if any, belong to the packet and mean nothing */
		out->kind = STARTUP_SSL;
		return STATUS_OK;
	case PROTO_GSSENC:
		out->kind = STARTUP_GSSENC;
		return STATUS_OK;
	default:
		break;
	}
	if (out->protocol >> 16 != PROTO_3_0 >> 16) {
		startup_refusal(out->protocol, out->refusal);
		*why = out->refusal;
		return STATUS_REFUSED;
	}
	return parse_login(p, out, why);
}

void
startup_refusal(uint32_t protocol, char text[STARTUP_REFUSAL_MAX])
{
	snprintf(text, STARTUP_REFUSAL_MAX, "unsupported frontend protocol %u.%u: server supports %u.%u to %u.%u",
	         protocol >> 16, protocol & 0xffff, PROTO_3_0 >> 16, PROTO_3_0 & 0xffff, PROTO_3_2 >> 16,
	         PROTO_3_2 & 0xffff);
}

bool
startup_next_param(const struct startup_packet *sp, const char **cursor, struct startup_param *out)
{
	const char *p = *cursor == NULL ? sp->params : *cursor;
	if (*p == 0) /* the terminator: parse_login saw that it is there */
		return false;
	out->name = p;
	out->value = p + strlen(p) + 1;
	*cursor = out->value + strlen(out->value) + 1;
	return true;
}

bool
startup_is_protocol_option(const char *name)
{
	return strncmp(name, "_pq_.", 5) == 0;
}

uint32_t
startup_negotiate(const struct startup_packet *sp, bool *must_negotiate)
{
	uint32_t asked = sp->protocol & 0xffff;
	uint32_t spoken = asked >= (PROTO_3_2 & 0xffff) ? PROTO_3_2 & 0xffff : 0;
	*must_negotiate = asked != spoken;

	const char *cursor = NULL;
	struct startup_param param;
	while (startup_next_param(sp, &cursor, &param)) {
		if (startup_is_protocol_option(param.name))
			*must_negotiate = true;
	}
	return spoken;
}
