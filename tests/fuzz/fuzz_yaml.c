/*
 * The YAML reader: whatever the bytes are, it ends in a tree or a problem, and the tree can be
 * walked within the limits that it promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH = 101, WALKED = 200000 };

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void walk(const struct yaml_node *node, int depth, size_t *walked)
{
	require(depth < DEPTH && node->line > 0 && node->column > 0);
	if (++*walked > WALKED)
		return;
	if (node->kind == YAML_SCALAR)
		require(node->text && strlen(node->text) < SIZE_MAX);
	for (size_t i = 0; node->kind == YAML_LIST && i < node->count; i++)
		walk(node->items[i], depth + 1, walked);
	for (size_t i = 0; node->kind == YAML_MAP && i < node->count; i++) {
		const char *key = node->entries[i].key->text;
		require(node->entries[i].key->kind == YAML_SCALAR);
		if (node->count < 64)
			require(yaml_get(node, key) == node->entries[i].value);
		walk(node->entries[i].value, depth + 1, walked);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	size_t walked = 0;
	const struct yaml_node *root =
		yaml_parse(arena, "f.yaml", (const char *)data, size, &problems);
	for (size_t i = 0; i < problems.count; i++)
		require(strlen(problems.items[i].text) < 1100);
	if (root)
		walk(root, 1, &walked);
	arena_free(arena);
	return 0;
}
