/* SPDX-License-Identifier: ISC */
/* SHOW DATABASES and SHOW USERS: what the configuration names, and what has come by besides. */
#include "auth/users.h"
#include "core/group.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"

#include <stdlib.h>
#include <string.h>

struct name {
	const char *text; /* of the configuration or a tally: both outlive the reply */
	unsigned n_backends, n_clients;
};

struct names {
	struct name *name;
	size_t n, cap;
	bool failed;
};

static void
add_name(struct names *ns, const char *text, unsigned n_backends, unsigned n_clients)
{
	if (ns->n == ns->cap) {
		size_t cap = ns->cap > 0 ? 2 * ns->cap : 64;
		struct name *grown = realloc(ns->name, cap * sizeof(*grown));

		if (grown == NULL) {
			ns->failed = true;
			return;
		}
		ns->name = grown;
		ns->cap = cap;
	}
	ns->name[ns->n++] = (struct name){text, n_backends, n_clients};
}

static void
add_tallies(struct names *ns, struct weir *w, struct tally *const *table)
{
	pthread_mutex_lock(&w->shared.lock);
	for (const struct tally *t = *table; t != NULL; t = t->hh.next)
		add_name(ns, t->name, t->n_backends, t->n_clients);
	pthread_mutex_unlock(&w->shared.lock);
}

static int
compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return strcmp(x->text, y->text);
}

/* Sorted, each name once. */
static void
settle(struct names *ns)
{
	size_t n = 0;

	if (ns->n > 0)
		qsort(ns->name, ns->n, sizeof(*ns->name), compare_names);
	for (size_t i = 0; i < ns->n; i++) {
		if (n > 0 && strcmp(ns->name[n - 1].text, ns->name[i].text) == 0) {
			ns->name[n - 1].n_backends += ns->name[i].n_backends;
			ns->name[n - 1].n_clients += ns->name[i].n_clients;
		} else {
			ns->name[n++] = ns->name[i];
		}
	}
	ns->n = n;
}

const char *
admin_mode_text(int64_t mode)
{
	static const char *const texts[] = {
		[POOL_SESSION] = "session", [POOL_TRANSACTION] = "transaction", [POOL_STATEMENT] = "statement"};

	return mode == CONFIG_UNSET ? NULL : texts[mode];
}

static bool
reply_failed(struct admin_call *call, struct names *ns)
{
	if (!ns->failed)
		return false;
	free(ns->name);
	reply_error(call->out, "53200", "out of memory");
	return true;
}

/* ---- databases ---- */

static struct names
collect_databases(struct admin_call *call)
{
	struct names ns = {0};

	for (const struct database_conf *d = call->weir->config->databases; d != NULL; d = d->hh.next)
		add_name(&ns, d->name, 0, 0);
	add_name(&ns, ADMIN_DATABASE, 0, call->n_consoles);
	add_tallies(&ns, call->weir, &call->weir->shared.databases);
	settle(&ns);
	return ns;
}

static void
console_row(struct reply *r, struct admin_call *call, const struct name *name)
{
	reply_text(r, name->text);
	reply_text(r, NULL);
	reply_int(r, call->weir->config->listen_port);
	reply_text(r, name->text);
	reply_text(r, ADMIN_DATABASE);
	for (int i = 0; i < 3; i++) /* pool sizes */
		reply_int(r, 0);
	reply_int(r, 0);
	reply_text(r, admin_mode_text(POOL_STATEMENT));
	reply_text(r, NULL);
	reply_int(r, 0);
	reply_int(r, 0);
	reply_int(r, 0);
	reply_uint(r, name->n_clients);
	reply_int(r, 0);
	reply_int(r, 0);
}

static void
database_row(struct reply *r, const struct config *c, const struct database_conf *d, const struct name *name)
{
	reply_text(r, name->text);
	reply_text(r, d->host);
	reply_int(r, d->hosts[0].port); /* SHOW HOSTS has all */
	reply_text(r, d->dbname != NULL ? d->dbname : name->text);
	reply_text(r, d->user);
	reply_int(r, config_pool_size(c, d, NULL));
	reply_int(r, config_min_pool_size(c, d));
	reply_int(r, config_reserve_pool_size(c, d, NULL));
	reply_int(r, config_server_lifetime_us(c, d) / 1000000);
	reply_text(r, admin_mode_text(d->pool_mode));
	reply_text(r, config_load_balance_text(d));
	reply_int(r, config_max_db_connections(c, d));
	reply_uint(r, name->n_backends);
	reply_int(r, config_max_db_client_connections(c, d));
	reply_uint(r, name->n_clients);
	reply_int(r, 0); /* PAUSE and DISABLE are refused so far */
	reply_int(r, 0);
}

