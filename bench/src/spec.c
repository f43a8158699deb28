/* SPDX-License-Identifier: ISC */
#include "spec.h"

#include "base/str.h"
#include "nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_POOL 10000
#define MAX_THREADS 256

static const struct {
	const char *name;
	enum system_kind kind;
	int pool;
	int threads;
	char separator; /* between the pool and the threads or processes; 0: only a number of threads */
	const char *program;
	const char *package;
} kinds[] = {
	{"direct", SYSTEM_DIRECT, 0, 0, '\0', NULL, "postgresql"},
	{"pgweir", SYSTEM_PGWEIR, 16, 1, '/', "pgweir", "pgweir (make)"},
	{"pgbouncer", SYSTEM_PGBOUNCER, 16, 1, 'x', "pgbouncer", "pgbouncer"},
	{"odyssey", SYSTEM_ODYSSEY, 16, 1, '/', "odyssey", "odyssey, or --odyssey PATH"},
	{"haproxy", SYSTEM_HAPROXY, 0, 1, '\0', "haproxy", "haproxy"},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool
parse_number(const char *text, size_t len, int max, int *out)
{
	char digits[16];
	int64_t value;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (!str_parse_int(digits, 1, max, &value))
		return false;
	*out = (int)value;
	return true;
}

static bool
is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && strchr("._-", text[i]) == NULL)
			return false;
	return len > 0;
}

static bool
parse_other(const char *text, const char *equals, struct system_spec *out, struct why *why)
{
	if (!is_name(text, (size_t)(equals - text)) || (size_t)(equals - text) >= sizeof(out->name))
		return why_set(why, "%s: the name before = is of letters, digits, dots and hyphens", text);
	if (equals[1] == '\0')
		return why_set(why, "%s: the conninfo after = is missing", text);
	if (!str_copy(out->conninfo, sizeof(out->conninfo), equals + 1))
		return why_set(why, "%s: the conninfo is too long", text);
	snprintf(out->name, sizeof(out->name), "%.*s", (int)(equals - text), text);
	out->kind = SYSTEM_OTHER;
	return true;
}

/* What follows the colon. */
static bool
parse_sizes(size_t kind, const char *sizes, struct system_spec *out)
{
	const char *separator = kinds[kind].separator != '\0' ? strchr(sizes, kinds[kind].separator) : NULL;
	int second = 1;

	if (kinds[kind].kind == SYSTEM_DIRECT)
		return false;
	if (kinds[kind].separator == '\0')
		return parse_number(sizes, strlen(sizes), MAX_THREADS, &out->threads);
	if (!parse_number(sizes, separator != NULL ? (size_t)(separator - sizes) : strlen(sizes), MAX_POOL, &out->pool))
		return false;
	if (separator != NULL && !parse_number(separator + 1, strlen(separator + 1), MAX_THREADS, &second))
		return false;
	if (kinds[kind].kind == SYSTEM_PGBOUNCER) {
		out->n_processes = second;
		return second <= SPEC_MAX_PROCESSES && second <= out->pool;
	}
	out->threads = second;
	return true;
}

static size_t
find_kind(const char *text, size_t len)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (strlen(kinds[i].name) == len && strncmp(kinds[i].name, text, len) == 0)
			return i;
	return N_KINDS;
}

static const char *
name_at(size_t i)
{
	return i < N_KINDS ? kinds[i].name : NULL;
}

static bool
refuse(const char *text, struct why *why)
{
	char *name = text_fmt("%.*s", (int)strcspn(text, ":"), text);

	nearest_refuse(why, "system", name, name_at,
	               "there are direct, pgweir, pgbouncer, odyssey, haproxy, NAME=CONNINFO");
	free(name);
	return false;
}

bool
system_spec_parse(const char *text, struct system_spec *out, struct why *why)
{
	const char *colon = strchr(text, ':'), *equals = strchr(text, '=');
	size_t kind;

	memset(out, 0, sizeof(*out));
	if (equals != NULL)
		return parse_other(text, equals, out, why);
	kind = find_kind(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
	if (kind == N_KINDS)
		return refuse(text, why);
	if (!str_copy(out->name, sizeof(out->name), text))
		return why_set(why, "%s: too long", text);
	out->kind = kinds[kind].kind;
	out->pool = kinds[kind].pool;
	out->threads = kinds[kind].threads;
	out->n_processes = kinds[kind].program != NULL ? 1 : 0;
	if (colon != NULL && !parse_sizes(kind, colon + 1, out))
		return why_set(why,
		               "%s: sizes are written pgweir:BACKENDS/PROXIES, pgbouncer:POOLxPROCESSES (at most %d "
		               "processes), odyssey:BACKENDS/THREADS, haproxy:THREADS",
		               text, SPEC_MAX_PROCESSES);
	return true;
}

/* Does a system begin here? Then the comma before it ends the one that goes before. */
static bool
begins_system(const char *text)
{
	size_t len = strcspn(text, ":,=");

	return find_kind(text, len) < N_KINDS ||
	       (text[len] == '=' && is_name(text, len) && strchr(text + len + 1, '=') != NULL);
}

static bool
add_spec(const char *text, struct system_spec **out, size_t *n, struct why *why)
{
	struct system_spec spec, *grown;

	if (!system_spec_parse(text, &spec, why))
		return false;
	for (size_t i = 0; i < *n; i++)
		if (strcmp((*out)[i].name, spec.name) == 0)
			return why_set(why, "%s is named twice", spec.name);
	grown = realloc(*out, (*n + 1) * sizeof(**out));
	if (grown == NULL)
		return why_set(why, "out of memory");
	*out = grown;
	grown[(*n)++] = spec;
	return true;
}

bool
system_spec_parse_list(const char *text, struct system_spec **out, size_t *n, struct why *why)
{
	char *copy = text_dup(text), *part = copy;
	bool in_conninfo = false, ok = true;

	*out = NULL;
	*n = 0;
	for (char *p = copy; ok; p++) {
		bool end = *p == '\0';

		if (*p == '=')
			in_conninfo = true;
		if (!end && !(*p == ',' && (!in_conninfo || begins_system(p + 1))))
			continue;
		*p = '\0';
		ok = add_spec(part, out, n, why);
		part = p + 1;
		in_conninfo = false;
		if (end)
			break;
	}
	free(copy);
	return ok;
}

const char *
system_spec_package(const struct system_spec *spec)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (kinds[i].kind == spec->kind)
			return kinds[i].package;
	return "";
}

const char *
system_spec_program(const struct system_spec *spec)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (kinds[i].kind == spec->kind)
			return kinds[i].program;
	return NULL;
}
