/* SPDX-License-Identifier: ISC */
#include "proxy/snapshot.h"

#include "base/clock.h"
#include "base/str.h"
#include "core/backend.h"
#include "core/pool.h"
#include "core/prepared_set.h"
#include "core/replication.h"
#include "core/session.h"

#include <stdlib.h>

/* The process at the other end of a Unix socket. */
static uint32_t
peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? (uint32_t)cred.pid : 0;
}

void
snapshot_take_socket(struct snapshot_link *row, int fd)
{
	row->peer.len = row->local.len = sizeof(row->peer.ss);
	if (getpeername(fd, &row->peer.sa, &row->peer.len) < 0)
		row->peer.len = 0;
	if (getsockname(fd, &row->local.sa, &row->local.len) < 0)
		row->local.len = 0;
	row->remote_pid = row->peer.len > 0 && addr_is_unix(&row->peer) ? peer_pid(fd) : 0;
}

static void
take_buffers(struct snapshot_link *row, const struct stream *s, uint32_t n_message_left)
{
	row->n_message_left = n_message_left;
	row->n_unused = s->in.len;
	row->n_unsent = s->out.len;
}

static void
name_row(struct snapshot_link *row, const struct group *g, const char *user, const struct settings *settings)
{
	const char *application = settings ? settings_get(settings, "application_name") : NULL;

	str_copy(row->database, sizeof(row->database), g ? g->database : "");
	str_copy(row->user, sizeof(row->user), user ? user : "");
	str_copy(row->application_name, sizeof(row->application_name), application ? application : "");
}

static void
take_clients(struct proxy *p, struct mail_snapshot *m)
{
	size_t cap = counter_get(&p->n_sessions);
	const struct session *s;

	m->links = calloc(cap ? cap : 1, sizeof(*m->links));
	m->failed = m->links == NULL;
	TAILQ_FOREACH (s, &p->sessions, link) {
		struct snapshot_link *row;

		if (m->failed || m->n == cap)
			return;
		row = &m->links[m->n++];
		name_row(row, s->pool ? s->pool->group : NULL, s->user, s->settings);
		snapshot_take_socket(row, s->stream.fd);
		row->state = session_state_label((enum session_state)s->state);
		row->replication = replication_label(s);
		row->connect_us = s->connected_us;
		row->request_us = s->request_us;
		row->wait_us = s->is_queued ? clock_cached_us() - s->wait_since_us : 0;
		row->id = s->id;
		row->link_id = s->backend ? s->backend->id : 0;
		row->n_prepared = (uint32_t)names_n(s->names);
		take_buffers(row, &s->stream, s->msg_left);
		row->proxy = p->index;
	}
}

static void
take_servers(struct proxy *p, struct mail_snapshot *m)
{
	size_t cap = counter_get(&p->n_backends);
	const struct backend *b;

	m->links = calloc(cap ? cap : 1, sizeof(*m->links));
	m->failed = m->links == NULL;
	TAILQ_FOREACH (b, &p->backends, link) {
		struct snapshot_link *row;

		if (m->failed || m->n == cap)
			return;
		row = &m->links[m->n++];
		name_row(row, b->pool->group, b->pool->group->user, b->is_own ? b->login : b->label);
		row->group = b->pool->group;
		row->host = b->host;
		row->replication = replication_label(b->is_own ? b->session : NULL);
		snapshot_take_socket(row, b->stream.fd);
		row->state = backend_state_label((enum backend_state)b->state);
		row->connect_us = b->connected_us;
		row->request_us = b->request_us;
		row->id = b->id;
		row->link_id = b->session ? b->session->id : 0;
		row->remote_pid = b->server_pid;
		take_buffers(row, &b->stream, b->msg_left);
		row->close_needed = b->retire;
		row->n_prepared = (uint32_t)prepared_set_n(b->prepared);
		row->proxy = p->index;
	}
}

static int
compare_rows(const void *a, const void *b)
{
	const struct snapshot_pool *x = a, *y = b;

	return x->group < y->group ? -1 : x->group > y->group;
}

