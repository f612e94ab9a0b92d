/*
 * Matchers of any text: what is accepted prints as a text that reads back as the same, and matches
 * whatever the value within its limits of effort.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/matcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct strings values(void *context, const char *name)
{
	const char *const *value = context;

	return (struct strings){value, **value && name[0] != 'z'};
}

/* The first line are matchers, the second is the value of all names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	const char *line = memchr(data, '\n', size);
	size_t first = line ? (size_t)(line - (const char *)data) : size;
	const char *text = arena_strndup(arena, (const char *)data, first);
	const char *value = line ? arena_strndup(arena, line + 1, size - first - 1) : "eu-1";
	struct matchers matchers, again;
	struct buf one = {0}, two = {0};
	struct error error;

	if (matchers_parse(text, arena, true, &matchers, &error)) {
		matchers_print(&matchers, &one);
		if (!matchers_parse(one.data, arena, true, &again, &error))
			abort();
		matchers_print(&again, &two);
		if (strcmp(one.data, two.data) != 0 ||
			matchers_match(&matchers, values, &value, NULL) !=
				matchers_match(&again, values, &value, NULL))
			abort();
		matchers_free(&matchers);
		matchers_free(&again);
	} else if (!*error.text) {
		abort();
	}
	buf_free(&one);
	buf_free(&two);
	arena_free(arena);
	return 0;
}
