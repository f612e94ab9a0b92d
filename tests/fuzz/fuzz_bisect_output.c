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
	struct extract *extract;
	struct error error;
	double value;

	if (end) {
		size_t length = (size_t)(end - data);

		extract = extract_new(arena_strndup(arena, (const char *)data, length), &error);
		if (extract &&
			extract_value(extract, (const char *)end + 1, size - length - 1, &value,
				&error) &&
			!isfinite(value))
			abort();
		extract_free(extract);
	}
	arena_free(arena);
	return 0;
}
