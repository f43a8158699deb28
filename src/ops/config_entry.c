/* SPDX-License-Identifier: ISC */
#include "ops/config_entry.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DATABASE_NAME_MAX 63 /* bytes: what the server itself keeps of a name */
#define USER_NAME_MAX 127

enum entry_kind {
	ENTRY_TEXT,
	ENTRY_SECRET,
	ENTRY_COUNT,
	ENTRY_TIME,
	ENTRY_HOSTS,
	ENTRY_MODE,
	ENTRY_STATE,
	ENTRY_NOT_YET
};

/* A key that entries of one section know; tables end with a NULL name. */
struct entry_key {
	const char *name;
	enum entry_kind kind;
	size_t offset; /* of the field in the entry */
};

#define DATABASE(field) offsetof(struct database_conf, field)
#define USER(field) offsetof(struct user_conf, field)

static const struct entry_key database_keys[] = {
	{"dbname", ENTRY_TEXT, DATABASE(dbname)},
	{"host", ENTRY_TEXT, DATABASE(host)},
	{"port", ENTRY_TEXT, DATABASE(port)},
	{"user", ENTRY_TEXT, DATABASE(user)},
	{"password", ENTRY_SECRET, DATABASE(password)},
	{"connect_query", ENTRY_TEXT, DATABASE(connect_query)},
	{"client_encoding", ENTRY_TEXT, DATABASE(client_encoding)},
	{"datestyle", ENTRY_TEXT, DATABASE(datestyle)},
	{"timezone", ENTRY_TEXT, DATABASE(timezone)},
	{"application_name", ENTRY_TEXT, DATABASE(application_name)},
	{"pool_size", ENTRY_COUNT, DATABASE(pool_size)},
	{"min_pool_size", ENTRY_COUNT, DATABASE(min_pool_size)},
	{"reserve_pool_size", ENTRY_COUNT, DATABASE(reserve_pool_size)},
	{"reserve_pool", ENTRY_COUNT, DATABASE(reserve_pool_size)},
	{"max_db_connections", ENTRY_COUNT, DATABASE(max_db_connections)},
	{"max_db_client_connections", ENTRY_COUNT, DATABASE(max_db_client_connections)},
	{"pool_mode", ENTRY_MODE, DATABASE(pool_mode)},
	{"session_state", ENTRY_STATE, DATABASE(session_state)},
	{"server_lifetime", ENTRY_TIME, DATABASE(server_lifetime_us)},
	{"query_wait_timeout", ENTRY_TIME, DATABASE(query_wait_timeout_us)},
	{"auth_user", ENTRY_NOT_YET, 0},
	{"auth_query", ENTRY_NOT_YET, 0},
	{"auth_dbname", ENTRY_NOT_YET, 0},
	{"target_session_attrs", ENTRY_NOT_YET, 0},
	{"load_balance_hosts", ENTRY_HOSTS, DATABASE(load_balance)},
	{NULL, ENTRY_NOT_YET, 0},
};

static const struct entry_key user_keys[] = {
	{"pool_mode", ENTRY_MODE, USER(pool_mode)},
	{"session_state", ENTRY_STATE, USER(session_state)},
	{"pool_size", ENTRY_COUNT, USER(pool_size)},
	{"reserve_pool_size", ENTRY_COUNT, USER(reserve_pool_size)},
	{"max_user_connections", ENTRY_COUNT, USER(max_user_connections)},
	{"max_user_client_connections", ENTRY_COUNT, USER(max_user_client_connections)},
	{"query_wait_timeout", ENTRY_TIME, USER(query_wait_timeout_us)},
	{"idle_transaction_timeout", ENTRY_TIME, USER(idle_transaction_timeout_us)},
	{"client_idle_timeout", ENTRY_TIME, USER(client_idle_timeout_us)},
	{"query_timeout", ENTRY_NOT_YET, 0},
	{"transaction_timeout", ENTRY_NOT_YET, 0},
	{NULL, ENTRY_NOT_YET, 0},
};

/* The entry at hand: what messages about it begin with, and where they go. */
struct entry {
	const char *what; /* "database" or "user" */
	const char *name;
	void *fields; /* struct database_conf or user_conf */
	struct config_place where;
	struct config_messages *messages;
};

