/* SPDX-License-Identifier: ISC */
/*
 * The configuration as the rest of the daemon sees it: an immutable, ref-counted
 * snapshot. Global settings are the fields generated from settings.def; [databases]
 * and [users] are hash tables by name. Built by ops/config_file.c (or
 * ops/config_conninfo); any thread may read it while it holds a reference.
 */
#ifndef PGWEIR_CORE_CONFIG_H
#define PGWEIR_CORE_CONFIG_H

#include "base/hash.h"
#include "base/secret.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct users;

enum pool_mode { POOL_SESSION, POOL_TRANSACTION, POOL_STATEMENT };
/* auth_type; `plain` is an alias of password. Words whose feature is missing are refused by config_set. */
enum auth_type { AUTH_TYPE_ANY, AUTH_TYPE_TRUST, AUTH_TYPE_PASSWORD, AUTH_TYPE_MD5, AUTH_TYPE_SCRAM };
enum session_state_policy { STATE_PRESERVE, STATE_STRICT, STATE_IGNORE };
/* load_balance_hosts: all hosts of a list alike, or the first that works. */
enum load_balance_hosts { HOSTS_ROUND_ROBIN, HOSTS_DISABLE };
enum session_schedule { SCHEDULE_LEAST_LOADED, SCHEDULE_ROUND_ROBIN, SCHEDULE_RANDOM };
/* The two sslmode settings. For now clients: DISABLE only; servers: DISABLE, ALLOW, PREFER, all without TLS. */
enum tls_mode { TLS_DISABLE, TLS_ALLOW, TLS_PREFER, TLS_REQUIRE, TLS_VERIFY_CA, TLS_VERIFY_FULL };

#define SETTING_RESTART 1u /* flags of a row of settings.def; see there */
#define SETTING_NOT_YET 2u
#define SETTING_NO_EFFECT 4u
#define SETTING_MAX_S 1000000000 /* longest time, in seconds */

#define CONFIG_UNSET (-1) /* per-database and per-user overrides: not given */

#define CONFIG_MAX_HOSTS 64 /* of one entry: bits of a word in core/group_hosts.c */

struct host_conf {
	char *name; /* NULL: unix socket in unix_socket_dir; name, address, /dir or @abstract */
	uint16_t port;
};

struct database_conf {
	char *name;              /* as clients name it; "*" for the fallback entry */
	char *dbname;            /* on the server; NULL: the client's name */
	char *host;              /* as written, perhaps a list; NULL: not given */
	char *port;              /* the same */
	struct host_conf *hosts; /* what the two mean: one or more, in their order */
	unsigned n_hosts;
	enum load_balance_hosts load_balance;
	char *user; /* forced server user, or NULL */
	struct secret password;
	char *connect_query;
	char *client_encoding, *datestyle, *timezone, *application_name; /* NULL: not given */
	int64_t pool_size, min_pool_size, reserve_pool_size, max_db_connections, max_db_client_connections;
	int64_t pool_mode;     /* enum pool_mode or CONFIG_UNSET */
	int64_t session_state; /* enum session_state_policy or CONFIG_UNSET */
	int64_t server_lifetime_us, query_wait_timeout_us;
	UT_hash_handle hh;
};

struct user_conf {
	char *name;
	int64_t pool_mode, pool_size, reserve_pool_size, max_user_connections, max_user_client_connections;
	int64_t session_state;
	int64_t query_timeout_us, query_wait_timeout_us, idle_transaction_timeout_us, transaction_timeout_us,
		client_idle_timeout_us;
	UT_hash_handle hh;
};

struct config {
	_Atomic uint32_t refs;
	char *path; /* the file, NULL when from a conninfo */

/*
 * One field per row of settings.def, named as the setting:
 *   INT -> int64_t name;  BOOL -> bool name;  TIME -> int64_t name_us;  TEXT -> char *name (never NULL);
 *   ENUM -> enum <type> name
 */
#define SETTING_INT(name, ...) int64_t name;
#define SETTING_BOOL(name, ...) bool name;
#define SETTING_TIME(name, ...) int64_t name##_us;
#define SETTING_TEXT(name, ...) char *name;
#define SETTING_ENUM(name, type, ...) enum type name;
#include "core/settings.def"

