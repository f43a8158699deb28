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
	char *key; /* name\0value\0 ... sorted by name */
	struct pair pairs[];
};

static struct {
	pthread_mutex_t lock;
	struct settings *sets;
} table = {PTHREAD_MUTEX_INITIALIZER, NULL};

static struct settings *
settings_new(const struct pair *pairs, size_t n, size_t key_len)
{
	struct settings *s = calloc(1, sizeof(*s) + n * sizeof(s->pairs[0]) + key_len);
	char *at;

	if (s == NULL)
		return NULL;
	s->n = n;
	s->key = at = (char *)&s->pairs[n];
	s->key_len = key_len;
	for (size_t i = 0; i < n; i++) {
		s->pairs[i].name = at;
		at = stpcpy(at, pairs[i].name) + 1;
		s->pairs[i].value = at;
		at = stpcpy(at, pairs[i].value) + 1;
	}
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

const char *
settings_get(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcasecmp(s->pairs[i].name, name) == 0)
			return s->pairs[i].value;
	return NULL;
}

static bool
differs(const struct settings *from, const struct pair *wanted)
{
	const char *has = settings_get(from, wanted->name);

	return has == NULL || strcmp(has, wanted->value) != 0;
}

/* What is to be set, in order: first what goes back to the login default (value NULL), then what differs. */
static bool
change_at(const struct settings *from, const struct settings *to, size_t i, struct pair *out)
{
	for (size_t k = 0; k < from->n; k++)
		if (settings_get(to, from->pairs[k].name) == NULL && i-- == 0) {
			*out = (struct pair){from->pairs[k].name, NULL};
			return true;
		}
	for (size_t k = 0; k < to->n; k++)
		if (differs(from, &to->pairs[k]) && i-- == 0) {
			*out = to->pairs[k];
			return true;
		}
	return false;
}

size_t
settings_build_apply(struct buf *b, const struct settings *from, const struct settings *to)
{
	struct pair change;
	size_t n = 0;

	for (; change_at(from, to, n, &change); n++) {
		const char *values[2] = {change.name, change.value};

		if (n == 0)
			build_parse(b, "", "SELECT pg_catalog.set_config($1, $2, false)");
		build_bind_text(b, "", "", values, 2);
		build_execute(b, "");
	}
	if (n == 0)
		return 0;
	build_sync(b);
	return 1 + 2 * n;
}

const char *
settings_applied_name(const struct settings *from, const struct settings *to, size_t i)
{
	struct pair change;

	return change_at(from, to, i, &change) ? change.name : NULL;
}
