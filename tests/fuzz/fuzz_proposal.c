/*
 * Proposals for a configuration of any bytes: what is proposed is a configuration that has the
 * setting where it was asked for, and the diff has the files' lines in order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/evaluate/proposal.h"
#include "tests/unit/conf_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* Every test, or only the first. */
static bool is_chosen(void *context, const struct test *test, const struct detection *detection)
{
	const char *first = context;
	(void)detection;
	return !first || strcmp(test->name, first) == 0;
}

/* Each removed or kept line is one of the file, in order. */
static void check_diff(const char *diff, const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	for (const char *line = diff; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t length = strcspn(line, "\n");
		if ((*line != ' ' && *line != '-') || strncmp(line, "---", 3) == 0)
			continue;
		at = memmem(at, (size_t)(end - at), line + 1, length - 1);
		require(at != NULL);
		at += length - 1;
	}
}

static void propose(const char *path, const char *first, const uint8_t *data, size_t size)
{
	static const struct setting settings[] = {{"confirm", "8 points"}, {"magnitude", "0.05"}};
	const struct config_source source = {.schema = &test_schema, .env = test_environment};
	struct error error;
	struct buf diff = {0};
	struct proposal *proposal = proposal_new(path, &source, &error);
	if (!proposal)
		return;
	for (size_t i = 0; i < 2; i++)
		if (!proposal_set(
			    proposal, &settings[i], 1, is_chosen, (void *)(uintptr_t)first, &error))
			require(*error.text);
	proposal_put_diff(proposal, &diff);
	if (diff.data)
		check_diff(diff.data, data, size);
	buf_free(&diff);
	proposal_free(proposal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	const struct config_source source = {.schema = &test_schema, .env = test_environment};
	snprintf(path, sizeof path, "/tmp/hunter-fuzz-proposal-%d", (int)getpid());
	FILE *file = fopen(path, "w");
	require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
	struct config *config = config_load(path, &source, &problems);
	if (config && config->test_count > 0) {
		propose(path, NULL, data, size);
		propose(path, config->tests[0].name, data, size);
	}
	config_free(config);
	unlink(path);
	arena_free(arena);
	return 0;
}
