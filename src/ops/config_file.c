/* SPDX-License-Identifier: ISC */
/*
 * Reading the file. inih sees the shape of each line, its sections and pairs; the
 * key and the value of the line at hand wait here. So nothing depends on how inih
 * was built: as packaged it cuts lines at 200 bytes, takes " ;" inside a value for
 * a comment and an indented line for the rest of the value before.
 */
#include "ops/config_file.h"

#include "auth/users.h"
#include "base/obj.h"
#include "base/str.h"
#include "ops/config_entry.h"
#include "ops/config_source.h"

#include <grp.h>
#include <ini.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_NAME_MAX 32 /* inih keeps 50 */

#define LOADER_MAGIC 0x10adef11u

struct loader {
	uint32_t magic;
	const char *name; /* of the first file */
	struct config *config;
	struct config_messages *messages;
	struct config_sources sources;
	char *key, *value;           /* of the line inih was just given */
	struct config_place *places; /* where each setting was last given, by its number in config_settings() */
	bool in_section;
};

static struct config_place
here(const struct loader *l)
{
	return config_sources_place(&l->sources);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Unquotes a "quoted ""name""" in place from its first quote; the position behind it, NULL if it has no end. */
static char *
unquote_name(char *p)
{
	char *to = p;

	for (p++; *p != '\0'; *to++ = *p++) {
		if (*p == '"' && *++p != '"') {
			*to = '\0';
			return p;
		}
	}
	return NULL;
}

/* Splits key = value into l->key and l->value; false: reported. */
static bool
split_pair(struct loader *l, char *line)
{
	char *p, *equals;

	l->key = line;
	if (line[0] == '"') {
		p = unquote_name(line);
		if (p == NULL) {
			config_error(l->messages, here(l), "the closing quote of the name is missing");
			return false;
		}
	} else {
		p = line + strcspn(line, "= \t");
	}
	equals = p + strspn(p, " \t");
	if (*equals != '=') {
		config_error(l->messages, here(l), "expected name = value");
		return false;
	}
	*p = '\0'; /* a quoted name ended before p, a plain one ends here */
	l->value = str_trim(equals + 1);
	return true;
}

static bool is_section(const char *name);

static void
unknown_section(struct loader *l, const char *name)
{
	config_error(l->messages, here(l),
	             "unknown section [%.*s]; there are [pgweir] (or [pgbouncer]), [databases] and [users]",
	             SECTION_NAME_MAX, name);
}

/* Copies the header line for inih; false: reported, nothing to hand over. */
static bool
section_line(struct loader *l, char *line, char *out, size_t cap)
{
	char *name = line + 1;
	char *close = strchr(name, ']');
	const char *rest;

	if (close == NULL) {
		config_error(l->messages, here(l), "the ] of the section is missing");
		return false;
	}
	rest = close + 1 + strspn(close + 1, " \t");
	if (*rest != '\0' && *rest != ';' && *rest != '#')
		config_error(l->messages, here(l), "text after the section's name");
	*close = '\0';
	name = str_trim(name);
	l->in_section = true;
	if (!is_section(name)) {
		unknown_section(l, name);
		name[strnlen(name, SECTION_NAME_MAX)] = '\0';
	}
	/* An unknown name is handed over too, lest what follows counts for the section before. */
	snprintf(out, cap, "[%s]", name);
	return true;
}

/* What inih calls for its next line. Lines that are not its business never reach it. */
static char *
read_for_inih(char *out, int cap, void *arg)
{
	struct loader *l = obj_from(arg, loader, LOADER_MAGIC);
	char *line;

	while ((line = config_sources_next(&l->sources)) != NULL) {
		if (line[0] == '[') {
			if (section_line(l, line, out, (size_t)cap))
				return out;
		} else if (split_pair(l, line)) {
			snprintf(out, (size_t)cap, "key=value");
			return out;
		}
	}
	return NULL;
}

/* --- sections ----------------------------------------------------------------------------------------------------- */

static const char *
nearest_setting(const char *name)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);
	struct config_nearest near;

	config_nearest_init(&near, name);
	for (size_t i = 0; i < n; i++)
		config_nearest_offer(&near, settings[i].name);
	return near.best;
}

