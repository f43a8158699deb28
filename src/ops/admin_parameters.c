/* SPDX-License-Identifier: ISC */
/* Drivers expect a server: they read these parameters at login, and some set or ask for them before anything else. */
#include "base/str.h"
#include "core/config.h"
#include "ops/admin_reply.h"
#include "ops/admin_show.h"
#include "ops/cmdline.h"
#include "wire/build.h"

#include <stdio.h>
#include <string.h>

struct parameter {
	const char *name;
	const char *value; /* NULL: the version */
	bool is_reported;
};

static const struct parameter parameters[] = {
	{"server_version", NULL, true},
	{"client_encoding", "UTF8", true},
	{"server_encoding", "UTF8", true},
	{"DateStyle", "ISO, MDY", true},
	{"TimeZone", "GMT", true},
	{"standard_conforming_strings", "on", true},
	{"integer_datetimes", "on", true},
	{"is_superuser", "on", true},
	{"default_transaction_read_only", "off", true},
	{"in_hot_standby", "off", true},
	{"default_transaction_isolation", "read committed", false},
	{"transaction_isolation", "read committed", false},
	{"extra_float_digits", "1", false},
	{"application_name", "", false},
};

static const struct parameter *
find_parameter(const char *name)
{
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (str_equal_nocase(parameters[i].name, name))
			return &parameters[i];
	return NULL;
}

/* "0.1.0/pgweir": a number first, as drivers parse it. */
static const char *
value_of(const struct parameter *p, char *buf, size_t cap)
{
	const char *version = strchr(cmdline_version(), ' ');

	if (p->value != NULL)
		return p->value;
	snprintf(buf, cap, "%s/pgweir", version != NULL ? version + 1 : "0");
	return buf;
}

void
admin_build_parameters(struct buf *out)
{
	char text[64];

	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (parameters[i].is_reported)
			build_parameter_status(out, parameters[i].name, value_of(&parameters[i], text, sizeof(text)));
}

void
admin_show_parameter(struct admin_call *call)
{
	const struct parameter *p = find_parameter(call->args[0]);
	struct reply r;
	char text[64];

	if (p == NULL) {
		reply_error(call->out, "08P01", "invalid command 'SHOW %s', use SHOW HELP;", call->args[0]);
		return;
	}
	reply_begin(&r, call->out, &(struct reply_column){p->name, REPLY_TEXT}, 1);
	reply_text(&r, value_of(p, text, sizeof(text)));
	reply_end(&r);
}

static bool
is_setting(const char *name)
{
	size_t n;
	const struct setting_info *settings = config_settings(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(settings[i].name, name) == 0)
			return true;
	return false;
}

/* SET [SESSION | LOCAL] key = value, or TO instead of `=`, or TIME ZONE value. */
void
admin_set(struct admin_call *call)
{
	char **args = call->args;
	size_t n = call->n_args;

	if (n > 0 && (str_equal_nocase(args[0], "session") || str_equal_nocase(args[0], "local"))) {
		args++;
		n--;
	}
	if (n >= 3 && str_equal_nocase(args[0], "time") && str_equal_nocase(args[1], "zone")) {
		build_command_complete(call->out, "SET");
		return;
	}
	if (n < 3 || (strcmp(args[1], "=") != 0 && !str_equal_nocase(args[1], "to")))
		reply_error(call->out, "08P01", "invalid command: SET key = value is expected, use SHOW HELP;");
	else if (find_parameter(args[0]) != NULL) /* nothing here depends on it */
		build_command_complete(call->out, "SET");
	else if (is_setting(args[0]))
		reply_error(call->out, "0A000", "SET %s is not supported yet", args[0]);
	else
		reply_error(call->out, "08P01", "unknown setting \"%s\"", args[0]);
}