#define entry_error(e, fmt, ...)                                                                                       \
	config_error((e)->messages, (e)->where, "%s \"%s\": " fmt, (e)->what, (e)->name, __VA_ARGS__)

enum pair { PAIR_END, PAIR_OK, PAIR_BAD };

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char *
skip_blanks(char *p)
{
	while (is_blank(*p))
		p++;
	return p;
}

/* Unquotes in place from behind the first quote; the position behind the last one, NULL if there is none. */
static char *
unquote(char *p)
{
	char *to = p;

	for (;;) {
		if (*p == '\0')
			return NULL;
		if (*p == '\'' && *++p != '\'')
			break;
		*to++ = *p++;
	}
	*to = '\0';
	return p;
}

/* The next pair of *cursor, terminated in place. PAIR_BAD: reported, and the rest of the text can't be understood. */
static enum pair
next_pair(struct entry *e, char **cursor, char **key, char **value)
{
	char *p = skip_blanks(*cursor), *end;

	if (*p == '\0')
		return PAIR_END;
	*key = p;
	while (*p != '\0' && *p != '=' && !is_blank(*p))
		p++;
	end = p;
	p = skip_blanks(p);
	if (*p != '=' || end == *key) {
		*end = '\0';
		entry_error(e, "expected key=value at \"%s\"", *key);
		return PAIR_BAD;
	}
	*end = '\0';
	end = p + 1;
	p = skip_blanks(end);
	if (*p == '\'') {
		*value = ++p;
		p = unquote(p);
		if (p == NULL || (*p != '\0' && !is_blank(*p))) {
			/* The value itself may be a password, so it is not shown. */
			entry_error(e, "%s: %s", *key,
			            p == NULL ? "the closing quote is missing" : "text after the closing quote");
			return PAIR_BAD;
		}
	} else {
		*value = p;
		while (*p != '\0' && !is_blank(*p))
			p++;
		if (*p != '\0')
			*p++ = '\0';
		/* In `user= host=h` the user is not called "host=h". */
		if (*value != end && strchr(*value, '=') != NULL) {
			entry_error(e, "%s: the value is empty, or needs quotes", *key);
			return PAIR_BAD;
		}
	}
	*cursor = p;
	return PAIR_OK;
}

static void
no_memory(struct entry *e)
{
	entry_error(e, "%s", "out of memory");
}

static void
set_text(struct entry *e, char **field, const char *value)
{
	char *copy = str_dup(value);

	if (copy == NULL) {
		no_memory(e);
		return;
	}
	free(*field);
	*field = copy;
}

static void
set_time(struct entry *e, const char *key, int64_t *field, const char *value)
{
	uint64_t us;

	if (str_parse_seconds_us(value, &us) && us <= (uint64_t)SETTING_MAX_S * 1000000)
		*field = (int64_t)us;
	else
		entry_error(e, "%s: \"%s\" is not a number of seconds from 0 to %d", key, value, SETTING_MAX_S);
}

static void
set_mode(struct entry *e, const char *key, int64_t *field, const char *value)
{
	enum pool_mode mode;

	if (config_pool_mode_parse(value, &mode))
		*field = (int64_t)mode;
	else
		entry_error(e, "%s: \"%s\" is none of session, transaction, statement", key, value);
}

static void
set_state(struct entry *e, const char *key, int64_t *field, const char *value)
{
	enum session_state_policy policy;

	if (config_session_state_parse(value, &policy))
		*field = (int64_t)policy;
	else
		entry_error(e, "%s: \"%s\" is none of preserve, strict, ignore", key, value);
}

static void
set_load_balance(struct entry *e, const char *key, enum load_balance_hosts *field, const char *value)
{
	if (!config_load_balance_parse(value, field))
		entry_error(e, "%s: \"%s\" is none of round-robin, disable", key, value);
}

static void
set_field(struct entry *e, const struct entry_key *key, const char *value)
{
	void *field = (char *)e->fields + key->offset;

	switch (key->kind) {
	case ENTRY_TEXT:
		set_text(e, field, value);
		break;
	case ENTRY_SECRET:
		if (!secret_set(field, value, strlen(value)))
			no_memory(e);
		break;
	case ENTRY_COUNT:
		if (!str_parse_int(value, 0, 1000000, field))
			entry_error(e, "%s: \"%s\" is not a whole number from 0 to 1000000", key->name, value);
		break;
	case ENTRY_TIME:
		set_time(e, key->name, field, value);
		break;
	case ENTRY_HOSTS:
		set_load_balance(e, key->name, field, value);
		break;
	case ENTRY_MODE:
		set_mode(e, key->name, field, value);
		break;
	case ENTRY_STATE:
		set_state(e, key->name, field, value);
		break;
	case ENTRY_NOT_YET:
		entry_error(e, "%s: not supported yet", key->name);
		break;
	}
}

