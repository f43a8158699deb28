/* SPDX-License-Identifier: ISC */
/*
 * Protocol messages by hand, on purpose not with the daemon's own codec: tests
 * must not share its mistakes. A packet is a growing run of messages.
 */
#ifndef PGWEIR_TEST_PACKET_H
#define PGWEIR_TEST_PACKET_H

#include <stddef.h>
#include <stdint.h>

struct packet {
	uint8_t *data;
	size_t n, cap;
	size_t open; /* where the length of the message being built goes, + 1; 0: none */
};

void packet_free(struct packet *p);
void packet_clear(struct packet *p);
void packet_bytes(struct packet *p, const void *data, size_t n);
void packet_i8(struct packet *p, int v);
void packet_i16(struct packet *p, int v);
void packet_i32(struct packet *p, int64_t v);
void packet_str(struct packet *p, const char *s); /* with its zero */
void packet_begin(struct packet *p, char type);   /* type 0: a startup message, without one */
void packet_end(struct packet *p);

/* Whole messages. */
void packet_startup(struct packet *p, int32_t version, const char *const *pairs); /* name, value ... NULL */
void packet_login(struct packet *p, const char *user, const char *database);
void packet_query(struct packet *p, const char *sql);
void packet_parse(struct packet *p, const char *name, const char *sql);
void packet_bind(struct packet *p, const char *portal, const char *statement); /* no parameters, text results */
void packet_execute(struct packet *p, const char *portal, int max_rows);
void packet_simple(struct packet *p, char type); /* without a body: Sync, Flush, Terminate ... */

uint32_t packet_read_u32(const uint8_t *p);
int packet_read_i16(const uint8_t *p);

#endif
