/* What runs print, and how a value is looked for in it: the first line is how. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/bisect/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	struct arena *arena = arena_new();
	struct error error;
	double value;

	if (end) {
		size_t length = (size_t)(end - data);

		const char *how = arena_strndup(arena, (const char *)data, length);

		if (extract_check(how, &error) &&
			extract_value(
				how, (const char *)end + 1, size - length - 1, &value, &error) &&
			!isfinite(value))
			abort();
	}
	arena_free(arena);
	return 0;
}
