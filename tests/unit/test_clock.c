/* SPDX-License-Identifier: ISC */
#include "base/clock.h"

#include <pthread.h>

#include "unit.h"

START_TEST(never_goes_back)
{
	uint64_t last = clock_now_us();
	ck_assert_uint_gt(last, 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = clock_now_us();
		ck_assert_uint_ge(now, last);
		last = now;
	}
}
END_TEST

START_TEST(cached_value_moves_on_update_only)
{
	uint64_t at = clock_update();
	while (clock_now_us() == at)
		;
	ck_assert_uint_eq(clock_cached_us(), at);
	ck_assert_uint_gt(clock_update(), at);
	ck_assert_uint_gt(clock_cached_us(), at);
}
END_TEST

static void *
real_time_of_another_thread(void *arg)
{
	*(uint64_t *)arg = clock_now_us();
	return NULL;
}

START_TEST(fake_time_is_of_one_thread)
{
	clock_set_fake(42);
	ck_assert_uint_eq(clock_now_us(), 42);
	ck_assert_uint_eq(clock_cached_us(), 42);
	ck_assert_uint_eq(clock_update(), 42);

	pthread_t other;
	uint64_t real = 0;
	ck_assert_int_eq(pthread_create(&other, NULL, real_time_of_another_thread, &real), 0);
	pthread_join(other, NULL);
	ck_assert_uint_ne(real, 42);

	clock_set_fake(0);
	ck_assert_uint_ge(clock_now_us(), real);
}
END_TEST

UNIT_MAIN("clock", never_goes_back, cached_value_moves_on_update_only, fake_time_is_of_one_thread)
