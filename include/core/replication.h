/* SPDX-License-Identifier: ISC */
/*
 * Replication connections: a session whose startup packet says `replication` gets a
 * server connection of its own, opened with the same startup settings and closed with
 * the session. It takes a token of its group like any other, but is never pooled: both
 * directions pass as they are, framed only to know where messages end. Belongs to the
 * session's proxy.
 */
#ifndef PGWEIR_CORE_REPLICATION_H
#define PGWEIR_CORE_REPLICATION_H

#include "base/status.h"
#include "core/session.h"

enum replication_kind { REPLICATION_NONE, REPLICATION_PHYSICAL, REPLICATION_LOGICAL };

/* What the server is doing, as its messages tell. */
enum replication_phase {
	REPLICATION_IDLE,      /* awaits a command */
	REPLICATION_BUSY,      /* answers one */
	REPLICATION_STREAMING, /* COPY in both directions, until one side ends it */
};

struct replication {
	enum replication_kind kind;
	enum replication_phase phase;
	uint32_t server_left; /* bytes of a server's message under way */
	bool is_complete;     /* the server's last message was a CommandComplete: it may close in peace */
};

/* The startup parameter's value, read as the server reads it. STATUS_BAD: no such value. */
enum status replication_parse(const char *value, enum replication_kind *out) must_check;
const char *replication_label(const struct session *s);         /* for SHOW; NULL is no session */
const char *replication_parameter(const struct replication *r); /* the value for the server */

/* SESSION_TUNNEL: what the client sends; answers the next state. */
enum session_state replication_client_bytes(struct session *s, struct session_input *in);
/* No more will come from the client: the server is told so and may finish. */
enum session_state replication_client_end(struct session *s, enum close_reason reason);
/* May go on, or must end since the daemon does. */
enum session_state replication_consider(struct session *s);
/* The server has closed. */
enum session_state replication_server_end(struct session *s, const struct session_input *in);
/* BACKEND_TUNNEL: what the server sends. */
size_t replication_server_bytes(struct backend *b, const uint8_t *p, size_t n);

#endif
