/* SPDX-License-Identifier: ISC */
#include "core/settings.h"

#include "base/hash.h"
#include "wire/build.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct pair {
	const char *name, *value;
};

struct settings {
	uint32_t refs; /* under table.lock */
	UT_hash_handle hh;
	size_t n;
	size_t key_len;
	enum settings_strings strings;
	uint64_t idle_limit_us;
	bool have_letters;
	const char *key; /* NAME\0value\0 ... sorted by name: however a name is spelled, it is the same setting */
	struct pair pairs[];
};

static struct {
	pthread_mutex_t lock;
	struct settings *sets;
} table = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* As the server reads a time whose unit is the millisecond. */
static uint64_t
time_us(const char *value)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = {{"", 1e3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};
	char *unit;
	double n = strtod(value, &unit);

	unit += strspn(unit, " ");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].unit) == 0 && n > 0 && n * units[i].us < 1e18)
			return (uint64_t)(n * units[i].us);
	return 0;
}

static bool
is_ascii(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* Of what stands in front of it, the pairs' texts. */
static void
fold_key(struct settings *s)
{
	char *at = (char *)&s->pairs[s->n] + s->key_len;

	for (size_t i = 0; i < s->n; i++) {
		for (const char *c = s->pairs[i].name; *c != '\0'; c++)
			*at++ = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
		at = stpcpy(at + 1, s->pairs[i].value) + 1;
	}
}

static struct settings *
settings_new(const struct pair *pairs, size_t n, size_t key_len)
{
	struct settings *s = calloc(1, sizeof(*s) + n * sizeof(s->pairs[0]) + 2 * key_len);
	char *at;

	if (s == NULL)
		return NULL;
	s->n = n;
	at = (char *)&s->pairs[n];
	s->key = at + key_len;
	s->key_len = key_len;
	for (size_t i = 0; i < n; i++) {
		s->pairs[i].name = at;
		at = stpcpy(at, pairs[i].name) + 1;
		s->pairs[i].value = at;
		s->have_letters = s->have_letters || !is_ascii(pairs[i].value);
		at = stpcpy(at, pairs[i].value) + 1;
		if (strcasecmp(pairs[i].name, "standard_conforming_strings") == 0)
			s->strings = strcmp(pairs[i].value, "off") == 0 ? STRINGS_ESCAPED : STRINGS_STANDARD;
		else if (strcasecmp(pairs[i].name, "idle_session_timeout") == 0)
			s->idle_limit_us = time_us(pairs[i].value);
	}
	fold_key(s);
	return s;
}

/* The interned set with these pairs (sorted), with a reference for the caller. */
static struct settings *
intern(const struct pair *pairs, size_t n)
{
	struct settings *fresh, *found = NULL;
	size_t key_len = 0;

	for (size_t i = 0; i < n; i++)
		key_len += strlen(pairs[i].name) + strlen(pairs[i].value) + 2;
	fresh = settings_new(pairs, n, key_len);
	if (fresh == NULL)
		return NULL;
	pthread_mutex_lock(&table.lock);
	HASH_FIND(hh, table.sets, fresh->key, fresh->key_len, found);
	if (found == NULL) {
		found = fresh;
		fresh = NULL;
		HASH_ADD_KEYPTR(hh, table.sets, found->key, found->key_len, found);
	}
	found->refs++;
	pthread_mutex_unlock(&table.lock);
	free(fresh);
	return found;
}

struct settings *
settings_empty(void)
{
	return intern(NULL, 0);
}

struct settings *
settings_ref(struct settings *s)
{
	pthread_mutex_lock(&table.lock);
	s->refs++;
	pthread_mutex_unlock(&table.lock);
	return s;
}

void
settings_unref(struct settings **s)
{
	struct settings *dead = NULL;

	if (*s == NULL)
		return;
	pthread_mutex_lock(&table.lock);
	if (--(*s)->refs == 0) {
		dead = *s;
		HASH_DEL(table.sets, dead);
	}
	pthread_mutex_unlock(&table.lock);
	free(dead);
	*s = NULL;
}

/* Copies s without `name`, and with it at its place when value is not NULL. */
static struct settings *
derive(struct settings *s, const char *name, const char *value)
{
	struct pair *pairs = malloc((s->n + 1) * sizeof(*pairs));
	struct settings *out;
	bool placed = value == NULL;
	size_t n = 0;

	if (pairs == NULL)
		return NULL;
	for (size_t i = 0; i < s->n; i++) {
		int order = strcasecmp(s->pairs[i].name, name);

		if (order >= 0 && !placed) {
			pairs[n++] = (struct pair){name, value};
			placed = true;
		}
		if (order != 0)
			pairs[n++] = s->pairs[i];
	}
	if (!placed)
		pairs[n++] = (struct pair){name, value};
	out = intern(pairs, n);
	free(pairs);
	return out;
}

struct settings *
settings_with(struct settings *s, const char *name, const char *value)
{
	const char *old = settings_get(s, name);

	return old != NULL && strcmp(old, value) == 0 ? settings_ref(s) : derive(s, name, value);
}

struct settings *
settings_without(struct settings *s, const char *name)
{
	return settings_get(s, name) == NULL ? settings_ref(s) : derive(s, name, NULL);
}

size_t
settings_n(const struct settings *s)
{
	return s->n;
}

const char *
settings_name(const struct settings *s, size_t i)
{
	return s->pairs[i].name;
}

const char *
settings_value(const struct settings *s, size_t i)
{
	return s->pairs[i].value;
}

enum settings_strings
settings_strings(const struct settings *s)
{
	return s->strings;
}

bool
settings_have_letters(const struct settings *s)
{
	return s->have_letters;
}

uint64_t
settings_idle_limit_us(const struct settings *s)
{
	return s->idle_limit_us;
}

const char *
settings_get(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcasecmp(s->pairs[i].name, name) == 0)
			return s->pairs[i].value;
	return NULL;
}

