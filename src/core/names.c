/* SPDX-License-Identifier: ISC */
/*
 * A session's names for its prepared statements: a hash table with linear probing, since there may be a table of fifty
 * names in each of ten thousand sessions, and a general one costs twice the memory.
 */
#include "core/statement.h"

#include <stdlib.h>
#include <string.h>

struct name {
	struct statement *st;
	uint32_t hash;
	char text[];
};

struct names {
	uint32_t n, cap; /* cap: a power of two, at least a third of it empty */
	struct name *slots[];
};

#define FIRST_CAP 8
#define N_COMPARED                                                                                                     \
	63 /* the server's table has room for so many bytes of a name, and cuts what is longer when it compares */

static uint32_t
hash_of(const char *text)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < N_COMPARED && text[i] != '\0'; i++)
		h = (h ^ (uint8_t)text[i]) * 16777619u;
	return h;
}

static uint32_t
slot_of(const struct names *n, const char *name, uint32_t hash)
{
	uint32_t i = hash & (n->cap - 1);

	while (n->slots[i] != NULL && (n->slots[i]->hash != hash || !names_are_same(n->slots[i]->text, name)))
		i = (i + 1) & (n->cap - 1);
	return i;
}

bool
names_are_same(const char *a, const char *b)
{
	return strncmp(a, b, N_COMPARED) == 0;
}

static struct names *
new_table(uint32_t cap)
{
	struct names *n = calloc(1, sizeof(*n) + cap * sizeof(n->slots[0]));

	if (n != NULL)
		n->cap = cap;
	return n;
}

static void
put(struct names *n, struct name *name)
{
	n->slots[slot_of(n, name->text, name->hash)] = name;
	n->n++;
}

/* Room for one more. */
static bool
make_room(struct names **np)
{
	struct names *old = *np, *n;

	if (old != NULL && (old->n + 1) * 3 <= old->cap * 2)
		return true;
	n = new_table(old ? old->cap * 2 : FIRST_CAP);
	if (n == NULL)
		return false;
	for (uint32_t i = 0; old != NULL && i < old->cap; i++)
		if (old->slots[i] != NULL)
			put(n, old->slots[i]);
	free(old);
	*np = n;
	return true;
}

void
names_free(struct names **np)
{
	struct names *n = *np;

	for (uint32_t i = 0; n != NULL && i < n->cap; i++) {
		if (n->slots[i] == NULL)
			continue;
		statement_unref(&n->slots[i]->st);
		free(n->slots[i]);
	}
	free(n);
	*np = NULL;
}

struct statement *
names_find(const struct names *n, const char *name)
{
	const struct name *found = n ? n->slots[slot_of(n, name, hash_of(name))] : NULL;

	return found ? found->st : NULL;
}

bool
names_add(struct names **np, const char *name, struct statement *st)
{
	size_t len = strlen(name);
	struct name *x = malloc(sizeof(*x) + len + 1);

	if (x == NULL || !make_room(np)) {
		free(x);
		return false;
	}
	x->st = st;
	x->hash = hash_of(name);
	memcpy(x->text, name, len + 1);
	put(*np, x);
	return true;
}

struct statement *
names_take(struct names *n, const char *name)
{
	uint32_t i = n ? slot_of(n, name, hash_of(name)) : 0;
	struct name *found = n ? n->slots[i] : NULL;
	struct statement *st;

	if (found == NULL)
		return NULL;
	st = found->st;
	free(found);
	n->slots[i] = NULL;
	n->n--;
	/* those behind it may have been pushed on by it: put them where they belong now */
	for (i = (i + 1) & (n->cap - 1); n->slots[i] != NULL; i = (i + 1) & (n->cap - 1)) {
		struct name *x = n->slots[i];

		n->slots[i] = NULL;
		n->n--;
		put(n, x);
	}
	return st;
}

const char *
names_of(const struct names *n, const char *server_name)
{
	for (uint32_t i = 0; n != NULL && i < n->cap; i++)
		if (n->slots[i] != NULL && strcmp(statement_server_name(n->slots[i]->st), server_name) == 0)
			return n->slots[i]->text;
	return NULL;
}

void
names_each(struct names *n, void (*fn)(struct statement **st, void *arg), void *arg)
{
	for (uint32_t i = 0; n != NULL && i < n->cap; i++)
		if (n->slots[i] != NULL)
			fn(&n->slots[i]->st, arg);
}

size_t
names_n(const struct names *n)
{
	return n ? n->n : 0;
}
