/* SPDX-License-Identifier: ISC */
#include "core/statement.h"

#include "base/hash.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct statement {
	uint32_t refs; /* under table.lock */
	UT_hash_handle hh;
	struct settings *settings; /* NULL: large, and not in the table */
	char server_name[28];
	size_t n_key; /* the key: the settings' address, then the body */
	uint8_t key[];
};

static struct {
	pthread_mutex_t lock;
	struct statement *all;
	uint64_t last_number, n_bytes;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct statement *
statement_new(struct settings *settings, const uint8_t *body, size_t n)
{
	struct statement *st = calloc(1, sizeof(*st) + sizeof(settings) + n);

	if (st == NULL)
		return NULL;
	st->n_key = sizeof(settings) + n;
	memcpy(st->key, &settings, sizeof(settings));
	memcpy(st->key + sizeof(settings), body, n);
	return st;
}

/* Under the lock. */
static void
set_server_name(struct statement *st)
{
	snprintf(st->server_name, sizeof(st->server_name), STATEMENT_PREFIX "%llu",
	         (unsigned long long)++table.last_number);
}

/* Under the lock. False: no memory. */
static bool
add(struct statement *st, struct settings *settings)
{
	HASH_ADD_KEYPTR(hh, table.all, st->key, st->n_key, st);
	if (st->hh.tbl == NULL)
		return false;
	st->settings = settings_ref(settings);
	set_server_name(st);
	table.n_bytes += sizeof(*st) + st->n_key;
	return true;
}

struct statement *
statement_get(struct settings *settings, const uint8_t *body, size_t n)
{
	struct statement *fresh = statement_new(settings, body, n), *found = NULL;

	if (fresh == NULL)
		return NULL;
	pthread_mutex_lock(&table.lock);
	HASH_FIND(hh, table.all, fresh->key, fresh->n_key, found);
	if (found == NULL && add(fresh, settings)) {
		found = fresh;
		fresh = NULL;
	}
	if (found != NULL)
		found->refs++;
	pthread_mutex_unlock(&table.lock);
	free(fresh);
	return found;
}

struct statement *
statement_new_large(void)
{
	struct statement *st = calloc(1, sizeof(*st) + sizeof(st->settings));

	if (st == NULL)
		return NULL;
	st->refs = 1;
	st->n_key = sizeof(st->settings); /* no body */
	pthread_mutex_lock(&table.lock);
	set_server_name(st);
	pthread_mutex_unlock(&table.lock);
	return st;
}

bool
statement_is_large(const struct statement *st)
{
	return st->settings == NULL;
}

struct statement *
statement_ref(struct statement *st)
{
	pthread_mutex_lock(&table.lock);
	st->refs++;
	pthread_mutex_unlock(&table.lock);
	return st;
}

void
statement_unref(struct statement **stp)
{
	struct statement *st = *stp, *dead = NULL;

	if (st == NULL)
		return;
	*stp = NULL;
	pthread_mutex_lock(&table.lock);
	if (--st->refs == 0) {
		dead = st;
		if (!statement_is_large(st)) {
			HASH_DEL(table.all, st);
			table.n_bytes -= sizeof(*st) + st->n_key;
		}
	}
	pthread_mutex_unlock(&table.lock);
	if (dead != NULL)
		settings_unref(&dead->settings);
	free(dead);
}

const char *
statement_server_name(const struct statement *st)
{
	return st->server_name;
}

const uint8_t *
statement_body(const struct statement *st, size_t *n)
{
	*n = st->n_key - sizeof(st->settings);
	return st->key + sizeof(st->settings);
}

struct statement_totals
statement_totals(void)
{
	struct statement_totals t;

	pthread_mutex_lock(&table.lock);
	t.n_statements = HASH_COUNT(table.all);
	t.n_bytes = table.n_bytes;
	pthread_mutex_unlock(&table.lock);
	return t;
}
