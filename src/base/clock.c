/* SPDX-License-Identifier: ISC */
#include "base/clock.h"

#include <time.h>

_Thread_local uint64_t clock_cached_value_us;
static _Thread_local uint64_t fake_us;

uint64_t
clock_now_us(void)
{
	if (fake_us != 0)
		return fake_us;
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t
clock_update(void)
{
	clock_cached_value_us = clock_now_us();
	return clock_cached_value_us;
}

void
clock_set_fake(uint64_t us)
{
	fake_us = us;
	clock_update();
}
