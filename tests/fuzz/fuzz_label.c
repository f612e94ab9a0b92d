/*
 * The names of series and sets of labels as people write them: whatever the text, it is read within
 * its bounds, and a series that has the labels is asked for by a set.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/label.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	const char *line = memchr(data, '\n', size);
	size_t first = line ? (size_t)(line - (const char *)data) : size;
	const char *identity = arena_strndup(arena, (const char *)data, first);
	const char *asked = line ? arena_strndup(arena, line + 1, size - first - 1) : identity;

	if (label_has_asked(identity, asked) && !strchr(asked, '{'))
		abort();
	arena_free(arena);
	return 0;
}
