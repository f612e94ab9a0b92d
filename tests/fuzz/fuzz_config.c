/*
 * The whole loader on a file of any bytes: it gives a configuration or errors, never both; names
 * can be looked up, all tests can be selected, and the secret of the environment is in no message
 * but as part of a name, which a key or an item of a list may be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/load.h"
#include "tests/unit/conf_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void use(const struct config *config)
{
	struct error error;
	const struct test *const *tests;
	size_t count;
	require(config_select(config, &(struct strings){0}, config->arena, &tests, &count, &error));
	require(count == config->test_count);
	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];
		require(config_test(config, test->name) != NULL);
		require(test->unsupported || (test->source && test->options));
		require(!test->source || test->source->server_size == 0 || test->server ||
			test->unsupported);
		require(test->detection.detector && test->detection.options);
		require(test->notify.count > 0);
		for (size_t j = 0; j < test->metric_count; j++)
			require(test->metrics[j].name && test->metrics[j].column &&
				test->detections[j].options);
	}
	for (size_t i = 0; i < config->group_count; i++)
		require(config_group(config, config->groups[i].name) != NULL);
}

static bool has_token(const struct yaml_node *node)
{
	return node->kind == YAML_SCALAR && strstr(node->text, "TOKEN");
}

/* Whether a name of the file is made of the secret. */
static bool names_token(const struct yaml_node *node, size_t *walked)
{
	bool found = ++*walked > 10000;
	for (size_t i = 0; node->kind == YAML_LIST && i < node->count && !found; i++)
		found = has_token(node->items[i]) || names_token(node->items[i], walked);
	for (size_t i = 0; node->kind == YAML_MAP && i < node->count && !found; i++)
		found = has_token(node->entries[i].key) ||
			names_token(node->entries[i].value, walked);
	return found;
}

static bool may_show_token(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	size_t walked = 0;
	const struct yaml_node *root =
		yaml_parse(arena, "f.yaml", (const char *)data, size, &problems);
	bool shown = memmem(data, size, "xoxb-secret", 11) || (root && names_token(root, &walked));
	arena_free(arena);
	return shown;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	struct config_source source = {.schema = &test_schema, .env = test_environment};
	snprintf(path, sizeof path, "/tmp/hunter-fuzz-config-%d", (int)getpid());
	FILE *file = fopen(path, "w");
	require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
	struct config *config = config_load(path, &source, &problems);
	unlink(path);
	require((config == NULL) == (problems.errors > 0));
	for (size_t i = 0; i < problems.count; i++)
		require(!strstr(problems.items[i].text, "xoxb-secret") ||
			may_show_token(data, size));
	if (config)
		use(config);
	config_free(config);
	arena_free(arena);
	return 0;
}
