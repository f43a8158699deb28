/* SPDX-License-Identifier: ISC */
#include "core/statement.h"

#include "base/hash.h"
#include "wire/suspect.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a text's meaning depends on. */
struct context {
	struct settings *settings; /* NULL: large, and not in the table */
	uint64_t generation;
};

struct statement {
	uint32_t refs; /* under table.lock */
	UT_hash_handle hh;
	_Atomic(struct description *) described;
	_Atomic(struct suspicion *) suspicion; /* NULL: not known yet; `innocent`: of nothing */
	_Atomic bool is_told;
	char server_name[28];
	size_t n_key; /* the key: from `context` on */
	struct context context;
	uint8_t body[];
};

static struct {
	pthread_mutex_t lock;
	struct statement *all;
	uint64_t last_number, n_bytes;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t
statement_new_generation(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

static struct suspicion innocent;

static struct statement *
statement_new(struct context context, const uint8_t *body, size_t n)
{
	struct statement *st = calloc(1, sizeof(*st) + n);

	if (st == NULL)
		return NULL;
	st->n_key = sizeof(context) + n;
	st->context = context;
	if (n > 0)
		memcpy(st->body, body, n);
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
add(struct statement *st)
{
	HASH_ADD_KEYPTR(hh, table.all, &st->context, st->n_key, st);
	if (st->hh.tbl == NULL)
		return false;
	(void)settings_ref(st->context.settings);
	set_server_name(st);
	table.n_bytes += sizeof(*st) + st->n_key;
	return true;
}

struct statement *
statement_get(struct settings *settings, uint64_t generation, const uint8_t *body, size_t n)
{
	struct context context = {settings, generation};
	struct statement *fresh = statement_new(context, body, n), *found = NULL;

	if (fresh == NULL)
		return NULL;
	pthread_mutex_lock(&table.lock);
	HASH_FIND(hh, table.all, &fresh->context, fresh->n_key, found);
	if (found == NULL && add(fresh)) {
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
statement_renewed(struct statement *st, uint64_t generation)
{
	return statement_get(st->context.settings, generation, st->body, st->n_key - sizeof(st->context));
}

struct statement *
statement_new_large(void)
{
	struct statement *st = statement_new((struct context){0}, NULL, 0);

	if (st == NULL)
		return NULL;
	st->refs = 1;
	pthread_mutex_lock(&table.lock);
	set_server_name(st);
	pthread_mutex_unlock(&table.lock);
	return st;
}

bool
statement_is_large(const struct statement *st)
{
	return st->context.settings == NULL;
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
	if (dead == NULL)
		return;
	settings_unref(&dead->context.settings);
	free(atomic_load(&dead->described));
	if (atomic_load(&dead->suspicion) != &innocent)
		free(atomic_load(&dead->suspicion));
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
	*n = st->n_key - sizeof(st->context);
	return st->body;
}

const struct description *
statement_described(const struct statement *st)
{
	return atomic_load_explicit(&st->described, memory_order_acquire);
}

void
statement_set_described(struct statement *st, struct description *d)
{
	struct description *none = NULL;

	if (!atomic_compare_exchange_strong(&st->described, &none, d))
		description_free(&d);
}

const struct suspicion *
statement_suspicion(const struct statement *st, bool *is_set)
{
	const struct suspicion *x = atomic_load_explicit(&st->suspicion, memory_order_acquire);

	*is_set = x != NULL;
	return x != &innocent ? x : NULL;
}

bool
statement_set_suspicion(struct statement *st, const struct suspicion *x)
{
	struct suspicion *none = NULL, *copy = &innocent;

	if (x->flags != 0) {
		copy = malloc(sizeof(*copy));
		if (copy == NULL)
			return false;
		*copy = *x;
	}
	if (!atomic_compare_exchange_strong(&st->suspicion, &none, copy) && copy != &innocent)
		free(copy);
	return true;
}

void
statement_set_told(struct statement *st)
{
	if (!statement_is_told(st))
		atomic_store_explicit(&st->is_told, true, memory_order_relaxed);
}

bool
statement_is_told(const struct statement *st)
{
	return atomic_load_explicit(&st->is_told, memory_order_relaxed);
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
