/* SPDX-License-Identifier: ISC */
/* The snapshot: its life, its entries, and which of user, database and global value counts. */
#include "core/config.h"

#include "auth/users.h"
#include "base/obj.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct database_conf *
database_conf_new(const char *name)
{
	struct database_conf *d = calloc(1, sizeof *d);
	char why[64];

	if (d == NULL)
		return NULL;
	d->pool_size = d->min_pool_size = d->reserve_pool_size = CONFIG_UNSET;
	d->max_db_connections = d->max_db_client_connections = CONFIG_UNSET;
	d->pool_mode = d->session_state = CONFIG_UNSET;
	d->server_lifetime_us = d->query_wait_timeout_us = CONFIG_UNSET;
	d->name = str_dup(name);
	if (d->name == NULL || database_conf_set_hosts(d, NULL, NULL, why, sizeof why) != STATUS_OK)
		database_conf_free(&d);
	return d;
}

void
database_conf_free(struct database_conf **d)
{
	struct database_conf *x = *d;

	if (x == NULL)
		return;
	*d = NULL;
	free(x->name);
	free(x->dbname);
	free(x->host);
	free(x->port);
	database_conf_free_hosts(x);
	free(x->user);
	secret_fini(&x->password);
	free(x->connect_query);
	free(x->client_encoding);
	free(x->datestyle);
	free(x->timezone);
	free(x->application_name);
	free(x);
}

struct user_conf *
user_conf_new(const char *name)
{
	struct user_conf *u = calloc(1, sizeof *u);

	if (u == NULL)
		return NULL;
	u->session_state = CONFIG_UNSET;
	u->pool_mode = u->pool_size = u->reserve_pool_size = CONFIG_UNSET;
	u->max_user_connections = u->max_user_client_connections = CONFIG_UNSET;
	u->query_timeout_us = u->query_wait_timeout_us = CONFIG_UNSET;
	u->idle_transaction_timeout_us = u->transaction_timeout_us = u->client_idle_timeout_us = CONFIG_UNSET;
	u->name = str_dup(name);
	if (u->name == NULL)
		user_conf_free(&u);
	return u;
}

void
user_conf_free(struct user_conf **u)
{
	struct user_conf *x = *u;

	if (x == NULL)
		return;
	*u = NULL;
	free(x->name);
	free(x);
}

enum status
config_add_database(struct config *c, struct database_conf **d)
{
	struct database_conf *x = *d, *old = NULL;

	*d = NULL;
	if (strcmp(x->name, "*") == 0) {
		database_conf_free(&c->fallback);
		c->fallback = x;
		return STATUS_OK;
	}
	HASH_FIND_STR(c->databases, x->name, old);
	if (old != NULL) {
		HASH_DEL(c->databases, old);
		database_conf_free(&old);
	}
	HASH_ADD_KEYPTR(hh, c->databases, x->name, strlen(x->name), x);
	if (x->hh.tbl == NULL) {
		database_conf_free(&x);
		return STATUS_NO_MEM;
	}
	return STATUS_OK;
}

enum status
config_add_user(struct config *c, struct user_conf **u)
{
	struct user_conf *x = *u, *old = NULL;

	*u = NULL;
	HASH_FIND_STR(c->users, x->name, old);
	if (old != NULL) {
		HASH_DEL(c->users, old);
		user_conf_free(&old);
	}
	HASH_ADD_KEYPTR(hh, c->users, x->name, strlen(x->name), x);
	if (x->hh.tbl == NULL) {
		user_conf_free(&x);
		return STATUS_NO_MEM;
	}
	return STATUS_OK;
}

static bool
set_defaults(struct config *c)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);
	char why[256];

	for (size_t i = 0; i < n; i++) {
		enum status status = config_set(c, settings[i].name, settings[i].default_text, why, sizeof why);
		if (status == STATUS_NO_MEM)
			return false;
		invariant(status == STATUS_OK); /* else a row of settings.def contradicts itself */
	}
	return true;
}

struct config *
config_new(void)
{
	struct config *c = calloc(1, sizeof *c);

	if (c == NULL)
		return NULL;
	atomic_init(&c->refs, 1);
	c->auth_users = users_new();
	if (c->auth_users == NULL || !set_defaults(c))
		config_unref(&c);
	return c;
}

struct config *
config_ref(struct config *c)
{
	/* The caller holds a reference already, so nothing needs to be ordered. */
	uint32_t before = atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);

	invariant(before > 0);
	return c;
}

static void
config_free(struct config *c)
{
	struct database_conf *d, *next_d;
	struct user_conf *u, *next_u;

	HASH_ITER (hh, c->databases, d, next_d) {
		HASH_DEL(c->databases, d);
		database_conf_free(&d);
	}
	database_conf_free(&c->fallback);
	HASH_ITER (hh, c->users, u, next_u) {
		HASH_DEL(c->users, u);
		user_conf_free(&u);
	}
	users_free(&c->auth_users);
#define SETTING_TEXT(name, ...) free(c->name);
#include "core/settings.def"
	free(c->path);
	free(c);
}

