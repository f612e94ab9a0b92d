/*
 * A generation lies in the arena of its configuration, so both go at once.
 */
#include <assert.h>

#include "agent/watch/agent.h"

struct generation *generation_new(
	struct config *config, const struct test *const *tests, size_t test_count)
{
	struct generation *generation = arena_alloc(config->arena, sizeof *generation);

	*generation = (struct generation){
		.config = config, .tests = tests, .test_count = test_count, .holders = 1};
	return generation;
}

struct generation *generation_hold(struct generation *generation)
{
	generation->holders++;
	return generation;
}

void generation_release(struct generation *generation)
{
	if (!generation)
		return;
	assert(generation->holders > 0);
	if (--generation->holders == 0)
		config_free(generation->config);
}

void generation_release_task(void *generation)
{
	generation_release(generation);
}
