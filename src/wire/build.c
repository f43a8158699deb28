/* SPDX-License-Identifier: ISC */
#include "wire/build.h"

#include <string.h>

#include "wire/pgmsg.h"

/* The mark counts from the buffer's head: it survives growth, which may move consumed bytes out. */
uint32_t
msg_begin(struct buf *b, char type)
{
	if (type != 0)
		buf_append_u8(b, (uint8_t)type);
	uint32_t mark = b->len;
	buf_append_u32(b, 0);
	return mark;
}

void
msg_end(struct buf *b, uint32_t mark)
{
	if (b->failed)
		return;
	uint32_t len = b->len - mark;
	uint8_t *p = b->data + b->off + mark;
	p[0] = (uint8_t)(len >> 24);
	p[1] = (uint8_t)(len >> 16);
	p[2] = (uint8_t)(len >> 8);
	p[3] = (uint8_t)len;
}

void
msg_str(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s) + 1);
}

/* A value of a row or a parameter: its length and bytes, or -1 for NULL. */
static void
msg_value(struct buf *b, const char *value)
{
	if (value == NULL) {
		buf_append_u32(b, UINT32_MAX);
		return;
	}
	size_t n = strlen(value);
	buf_append_u32(b, (uint32_t)n);
	buf_append(b, value, n);
}

static void
build_empty(struct buf *b, char type)
{
	msg_end(b, msg_begin(b, type));
}

static void
build_one_string(struct buf *b, char type, const char *s)
{
	uint32_t mark = msg_begin(b, type);
	msg_str(b, s);
	msg_end(b, mark);
}

/* ---- to clients ---- */

void
build_auth(struct buf *b, uint32_t code, const void *data, size_t n)
{
	uint32_t mark = msg_begin(b, BE_AUTH);
	buf_append_u32(b, code);
	buf_append(b, data, n);
	msg_end(b, mark);
}

void
build_auth_sasl(struct buf *b, const char *const *mechanisms)
{
	uint32_t mark = msg_begin(b, BE_AUTH);
	buf_append_u32(b, AUTH_SASL);
	for (; *mechanisms != NULL; mechanisms++)
		msg_str(b, *mechanisms);
	buf_append_u8(b, 0);
	msg_end(b, mark);
}

void
build_parameter_status(struct buf *b, const char *name, const char *value)
{
	uint32_t mark = msg_begin(b, BE_PARAMETER_STATUS);
	msg_str(b, name);
	msg_str(b, value);
	msg_end(b, mark);
}

void
build_key_data(struct buf *b, uint32_t pid, const uint8_t *secret, size_t n)
{
	uint32_t mark = msg_begin(b, BE_KEY_DATA);
	buf_append_u32(b, pid);
	buf_append(b, secret, n);
	msg_end(b, mark);
}

void
build_ready(struct buf *b, char tx_status)
{
	uint32_t mark = msg_begin(b, BE_READY);
	buf_append_u8(b, (uint8_t)tx_status);
	msg_end(b, mark);
}

/* The documentation speaks of a minor version; servers send, and libpq compares, the whole number, major included. */
void
build_negotiate(struct buf *b, uint32_t newest_minor, const char *const *unknown_options, size_t n_unknown)
{
	uint32_t mark = msg_begin(b, BE_NEGOTIATE);
	buf_append_u32(b, PROTO_3_0 | newest_minor);
	buf_append_u32(b, (uint32_t)n_unknown);
	for (size_t i = 0; i < n_unknown; i++)
		msg_str(b, unknown_options[i]);
	msg_end(b, mark);
}

static void
error_field(struct buf *b, char code, const char *text)
{
	if (text == NULL)
		return;
	buf_append_u8(b, (uint8_t)code);
	msg_str(b, text);
}

static void
build_report(struct buf *b, char type, const char *severity, const char *sqlstate, const char *message,
             const char *detail, const char *hint)
{
	uint32_t mark = msg_begin(b, type);
	error_field(b, 'S', severity);
	error_field(b, 'V', severity);
	error_field(b, 'C', sqlstate);
	error_field(b, 'M', message);
	error_field(b, 'D', detail);
	error_field(b, 'H', hint);
	buf_append_u8(b, 0);
	msg_end(b, mark);
}

void
build_error(struct buf *b, const char *severity, const char *sqlstate, const char *message, const char *detail,
            const char *hint)
{
	build_report(b, BE_ERROR, severity, sqlstate, message, detail, hint);
}

void
build_notice(struct buf *b, const char *severity, const char *sqlstate, const char *message)
{
	build_report(b, BE_NOTICE, severity, sqlstate, message, NULL, NULL);
}

void
build_command_complete(struct buf *b, const char *tag)
{
	build_one_string(b, BE_COMMAND_COMPLETE, tag);
}

void
build_empty_query(struct buf *b)
{
	build_empty(b, BE_EMPTY_QUERY);
}

