/* SPDX-License-Identifier: ISC */
#include "ops/admin_show.h"

#include "core/config.h"
#include "core/group.h"
#include "core/proxy.h"
#include "net/loop.h"
#include "ops/admin_reply.h"
#include "ops/cmdline.h"
#include "wire/build.h"
#include "wire/pgmsg.h"

void
admin_show_version(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"version", REPLY_TEXT}};
	struct reply r;

	REPLY_BEGIN(&r, call->out, columns);
	reply_text(&r, cmdline_version());
	reply_end(&r);
}

static void
notice_field(struct buf *out, char code, const char *text)
{
	buf_append_u8(out, (uint8_t)code);
	msg_str(out, text);
}

/* A notice, so that psql shows it as it is; the list is its detail, as pgbouncer's. */
void
admin_show_help(struct admin_call *call)
{
	uint32_t mark = msg_begin(call->out, BE_NOTICE);

	notice_field(call->out, 'S', "NOTICE");
	notice_field(call->out, 'V', "NOTICE");
	notice_field(call->out, 'C', "00000");
	notice_field(call->out, 'M', "Console usage");
	buf_append_u8(call->out, 'D');
	admin_help(call->out);
	buf_append_u8(call->out, 0);
	buf_append_u8(call->out, 0);
	msg_end(call->out, mark);
	build_command_complete(call->out, "SHOW");
}

void
admin_show_config(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"key", REPLY_TEXT},
	                                              {"value", REPLY_TEXT},
	                                              {"default", REPLY_TEXT},
	                                              {"changeable", REPLY_TEXT}};
	struct reply r;
	char value[4096];
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < n; i++) {
		config_setting_text(call->weir->config, i, value, sizeof(value));
		reply_text(&r, settings[i].name);
		reply_text(&r, value);
		reply_text(&r, settings[i].default_text);
		reply_text(&r, settings[i].changeable ? "yes" : "no");
	}
	reply_end(&r);
}

void
admin_show_state(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"key", REPLY_TEXT}, {"value", REPLY_TEXT}};
	bool is_active = weir_phase(call->weir) != WEIR_WAIT_SERVERS; /* which is a pause before the end */
	struct reply r;

	REPLY_BEGIN(&r, call->out, columns);
	reply_text(&r, "active");
	reply_text(&r, is_active ? "yes" : "no");
	reply_text(&r, "paused");
	reply_text(&r, is_active ? "no" : "yes");
	reply_text(&r, "suspended");
	reply_text(&r, "no");
	reply_end(&r);
}

void
admin_show_proxies(struct admin_call *call)
{
	static const struct reply_column columns[] = {
		{"proxy", REPLY_INT4},           {"sessions", REPLY_INT8},
		{"tls_sessions", REPLY_INT8},    {"pools", REPLY_INT8},
		{"backends", REPLY_INT8},        {"idle_backends", REPLY_INT8},
		{"pinned_backends", REPLY_INT8}, {"waiting", REPLY_INT8},
		{"received", REPLY_INT8},        {"sent", REPLY_INT8},
		{"transactions", REPLY_INT8},    {"busy", REPLY_NUMERIC},
	};
	struct reply r;

	REPLY_BEGIN(&r, call->out, columns);
	for (unsigned i = 0; i < call->weir->n_proxies; i++) {
		const struct proxy *p = call->weir->proxies[i];
		unsigned busy = loop_busy_permille(p->loop);

		reply_uint(&r, i);
		reply_uint(&r, counter_get(&p->n_sessions));
		reply_uint(&r, 0); /* TLS is refused so far */
		reply_uint(&r, counter_get(&p->n_pools));
		reply_uint(&r, counter_get(&p->n_backends));
		reply_uint(&r, counter_get(&p->n_idle_backends));
		reply_uint(&r, counter_get(&p->n_pinned));
		reply_uint(&r, counter_get(&p->n_waiting));
		reply_uint(&r, counter_get(&p->bytes_from_clients));
		reply_uint(&r, counter_get(&p->bytes_to_clients));
		reply_uint(&r, counter_get(&p->n_transactions));
		reply_printf(&r, "%u.%03u", busy / 1000, busy % 1000);
	}
	reply_end(&r);
}

/* ---- SHOW LISTS ---- */

static void
list_row(struct reply *r, const char *name, uint64_t n)
{
	reply_text(r, name);
	reply_uint(r, n);
}

static void
count_groups(struct weir *w, unsigned *n_groups, uint64_t *n_logged_in)
{
	pthread_mutex_lock(&w->shared.lock);
	*n_groups = w->shared.n_groups;
	*n_logged_in = 0;
	for (const struct tally *t = w->shared.databases; t != NULL; t = t->hh.next)
		*n_logged_in += t->n_clients;
	pthread_mutex_unlock(&w->shared.lock);
}

/* Memory of those who leave is given back, not kept for the next one: free_clients and free_servers are 0. */
void
admin_show_lists(struct admin_call *call)
{
	static const struct reply_column columns[] = {{"list", REPLY_TEXT}, {"items", REPLY_INT4}};
	struct weir *w = call->weir;
	uint64_t n_sessions = 0, n_backends = 0, n_logged_in;
	unsigned n_groups;
	struct reply r;

	count_groups(w, &n_groups, &n_logged_in);
	for (unsigned i = 0; i < w->n_proxies; i++) {
		n_sessions += counter_get(&w->proxies[i]->n_sessions);
		n_backends += counter_get(&w->proxies[i]->n_backends);
	}
	REPLY_BEGIN(&r, call->out, columns);
	list_row(&r, "databases", admin_n_databases(call));
	list_row(&r, "users", admin_n_users(call));
	list_row(&r, "peers", 0);
	list_row(&r, "pools", n_groups + 1u); /* and the console's */
	list_row(&r, "peer_pools", 0);
	list_row(&r, "free_clients", 0);
	list_row(&r, "used_clients", n_sessions + call->n_consoles);
	list_row(&r, "login_clients", n_sessions > n_logged_in ? n_sessions - n_logged_in : 0);
	list_row(&r, "free_servers", 0);
	list_row(&r, "used_servers", n_backends);
	reply_end(&r);
}
