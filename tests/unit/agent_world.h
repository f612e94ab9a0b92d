/*
 * An agent in a world of its own, for tests of time: its parts on a stage (agent/runtime/agent.h),
 * an engine whose clock jumps, a wall clock that the test sets to and fro, and sources that the
 * test may change before each run. Agents may live one after the other on one state file.
 */
#ifndef TESTS_UNIT_AGENT_WORLD_H
#define TESTS_UNIT_AGENT_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cli/cli.h"
#include "agent/service/parts.h"
#include "tests/unit/folder.h"

enum { MINUTE = 60000, RUNS_MAX = 10000, TESTS_MAX = 8 };
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define START INT64_C(1704067200000) /* 2024-01-01 */

/* When the wall clock is set, in the engine's time, and by how much it is wrong from then on. */
struct jump {
	int64_t at, shift;
};

struct world {
	struct agent_parts parts;
	struct arena *arena;
	char folder[64], config[96], state[96];
	const struct jump *jumps;
	size_t jump_count;
	int64_t passed; /* engine's time of agents that have ended */
	int64_t length; /* of the agent's life */
	struct {
		char name[16];
		int64_t runs[RUNS_MAX]; /* engine's time, over all agents */
		size_t count;
		bool running;
	} tests[TESTS_MAX];
	size_t test_count;
	size_t notices, recovered;
	size_t notices_at[24]; /* by the hour of the day */
	void (*before)(struct world *world, const char *test, int64_t now); /* each run */
	void *context;                                                      /* the test's */
	size_t changes, told; /* at the end, from the store */
};

static inline struct world *world_of(const struct agent *agent)
{
	union {
		const struct agent *agent;
		char *bytes;
	} at = {.agent = agent};

	return (struct world *)(void *)(at.bytes - offsetof(struct world, parts.agent));
}

static inline int64_t time_of(const struct agent *agent)
{
	return world_of(agent)->passed + engine_now(agent->engine);
}

static inline int64_t wall(const struct agent *agent)
{
	const struct world *world = world_of(agent);
	int64_t now = time_of(agent), shift = 0;

	for (size_t i = 0; i < world->jump_count && world->jumps[i].at <= now; i++)
		shift = world->jumps[i].shift;
	return START + now + shift;
}

static inline size_t place_of(const struct world *world, const char *test)
{
	size_t at = 0;

	while (strcmp(world->tests[at].name, test) != 0)
		at++;
	return at;
}

static inline void fetch(struct agent *agent, struct task *task)
{
	struct world *world = world_of(agent);
	size_t at = place_of(world, task->test->name);

	assert_false(world->tests[at].running);
	assert_true(world->tests[at].count < RUNS_MAX);
	world->tests[at].running = true;
	world->tests[at].runs[world->tests[at].count++] = time_of(agent);
	world->before(world, task->test->name, time_of(agent));
	engine_submit(agent->engine, task);
}

static inline void look(struct agent *agent, struct task *task)
{
	engine_submit(agent->engine, task);
}

static inline int64_t rest(struct agent *agent, const struct test *test)
{
	struct world *world = world_of(agent);

	world->tests[place_of(world, test->name)].running = false;
	return engine_now(agent->engine);
}

static inline void count_notice(struct agent *agent, const struct notice *notice)
{
	world_of(agent)->notices++;
	world_of(agent)->notices_at[wall(agent) / HOUR % 24]++;
	world_of(agent)->recovered += notice->recovered;
}

static const struct simulation simulation = {
	.now = wall, .fetch = fetch, .look = look, .rest = rest, .notice = count_notice};

static inline void stop(void *engine)
{
	engine_stop(engine);
}

static const char *no_environment(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

/* A folder, in which world_configure writes. */
static inline struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof *world);

	world->arena = arena_new();
	folder_new(world->folder, sizeof world->folder);
	snprintf(world->config, sizeof world->config, "%s/hunter.yaml", world->folder);
	snprintf(world->state, sizeof world->state, "%s/state.db", world->folder);
	return world;
}

/* Sections of a hunter.yaml, and tests test0, test1, ... that are all alike. */
static inline void world_configure(
	struct world *world, const char *sections, const char *test, size_t count)
{
	FILE *file = fopen(world->config, "w");

	assert_non_null(file);
	assert_true(count <= TESTS_MAX);
	fprintf(file, "stdout: {print: nothing}\n%s\ntests:\n", sections);
	for (size_t i = 0; i < count; i++) {
		snprintf(world->tests[i].name, sizeof world->tests[i].name, "test%zu", i);
		fprintf(file, "  test%zu: %s\n", i, test);
	}
	world->test_count = count;
	fclose(file);
}

static inline void world_free(struct world *world)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", world->folder);
	assert_int_equal(system(command), 0);
	arena_free(world->arena);
	free(world);
}

static inline void begin(struct store_restore *restored)
{
	struct world *world = restored->call.context;

	if (restored->call.failed)
		fail_msg("%s", restored->call.error->text);
	engine_after(world->parts.agent.engine, world->length, stop, world->parts.agent.engine);
	agent_start(&world->parts, restored);
}

static inline void count_told(struct store_list *list)
{
	struct world *world = list->call.context;

	if (list->call.failed)
		fail_msg("%s", list->call.error->text);
	world->changes = list->records.count;
	world->told = 0;
	for (size_t i = 0; i < list->records.count; i++)
		for (size_t j = 0; j < list->records.items[i].event_count; j++)
			world->told += list->records.items[i].events[j].kind == EVENT_ANNOUNCED;
	store_call_free(&list->call);
	engine_stop(world->parts.agent.engine);
}

/* An agent lives for a while, on the state that the one before it left. */
static inline void live(struct world *world, int64_t length)
{
	struct config_source source = {.schema = &cli_schema, .env = no_environment};
	struct problems problems = {.arena = world->arena};
	struct engine_options options = {.jobs = 2, .jumping = true};
	struct agent_parts *parts = &world->parts;
	struct store_restore *restored;
	struct store_list *listed;
	struct error error;
	struct config *config = config_load(world->config, &source, &problems);

	assert_non_null(config);
	memset(parts, 0, sizeof *parts);
	parts->agent.simulation = &simulation;
	parts->agent.schema = source.schema;
	parts->agent.config_ref = config_ref_of(config, &(struct strings){0}, &error);
	assert_non_null(parts->agent.config_ref);
	parts->agent.config = config;
	world->length = length;
	assert_true(agent_open(parts, &options, world->state, &error));
	restored = store_restore_new(begin, world);
	store_client_call(&parts->agent, &restored->call);
	assert_true(engine_run(parts->agent.engine));
	listed = store_list_new(count_told, world);
	listed->filter.limit = 1000;
	store_client_call(&parts->agent, &listed->call);
	assert_true(engine_run(parts->agent.engine));
	world->passed += engine_now(parts->agent.engine);
	assert_true(agent_stop(parts));
	agent_close(parts);
	config_ref_release(parts->agent.config_ref);
	for (size_t i = 0; i < world->test_count; i++)
		world->tests[i].running = false;
}

#endif
