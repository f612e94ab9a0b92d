/*
 * The points around a change as the state file has them: whatever the bytes, they are refused, or
 * are points that can be drawn and packed again.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/base/arena.h"
#include "agent/model/excerpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct excerpt excerpt, again;

	if (excerpt_unpack(arena, (struct packed_excerpt){data, size}, &excerpt) && size > 0) {
		require(excerpt.n >= 1 && excerpt.n <= EXCERPT_MOST);
		for (size_t i = 0; i < excerpt.n; i++) {
			require(isfinite(excerpt.values[i]));
			require(i == 0 || excerpt.times[i] >= excerpt.times[i - 1]);
		}
		require(excerpt_unpack(arena,
			excerpt_pack(arena, excerpt.times, excerpt.values, excerpt.n, excerpt.n / 2,
				excerpt.n / 2),
			&again));
		require(again.n == excerpt.n && again.times[0] == excerpt.times[0]);
	}
	arena_free(arena);
	return 0;
}
