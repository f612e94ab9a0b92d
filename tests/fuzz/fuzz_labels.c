/*
 * Names of series, one a line, as a message cuts them: what a name is cut to is no longer than it,
 * and nothing is cut where nothing is common.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_cut(const char *name, const struct label_share *common, size_t count)
{
	struct buf out = {0};

	labels_cut(&out, name, common, count);
	buf_reserve(&out, 0);
	require(out.length <= strlen(name));
	require(count > 0 || strcmp(out.data, name) == 0);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct labels *names = labels_new(arena), *series = labels_new(arena);
	char *text = arena_strndup(arena, (const char *)data, size), *rest = text, *name;
	const struct label_share *common;
	size_t count, lines = 0;

	while ((name = strsep(&rest, "\n"))) {
		labels_add_name(names, name);
		labels_add(series, "test", name, false);
		lines++;
	}
	common = labels_common(names, arena, 1, &count);
	for (const char *at = text; lines > 0; lines--, at += strlen(at) + 1)
		check_cut(at, common, count);
	labels_free(names);
	labels_free(series);
	arena_free(arena);
	return 0;
}