/* The rows are sorted by now. */
static struct snapshot_pool *
row_of(struct mail_snapshot *m, const struct pool *pool)
{
	struct snapshot_pool key;

	if (pool == NULL)
		return NULL;
	key.group = pool->group;
	return bsearch(&key, m->pools, m->n, sizeof(key), compare_rows);
}

static void
count_sessions(struct proxy *p, struct mail_snapshot *m)
{
	const struct session *s;

	TAILQ_FOREACH (s, &p->sessions, link) {
		struct snapshot_pool *row = row_of(m, s->pool);

		if (row == NULL)
			continue;
		if (s->is_queued)
			row->cl_waiting++;
		else
			row->cl_active++;
	}
}

static void
count_backend(struct snapshot_pool *row, const struct backend *b)
{
	/* each cancel request has a connection of its own to the server, on behalf of a client or of ours */
	row->n_prepared += prepared_set_n(b->prepared);
	row->cl_active_cancel += b->n_cancels;
	row->sv_active_cancel += b->n_cancels;
	switch ((enum backend_state)b->state) {
	case BACKEND_CONNECTING:
	case BACKEND_LOGIN:
		row->sv_login++;
		break;
	case BACKEND_IDLE:
		row->sv_idle++;
		break;
	case BACKEND_ACTIVE:
	case BACKEND_ABANDONED:
	case BACKEND_TUNNEL:
		row->sv_active++;
		break;
	case BACKEND_CLEANING:
		row->sv_tested++;
		break;
	case BACKEND_BEING_CANCELED:
		row->sv_being_canceled++;
		break;
	case BACKEND_CLOSED:
	case BACKEND_STATE_N:
		break;
	}
}

static void
take_stats(struct snapshot_pool *row, const struct pool_stats *s)
{
	row->n_xacts = counter_get(&s->n_xacts);
	row->n_queries = counter_get(&s->n_queries);
	row->n_assignments = counter_get(&s->n_assignments);
	row->n_client_logins = counter_get(&s->n_client_logins);
	row->bytes_received = counter_get(&s->bytes_received);
	row->bytes_sent = counter_get(&s->bytes_sent);
	row->xact_us = counter_get(&s->xact_us);
	row->query_us = counter_get(&s->query_us);
	row->wait_us = counter_get(&s->wait_us);
	row->n_client_parses = counter_get(&s->n_client_parses);
	row->n_server_parses = counter_get(&s->n_server_parses);
	row->n_binds = counter_get(&s->n_binds);
	row->n_probes = counter_get(&s->n_probes);
	row->n_replays = counter_get(&s->n_replays);
	row->n_leaks = counter_get(&s->n_leaks);
	for (unsigned i = 0; i < PIN_N; i++)
		row->n_pins[i] = counter_get(&s->n_pins[i]);
	row->n_prepared_hits = counter_get(&s->n_prepared_hits);
	row->n_evictions = counter_get(&s->n_evictions);
}

static void
take_pools(struct proxy *p, struct mail_snapshot *m)
{
	const struct pool *pool;
	const struct backend *b;

	m->pools = calloc(HASH_COUNT(p->pools) + 1, sizeof(*m->pools));
	m->failed = m->pools == NULL;
	if (m->failed)
		return;
	for (pool = p->pools; pool != NULL; pool = pool->hh.next) {
		struct snapshot_pool *row = &m->pools[m->n++];
		const struct session *first = TAILQ_FIRST(&pool->waiters);

		row->group = pool->group;
		row->max_wait_us = first ? clock_cached_us() - first->wait_since_us : 0;
		take_stats(row, &pool->stats);
	}
	qsort(m->pools, m->n, sizeof(*m->pools), compare_rows);
	count_sessions(p, m);
	TAILQ_FOREACH (b, &p->backends, link) {
		struct snapshot_pool *row = row_of(m, b->pool);

		if (row != NULL)
			count_backend(row, b);
	}
}

/* ---- session state ---- */

