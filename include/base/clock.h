/* SPDX-License-Identifier: ISC */
/*
 * Monotonic time in microseconds. clock_now_us() asks the system; clock_cached_us()
 * is this thread's value of the last clock_update(), which the event loop calls
 * once per turn, so that the hot path asks the system once for a whole batch.
 */
#ifndef PGWEIR_BASE_CLOCK_H
#define PGWEIR_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_us(void);
uint64_t clock_update(void); /* refreshes and returns this thread's cached value */

extern _Thread_local uint64_t clock_cached_value_us;

static inline uint64_t
clock_cached_us(void)
{
	return clock_cached_value_us;
}

/*
 * For tests: every clock_now_us()/clock_update() of this thread answers `us` until called with 0. The cached value
 * follows at once.
 */
void clock_set_fake(uint64_t us);

#endif
