/* SPDX-License-Identifier: ISC */
/*
 * Slabs: objects of one size for one thread, in mmap'ed chunks that go back to the
 * system when their last object is freed, so that memory follows the number of
 * clients down as well as up. Allocation takes from the fullest chunk that has
 * room. slab_alloc answers NULL at the cap or without memory; objects are zeroed.
 */
#ifndef PGWEIR_BASE_MEM_H
#define PGWEIR_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

struct slab;

struct slab *slab_new(size_t object_size, size_t max_objects /* 0: no cap */);
void slab_free_all(struct slab **s); /* every object must have been freed */
void *slab_alloc(struct slab *s);
void slab_free(struct slab *s, void *object); /* NULL is a no-op */
size_t slab_n_used(const struct slab *s);
size_t slab_n_bytes(const struct slab *s); /* mapped now */

#endif
