/* SPDX-License-Identifier: ISC */
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

#include "unit.h"

enum { OBJECT_SIZE = 600, N_OBJECTS = 5000 };

/* Under AddressSanitizer each object is a heap block of its own, and there are no chunks to look at. */
static bool
has_chunks(void)
{
	struct slab *s = slab_new(OBJECT_SIZE, 0);
	void *object = slab_alloc(s);
	bool chunks = slab_n_bytes(s) > 32768;
	slab_free(s, object);
	slab_free_all(&s);
	return chunks;
}

static bool
is_zero(const void *p, size_t n)
{
	const uint8_t *bytes = p;
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* In loops of thousands only what is wrong is told to Check, which writes to a file at every assertion. */

/* Each object is filled with its own number, so overlapping objects show when they are checked. */
static void
fill(uint32_t *object, uint32_t number)
{
	for (size_t i = 0; i < OBJECT_SIZE / sizeof(*object); i++)
		object[i] = number;
}

static bool
is_filled(const uint32_t *object, uint32_t number)
{
	for (size_t i = 0; i < OBJECT_SIZE / sizeof(*object); i++)
		if (object[i] != number)
			return false;
	return true;
}

START_TEST(objects_are_zeroed_aligned_and_apart)
{
	static uint32_t *objects[N_OBJECTS];
	struct slab *s = slab_new(OBJECT_SIZE, 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N_OBJECTS; i++) {
			objects[i] = slab_alloc(s);
			if (objects[i] == NULL || (uintptr_t)objects[i] % 16 != 0 || !is_zero(objects[i], OBJECT_SIZE))
				ck_abort_msg("object %u is null, not aligned or not zeroed", i);
			fill(objects[i], i + 1);
		}
		ck_assert_uint_eq(slab_n_used(s), N_OBJECTS);
		for (uint32_t i = 0; i < N_OBJECTS; i++)
			if (!is_filled(objects[i], i + 1))
				ck_abort_msg("object %u overlaps another", i);
		for (uint32_t i = 0; i < N_OBJECTS; i++)
			slab_free(s, objects[i]);
		ck_assert_uint_eq(slab_n_used(s), 0);
	}
	slab_free_all(&s);
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(cap_is_exact)
{
	void *objects[3];
	struct slab *s = slab_new(64, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(objects[i] = slab_alloc(s));
	ck_assert_ptr_null(slab_alloc(s));
	slab_free(s, objects[1]);
	ck_assert_ptr_nonnull(objects[1] = slab_alloc(s));
	ck_assert_ptr_null(slab_alloc(s));
	for (int i = 0; i < 3; i++)
		slab_free(s, objects[i]);
	slab_free(s, NULL);
	slab_free_all(&s);
}
END_TEST

START_TEST(memory_goes_back)
{
	static void *objects[N_OBJECTS];
	if (!has_chunks())
		return;
	struct slab *s = slab_new(OBJECT_SIZE, 0);
	ck_assert_uint_eq(slab_n_bytes(s), 0);
	for (int i = 0; i < N_OBJECTS; i++)
		objects[i] = slab_alloc(s);
	size_t full = slab_n_bytes(s);
	ck_assert_uint_ge(full, (size_t)N_OBJECTS * OBJECT_SIZE);
	ck_assert_uint_le(full, (size_t)N_OBJECTS * (OBJECT_SIZE + 32) + 65536);
	for (int i = 0; i < N_OBJECTS / 2; i++)
		slab_free(s, objects[i]);
	ck_assert_uint_le(slab_n_bytes(s), full / 2 + 2 * 65536);
	for (int i = N_OBJECTS / 2; i < N_OBJECTS; i++)
		slab_free(s, objects[i]);
	ck_assert_uint_le(slab_n_bytes(s), 65536); /* the spare */
	slab_free_all(&s);
}
END_TEST

/*
 * Most clients leave in random order, then some come and go: the survivors' chunks must empty, since the new ones go
 * where it is fullest.
 */
START_TEST(new_objects_go_to_full_chunks)
{
	static void *objects[N_OBJECTS];
	if (!has_chunks())
		return;
	struct slab *s = slab_new(OBJECT_SIZE, 0);
	unsigned seed = 1;
	for (int i = 0; i < N_OBJECTS; i++)
		objects[i] = slab_alloc(s);
	for (int i = 0; i < N_OBJECTS; i++) {
		if (rand_r(&seed) % 4 != 0) {
			slab_free(s, objects[i]);
			objects[i] = NULL;
		}
	}
	size_t scattered = slab_n_bytes(s);
	for (int i = 0; i < 100 * N_OBJECTS; i++) {
		void **o = &objects[rand_r(&seed) % N_OBJECTS];
		void **n = &objects[rand_r(&seed) % N_OBJECTS];
		if (*o != NULL && *n == NULL) {
			slab_free(s, *o);
			*o = NULL;
			*n = slab_alloc(s);
		}
	}
	ck_assert_uint_lt(slab_n_bytes(s), scattered / 2);
	for (int i = 0; i < N_OBJECTS; i++)
		slab_free(s, objects[i]);
	slab_free_all(&s);
}
END_TEST

START_TEST(one_object_coming_and_going_keeps_its_chunk)
{
	if (!has_chunks())
		return;
	struct slab *s = slab_new(OBJECT_SIZE, 0);
	void *first = slab_alloc(s);
	slab_free(s, first);
	size_t bytes = slab_n_bytes(s);
	ck_assert_uint_gt(bytes, 0);
	for (int i = 0; i < 100; i++) {
		void *again = slab_alloc(s);
		ck_assert_ptr_eq(again, first);
		ck_assert_uint_eq(slab_n_bytes(s), bytes);
		slab_free(s, again);
	}
	slab_free_all(&s);
}
END_TEST

START_TEST(takes_any_object_size)
{
	static const size_t sizes[] = {1, 8, 17, 4096, 65536, 100000, 1048576};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct slab *s = slab_new(sizes[i], 0);
		void *objects[20];
		for (int j = 0; j < 20; j++) {
			objects[j] = slab_alloc(s);
			ck_assert_ptr_nonnull(objects[j]);
			memset(objects[j], 0xff, sizes[i]);
		}
		for (int j = 0; j < 20; j++)
			slab_free(s, objects[j]);
		slab_free_all(&s);
	}
}
END_TEST

UNIT_MAIN("mem", objects_are_zeroed_aligned_and_apart, cap_is_exact, memory_goes_back, new_objects_go_to_full_chunks,
          one_object_coming_and_going_keeps_its_chunk, takes_any_object_size)
