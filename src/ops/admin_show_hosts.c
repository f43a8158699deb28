/* SPDX-License-Identifier: ISC */
/* SHOW HOSTS: for each pool, each server of its list: whether it is used, and why not. */
#include "base/clock.h"
#include "core/backend.h"
#include "core/group_hosts.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows, collected under the lock and sorted ---- */

struct host_row {
	struct group *group;
	unsigned host;
	unsigned n_active, n_idle, n_opening;
};

static int
compare_rows(const void *a, const void *b)
{
	const struct host_row *x = a, *y = b;
	int order = strcmp(x->group->database, y->group->database);

	if (order == 0)
		order = strcmp(x->group->user, y->group->user);
	return order != 0 ? order : x->host < y->host ? -1 : x->host > y->host;
}

/* malloc'ed; NULL: no memory. Groups live as long as the daemon. */
static struct host_row *
collect(struct weir *w, size_t *n)
{
	struct group *g, *next;
	struct host_row *rows;
	size_t cap = 1;

	*n = 0;
	pthread_mutex_lock(&w->shared.lock);
	HASH_ITER (hh, w->shared.groups, g, next)
		cap += g->n_hosts;
	rows = calloc(cap, sizeof(*rows));
	HASH_ITER (hh, w->shared.groups, g, next)
		for (unsigned i = 0; rows != NULL && i < g->n_hosts; i++)
			rows[(*n)++] = (struct host_row){.group = g, .host = i};
	pthread_mutex_unlock(&w->shared.lock);
	if (rows != NULL)
		qsort(rows, *n, sizeof(*rows), compare_rows);
	return rows;
}

static void
count_link(struct host_row *row, const struct snapshot_link *l)
{
	if (strcmp(l->state, backend_state_label(BACKEND_IDLE)) == 0)
		row->n_idle++;
	else if (strcmp(l->state, backend_state_label(BACKEND_CONNECTING)) == 0 ||
	         strcmp(l->state, backend_state_label(BACKEND_LOGIN)) == 0)
		row->n_opening++;
	else
		row->n_active++;
}

static void
count_links(struct host_row *rows, size_t n, const struct ask *ask)
{
	for (size_t i = 0; i < ask->n; i++) {
		const struct mail_snapshot *m = ask->answer[i];

		for (size_t k = 0; m->kind == SNAPSHOT_SERVERS && k < m->n; k++) {
			struct host_row key = {.group = (struct group *)m->links[k].group, .host = m->links[k].host};
			struct host_row *row = bsearch(&key, rows, n, sizeof(*rows), compare_rows);

			if (row != NULL)
				count_link(row, &m->links[k]);
		}
	}
}

/* ---- the reply ---- */

/* up; down: failed, and paused until next_attempt; retry: the pause is over, the next connection tries it. */
static const char *
state_text(const struct group_failure *f)
{
	return f->n == 0 ? "up" : clock_now_us() < f->retry_at_us ? "down" : "retry";
}

static void
reply_row(struct reply *r, const struct weir *w, const struct host_row *row)
{
	const struct host_conf *conf = row->group->hosts[row->host].conf;
	struct group_failure f;

	group_host_failure(row->group, row->host, &f);
	reply_text(r, row->group->database);
	reply_text(r, row->group->user);
	reply_text(r, conf->name != NULL ? conf->name : w->config->unix_socket_dir);
	reply_int(r, conf->port);
	reply_text(r, state_text(&f));
	reply_uint(r, row->n_active);
	reply_uint(r, row->n_idle);
	reply_uint(r, row->n_opening);
	reply_uint(r, f.n);
	if (f.n > 0)
		admin_reply_time(r, w, f.retry_at_us);
	else
		reply_text(r, NULL);
	reply_text(r, f.at_us > 0 ? f.said.message : NULL);
}

void
admin_show_hosts(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"database", REPLY_TEXT},  {"user", REPLY_TEXT},
	                                              {"host", REPLY_TEXT},      {"port", REPLY_INT4},
	                                              {"state", REPLY_TEXT},     {"active", REPLY_INT4},
	                                              {"idle", REPLY_INT4},      {"opening", REPLY_INT4},
	                                              {"failures", REPLY_INT4},  {"next_attempt", REPLY_TEXT},
	                                              {"last_error", REPLY_TEXT}};
	size_t n = 0;
	struct host_row *rows = collect(call->weir, &n);
	struct reply r;

	if (rows == NULL) {
		reply_error(call->out, "53200", "out of memory");
		return;
	}
	count_links(rows, n, call->ask);
	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < n; i++)
		reply_row(&r, call->weir, &rows[i]);
	reply_end(&r);
	free(rows);
}
