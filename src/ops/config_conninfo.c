/* SPDX-License-Identifier: ISC */
/* A libpq conninfo in place of a configuration file: one server for everything, reachable for this user only. */
#include "base/str.h"
#include "ops/config_entry.h"
#include "ops/config_file.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct config_place nowhere = {"conninfo", 0};

static bool
is_uri(const char *s)
{
	return strncmp(s, "postgresql://", 13) == 0 || strncmp(s, "postgres://", 11) == 0;
}

bool
config_is_conninfo(const char *argument)
{
	return is_uri(argument) || (strchr(argument, '=') != NULL && access(argument, F_OK) != 0);
}

/* What the conninfo or the environment says; NULL or "" where neither does. Points into the options. */
static const char *
option(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++) {
		if (strcmp(options->keyword, keyword) == 0)
			return options->val;
	}
	return NULL;
}

static bool
is_given(const char *value)
{
	return value != NULL && value[0] != '\0';
}

/* An option of the conninfo that asks for something which pgweir can't do yet must not be dropped. */
static void
refuse_options(const PQconninfoOption *given, struct config_messages *m)
{
	static const char *const taken = "host,hostaddr,port,dbname,user,password,client_encoding,application_name,"
					 "sslmode,gssencmode";

	for (const PQconninfoOption *o = given; o->keyword != NULL; o++) {
		if (is_given(o->val) && !config_list_has(taken, o->keyword))
			config_error(m, nowhere, "%s: not supported yet", o->keyword);
	}
}

/* These come from the environment as well. */
static void
refuse_encryption(const PQconninfoOption *options, struct config_messages *m)
{
	const char *sslmode = option(options, "sslmode"), *gssencmode = option(options, "gssencmode");

	if (is_given(sslmode) && !config_list_has("disable,allow,prefer", sslmode))
		config_error(m, nowhere, "sslmode: \"%s\" is not supported yet", sslmode);
	if (is_given(gssencmode) && !config_list_has("disable,prefer", gssencmode))
		config_error(m, nowhere, "gssencmode: \"%s\" is not supported yet", gssencmode);
}

/*
 * libpq's default for the user is who runs this process. That is no reason to log everybody in under that name; it
 * counts only where a password says that somebody in particular is meant.
 */
static bool
wants_default_user(const PQconninfoOption *given)
{
	return is_given(getenv("PGUSER")) || is_given(option(given, "password"));
}

/* Fills what was not given from the environment and libpq's own defaults. */
static bool
add_defaults(PQconninfoOption *given)
{
	PQconninfoOption *defaults = PQconndefaults();
	bool with_user = wants_default_user(given);

	if (defaults == NULL)
		return false;
	for (PQconninfoOption *o = given; o->keyword != NULL; o++) {
		const char *value = option(defaults, o->keyword);
		bool is_wanted = with_user || strcmp(o->keyword, "user") != 0;
		if (is_given(o->val) || value == NULL || !is_wanted)
			continue;
		free(o->val);
		o->val = str_dup(value);
	}
	PQconninfoFree(defaults);
	return true;
}

/* All options, freed by PQconninfoFree; NULL: reported. */
static PQconninfoOption *
read_options(const char *conninfo, struct config_messages *m)
{
	char *why = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &why);

	if (options == NULL) {
		config_error(m, nowhere, "%s", why != NULL ? str_trim(why) : "out of memory");
		PQfreemem(why);
		return NULL;
	}
	refuse_options(options, m);
	if (!add_defaults(options))
		config_error(m, nowhere, "out of memory");
	refuse_encryption(options, m);
	return options;
}

static void
copy_text(char **field, const char *value, struct config_messages *m)
{
	if (!is_given(value))
		return;
	*field = str_dup(value);
	if (*field == NULL)
		config_error(m, nowhere, "out of memory");
}

/* Where libpq would look for the server's socket differs from build to build, and it doesn't say; so look for it. */
static const char *
find_socket_dir(const char *port)
{
	static const char *const dirs[] = {"/run/postgresql", "/var/run/postgresql", "/tmp"};
	char path[128];

	for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
		snprintf(path, sizeof path, "%s/.s.PGSQL.%s", dirs[i], is_given(port) ? port : "5432");
		if (access(path, F_OK) == 0)
			return dirs[i];
	}
	return dirs[0];
}

static void
set_host(struct database_conf *d, const PQconninfoOption *options, struct config_messages *m)
{
	const char *host = option(options, "hostaddr"), *port = option(options, "port");
	const struct host_conf *too_long;
	char why[256];

	if (!is_given(host))
		host = option(options, "host");
	if (!is_given(host))
		host = find_socket_dir(port);
	copy_text(&d->host, host, m);
	copy_text(&d->port, port, m);
	if (database_conf_set_hosts(d, host, port, why, sizeof why) != STATUS_OK)
		config_error(m, nowhere, "%s", why);
	else if ((too_long = config_entry_long_host(d)) != NULL)
		config_error(m, nowhere, "host: \"%s\" is too long for a Unix socket", too_long->name);
}

static void
add_database(struct config *c, const PQconninfoOption *options, const char *name, struct config_messages *m)
{
	const char *password = option(options, "password");
	struct database_conf *d = database_conf_new(name);

	if (d == NULL) {
		config_error(m, nowhere, "out of memory");
		return;
	}
	set_host(d, options, m);
	copy_text(&d->user, option(options, "user"), m);
	copy_text(&d->client_encoding, option(options, "client_encoding"), m);
	copy_text(&d->application_name, option(options, "application_name"), m);
	if (d->user != NULL && is_given(password) && !secret_set(&d->password, password, strlen(password)))
		config_error(m, nowhere, "out of memory");
	if (config_add_database(c, &d) != STATUS_OK)
		config_error(m, nowhere, "out of memory");
}

/* Other than the defaults: a pool worth its name, and nobody but this user gets in. */
static void
set_globals(struct config *c, struct config_messages *m)
{
	static const char *const pairs[][2] = {
		{"pool_mode", "transaction"}, {"auth_type", "trust"},       {"listen_addr", ""},
		{"unix_socket_dir", "/tmp"},  {"unix_socket_mode", "0700"},
	};
	char why[256];

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		if (config_set(c, pairs[i][0], pairs[i][1], why, sizeof why) != STATUS_OK)
			config_error(m, nowhere, "%s", why);
	}
}

/*
 * The database that is named gets an entry of its own, so that it is known from the start; all others of that server
 * are reached through the fallback under their own names.
 */
static void
add_databases(struct config *c, const PQconninfoOption *options, struct config_messages *m)
{
	const char *dbname = option(options, "dbname");

	add_database(c, options, "*", m);
	if (!is_given(dbname))
		return;
	if (config_is_admin_name(dbname))
		config_error(m, nowhere, "dbname: \"%s\" is the admin console's name", dbname);
	else
		add_database(c, options, dbname, m);
}

enum status
config_conninfo_load(const char *conninfo, struct config **out, struct config_messages *m)
{
	size_t n_errors = m->n_errors;
	PQconninfoOption *options = read_options(conninfo, m);
	struct config *c = config_new();

	*out = NULL;
	if (options != NULL && c != NULL) {
		set_globals(c, m);
		add_databases(c, options, m);
	}
	PQconninfoFree(options);
	if (c != NULL && m->n_errors == n_errors) {
		*out = c;
		return STATUS_OK;
	}
	if (c == NULL)
		config_error(m, nowhere, "out of memory");
	config_unref(&c);
	return STATUS_BAD;
}
