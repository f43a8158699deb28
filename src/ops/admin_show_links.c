/* SPDX-License-Identifier: ISC */
/* SHOW POOLS, CLIENTS, SERVERS and SOCKETS: the rows of all proxies put together. */
#include "core/group.h"
#include "core/statement.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- clients and servers ---- */

static const struct reply_column columns[] = {
	{"type", REPLY_TEXT},
	{"user", REPLY_TEXT},
	{"database", REPLY_TEXT},
	{"replication", REPLY_TEXT},
	{"state", REPLY_TEXT},
	{"addr", REPLY_TEXT},
	{"port", REPLY_INT4},
	{"local_addr", REPLY_TEXT},
	{"local_port", REPLY_INT4},
	{"connect_time", REPLY_TEXT},
	{"request_time", REPLY_TEXT},
	{"wait", REPLY_INT4},
	{"wait_us", REPLY_INT4},
	{"close_needed", REPLY_INT4},
	{"ptr", REPLY_TEXT},
	{"link", REPLY_TEXT},
	{"remote_pid", REPLY_INT4},
	{"tls", REPLY_TEXT},
	{"application_name", REPLY_TEXT},
	{"prepared_statements", REPLY_INT4},
	{"id", REPLY_INT8},
	/* SHOW SOCKETS and ACTIVE_SOCKETS go on */
	{"recv_pos", REPLY_INT4},
	{"pkt_pos", REPLY_INT4},
	{"pkt_remain", REPLY_INT4},
	{"send_pos", REPLY_INT4},
	{"send_remain", REPLY_INT4},
	{"pkt_avail", REPLY_INT4},
	{"send_avail", REPLY_INT4},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_BUFFER_COLUMNS 7u

void
admin_reply_time(struct reply *r, const struct weir *w, uint64_t us)
{
	int64_t since_start_s = ((int64_t)us - (int64_t)w->started_us) / 1000000;
	time_t t = w->started_at + (time_t)since_start_s;
	struct tm tm;
	char text[64];

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	reply_text(r, text);
}

/* The port in "/dir/.s.PGSQL.5432"; 0: it has no such name. */
static int
unix_port(const struct addr *a)
{
	const char *path = a->un.sun_path, *dot;
	char text[sizeof(a->un.sun_path) + 1];
	size_t n =
		a->len > offsetof(struct sockaddr_un, sun_path) ? a->len - offsetof(struct sockaddr_un, sun_path) : 0;

	if (n == 0)
		return 0;
	memcpy(text, path + (path[0] == '\0'), n - (path[0] == '\0')); /* an abstract name begins with a zero */
	text[n - (path[0] == '\0')] = '\0';
	dot = strrchr(text, '.');
	return dot != NULL ? (int)strtol(dot + 1, NULL, 10) : 0;
}

/* Of the two ends of a Unix socket one has a name, and its port stands for both. */
static void
reply_addr(struct reply *r, const struct addr *a, const struct addr *other)
{
	char text[ADDR_TEXT_MAX];

	if (a->len == 0) {
		reply_text(r, "");
		reply_int(r, 0);
	} else if (addr_is_unix(a)) {
		int port = unix_port(a);

		reply_text(r, "unix");
		reply_int(r, port > 0 ? port : unix_port(other));
	} else {
		reply_text(r, addr_host_text(a, text));
		reply_int(r, addr_port(a));
	}
}

static void
link_row(struct reply *r, const struct weir *w, const char *type, const struct snapshot_link *l)
{
	reply_text(r, type);
	reply_text(r, l->user[0] != '\0' ? l->user : "(nouser)");
	reply_text(r, l->database[0] != '\0' ? l->database : "(nodb)");
	reply_text(r, l->replication);
	reply_text(r, l->state);
	reply_addr(r, &l->peer, &l->local);
	reply_addr(r, &l->local, &l->peer);
	admin_reply_time(r, w, l->connect_us);
	admin_reply_time(r, w, l->request_us > 0 ? l->request_us : l->connect_us);
	reply_uint(r, l->wait_us / 1000000);
	reply_uint(r, l->wait_us % 1000000);
	reply_int(r, l->close_needed);
	reply_printf(r, "0x%" PRIx64, l->id);
	if (l->link_id != 0)
		reply_printf(r, "0x%" PRIx64, l->link_id);
	else
		reply_text(r, "");
	reply_uint(r, l->remote_pid);
	reply_text(r, ""); /* TLS is refused so far */
	reply_text(r, l->application_name);
	reply_uint(r, l->n_prepared);
	reply_uint(r, l->id);
}

static void
buffer_columns(struct reply *r, const struct snapshot_link *l)
{
	reply_uint(r, 0); /* buffers are not rings: positions in them have no meaning here */
	reply_uint(r, 0);
	reply_uint(r, l->n_message_left);
	reply_uint(r, 0);
	reply_uint(r, 0);
	reply_uint(r, l->n_unused);
	reply_uint(r, l->n_unsent);
}

static void
add_links(struct reply *r, struct admin_call *call, enum snapshot_kind kind, bool with_buffers, bool only_active)
{
	const char *type = kind == SNAPSHOT_CLIENTS ? "C" : "S";

	for (size_t i = 0; i < call->ask->n; i++) {
		const struct mail_snapshot *m = call->ask->answer[i];

		if (m->kind != kind)
			continue;
		for (size_t k = 0; k < m->n; k++) {
			if (only_active && strcmp(m->links[k].state, "idle") == 0)
				continue;
			link_row(r, call->weir, type, &m->links[k]);
			if (with_buffers)
				buffer_columns(r, &m->links[k]);
		}
	}
}

void
admin_show_clients(struct admin_call *call)
{
	struct reply r;

	reply_begin(&r, call->out, columns, N_COLUMNS - N_BUFFER_COLUMNS);
	add_links(&r, call, SNAPSHOT_CLIENTS, false, false);
	reply_end(&r);
}

void
admin_show_servers(struct admin_call *call)
{
	struct reply r;

	reply_begin(&r, call->out, columns, N_COLUMNS - N_BUFFER_COLUMNS);
	add_links(&r, call, SNAPSHOT_SERVERS, false, false);
	reply_end(&r);
}

static void
show_sockets(struct admin_call *call, bool only_active)
{
	struct reply r;

	reply_begin(&r, call->out, columns, N_COLUMNS);
	add_links(&r, call, SNAPSHOT_CLIENTS, true, only_active);
	add_links(&r, call, SNAPSHOT_SERVERS, true, only_active);
	reply_end(&r);
}

void
admin_show_sockets(struct admin_call *call)
{
	show_sockets(call, false);
}

void
admin_show_active_sockets(struct admin_call *call)
{
	show_sockets(call, true);
}

/* ---- pools ---- */

static int
compare_pools(const void *a, const void *b)
{
	const struct group *x = ((const struct snapshot_pool *)a)->group, *y = ((const struct snapshot_pool *)b)->group;
	int order = strcmp(x->database, y->database);

	return order != 0 ? order : strcmp(x->user, y->user);
}

static void
merge_pool(struct snapshot_pool *into, const struct snapshot_pool *from)
{
	into->cl_active += from->cl_active;
	into->cl_waiting += from->cl_waiting;
	into->cl_active_cancel += from->cl_active_cancel;
	into->cl_waiting_cancel += from->cl_waiting_cancel;
	into->sv_active += from->sv_active;
	into->sv_active_cancel += from->sv_active_cancel;
	into->sv_being_canceled += from->sv_being_canceled;
	into->sv_idle += from->sv_idle;
	into->sv_used += from->sv_used;
	into->sv_tested += from->sv_tested;
	into->sv_login += from->sv_login;
	into->n_client_parses += from->n_client_parses;
	into->n_server_parses += from->n_server_parses;
	into->n_binds += from->n_binds;
	into->n_prepared_hits += from->n_prepared_hits;
	into->n_evictions += from->n_evictions;
	into->n_prepared += from->n_prepared;
	if (from->max_wait_us > into->max_wait_us)
		into->max_wait_us = from->max_wait_us;
	into->n_probes += from->n_probes;
	into->n_replays += from->n_replays;
	into->n_leaks += from->n_leaks;
	for (unsigned i = 0; i < PIN_N; i++)
		into->n_pins[i] += from->n_pins[i];
}

struct snapshot_pool *
admin_merge_pools(const struct ask *a, size_t *n)
{
	struct snapshot_pool *all;
	size_t n_all = 0;

	for (size_t i = 0; i < a->n; i++)
		n_all += a->answer[i]->n;
	all = calloc(n_all + 1, sizeof(*all));
	if (all == NULL)
		return NULL;
	n_all = 0;
	for (size_t i = 0; i < a->n; i++) {
		memcpy(all + n_all, a->answer[i]->pools, a->answer[i]->n * sizeof(*all));
		n_all += a->answer[i]->n;
	}
	qsort(all, n_all, sizeof(*all), compare_pools);
	*n = 0;
	for (size_t i = 0; i < n_all; i++) {
		if (*n > 0 && all[*n - 1].group == all[i].group)
			merge_pool(&all[*n - 1], &all[i]);
		else
			all[(*n)++] = all[i];
	}
	return all;
}

static void
pool_row(struct reply *r, const char *database, const char *user, const struct snapshot_pool *p, const char *mode)
{
	reply_text(r, database);
	reply_text(r, user);
	reply_uint(r, p->cl_active);
	reply_uint(r, p->cl_waiting);
	reply_uint(r, p->cl_active_cancel);
	reply_uint(r, p->cl_waiting_cancel);
	reply_uint(r, p->sv_active);
	reply_uint(r, p->sv_active_cancel);
	reply_uint(r, p->sv_being_canceled);
	reply_uint(r, p->sv_idle);
	reply_uint(r, p->sv_used);
	reply_uint(r, p->sv_tested);
	reply_uint(r, p->sv_login);
	reply_uint(r, p->max_wait_us / 1000000);
	reply_uint(r, p->max_wait_us % 1000000);
	reply_text(r, mode);
	reply_text(r, p->group != NULL ? config_load_balance_text(p->group->db) : NULL);
}

void
admin_show_pools(struct admin_call *call)
{
	static const struct reply_column pool_columns[] = {
		{"database", REPLY_TEXT},
		{"user", REPLY_TEXT},
		{"cl_active", REPLY_INT4},
		{"cl_waiting", REPLY_INT4},
		{"cl_active_cancel_req", REPLY_INT4},
		{"cl_waiting_cancel_req", REPLY_INT4},
		{"sv_active", REPLY_INT4},
		{"sv_active_cancel", REPLY_INT4},
		{"sv_being_canceled", REPLY_INT4},
		{"sv_idle", REPLY_INT4},
		{"sv_used", REPLY_INT4},
		{"sv_tested", REPLY_INT4},
		{"sv_login", REPLY_INT4},
		{"maxwait", REPLY_INT4},
		{"maxwait_us", REPLY_INT4},
		{"pool_mode", REPLY_TEXT},
		{"load_balance_hosts", REPLY_TEXT},
	};
	struct snapshot_pool console = {.cl_active = call->n_consoles};
	struct snapshot_pool *pools;
	size_t n = 0;
	struct reply r;

	pools = admin_merge_pools(call->ask, &n);
	if (pools == NULL) {
		reply_error(call->out, "53200", "out of memory");
		return;
	}
	REPLY_BEGIN(&r, call->out, pool_columns);
	for (size_t i = 0; i < n; i++)
		pool_row(&r, pools[i].group->database, pools[i].group->user, &pools[i],
		         admin_mode_text(pools[i].group->mode));
	pool_row(&r, ADMIN_DATABASE, ADMIN_DATABASE, &console, admin_mode_text(POOL_STATEMENT));
	reply_end(&r);
	free(pools);
}

/* ---- prepared statements ---- */

/* The texts are shared by all pools, so their number and size are in a row of their own. */
void
admin_show_prepared(struct admin_call *call)
{
	static const struct reply_column prepared_columns[] = {
		{"database", REPLY_TEXT},           {"user", REPLY_TEXT},       {"client_parse_count", REPLY_INT8},
		{"server_parse_count", REPLY_INT8}, {"bind_count", REPLY_INT8}, {"hits", REPLY_INT8},
		{"evictions", REPLY_INT8},          {"statements", REPLY_INT8}, {"bytes", REPLY_INT8},
	};
	struct statement_totals totals = statement_totals();
	struct snapshot_pool *pools;
	size_t n = 0;
	struct reply r;

	pools = admin_merge_pools(call->ask, &n);
	if (pools == NULL) {
		reply_error(call->out, "53200", "out of memory");
		return;
	}
	REPLY_BEGIN(&r, call->out, prepared_columns);
	for (size_t i = 0; i < n; i++) {
		const struct snapshot_pool *p = &pools[i];
		const uint64_t values[] = {p->n_client_parses, p->n_server_parses, p->n_binds,
		                           p->n_prepared_hits, p->n_evictions,     p->n_prepared};

		reply_text(&r, p->group->database);
		reply_text(&r, p->group->user);
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
			reply_uint(&r, values[k]);
		reply_text(&r, NULL);
	}
	reply_text(&r, "(texts)");
	for (int k = 0; k < 6; k++)
		reply_text(&r, NULL);
	reply_uint(&r, totals.n_statements);
	reply_uint(&r, totals.n_bytes);
	reply_end(&r);
	free(pools);
}
