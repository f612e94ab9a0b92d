/*
 * Time zone files of any bytes: no crash, and offsets that a clock can have.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/base/arena.h"
#include "agent/base/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct error error;
	const struct zone *zone = zone_parse(arena, "", (const char *)data, size, &error);

	if (zone)
		for (int64_t ms = -INT64_C(4000000000000); ms < INT64_C(9000000000000);
			ms += INT64_C(86400000) * 97)
			if (llabs(zone_local(zone, ms) - ms) > INT64_C(2147483648000))
				abort();
	arena_free(arena);
	return 0;
}