void
config_unref(struct config **c)
{
	struct config *x = *c;
	uint32_t before;

	if (x == NULL)
		return;
	*c = NULL;
	/* What other threads read happens before it is freed here. */
	before = atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel);
	invariant(before > 0);
	if (before == 1)
		config_free(x);
}

bool
config_is_admin_name(const char *database)
{
	return strcmp(database, "pgweir") == 0 || strcmp(database, "pgbouncer") == 0;
}

const struct database_conf *
config_database(const struct config *c, const char *name)
{
	struct database_conf *d = NULL;

	if (config_is_admin_name(name))
		return NULL;
	HASH_FIND_STR(c->databases, name, d);
	return d != NULL ? d : c->fallback;
}

const struct user_conf *
config_user(const struct config *c, const char *name)
{
	struct user_conf *u = NULL;

	HASH_FIND_STR(c->users, name, u);
	return u;
}

bool
config_list_has(const char *comma_list, const char *word)
{
	size_t word_len = strlen(word);
	const char *separators = ", \t";

	for (const char *p = comma_list; *p != '\0';) {
		size_t n;
		p += strspn(p, separators);
		n = strcspn(p, separators);
		if (n > 0 && n == word_len && memcmp(p, word, n) == 0)
			return true;
		p += n;
	}
	return false;
}

/* The first one given; the global one always is. */
static int64_t
first_set(int64_t by_user, int64_t by_database, int64_t global)
{
	if (by_user != CONFIG_UNSET)
		return by_user;
	return by_database != CONFIG_UNSET ? by_database : global;
}

#define OF(entry, field) ((entry) != NULL ? (entry)->field : CONFIG_UNSET)

enum pool_mode
config_pool_mode(const struct config *c, const struct database_conf *d, const struct user_conf *u)
{
	return (enum pool_mode)first_set(OF(u, pool_mode), OF(d, pool_mode), (int64_t)c->pool_mode);
}

enum session_state_policy
config_session_state(const struct config *c, const struct database_conf *d, const struct user_conf *u)
{
	return (enum session_state_policy)first_set(OF(u, session_state), OF(d, session_state),
	                                            (int64_t)c->session_state);
}

int64_t
config_pool_size(const struct config *c, const struct database_conf *d, const struct user_conf *u)
{
	return first_set(OF(u, pool_size), OF(d, pool_size), c->default_pool_size);
}

int64_t
config_min_pool_size(const struct config *c, const struct database_conf *d)
{
	return first_set(CONFIG_UNSET, OF(d, min_pool_size), c->min_pool_size);
}

int64_t
config_reserve_pool_size(const struct config *c, const struct database_conf *d, const struct user_conf *u)
{
	return first_set(OF(u, reserve_pool_size), OF(d, reserve_pool_size), c->reserve_pool_size);
}

int64_t
config_max_db_connections(const struct config *c, const struct database_conf *d)
{
	return first_set(CONFIG_UNSET, OF(d, max_db_connections), c->max_db_connections);
}

int64_t
config_max_user_connections(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, max_user_connections), CONFIG_UNSET, c->max_user_connections);
}

int64_t
config_max_db_client_connections(const struct config *c, const struct database_conf *d)
{
	return first_set(CONFIG_UNSET, OF(d, max_db_client_connections), c->max_db_client_connections);
}

int64_t
config_max_user_client_connections(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, max_user_client_connections), CONFIG_UNSET, c->max_user_client_connections);
}

int64_t
config_server_lifetime_us(const struct config *c, const struct database_conf *d)
{
	return first_set(CONFIG_UNSET, OF(d, server_lifetime_us), c->server_lifetime_us);
}

int64_t
config_query_wait_timeout_us(const struct config *c, const struct database_conf *d, const struct user_conf *u)
{
	return first_set(OF(u, query_wait_timeout_us), OF(d, query_wait_timeout_us), c->query_wait_timeout_us);
}

int64_t
config_query_timeout_us(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, query_timeout_us), CONFIG_UNSET, c->query_timeout_us);
}

int64_t
config_idle_transaction_timeout_us(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, idle_transaction_timeout_us), CONFIG_UNSET, c->idle_transaction_timeout_us);
}

int64_t
config_transaction_timeout_us(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, transaction_timeout_us), CONFIG_UNSET, c->transaction_timeout_us);
}

int64_t
config_client_idle_timeout_us(const struct config *c, const struct user_conf *u)
{
	return first_set(OF(u, client_idle_timeout_us), CONFIG_UNSET, c->client_idle_timeout_us);
}
