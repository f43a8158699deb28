/* SPDX-License-Identifier: ISC */
#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "base/obj.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_USES_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_USES_HEAP 1
#endif
#endif
#ifndef SLAB_USES_HEAP
#define SLAB_USES_HEAP 0
#endif

enum {
	CHUNK_SIZE = 64 * 1024, /* at least; doubled until CHUNK_MIN_OBJECTS fit */
	CHUNK_MIN_OBJECTS = 8,
	OBJECT_ALIGN = 16,
	N_FILLS = 8, /* chunks are sorted by how full they are, in eighths */
};
#define SLAB_MAGIC 0x51ab0001u
#define CHUNK_MAGIC 0x51ab0002u

/*
 * A chunk lies at a multiple of its size, so that an object's chunk is found by masking its address. Objects follow
 * the header; those never handed out yet (from n_fresh on) are untouched, hence zero and without a page behind them.
 */
struct chunk {
	uint32_t magic;
	uint32_t n_used;
	uint32_t n_fresh;
	struct slab *slab;
	struct free_object *free;
	TAILQ_ENTRY(chunk) link; /* in slab->fill[] */
};

struct free_object {
	struct free_object *next;
};

TAILQ_HEAD(chunk_list, chunk);

struct slab {
	uint32_t magic;
	uint32_t n_per_chunk;
	size_t object_size;
	size_t chunk_size;
	size_t max_objects;
	size_t n_used;
	size_t n_bytes;
	struct chunk_list fill[N_FILLS + 1]; /* fill[i]: i/8 full or more; the last: completely full */
	struct chunk *spare;                 /* one empty chunk, so that one object coming and going costs no mmap */
};

static const size_t chunk_header = (sizeof(struct chunk) + OBJECT_ALIGN - 1) / OBJECT_ALIGN * OBJECT_ALIGN;

struct slab *
slab_new(size_t object_size, size_t max_objects)
{
	struct slab *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->magic = SLAB_MAGIC;
	s->object_size = (object_size + OBJECT_ALIGN - 1) / OBJECT_ALIGN * OBJECT_ALIGN;
	s->chunk_size = CHUNK_SIZE;
	while ((s->chunk_size - chunk_header) / s->object_size < CHUNK_MIN_OBJECTS)
		s->chunk_size *= 2;
	s->n_per_chunk = (uint32_t)((s->chunk_size - chunk_header) / s->object_size);
	s->max_objects = max_objects;
	for (int i = 0; i <= N_FILLS; i++)
		TAILQ_INIT(&s->fill[i]);
	return s;
}

static void
chunk_unmap(struct slab *s, struct chunk *c)
{
	s->n_bytes -= s->chunk_size;
	munmap(c, s->chunk_size);
}

void
slab_free_all(struct slab **sp)
{
	struct slab *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	obj_check(s, SLAB_MAGIC);
	invariant(s->n_used == 0);
	if (s->spare != NULL)
		chunk_unmap(s, s->spare);
	free(s);
}

/* Maps twice the size and cuts off what lies outside the aligned part. */
static struct chunk *
chunk_map(struct slab *s)
{
	size_t size = s->chunk_size;
	uint8_t *p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t before = (size - ((uintptr_t)p & (size - 1))) & (size - 1);
	if (before > 0)
		munmap(p, before);
	munmap(p + before + size, size - before);
	struct chunk *c = (struct chunk *)(void *)(p + before);
	c->magic = CHUNK_MAGIC;
	c->slab = s;
	s->n_bytes += size;
	return c;
}

static struct chunk_list *
chunk_list_of(struct slab *s, const struct chunk *c)
{
	return &s->fill[(uint64_t)c->n_used * N_FILLS / s->n_per_chunk];
}

/* Changes the number of objects in use by one; the chunk moves to the list of its new fill. */
static void
chunk_count(struct slab *s, struct chunk *c, int by)
{
	struct chunk_list *old = chunk_list_of(s, c);
	c->n_used += (uint32_t)by;
	struct chunk_list *new = chunk_list_of(s, c);
	if (old == new)
		return;
	TAILQ_REMOVE(old, c, link);
	TAILQ_INSERT_HEAD(new, c, link);
}

/* The fullest chunk with room; a new one goes into its list empty. */
static struct chunk *
chunk_with_room(struct slab *s)
{
	for (int i = N_FILLS - 1; i >= 0; i--)
		if (!TAILQ_EMPTY(&s->fill[i]))
			return TAILQ_FIRST(&s->fill[i]);
	struct chunk *c = s->spare;
	s->spare = NULL;
	if (c == NULL)
		c = chunk_map(s);
	if (c != NULL)
		TAILQ_INSERT_HEAD(&s->fill[0], c, link);
	return c;
}

static void *
chunk_take(struct slab *s)
{
	struct chunk *c = chunk_with_room(s);
	if (c == NULL)
		return NULL;
	void *object = c->free;
	if (object != NULL) {
		c->free = c->free->next;
		memset(object, 0, s->object_size);
	} else {
		object = (uint8_t *)c + chunk_header + c->n_fresh * s->object_size;
		c->n_fresh++;
	}
	chunk_count(s, c, 1);
	return object;
}

static void
chunk_give(struct slab *s, void *object)
{
	struct chunk *c = (struct chunk *)((uintptr_t)object & ~(uintptr_t)(s->chunk_size - 1));
	obj_check(c, CHUNK_MAGIC);
	invariant(c->slab == s && c->n_used > 0);
	invariant(((uintptr_t)object - (uintptr_t)c - chunk_header) % s->object_size == 0);
	struct free_object *f = object;
	f->next = c->free;
	c->free = f;
	chunk_count(s, c, -1);
	if (c->n_used > 0)
		return;
	TAILQ_REMOVE(&s->fill[0], c, link);
	if (s->spare == NULL)
		s->spare = c;
	else
		chunk_unmap(s, c);
}

void *
slab_alloc(struct slab *s)
{
	if (s->max_objects != 0 && s->n_used >= s->max_objects)
		return NULL;
	/* AddressSanitizer knows the heap: there it sees every use after free and overflow. */
	void *object = SLAB_USES_HEAP ? calloc(1, s->object_size) : chunk_take(s);
	if (object != NULL)
		s->n_used++;
	return object;
}

void
slab_free(struct slab *s, void *object)
{
	if (object == NULL)
		return;
	invariant(s->n_used > 0);
	s->n_used--;
	if (SLAB_USES_HEAP)
		free(object);
	else
		chunk_give(s, object);
}

size_t
slab_n_used(const struct slab *s)
{
	return s->n_used;
}

size_t
slab_n_bytes(const struct slab *s)
{
	return SLAB_USES_HEAP ? s->n_used * s->object_size : s->n_bytes;
}
