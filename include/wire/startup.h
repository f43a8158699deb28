/* SPDX-License-Identifier: ISC */
/*
 * First packets of a connection: StartupMessage, CancelRequest, SSLRequest,
 * GSSENCRequest. Pure functions on bytes, any thread; nothing is allocated from a
 * claimed length. Whether an SSLRequest or GSSENCRequest may come (again) is the
 * session's to say; startup_refusal() words what the server answers when not.
 */
#ifndef PGWEIR_WIRE_STARTUP_H
#define PGWEIR_WIRE_STARTUP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum startup_kind {
	STARTUP_LOGIN, /* protocol 3.x */
	STARTUP_CANCEL,
	STARTUP_SSL,
	STARTUP_GSSENC,
	STARTUP_TLS_HELLO, /* first byte 0x16: a TLS ClientHello (direct TLS); len is 0, the bytes are TLS's */
};

#define STARTUP_REFUSAL_MAX 96

struct startup_packet {
	enum startup_kind kind;
	uint32_t len;      /* bytes of the whole packet */
	uint32_t protocol; /* as asked, e.g. 0x00030002; also set when the answer is STATUS_REFUSED */
	/* STARTUP_LOGIN: name\0value\0 ... of the packet, inside the caller's bytes; each string is terminated */
	const char *params;
	size_t params_len;
	/* STARTUP_CANCEL */
	uint32_t cancel_pid;
	const uint8_t *cancel_secret;
	uint32_t cancel_secret_len;        /* 4..256 */
	char refusal[STARTUP_REFUSAL_MAX]; /* backs *why of STATUS_REFUSED */
};

/*
 * The packet at p[0..n). STATUS_MORE: not whole yet (never asks for more than STARTUP_MAX bytes in all). STATUS_BAD /
 * STATUS_TOO_BIG: *why is a static text (SQLSTATE 08P01); where the length word is wrong the server closes without
 * telling the client. An unsupported major version is STATUS_REFUSED with *why, inside *out, as the server words it
 * (SQLSTATE 0A000).
 */
enum status startup_parse(const uint8_t *p, size_t n, struct startup_packet *out, const char **why) must_check;

/* "unsupported frontend protocol ...": the server's text for a version (or request code) it does not take now. */
void startup_refusal(uint32_t protocol, char text[STARTUP_REFUSAL_MAX]);

/* Next parameter; false at the end. *cursor starts at NULL. Of several with one name the server takes the last. */
struct startup_param {
	const char *name;
	const char *value;
};
bool startup_next_param(const struct startup_packet *sp, const char **cursor, struct startup_param *out);

/*
 * What to answer to a login's version: the minor version to speak (0 or 2; 3.1, which never was, is answered 3.0,
 * above 3.2 -> 3.2) and whether NegotiateProtocolVersion must be sent (another minor than the one asked for, or any
 * `_pq_.` option: none is known).
 */
uint32_t startup_negotiate(const struct startup_packet *sp, bool *must_negotiate);

/* Names a protocol option, to be listed in NegotiateProtocolVersion, not a setting. */
bool startup_is_protocol_option(const char *name);

/*
 * The `options` startup parameter, split exactly as the server does (pg_split_opts + process_postgres_switches): calls
 * on_setting(name, value, arg) for every -c name=value and --name=value ('-' in names becomes '_' as there), and for
 * the short switches that stand for a setting (-d, -e, -F, -f, -S ...). The server applies these before the other
 * startup parameters. Anything else is STATUS_BAD with the server's message in why (SQLSTATE 42601), after some
 * settings may have been reported. on_setting answers false to stop (STATUS_NO_MEM).
 */
enum status startup_split_options(const char *options,
                                  bool (*on_setting)(const char *name, const char *value, void *arg), void *arg,
                                  char *why, size_t why_cap) must_check;

#endif