void
admin_show_databases(struct admin_call *call)
{
	static const struct reply_column columns[] = {
		{"name", REPLY_TEXT},
		{"host", REPLY_TEXT},
		{"port", REPLY_INT4},
		{"database", REPLY_TEXT},
		{"force_user", REPLY_TEXT},
		{"pool_size", REPLY_INT4},
		{"min_pool_size", REPLY_INT4},
		{"reserve_pool_size", REPLY_INT4},
		{"server_lifetime", REPLY_INT4},
		{"pool_mode", REPLY_TEXT},
		{"load_balance_hosts", REPLY_TEXT},
		{"max_connections", REPLY_INT4},
		{"current_connections", REPLY_INT4},
		{"max_client_connections", REPLY_INT4},
		{"current_client_connections", REPLY_INT4},
		{"paused", REPLY_INT4},
		{"disabled", REPLY_INT4},
	};
	const struct config *c = call->weir->config;
	struct names ns = collect_databases(call);
	struct reply r;

	if (reply_failed(call, &ns))
		return;
	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < ns.n; i++) {
		const struct database_conf *d = config_database(c, ns.name[i].text);

		if (d != NULL)
			database_row(&r, c, d, &ns.name[i]);
		else
			console_row(&r, call, &ns.name[i]);
	}
	reply_end(&r);
	free(ns.name);
}

size_t
admin_n_databases(struct admin_call *call)
{
	struct names ns = collect_databases(call);

	free(ns.name);
	return ns.n;
}

/* ---- users ---- */

static struct names
collect_users(struct admin_call *call)
{
	const struct config *c = call->weir->config;
	struct names ns = {0};

	for (const struct user_conf *u = c->users; u != NULL; u = u->hh.next)
		add_name(&ns, u->name, 0, 0);
	for (const struct auth_user *u = users_next(c->auth_users, NULL); u != NULL; u = users_next(c->auth_users, u))
		add_name(&ns, u->name, 0, 0);
	add_tallies(&ns, call->weir, &call->weir->shared.users);
	settle(&ns);
	return ns;
}

static void
reply_if_set(struct reply *r, int64_t value)
{
	if (value == CONFIG_UNSET)
		reply_text(r, "");
	else
		reply_int(r, value);
}

void
admin_show_users(struct admin_call *call)
{
	static const struct reply_column columns[] = {
		{"name", REPLY_TEXT},
		{"pool_size", REPLY_TEXT},
		{"reserve_pool_size", REPLY_TEXT},
		{"pool_mode", REPLY_TEXT},
		{"max_user_connections", REPLY_INT4},
		{"current_connections", REPLY_INT4},
		{"max_user_client_connections", REPLY_INT4},
		{"current_client_connections", REPLY_INT4},
	};
	const struct config *c = call->weir->config;
	struct names ns = collect_users(call);
	struct reply r;

	if (reply_failed(call, &ns))
		return;
	REPLY_BEGIN(&r, call->out, columns);
	for (size_t i = 0; i < ns.n; i++) {
		const struct user_conf *u = config_user(c, ns.name[i].text);

		reply_text(&r, ns.name[i].text);
		reply_if_set(&r, u != NULL ? u->pool_size : CONFIG_UNSET);
		reply_if_set(&r, u != NULL ? u->reserve_pool_size : CONFIG_UNSET);
		reply_text(&r, u != NULL ? admin_mode_text(u->pool_mode) : NULL);
		reply_int(&r, config_max_user_connections(c, u));
		reply_uint(&r, ns.name[i].n_backends);
		reply_int(&r, config_max_user_client_connections(c, u));
		reply_uint(&r, ns.name[i].n_clients);
	}
	reply_end(&r);
	free(ns.name);
}

size_t
admin_n_users(struct admin_call *call)
{
	struct names ns = collect_users(call);

	free(ns.name);
	return ns.n;
}