static bool
find_setting(const char *name, size_t *index)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(settings[i].name, name) == 0) {
			*index = i;
			return true;
		}
	}
	return false;
}

static void
add_setting(struct loader *l)
{
	char why[512];
	const char *near;
	size_t index;

	if (!find_setting(l->key, &index)) {
		near = nearest_setting(l->key);
		if (near != NULL)
			config_error(l->messages, here(l), "unknown setting \"%s\"; did you mean \"%s\"?", l->key,
			             near);
		else
			config_error(l->messages, here(l), "unknown setting \"%s\"", l->key);
		return;
	}
	l->places[index] = here(l);
	if (config_set(l->config, l->key, l->value, why, sizeof why) != STATUS_OK)
		config_error(l->messages, here(l), "%s", why);
	else if (why[0] != '\0')
		config_warning(l->messages, here(l), "%s", why);
}

static void
add_database(struct loader *l)
{
	config_entry_add_database(l->config, l->key, l->value, here(l), l->messages);
}

static struct config_place
place_of(const struct loader *l, const char *setting)
{
	size_t index;
	bool found = find_setting(setting, &index);

	invariant(found);
	return l->places[index];
}

/* A file written for pgbouncer: what it relies on stays as it is there. */
static void
add_pgbouncer_setting(struct loader *l)
{
	if (place_of(l, "session_state").line == 0)
		l->config->session_state = STATE_IGNORE;
	add_setting(l);
}

static void
add_user(struct loader *l)
{
	config_entry_add_user(l->config, l->key, l->value, here(l), l->messages);
}

static void
refuse_peer(struct loader *l)
{
	config_error(l->messages, here(l), "peer \"%s\": [peers] is not supported yet", l->key);
}

struct section {
	const char *name;
	void (*add)(struct loader *l); /* the pair in l->key, l->value */
};

static const struct section sections[] = {
	{"pgweir", add_setting},     {"pgbouncer", add_pgbouncer_setting},
	{"databases", add_database}, {"users", add_user},
	{"peers", refuse_peer},      {NULL, NULL},
};

static const struct section *
find_section(const char *name)
{
	const struct section *s = sections;

	while (s->name != NULL && strcmp(s->name, name) != 0)
		s++;
	return s;
}

static bool
is_section(const char *name)
{
	return find_section(name)->name != NULL;
}

static int
on_pair(void *arg, const char *section, const char *name, const char *value)
{
	struct loader *l = obj_from(arg, loader, LOADER_MAGIC);
	const struct section *s = find_section(section);

	(void)name;
	(void)value;
	if (s->name != NULL)
		s->add(l);
	else if (!l->in_section)
		config_error(l->messages, here(l), "\"%s\" stands before the first section", l->key);
	return 1; /* errors are kept in l->messages; inih shall go on */
}

/* --- checks over all of it ---------------------------------------------------------------------------------------- */

static bool
is_syslog_facility(const char *word)
{
	static const char *const words = "auth,authpriv,cron,daemon,ftp,kern,lpr,mail,news,syslog,user,uucp,"
					 "local0,local1,local2,local3,local4,local5,local6,local7";

	return config_list_has(words, word);
}

/* What can be judged without looking at files. */
static void
check_values(const struct loader *l)
{
	const struct config *c = l->config;
	struct config_messages *m = l->messages;

	if (c->listen_addr[0] == '\0' && c->unix_socket_dir[0] == '\0')
		config_error(m, place_of(l, "unix_socket_dir"),
		             "nothing to listen on: listen_addr and unix_socket_dir are both empty");
	if (!config_entry_is_unix_path(c->unix_socket_dir, c->listen_port))
		config_error(m, place_of(l, "unix_socket_dir"), "unix_socket_dir: \"%s\" is too long for a Unix socket",
		             c->unix_socket_dir);
	if (!is_syslog_facility(c->syslog_facility))
		config_error(m, place_of(l, "syslog_facility"), "syslog_facility: unknown facility \"%s\"",
		             c->syslog_facility);
	if (c->databases == NULL && c->fallback == NULL)
		config_warning(m, (struct config_place){l->name, 0}, "[databases] has no entry");
	if (c->auth_file[0] == '\0' && c->auth_type != AUTH_TYPE_ANY && c->auth_type != AUTH_TYPE_TRUST)
		config_warning(m, place_of(l, "auth_type"),
		               "no auth_file is set, so no user is known and none can log in");
}