static void
take_pin(struct snapshot_pin *row, const struct session *s)
{
	str_copy(row->database, sizeof(row->database), s->pool->group->database);
	str_copy(row->user, sizeof(row->user), s->user);
	row->state = session_state_label((enum session_state)s->state);
	row->id = s->id;
	row->link_id = s->backend ? s->backend->id : 0;
	row->server_pid = s->backend ? s->backend->server_pid : 0;
	row->since_us = s->marks.pinned_since_us;
	row->pins = s->pins;
	if (s->marks.text != NULL)
		row->text = *s->marks.text;
}

static void
take_pins(struct proxy *p, struct mail_snapshot *m)
{
	size_t cap = counter_get(&p->n_pinned);
	const struct session *s;

	m->pins = calloc(cap ? cap : 1, sizeof(*m->pins));
	m->failed = m->pins == NULL;
	TAILQ_FOREACH (s, &p->sessions, link)
		if (!m->failed && m->n < cap && s->pins != 0)
			take_pin(&m->pins[m->n++], s);
}

static int
compare_settings(const void *a, const void *b)
{
	const struct snapshot_settings *x = a, *y = b;

	return x->settings < y->settings ? -1 : x->settings > y->settings;
}

/* One row for each set, with a reference of its own. */
static void
merge_settings(struct mail_snapshot *m)
{
	size_t n = 0;

	qsort(m->settings, m->n, sizeof(*m->settings), compare_settings);
	for (size_t i = 0; i < m->n; i++) {
		if (n > 0 && m->settings[n - 1].settings == m->settings[i].settings) {
			m->settings[n - 1].n_sessions += m->settings[i].n_sessions;
			m->settings[n - 1].n_backends += m->settings[i].n_backends;
			continue;
		}
		m->settings[n] = m->settings[i];
		(void)settings_ref(m->settings[n++].settings);
	}
	m->n = n;
}

static void
take_settings(struct proxy *p, struct mail_snapshot *m)
{
	size_t cap = counter_get(&p->n_sessions) + counter_get(&p->n_backends);
	const struct session *s;
	const struct backend *b;

	m->settings = calloc(cap ? cap : 1, sizeof(*m->settings));
	m->failed = m->settings == NULL;
	if (m->failed)
		return;
	TAILQ_FOREACH (s, &p->sessions, link)
		if (m->n < cap && s->logged_in && s->settings != NULL)
			m->settings[m->n++] = (struct snapshot_settings){s->settings, 1, 0};
	TAILQ_FOREACH (b, &p->backends, link)
		if (m->n < cap && b->label != NULL)
			m->settings[m->n++] = (struct snapshot_settings){b->label, 0, 1};
	merge_settings(m);
}

size_t
snapshot_row_size(enum snapshot_kind kind)
{
	static const size_t sizes[SNAPSHOT_KIND_N] = {
		[SNAPSHOT_CLIENTS] = sizeof(struct snapshot_link),
		[SNAPSHOT_SERVERS] = sizeof(struct snapshot_link),
		[SNAPSHOT_POOLS] = sizeof(struct snapshot_pool),
		[SNAPSHOT_PINS] = sizeof(struct snapshot_pin),
		[SNAPSHOT_SETTINGS] = sizeof(struct snapshot_settings),
	};

	return sizes[kind];
}

void
snapshot_free(struct mail_snapshot *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; m->kind == SNAPSHOT_SETTINGS && i < m->n; i++)
		settings_unref(&m->settings[i].settings);
	free(m->rows);
	free(m);
}

void
snapshot_take(struct proxy *p, struct mail_snapshot *m)
{
	m->proxy = p->index;
	switch (m->kind) {
	case SNAPSHOT_CLIENTS:
		take_clients(p, m);
		break;
	case SNAPSHOT_SERVERS:
		take_servers(p, m);
		break;
	case SNAPSHOT_POOLS:
		take_pools(p, m);
		break;
	case SNAPSHOT_PINS:
		take_pins(p, m);
		break;
	case SNAPSHOT_SETTINGS:
		take_settings(p, m);
		break;
	case SNAPSHOT_KIND_N:
		break;
	}
	mailbox_post(p->weir->main_mailbox, &m->mail);
}
