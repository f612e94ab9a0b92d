/*
 * Rate limit: decides which repetitions of an event to report.
 *
 * A cause is reported at once, then at most once per period, with the number of times it was
 * left out. Pure, on the caller's clock; keeps a fixed number of causes and replaces the one
 * reported longest ago.
 */
#ifndef AGENT_BASE_RATE_LIMIT_H
#define AGENT_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPEATS_CAUSES = 512 };

/* Zeroed: nothing has happened. */
struct rate_limit {
	struct repeat {
		uint64_t cause; /* a hash */
		int64_t passed;
		uint64_t meanwhile;
	} items[REPEATS_CAUSES];
	size_t count;
};

/* Whether to report the cause at `now`; *meanwhile is then the number of times it was left out
 * since the last report. `now` and `period` are ms. */
bool rate_limit_pass(struct rate_limit *repeats, uint64_t cause, int64_t now, int64_t period,
	uint64_t *meanwhile);

#endif