/* Names that only this machine knows. */
static void
check_names(const struct loader *l)
{
	const struct config *c = l->config;

	if (c->user[0] != '\0' && getpwnam(c->user) == NULL)
		config_error(l->messages, place_of(l, "user"), "user: there is no user \"%s\"", c->user);
	if (c->unix_socket_group[0] != '\0' && getgrnam(c->unix_socket_group) == NULL)
		config_error(l->messages, place_of(l, "unix_socket_group"),
		             "unix_socket_group: there is no group \"%s\"", c->unix_socket_group);
}

/* auth_type any needs no users, but may have some: servers ask for their passwords. */
static void
load_users(const struct loader *l)
{
	struct config *c = l->config;
	char why[1024];

	if (c->auth_file[0] == '\0')
		return;
	if (users_load_file(c->auth_users, c->auth_file, why, sizeof why) == STATUS_OK)
		return;
	if (c->auth_type == AUTH_TYPE_ANY)
		config_warning(l->messages, place_of(l, "auth_file"), "auth_file: %s", why);
	else
		config_error(l->messages, place_of(l, "auth_file"), "auth_file: %s", why);
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

static void
parse(struct loader *l)
{
	size_t n_before = l->messages->n_errors;
	int rc = ini_parse_stream(read_for_inih, l, on_pair, l);

	/* Whatever inih might object to was reported before it came to that. */
	if (rc < 0)
		config_error(l->messages, (struct config_place){l->name, 0}, "out of memory");
	else if (rc > 0 && l->messages->n_errors == n_before)
		config_error(l->messages, (struct config_place){l->name, 0}, "the file can't be understood");
}

static bool
loader_init(struct loader *l, const char *name, bool files_allowed, struct config_messages *m)
{
	size_t n;

	(void)config_settings(&n);
	memset(l, 0, sizeof *l);
	l->magic = LOADER_MAGIC;
	l->name = name;
	l->messages = m;
	config_sources_init(&l->sources, files_allowed, m);
	l->config = config_new();
	l->places = calloc(n, sizeof *l->places);
	if (l->config == NULL || l->places == NULL) {
		config_error(m, (struct config_place){name, 0}, "out of memory");
		return false;
	}
	for (size_t i = 0; i < n; i++)
		l->places[i].file = name;
	return true;
}

static void
loader_fini(struct loader *l)
{
	config_sources_fini(&l->sources);
	free(l->places);
	config_unref(&l->config);
}

enum status
config_file_load(const char *path, struct config **out, struct config_messages *m)
{
	struct loader l;
	size_t n_errors = m->n_errors;

	*out = NULL;
	if (loader_init(&l, path, true, m) && config_sources_open(&l.sources, path)) {
		parse(&l);
		check_values(&l);
		check_names(&l);
		load_users(&l);
		l.config->path = str_dup(path);
		if (l.config->path == NULL)
			config_error(m, (struct config_place){path, 0}, "out of memory");
	}
	if (m->n_errors == n_errors) {
		*out = l.config;
		l.config = NULL;
	}
	loader_fini(&l);
	return *out != NULL ? STATUS_OK : STATUS_BAD;
}

enum status
config_file_load_text(const char *text, size_t n, const char *name, struct config **out, struct config_messages *m)
{
	struct loader l;
	size_t n_errors = m->n_errors;

	*out = NULL;
	if (loader_init(&l, name, false, m) && config_sources_use(&l.sources, name, text, n)) {
		parse(&l);
		check_values(&l);
	}
	if (m->n_errors == n_errors) {
		*out = l.config;
		l.config = NULL;
	}
	loader_fini(&l);
	return *out != NULL ? STATUS_OK : STATUS_BAD;
}

bool
config_check_start(const struct config *c, bool daemon, struct config_messages *m)
{
	if (!daemon || c->pidfile[0] != '\0')
		return true;
	config_error(m, (struct config_place){c->path, 0}, "-d needs a pidfile, and none is set");
	return false;
}
