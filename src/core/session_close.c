/* SPDX-License-Identifier: ISC */
/* How a session ends: why, what the client is told, what the log says, and what becomes of its backend. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/str.h"
#include "core/backend.h"
#include "core/prepared.h"
#include "core/replication.h"
#include "core/session.h"
#include "core/statement.h"
#include "wire/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum session_state
session_close(struct session *s, enum close_reason reason, const char *detail)
{
	s->close_reason = (uint8_t)reason;
	if (detail != NULL) {
		free(s->close_detail);
		s->close_detail = str_dup(detail);
	}
	return SESSION_CLOSED;
}

void
session_keep_words(struct session *s, const struct said *said)
{
	if (s->close_said == NULL && (s->close_said = calloc(1, sizeof(*s->close_said))) == NULL)
		return;
	*s->close_said = *said;
}

/* What the client and the log are told: the server's words, else something precise, else the reason's text. */
static const char *
text_of(const struct session *s)
{
	if (s->close_said != NULL)
		return s->close_said->message;
	return s->close_detail != NULL ? s->close_detail : close_row(s->close_reason)->text;
}

static void
tell_client(struct session *s)
{
	const struct close_row *row = close_row(s->close_reason);
	const struct said *said = s->close_said;
	struct buf out;

	if (!row->tells || s->stream.fd < 0)
		return;
	if (s->replication != NULL && s->replication->server_left > 0)
		return; /* it would be taken for the rest of the server's message */
	buf_init(&out);
	build_error(&out, "FATAL", said ? said->sqlstate : row->sqlstate, text_of(s),
	            said && said->detail[0] ? said->detail : NULL, said && said->hint[0] ? said->hint : NULL);
	if (!out.failed)
		(void)stream_send(&s->stream, buf_head(&out), out.len);
	buf_fini(&out);
}

static void
log_end(const struct session *s)
{
	const struct close_row *row = close_row(s->close_reason);
	const struct config *c = s->proxy->weir->config;
	uint64_t age_s = (clock_cached_us() - s->connected_us) / 1000000;
	char msg[400];

	if (row->level >= LOG_INFO_ ? !c->log_disconnections : !c->log_pooler_errors)
		return;
	snprintf(msg, sizeof(msg), "closing because: %s (age=%llus)", text_of(s), (unsigned long long)age_s);
	log_event(row->level, "client_close", LOG_U("client", s->id), LOG_U("proxy", s->proxy->index),
	          LOG_S("db", s->pool ? s->pool->group->database : NULL), LOG_S("user", s->user),
	          LOG_S("reason", row->name), LOG_S("sqlstate", row->sqlstate[0] ? row->sqlstate : NULL),
	          LOG_S("msg", msg));
}

/* Unread bytes would turn our close into a reset, which can overtake the error that was just sent. */
static void
drain_socket(int fd)
{
	uint8_t scratch[4096];

	for (int i = 0; i < 16; i++)
		if (recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) <= 0)
			return;
}

static void
bury(struct loop_grave *g)
{
	struct session *s = container_of(g, struct session, grave);

	settings_unref(&s->settings);
	state_free(s);
	settings_unref(&s->meaning);
	settings_unref(&s->meaning_of);
	names_free(&s->names);
	names_free(&s->lost);
	unnamed_free(&s->unnamed);
	free(s->replication);
	free(s->user);
	free(s->close_detail);
	free(s->close_said);
	secret_wipe_bytes(s->cancel_secret, sizeof(s->cancel_secret));
	s->magic = 0;
	slab_free(s->proxy->session_slab, s);
}

void
session_end(struct session *s)
{
	struct proxy *p = s->proxy;

	tell_client(s);
	log_end(s);
	if (s->backend != NULL)
		backend_abandon(s->backend);
	if (s->logged_in)
		group_remove_client(s->pool->group, s->user);
	if (s->pins != 0)
		session_unpin(s);
	if (s->secret_len > 0)
		HASH_DEL(p->sessions_by_key, s);
	login_free(&s->login);
	loop_timer_remove(p->loop, &s->timer);
	if (s->stream.fd >= 0 && s->close_reason != CLOSE_TO_CONSOLE) /* there others read on */
		drain_socket(s->stream.fd);
	stream_close(&s->stream);
	TAILQ_REMOVE(&p->sessions, s, link);
	counter_add(&p->n_sessions, (uint64_t)-1);
	counter_add(&p->n_sessions_ended, 1);
	atomic_fetch_sub(&p->weir->n_clients, 1);
	loop_bury(p->loop, &s->grave, bury);
}
