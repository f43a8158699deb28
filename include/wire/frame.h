/* SPDX-License-Identifier: ISC */
/*
 * Framing: where a message begins and ends in a run of bytes. Pure, no state, no
 * allocation; the caller keeps what is incomplete. Any thread. Inline, since the
 * relay calls it for every message.
 */
#ifndef PGWEIR_WIRE_FRAME_H
#define PGWEIR_WIRE_FRAME_H

#include "base/status.h"
#include "wire/pgmsg.h"

#include <stddef.h>
#include <stdint.h>

struct frame {
	char type;
	uint32_t len;   /* whole message in bytes, type byte included: at least 5 */
	uint32_t avail; /* how much of it is in the run (5 <= avail <= len) */
};

static inline uint32_t
frame_get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint16_t
frame_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/*
 * The message at p[0..n). STATUS_MORE: fewer than five bytes. STATUS_BAD: a length below 4 or above MSG_LEN_MAX
 * (out->type is set, the rest is not). Does not judge the type: that depends on who sends and in which state; nor a
 * client's size limit, see frame_client_limit.
 */
must_check static inline enum status
frame_next(const uint8_t *p, size_t n, struct frame *out)
{
	if (n < MSG_HEADER)
		return STATUS_MORE;
	uint32_t field = frame_get_u32(p + 1);
	out->type = (char)p[0];
	/* one comparison for both ends: a length below 4 wraps around to a large number */
	if (field - 4 > MSG_LEN_MAX - 4)
		return STATUS_BAD;
	out->len = field + 1;
	out->avail = n < out->len ? (uint32_t)n : out->len;
	return STATUS_OK;
}

/*
 * Largest length field a logged-in client may send for this type, as the server limits it (SocketBackend); 0: a type
 * that is unknown there, FE_PASSWORD among them (see MSG_AUTH_MAX). The server answers an unknown type with FATAL
 * 08P01 "invalid frontend message type N"; a length over the limit makes it close without a word.
 */
uint32_t frame_client_limit(char type);

#endif
