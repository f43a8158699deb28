/* SPDX-License-Identifier: ISC */
/*
 * Writing messages to the end of a struct buf. Errors are sticky in the buffer:
 * check buf.failed once when done. Texts are NUL-terminated UTF-8 or ASCII.
 */
#ifndef PGWEIR_WIRE_BUILD_H
#define PGWEIR_WIRE_BUILD_H

#include "base/buf.h"

/* Any message: type byte 0 for startup-style packets without one. Returns a mark for msg_end. */
uint32_t msg_begin(struct buf *b, char type);
void msg_end(struct buf *b, uint32_t mark); /* fills in the length */
void msg_str(struct buf *b, const char *s); /* with its terminator */

/* ---- to clients ---- */
void build_auth(struct buf *b, uint32_t code, const void *data, size_t n);
void build_auth_sasl(struct buf *b, const char *const *mechanisms); /* NULL-terminated list */
void build_parameter_status(struct buf *b, const char *name, const char *value);
void build_key_data(struct buf *b, uint32_t pid, const uint8_t *secret, size_t n);
void build_ready(struct buf *b, char tx_status);
void build_negotiate(struct buf *b, uint32_t newest_minor, const char *const *unknown_options, size_t n_unknown);
/* severity: "ERROR", "FATAL", "NOTICE", "WARNING"; S and V fields are both set; detail and hint may be NULL */
void build_error(struct buf *b, const char *severity, const char *sqlstate, const char *message, const char *detail,
                 const char *hint);
void build_notice(struct buf *b, const char *severity, const char *sqlstate, const char *message);
void build_command_complete(struct buf *b, const char *tag);
void build_empty_query(struct buf *b);
/* Text-format rows, for the admin console. oids[i] is the column's type OID (25 text, 23 int4, 20 int8, 1700 numeric). */
void build_row_description(struct buf *b, const char *const *names, const uint32_t *oids, size_t n_columns);
void build_data_row(struct buf *b, const char *const *values /* NULL: SQL NULL */, size_t n_columns);

/* ---- to servers ---- */
void build_startup(struct buf *b, uint32_t protocol, const char *const *name_value_pairs /* NULL-terminated */);
void build_cancel(struct buf *b, uint32_t pid, const uint8_t *secret, size_t n);
void build_password(struct buf *b, const char *text);
void build_sasl_initial(struct buf *b, const char *mechanism, const void *data, size_t n);
void build_sasl_response(struct buf *b, const void *data, size_t n);
void build_query(struct buf *b, const char *sql);
void build_sync(struct buf *b);
void build_terminate(struct buf *b);
void build_close_statement(struct buf *b, const char *name);
void build_describe_statement(struct buf *b, const char *name);
void build_flush(struct buf *b);
void build_parse(struct buf *b, const char *name, const char *sql); /* no parameter types */
void build_bind_text(struct buf *b, const char *portal, const char *statement, const char *const *values, size_t n);
void build_execute(struct buf *b, const char *portal);

#endif