static void
unknown_key(struct entry *e, const struct entry_key *keys, const char *name)
{
	struct config_nearest near;

	config_nearest_init(&near, name);
	for (; keys->name != NULL; keys++)
		config_nearest_offer(&near, keys->name);
	if (near.best != NULL)
		entry_error(e, "unknown key \"%s\"; did you mean \"%s\"?", name, near.best);
	else
		entry_error(e, "unknown key \"%s\"", name);
}

static void
parse_pairs(struct entry *e, const struct entry_key *keys, char *text)
{
	char *name = NULL, *value = NULL;
	const struct entry_key *key;

	while (next_pair(e, &text, &name, &value) == PAIR_OK) {
		for (key = keys; key->name != NULL && strcmp(key->name, name) != 0; key++)
			;
		if (key->name == NULL)
			unknown_key(e, keys, name);
		else if (value[0] == '\0')
			entry_error(e, "%s: the value is empty", name);
		else
			set_field(e, key, value);
	}
}

bool
config_entry_is_unix_path(const char *dir, int64_t port)
{
	struct sockaddr_un address;
	int n = snprintf(NULL, 0, "%s/.s.PGSQL.%d", dir, (int)port);

	return n >= 0 && (size_t)n < sizeof address.sun_path;
}

const struct host_conf *
config_entry_long_host(const struct database_conf *d)
{
	for (size_t i = 0; i < d->n_hosts; i++) {
		const struct host_conf *h = &d->hosts[i];

		if (h->name != NULL && (h->name[0] == '/' || h->name[0] == '@') &&
		    !config_entry_is_unix_path(h->name, h->port))
			return h;
	}
	return NULL;
}

static void
check_database(struct entry *e, struct database_conf *d)
{
	const struct host_conf *too_long;
	char why[256];

	if (database_conf_set_hosts(d, d->host, d->port, why, sizeof why) != STATUS_OK)
		entry_error(e, "%s", why);
	else if ((too_long = config_entry_long_host(d)) != NULL)
		entry_error(e, "host: \"%s\" is too long for a Unix socket", too_long->name);
	if (secret_is_set(&d->password) && d->user == NULL)
		config_warning(e->messages, e->where, "database \"%s\": password without user is not used", e->name);
}

static bool
name_fits(struct entry *e, size_t max)
{
	size_t n = strlen(e->name);

	if (n == 0)
		config_error(e->messages, e->where, "%s with an empty name", e->what);
	else if (n > max)
		config_error(e->messages, e->where, "%s name is longer than %zu bytes", e->what, max);
	return n > 0 && n <= max;
}

void
config_entry_add_database(struct config *c, const char *name, char *text, struct config_place where,
                          struct config_messages *m)
{
	struct entry e = {.what = "database", .name = name, .where = where, .messages = m};
	struct database_conf *d;

	if (!name_fits(&e, DATABASE_NAME_MAX))
		return;
	if (config_is_admin_name(name)) {
		entry_error(&e, "%s", "this name is the admin console's");
		return;
	}
	d = database_conf_new(name);
	if (d == NULL) {
		no_memory(&e);
		return;
	}
	e.fields = d;
	parse_pairs(&e, database_keys, text);
	check_database(&e, d);
	if (config_add_database(c, &d) != STATUS_OK)
		no_memory(&e);
}

void
config_entry_add_user(struct config *c, const char *name, char *text, struct config_place where,
                      struct config_messages *m)
{
	struct entry e = {.what = "user", .name = name, .where = where, .messages = m};
	struct user_conf *u;

	if (!name_fits(&e, USER_NAME_MAX))
		return;
	u = user_conf_new(name);
	if (u == NULL) {
		no_memory(&e);
		return;
	}
	e.fields = u;
	parse_pairs(&e, user_keys, text);
	if (config_add_user(c, &u) != STATUS_OK)
		no_memory(&e);
}