/*
 * Set last, in this order, and undone first in the other one: what went before decides who may set the rest, and how long
 * that may take.
 */
static const char *const last[] = {"session_authorization", "role", "lock_timeout", "statement_timeout",
                                   "transaction_timeout"};
#define N_LAST (sizeof(last) / sizeof(last[0]))

/* Values are bytes in the session's encoding: it is set before them. */
#define FIRST "client_encoding"

static bool
is_ordinary(const char *name)
{
	for (size_t i = 0; i < N_LAST; i++)
		if (strcasecmp(name, last[i]) == 0)
			return false;
	return strcasecmp(name, FIRST) != 0;
}

static bool
is_equal(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* A role must make way for anything else; a time limit that stays may, unless it could hit what is done here. */
static bool
must_undo(const struct settings *from, const struct settings *to, const char *name)
{
	const char *had = settings_get(from, name);

	if (had == NULL)
		return false;
	if (!is_equal(had, settings_get(to, name)) || strstr(name, "timeout") == NULL)
		return true;
	return strstr(had, "ms") != NULL;
}

struct plan {
	size_t n;
	struct pair pairs[];
};

static void
add(struct plan *p, const char *name, const char *value)
{
	p->pairs[p->n++] = (struct pair){name, value};
}

/* Both are sorted by name. What goes back to the login default has the value NULL. */
static void
add_ordinary(struct plan *p, const struct settings *from, const struct settings *to)
{
	for (size_t i = 0, k = 0; i < from->n || k < to->n;) {
		const struct pair *had = i < from->n ? &from->pairs[i] : NULL,
				  *wanted = k < to->n ? &to->pairs[k] : NULL;
		int order = had == NULL ? 1 : wanted == NULL ? -1 : strcasecmp(had->name, wanted->name);

		i += order <= 0;
		k += order >= 0;
		if (order < 0 && is_ordinary(had->name))
			add(p, had->name, NULL);
		else if (order > 0 && is_ordinary(wanted->name))
			add(p, wanted->name, wanted->value);
		else if (order == 0 && is_ordinary(wanted->name) && strcmp(had->value, wanted->value) != 0)
			add(p, wanted->name, wanted->value);
	}
}

/* What is to be set, in order; NULL: no memory. */
static struct plan *
make_plan(const struct settings *from, const struct settings *to)
{
	struct plan *p = malloc(sizeof(*p) + (from->n + to->n + N_LAST) * sizeof(p->pairs[0]));
	const char *wanted = settings_get(to, FIRST);
	size_t n_undone;
	bool differs;

	if (p == NULL)
		return NULL;
	p->n = 0;
	for (size_t i = N_LAST; i-- > 0;)
		if (must_undo(from, to, last[i]))
			add(p, last[i], NULL);
	n_undone = p->n;
	if (!is_equal(settings_get(from, FIRST), wanted))
		add(p, FIRST, wanted);
	add_ordinary(p, from, to);
	differs = p->n > n_undone;
	for (size_t i = 0; i < N_LAST; i++) {
		const char *had = settings_get(from, last[i]);

		wanted = settings_get(to, last[i]);
		differs = differs || !is_equal(had, wanted);
		if (wanted != NULL && (must_undo(from, to, last[i]) || !is_equal(had, wanted)))
			add(p, last[i], wanted);
	}
	if (!differs)
		p->n = 0; /* what was undone would only be set again */
	return p;
}

#define SET_CONFIG "SELECT pg_catalog.set_config($1, $2, $3)"

/* One execution of SET_CONFIG; is_local as text. */
static void
build_set(struct buf *b, const char *name, const char *value, const char *is_local)
{
	const char *values[3] = {name, value, is_local};

	build_bind_text(b, "", "", values, 3);
	build_execute(b, "");
}

size_t
settings_build_or_end(struct buf *b)
{
	build_parse(b, "", SET_CONFIG);
	build_set(b, "exit_on_error", "on", "t");
	return 3;
}

static size_t
build_command(struct buf *b, const char *sql)
{
	build_parse(b, "", sql);
	build_bind_text(b, "", "", NULL, 0);
	build_execute(b, "");
	return 3;
}

size_t
settings_build_forget(struct buf *b, bool sequences, bool all)
{
	size_t n = 0;

	if (all)
		n += build_command(b, "BEGIN");
	if (sequences || all)
		n += settings_build_or_end(b);
	if (sequences)
		n += build_command(b, "DISCARD SEQUENCES");
	if (all) {
		n += build_command(b, "RESET ALL");
		n += settings_build_or_end(b);
	}
	return n;
}

size_t
settings_build_forgotten(struct buf *b)
{
	return build_command(b, "COMMIT");
}

size_t
settings_build_apply(struct buf *b, const struct settings *from, const struct settings *to, enum settings_apply how)
{
	struct plan *p = make_plan(from, to);
	size_t n = p ? p->n : 0, n_messages = 0;

	if (p == NULL)
		b->failed = true;
	if (n > 0 && how == SETTINGS_OR_END) {
		n_messages = settings_build_or_end(b);
	} else if (n > 0) {
		build_parse(b, "", SET_CONFIG);
		n_messages = 1;
	}
	for (size_t i = 0; i < n; i++)
		build_set(b, p->pairs[i].name, p->pairs[i].value, "f");
	free(p);
	return n_messages + 2 * n;
}

const char *
settings_applied_name(const struct settings *from, const struct settings *to, size_t i)
{
	struct plan *p = make_plan(from, to);
	const char *name = p != NULL && i < p->n ? p->pairs[i].name : NULL;

	free(p);
	return name;
}
