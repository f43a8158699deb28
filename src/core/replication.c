/* SPDX-License-Identifier: ISC */
#include "core/replication.h"

#include "base/clock.h"
#include "core/backend.h"
#include "wire/frame.h"
#include "wire/pgmsg.h"

#include <string.h>
#include <strings.h>

#define ERROR_MAX 32768u /* an ErrorResponse up to that size is awaited whole, to know its severity */

/* ---- the startup parameter ---- */

/* `word` or a beginning of it that is not shorter than `least`. */
static bool
abbreviates(const char *value, const char *word, size_t least)
{
	size_t n = strlen(value);

	return strncasecmp(value, word, n > least ? n : least) == 0;
}

enum status
replication_parse(const char *value, enum replication_kind *out)
{
	if (strcmp(value, "database") == 0)
		*out = REPLICATION_LOGICAL;
	else if (abbreviates(value, "true", 1) || abbreviates(value, "yes", 1) || abbreviates(value, "on", 2) ||
	         strcmp(value, "1") == 0)
		*out = REPLICATION_PHYSICAL;
	else if (abbreviates(value, "false", 1) || abbreviates(value, "no", 1) || abbreviates(value, "off", 2) ||
	         strcmp(value, "0") == 0)
		*out = REPLICATION_NONE;
	else
		return STATUS_BAD;
	return STATUS_OK;
}

const char *
replication_label(const struct session *s)
{
	if (s == NULL || s->replication == NULL)
		return "none";
	return s->replication->kind == REPLICATION_LOGICAL ? "logical" : "physical";
}

const char *
replication_parameter(const struct replication *r)
{
	return r->kind == REPLICATION_LOGICAL ? "database" : "true";
}

/* ---- from the client ---- */

static size_t
min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void
note_client_message(struct session *s)
{
	if (s->replication->phase != REPLICATION_IDLE)
		return;
	s->replication->phase = REPLICATION_BUSY;
	s->request_us = s->backend->request_us = clock_cached_us();
}

enum session_state
replication_client_bytes(struct session *s, struct session_input *in)
{
	enum session_state next = SESSION_TUNNEL;
	size_t pos = min_size(s->msg_left, in->n);
	struct frame f;

	s->msg_left -= (uint32_t)pos;
	while (pos < in->n && next == SESSION_TUNNEL) {
		enum status status = frame_next(in->p + pos, in->n - pos, &f);

		if (status == STATUS_MORE)
			break;
		if (status != STATUS_OK)
			return session_close(s, CLOSE_BAD_PACKET, "invalid message length");
		note_client_message(s);
		pos += f.avail;
		s->msg_left = f.len - f.avail;
		if (f.type == FE_TERMINATE)
			next = replication_client_end(s, CLOSE_CLIENT_BYE);
	}
	in->used = next == SESSION_TUNNEL ? pos : in->n;
	counter_add(&s->pool->stats.bytes_received, pos);
	counter_add(&s->proxy->bytes_from_clients, pos);
	if (pos > 0)
		(void)stream_send(&s->backend->stream, in->p, pos); /* a dead server is told by the loop */
	return next;
}

enum session_state
replication_client_end(struct session *s, enum close_reason reason)
{
	s->close_reason = (uint8_t)reason;
	if (reason == CLOSE_CLIENT_EOF)
		stream_end(&s->backend->stream);
	return SESSION_TUNNEL_END;
}

/* ---- from the server ---- */

static void
note_server_message(struct backend *b, const struct frame *f, const uint8_t *p)
{
	struct replication *r = b->session->replication;

	r->is_complete = f->type == BE_COMMAND_COMPLETE;
	switch (f->type) {
	case BE_READY:
		r->phase = REPLICATION_IDLE;
		break;
	case BE_COPY_BOTH:
		r->phase = REPLICATION_STREAMING;
		break;
	case BE_COPY_DONE:
		r->phase = REPLICATION_BUSY;
		break;
	case BE_ERROR:
		r->phase = REPLICATION_BUSY;
		backend_keep_error(b, p + MSG_HEADER, f->avail - MSG_HEADER);
		break;
	default:
		break;
	}
}

size_t
replication_server_bytes(struct backend *b, const uint8_t *p, size_t n)
{
	struct session *s = b->session;
	struct replication *r = s->replication;
	size_t pos = min_size(r->server_left, n);
	enum status status = STATUS_OK;
	struct frame f;

	r->server_left -= (uint32_t)pos;
	while (pos < n) {
		status = frame_next(p + pos, n - pos, &f);
		if (status != STATUS_OK || (f.type == BE_ERROR && f.avail < f.len && f.len <= ERROR_MAX))
			break;
		note_server_message(b, &f, p + pos);
		pos += f.avail;
		r->server_left = f.len - f.avail;
	}
	if (pos > 0)
		session_reply(s, p, pos);
	if (status == STATUS_BAD) {
		backend_close(b, CLOSE_SERVER_GARBLED, "malformed message");
		return n;
	}
	session_step(s, EV_PROGRESS, NULL);
	return pos;
}

/* ---- ends ---- */

/* A command has an end to wait for; a stream has none, but between two messages the client can be told. */
enum session_state
replication_consider(struct session *s)
{
	const struct replication *r = s->replication;
	enum weir_phase phase = weir_phase(s->proxy->weir);

	if (phase == WEIR_STOPPING ||
	    (phase == WEIR_WAIT_SERVERS && r->phase != REPLICATION_BUSY && r->server_left == 0))
		return session_close(s, CLOSE_SHUTDOWN, NULL);
	return (enum session_state)s->state;
}

enum session_state
replication_server_end(struct session *s, const struct session_input *in)
{
	if (s->state == SESSION_TUNNEL_END)
		return session_leave(s, (enum close_reason)s->close_reason);
	/* its last words have been passed on; a walsender that stops in order says CommandComplete and closes */
	if (in->said != NULL || s->replication->is_complete)
		return session_leave(s, CLOSE_SERVER_SAID);
	return session_leave(s, CLOSE_SERVER_LOST);
}
