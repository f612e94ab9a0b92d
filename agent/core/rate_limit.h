/*
 * Repeats: of what happens again and again, which time is worth telling.
 *
 * A cause is told at once, then at most once a period, with how often it happened meanwhile. Pure,
 * on a clock that the caller hands in; so many causes are remembered, the one told longest ago is
 * forgotten for a new one.
 */
#ifndef CORE_REPEATS_H
#define CORE_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPEATS_CAUSES = 512 };

/* Zeroed: nothing has happened. */
struct rate_limit {
	struct repeat {
		uint64_t cause; /* a hash */
		int64_t told;
		uint64_t meanwhile;
	} items[REPEATS_CAUSES];
	size_t count;
};

/* True if the cause is to be told at `now`; *meanwhile is then how often it happened untold since
 * the last time. `now` and `period` are ms. */
bool rate_limit_pass(struct rate_limit *repeats, uint64_t cause, int64_t now, int64_t period,
	uint64_t *meanwhile);

#endif