	struct database_conf *databases;
	struct database_conf *fallback; /* the "*" entry, or NULL; not in the table */
	struct user_conf *users;
	struct users *auth_users; /* from auth_file; never NULL; owned */
};

struct config *config_new(void); /* every setting at its default, one reference; NULL: no memory */
struct config *config_ref(struct config *c);
void config_unref(struct config **c);

/* Exact entry, else the fallback, else NULL. Never answers the admin names. */
const struct database_conf *config_database(const struct config *c, const char *name);
const struct user_conf *config_user(const struct config *c, const char *name); /* NULL: none */
bool config_is_admin_name(const char *database);                               /* "pgweir" or "pgbouncer" */
bool config_list_has(const char *comma_list, const char *word);                /* admin_users and the like */

/* Effective values: user over database over global. user may be NULL. */
enum pool_mode config_pool_mode(const struct config *c, const struct database_conf *d, const struct user_conf *u);
enum session_state_policy config_session_state(const struct config *c, const struct database_conf *d,
                                               const struct user_conf *u);
int64_t config_pool_size(const struct config *c, const struct database_conf *d, const struct user_conf *u);
int64_t config_min_pool_size(const struct config *c, const struct database_conf *d);
int64_t config_reserve_pool_size(const struct config *c, const struct database_conf *d, const struct user_conf *u);
int64_t config_max_db_connections(const struct config *c, const struct database_conf *d);
int64_t config_max_user_connections(const struct config *c, const struct user_conf *u);
int64_t config_max_db_client_connections(const struct config *c, const struct database_conf *d);
int64_t config_max_user_client_connections(const struct config *c, const struct user_conf *u);
int64_t config_server_lifetime_us(const struct config *c, const struct database_conf *d);
int64_t config_query_wait_timeout_us(const struct config *c, const struct database_conf *d, const struct user_conf *u);
int64_t config_query_timeout_us(const struct config *c, const struct user_conf *u);
int64_t config_idle_transaction_timeout_us(const struct config *c, const struct user_conf *u);
int64_t config_transaction_timeout_us(const struct config *c, const struct user_conf *u);
int64_t config_client_idle_timeout_us(const struct config *c, const struct user_conf *u);

/*
 * Building a snapshot, before anyone else holds a reference. config_set reads `value` as it stands in the file.
 * STATUS_BAD: unknown name or malformed value; STATUS_REFUSED: known but not supported yet; the setting is then
 * unchanged and why says so. STATUS_OK with a text in why: a warning.
 */
enum status config_set(struct config *c, const char *name, const char *value, char *why, size_t why_cap) must_check;
bool config_pool_mode_parse(const char *word, enum pool_mode *out); /* false: no such word, out unchanged */
bool config_session_state_parse(const char *word, enum session_state_policy *out); /* the same */

/* Everything unset; NULL: no memory. name is copied. config_add_* consume *x; an earlier entry of that name goes. */
struct database_conf *database_conf_new(const char *name);
void database_conf_free(struct database_conf **d);
/*
 * d->hosts from the lists: as many ports as hosts, or one for all; NULL: the default. Else why says what is wrong and
 * d->hosts is not to be used.
 */
enum status database_conf_set_hosts(struct database_conf *d, const char *hosts, const char *ports, char *why,
                                    size_t why_cap) must_check;
void database_conf_free_hosts(struct database_conf *d);
bool config_load_balance_parse(const char *word, enum load_balance_hosts *out); /* as config_pool_mode_parse */
const char *config_load_balance_text(const struct database_conf *d);            /* NULL: it has one host */
struct user_conf *user_conf_new(const char *name);
void user_conf_free(struct user_conf **u);
enum status config_add_database(struct config *c, struct database_conf **d) must_check; /* "*" becomes the fallback */
enum status config_add_user(struct config *c, struct user_conf **u) must_check;

/* For the console: one row per setting, sorted by name. Values as text; buf has cap bytes. */
struct setting_info {
	const char *name;
	const char *unit; /* "", "s", "ms", "bytes", "octal" */
	const char *default_text;
	const char *help;
	bool changeable; /* without a restart */
	bool supported;
};
const struct setting_info *config_settings(size_t *n);
void config_setting_text(const struct config *c, size_t index, char *buf, size_t cap);

#endif