/* pg_type.typlen of the types the admin console uses; -1 (variable length) for all others. */
static uint16_t
type_len(uint32_t oid)
{
	switch (oid) {
	case 16: /* bool */
		return 1;
	case 23: /* int4 */
		return 4;
	case 20:   /* int8 */
	case 701:  /* float8 */
	case 1114: /* timestamp */
	case 1184: /* timestamptz */
		return 8;
	default:
		return UINT16_MAX;
	}
}

void
build_row_description(struct buf *b, const char *const *names, const uint32_t *oids, size_t n_columns)
{
	uint32_t mark = msg_begin(b, BE_ROW_DESCRIPTION);
	buf_append_u16(b, (uint16_t)n_columns);
	for (size_t i = 0; i < n_columns; i++) {
		msg_str(b, names[i]);
		buf_append_u32(b, 0); /* no table */
		buf_append_u16(b, 0); /* no column of it */
		buf_append_u32(b, oids[i]);
		buf_append_u16(b, type_len(oids[i]));
		buf_append_u32(b, UINT32_MAX); /* no type modifier */
		buf_append_u16(b, 0);          /* text format */
	}
	msg_end(b, mark);
}

void
build_data_row(struct buf *b, const char *const *values, size_t n_columns)
{
	uint32_t mark = msg_begin(b, BE_DATA_ROW);
	buf_append_u16(b, (uint16_t)n_columns);
	for (size_t i = 0; i < n_columns; i++)
		msg_value(b, values[i]);
	msg_end(b, mark);
}

/* ---- to servers ---- */

void
build_startup(struct buf *b, uint32_t protocol, const char *const *name_value_pairs)
{
	uint32_t mark = msg_begin(b, 0);
	buf_append_u32(b, protocol);
	for (; *name_value_pairs != NULL; name_value_pairs++)
		msg_str(b, *name_value_pairs);
	buf_append_u8(b, 0);
	msg_end(b, mark);
}

void
build_cancel(struct buf *b, uint32_t pid, const uint8_t *secret, size_t n)
{
	uint32_t mark = msg_begin(b, 0);
	buf_append_u32(b, PROTO_CANCEL);
	buf_append_u32(b, pid);
	buf_append(b, secret, n);
	msg_end(b, mark);
}

void
build_password(struct buf *b, const char *text)
{
	build_one_string(b, FE_PASSWORD, text);
}

void
build_sasl_initial(struct buf *b, const char *mechanism, const void *data, size_t n)
{
	uint32_t mark = msg_begin(b, FE_PASSWORD);
	msg_str(b, mechanism);
	buf_append_u32(b, (uint32_t)n);
	buf_append(b, data, n);
	msg_end(b, mark);
}

void
build_sasl_response(struct buf *b, const void *data, size_t n)
{
	uint32_t mark = msg_begin(b, FE_PASSWORD);
	buf_append(b, data, n);
	msg_end(b, mark);
}

void
build_query(struct buf *b, const char *sql)
{
	build_one_string(b, FE_QUERY, sql);
}

void
build_sync(struct buf *b)
{
	build_empty(b, FE_SYNC);
}

void
build_terminate(struct buf *b)
{
	build_empty(b, FE_TERMINATE);
}

static void
build_of_statement(struct buf *b, char type, const char *name)
{
	uint32_t mark = msg_begin(b, type);
	buf_append_u8(b, 'S');
	msg_str(b, name);
	msg_end(b, mark);
}

void
build_close_statement(struct buf *b, const char *name)
{
	build_of_statement(b, FE_CLOSE, name);
}

void
build_describe_statement(struct buf *b, const char *name)
{
	build_of_statement(b, FE_DESCRIBE, name);
}

void
build_flush(struct buf *b)
{
	msg_end(b, msg_begin(b, FE_FLUSH));
}

void
build_parse(struct buf *b, const char *name, const char *sql)
{
	uint32_t mark = msg_begin(b, FE_PARSE);
	msg_str(b, name);
	msg_str(b, sql);
	buf_append_u16(b, 0); /* parameter types: the server infers them */
	msg_end(b, mark);
}

void
build_bind_text(struct buf *b, const char *portal, const char *statement, const char *const *values, size_t n)
{
	uint32_t mark = msg_begin(b, FE_BIND);
	msg_str(b, portal);
	msg_str(b, statement);
	buf_append_u16(b, 0); /* parameter formats: all text */
	buf_append_u16(b, (uint16_t)n);
	for (size_t i = 0; i < n; i++)
		msg_value(b, values[i]);
	buf_append_u16(b, 0); /* result formats: all text */
	msg_end(b, mark);
}

void
build_execute(struct buf *b, const char *portal)
{
	uint32_t mark = msg_begin(b, FE_EXECUTE);
	msg_str(b, portal);
	buf_append_u32(b, 0); /* all rows */
	msg_end(b, mark);
}
