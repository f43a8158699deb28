/* SPDX-License-Identifier: ISC */
/*
 * Reading whole messages: a bounds-checked cursor and the few messages whose
 * fields pgweir looks at. Pure; results point into the caller's bytes.
 */
#ifndef PGWEIR_WIRE_PARSE_H
#define PGWEIR_WIRE_PARSE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cursor: reads past the end set `bad` and answer zero or "". */
struct reader {
	const uint8_t *p;
	size_t left;
	bool bad;
};
void reader_init(struct reader *r, const uint8_t *p, size_t n);
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
const char *reader_str(struct reader *r); /* NUL-terminated text inside the bytes */
const uint8_t *reader_bytes(struct reader *r, size_t n);

/* The functions below take the body of a message (after the five header bytes). */

struct error_fields {         /* ErrorResponse / NoticeResponse; absent fields are NULL, of any peer */
	const char *severity; /* 'V' if present, else 'S' */
	const char *sqlstate;
	const char *message;
	const char *detail;
	const char *hint;
	const char *routine; /* of the server's source: the same in any language */
};
enum status parse_error(const uint8_t *body, size_t n, struct error_fields *out) must_check;

struct parameter_status {
	const char *name;
	const char *value;
};
enum status parse_parameter_status(const uint8_t *body, size_t n, struct parameter_status *out) must_check;

/* ReadyForQuery: TX_IDLE, TX_OPEN or TX_FAILED; STATUS_BAD for anything else. */
enum status parse_ready(const uint8_t *body, size_t n, char *tx_status) must_check;

/* BackendKeyData: secret of 4..256 bytes (protocol 3.2). */
struct key_data {
	uint32_t pid;
	const uint8_t *secret;
	uint32_t secret_len;
};
enum status parse_key_data(const uint8_t *body, size_t n, struct key_data *out) must_check;

/* Authentication request: the code and what follows it. */
struct auth_request {
	uint32_t code; /* AUTH_... */
	const uint8_t *data;
	size_t data_len;
};
enum status parse_auth(const uint8_t *body, size_t n, struct auth_request *out) must_check;

/* SASLInitialResponse: mechanism and initial response (NULL, 0 when absent: length -1). */
struct sasl_initial {
	const char *mechanism;
	const uint8_t *data;
	size_t data_len;
};
enum status parse_sasl_initial(const uint8_t *body, size_t n, struct sasl_initial *out) must_check;

/* Statement name of Parse / Bind (second string) / Describe and Close ('S' or 'P' kind first). */
struct statement_ref {
	char kind;        /* Describe, Close: 'S' or 'P'; else 'S' */
	const char *name; /* the statement's (or for kind 'P' the portal's) name */
};
enum status parse_statement_ref(char type, const uint8_t *body, size_t n, struct statement_ref *out) must_check;

#endif
