/* Few causes occur at a time, so a linear search does. */
#include "agent/base/rate_limit.h"

/* The cause's entry, or the one reported longest ago. */
static struct repeat *place_of(struct rate_limit *repeats, uint64_t cause, bool *known)
{
	struct repeat *oldest = &repeats->items[0];

	*known = true;
	for (size_t i = 0; i < repeats->count; i++) {
		if (repeats->items[i].cause == cause)
			return &repeats->items[i];
		if (repeats->items[i].passed < oldest->passed)
			oldest = &repeats->items[i];
	}
	*known = false;
	return repeats->count < REPEATS_CAUSES ? &repeats->items[repeats->count++] : oldest;
}

bool rate_limit_pass(struct rate_limit *repeats, uint64_t cause, int64_t now, int64_t period,
	uint64_t *meanwhile)
{
	bool known;
	struct repeat *repeat = place_of(repeats, cause, &known);

	if (known && now - repeat->passed < period) {
		repeat->meanwhile++;
		return false;
	}
	*meanwhile = known ? repeat->meanwhile : 0;
	*repeat = (struct repeat){.cause = cause, .passed = now};
	return true;
}
