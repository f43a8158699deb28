/* SPDX-License-Identifier: ISC */
#include "wire/parse.h"

#include <string.h>

#include "wire/frame.h"
#include "wire/pgmsg.h"

void
reader_init(struct reader *r, const uint8_t *p, size_t n)
{
	r->p = p;
	r->left = n;
	r->bad = false;
}

/* After the first bad read nothing is left, so that a later, smaller read can't succeed on the wrong bytes. */
static void
reader_fail(struct reader *r)
{
	r->left = 0;
	r->bad = true;
}

const uint8_t *
reader_bytes(struct reader *r, size_t n)
{
	if (r->bad || n > r->left) {
		reader_fail(r);
		return NULL;
	}
	const uint8_t *p = r->p;
	if (n > 0) /* p may be NULL for an empty body */
		r->p += n;
	r->left -= n;
	return p;
}

uint8_t
reader_u8(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 1);
	return p == NULL ? 0 : p[0];
}

uint16_t
reader_u16(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 2);
	return p == NULL ? 0 : frame_get_u16(p);
}

uint32_t
reader_u32(struct reader *r)
{
	const uint8_t *p = reader_bytes(r, 4);
	return p == NULL ? 0 : frame_get_u32(p);
}

const char *
reader_str(struct reader *r)
{
	const uint8_t *end = r->left == 0 ? NULL : memchr(r->p, 0, r->left);
	if (end == NULL) {
		reader_fail(r);
		return "";
	}
	return (const char *)reader_bytes(r, (size_t)(end - r->p) + 1);
}

/* The verdict on a message that must end here. */
static enum status
reader_end(const struct reader *r)
{
	return r->bad || r->left != 0 ? STATUS_BAD : STATUS_OK;
}

static void
error_field_set(struct error_fields *out, char code, const char *text)
{
	switch (code) {
	case 'V':
		out->severity = text;
		break;
	case 'S':
		if (out->severity == NULL)
			out->severity = text;
		break;
	case 'C':
		out->sqlstate = text;
		break;
	case 'M':
		out->message = text;
		break;
	case 'D':
		out->detail = text;
		break;
	case 'H':
		out->hint = text;
		break;
	case 'R':
		out->routine = text;
		break;
	default: /* position, file, line, ...: the peer's business */
		break;
	}
}

enum status
parse_error(const uint8_t *body, size_t n, struct error_fields *out)
{
	struct reader r;
	reader_init(&r, body, n);
	memset(out, 0, sizeof(*out));
	for (char code; (code = (char)reader_u8(&r)) != 0;)
		error_field_set(out, code, reader_str(&r));
	return reader_end(&r);
}

enum status
parse_parameter_status(const uint8_t *body, size_t n, struct parameter_status *out)
{
	struct reader r;
	reader_init(&r, body, n);
	out->name = reader_str(&r);
	out->value = reader_str(&r);
	return reader_end(&r);
}

enum status
parse_ready(const uint8_t *body, size_t n, char *tx_status)
{
	if (n != 1)
		return STATUS_BAD;
	*tx_status = (char)body[0];
	return *tx_status == TX_IDLE || *tx_status == TX_OPEN || *tx_status == TX_FAILED ? STATUS_OK : STATUS_BAD;
}

enum status
parse_key_data(const uint8_t *body, size_t n, struct key_data *out)
{
	struct reader r;
	reader_init(&r, body, n);
	out->pid = reader_u32(&r);
	out->secret_len = (uint32_t)r.left;
	out->secret = reader_bytes(&r, r.left);
	if (out->secret_len < KEY_SECRET_MIN || out->secret_len > KEY_SECRET_MAX)
		return STATUS_BAD;
	return reader_end(&r);
}

enum status
parse_auth(const uint8_t *body, size_t n, struct auth_request *out)
{
	struct reader r;
	reader_init(&r, body, n);
	out->code = reader_u32(&r);
	out->data_len = r.left;
	out->data = reader_bytes(&r, r.left);
	return reader_end(&r);
}

enum status
parse_sasl_initial(const uint8_t *body, size_t n, struct sasl_initial *out)
{
	struct reader r;
	reader_init(&r, body, n);
	out->mechanism = reader_str(&r);
	uint32_t len = reader_u32(&r);
	out->data = NULL;
	out->data_len = 0;
	if (len != UINT32_MAX) {
		out->data = reader_bytes(&r, len);
		out->data_len = r.bad ? 0 : len;
	}
	return reader_end(&r);
}

enum status
parse_statement_ref(char type, const uint8_t *body, size_t n, struct statement_ref *out)
{
	struct reader r;
	reader_init(&r, body, n);
	out->kind = 'S';
	switch (type) {
	case FE_PARSE:
		out->name = reader_str(&r);
		return r.bad ? STATUS_BAD : STATUS_OK;
	case FE_BIND:
		(void)reader_str(&r); /* the portal */
		out->name = reader_str(&r);
		return r.bad ? STATUS_BAD : STATUS_OK;
	case FE_DESCRIBE:
	case FE_CLOSE:
		out->kind = (char)reader_u8(&r);
		out->name = reader_str(&r);
		if (out->kind != 'S' && out->kind != 'P')
			return STATUS_BAD;
		return reader_end(&r);
	default:
		out->name = "";
		return STATUS_BAD;
	}
}
