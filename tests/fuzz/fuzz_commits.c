/* What git prints. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/repository.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct commits found;

	if (repository_parse(arena, (const char *)data, size, &found)) {
		if (found.count > COMMITS_MOST)
			abort();
		for (size_t i = 0; i < found.count; i++)
			if (strlen(found.items[i].subject) > 4 * COMMIT_SUBJECT + 3 ||
				strchr(found.items[i].subject, '\n') ||
				strchr(found.items[i].subject, '\n'))
				abort();
	}
	arena_free(arena);
	return 0;
}
