/*
 * The agent and time: its own parts over a file that grows, an engine whose clock jumps, and a wall
 * clock that somebody sets to and fro. The schedule must not notice, and nothing may be told twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/clock.h"
#include "agent/core/when.h"
#include "agent/watch/crew.h"

enum { MINUTE = 60000, INTERVAL = 10 * MINUTE, SPREAD = 1000, RUNS_MAX = 2000, TESTS = 3 };
#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define START INT64_C(1704067200000) /* 2024-01-01 */

/* When the wall clock is set, in the engine's time, and by how much it is wrong from then on. */
struct jump {
	int64_t at, shift;
};

struct world {
	struct crew crew;
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
	} tests[TESTS];
	size_t notices;
	size_t changes, told; /* at the end, from the store */
};

static struct world *world_of(const struct agent *agent)
{
	union {
		const struct agent *agent;
		char *bytes;
	} at = {.agent = agent};

	return (struct world *)(void *)(at.bytes - offsetof(struct world, crew.agent));
}

static int64_t time_of(const struct agent *agent)
{
	return world_of(agent)->passed + engine_now(agent->engine);
}

static int64_t wall(const struct agent *agent)
{
	const struct world *world = world_of(agent);
	int64_t now = time_of(agent), shift = 0;

	for (size_t i = 0; i < world->jump_count && world->jumps[i].at <= now; i++)
		shift = world->jumps[i].shift;
	return START + now + shift;
}

static size_t place_of(const struct world *world, const char *test)
{
	size_t at = 0;

	while (strcmp(world->tests[at].name, test) != 0)
		at++;
	return at;
}

/* The file has a row for each hour that has passed; from the 30th on the values are others. */
static void write_rows(const struct world *world, const char *test, int64_t now)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%s.csv", world->folder, test);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("time,value\n", file);
	for (int64_t hour = -40; hour * HOUR <= now; hour++)
		fprintf(file, "%lld,%lld\n", (long long)((START + hour * HOUR) / 1000),
			(long long)((hour < 30 ? 1000 : 1500) + hour * hour % 7));
	fclose(file);
}

static void fetch(struct agent *agent, struct task *task)
{
	struct world *world = world_of(agent);
	size_t at = place_of(world, task->test->name);

	assert_false(world->tests[at].running);
	assert_true(world->tests[at].count < RUNS_MAX);
	world->tests[at].running = true;
	world->tests[at].runs[world->tests[at].count++] = time_of(agent);
	write_rows(world, task->test->name, time_of(agent));
	engine_submit(agent->engine, task);
}

static int64_t rest(struct agent *agent, const struct test *test)
{
	struct world *world = world_of(agent);

	world->tests[place_of(world, test->name)].running = false;
	return engine_now(agent->engine);
}

static void count_notice(struct agent *agent, const struct notice *notice)
{
	(void)notice;
	world_of(agent)->notices++;
}

static const struct stage stage = {
	.now = wall, .fetch = fetch, .rest = rest, .notice = count_notice};

static void stop(void *engine)
{
	engine_stop(engine);
}

static const char *no_environment(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static struct world *world_new(const struct jump *jumps, size_t jump_count)
{
	struct world *world = calloc(1, sizeof *world);

	world->arena = arena_new();
	world->jumps = jumps;
	world->jump_count = jump_count;
	strcpy(world->folder, "/tmp/test_time.XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	snprintf(world->config, sizeof world->config, "%s/hunter.yaml", world->folder);
	snprintf(world->state, sizeof world->state, "%s/state.db", world->folder);
	FILE *file = fopen(world->config, "w");
	assert_non_null(file);
	fprintf(file, "stdout: {print: nothing}\n"
		      "agent: {interval: 10m, max_age: never, stale_after: 3h}\n"
		      "tests:\n");
	for (int i = 0; i < TESTS; i++) {
		snprintf(world->tests[i].name, sizeof world->tests[i].name, "test%d", i);
		fprintf(file,
			"  test%d: {type: csv, file: '%s/test%d.csv', metrics: {value: {}}}\n", i,
			world->folder, i);
	}
	fclose(file);
	return world;
}

static void world_free(struct world *world)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", world->folder);
	assert_int_equal(system(command), 0);
	arena_free(world->arena);
	free(world);
}

static void begin(struct store_request *restored)
{
	struct world *world = restored->context;

	assert_false(restored->failed);
	engine_after(world->crew.agent.engine, world->length, stop, world->crew.agent.engine);
	crew_begin(&world->crew, restored);
}

static void count_told(struct store_request *list)
{
	struct world *world = list->context;

	assert_false(list->failed);
	world->changes = list->record_count;
	world->told = 0;
	for (size_t i = 0; i < list->record_count; i++)
		for (size_t j = 0; j < list->records[i].event_count; j++)
			world->told += list->records[i].events[j].kind == EVENT_ANNOUNCED;
	store_request_free(list);
	engine_stop(world->crew.agent.engine);
}

/* An agent lives for a while, on the state that the one before it left. */
static void live(struct world *world, int64_t length)
{
	struct config_source source = {.schema = cli_schema(world->arena), .env = no_environment};
	struct problems problems = {.arena = world->arena};
	struct engine_options options = {.jobs = 2, .jumping = true};
	struct crew *crew = &world->crew;
	struct store_request *request;
	struct error error;
	struct config *config = config_load(world->config, &source, &problems);

	assert_non_null(config);
	memset(crew, 0, sizeof *crew);
	crew->agent.stage = &stage;
	crew->agent.schema = source.schema;
	crew->agent.generation = generation_of(config, &(struct strings){0}, &error);
	assert_non_null(crew->agent.generation);
	crew->agent.config = config;
	world->length = length;
	assert_true(crew_open(crew, &options, world->state, &error));
	request = store_request_new(STORE_RESTORE, begin, world);
	request->since = START - DAY;
	ledger_ask(&crew->agent, request);
	assert_true(engine_run(crew->agent.engine));
	request = store_request_new(STORE_LIST, count_told, world);
	request->filter.limit = 1000;
	ledger_ask(&crew->agent, request);
	assert_true(engine_run(crew->agent.engine));
	world->passed += engine_now(crew->agent.engine);
	assert_true(crew_stop(crew));
	crew_free(crew);
	generation_release(crew->agent.generation);
	for (size_t i = 0; i < TESTS; i++)
		world->tests[i].running = false;
}

/* Runs of each test lie one interval apart, but for the first of an agent, which comes sooner. */
static void check_runs(const struct world *world, size_t restarts)
{
	for (size_t i = 0; i < TESTS; i++) {
		size_t sooner = 0, count = world->tests[i].count;

		for (size_t j = 1; j < count; j++) {
			int64_t gap = world->tests[i].runs[j] - world->tests[i].runs[j - 1];

			assert_true(gap <= INTERVAL + SPREAD);
			sooner += gap != INTERVAL;
		}
		assert_true(sooner <= 1 + 2 * restarts);
		assert_in_range(count, (size_t)(world->passed / INTERVAL) - 1,
			(size_t)(world->passed / INTERVAL) + 2 + 2 * restarts);
	}
}

/* Each test has one change, told once. */
static void check_told(const struct world *world)
{
	assert_int_equal(world->changes, TESTS);
	assert_int_equal(world->told, TESTS);
	assert_int_equal(world->notices, 0);
}

static void test_a_clock_that_is_right(void **state)
{
	(void)state;
	struct world *world = world_new(NULL, 0);

	live(world, 4 * DAY);
	check_runs(world, 0);
	check_told(world);
	world_free(world);
}

/* Before the change, when it comes, while it waits for its group, and afterwards. */
static void test_a_wall_clock_that_jumps(void **state)
{
	static const int64_t shifts[] = {HOUR, -HOUR, DAY, -DAY};
	struct jump jumps[24];

	(void)state;
	for (size_t way = 0; way < 4; way++) {
		for (size_t i = 0; i < 24; i++)
			jumps[i] = (struct jump){.at = 20 * HOUR + (int64_t)i * 47 * MINUTE,
				.shift = i % 2 ? 0 : shifts[(way + i / 2) % 4]};
		struct world *world = world_new(jumps, 24);

		live(world, 4 * DAY);
		check_runs(world, 0);
		check_told(world);
		world_free(world);
	}
}

/* An agent that is started anew under another time tells nothing again. */
static void test_restarts_under_another_time(void **state)
{
	static const struct jump jumps[] = {{36 * HOUR, DAY}, {40 * HOUR, -DAY}, {44 * HOUR, -HOUR},
		{48 * HOUR, HOUR}, {52 * HOUR, 0}};
	struct world *world = world_new(jumps, 5);

	(void)state;
	live(world, 35 * HOUR);
	for (int i = 0; i < 5; i++)
		live(world, 4 * HOUR);
	check_runs(world, 5);
	assert_int_equal(world->changes, TESTS);
	assert_int_equal(world->told, TESTS);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_clock_that_is_right),
		cmocka_unit_test(test_a_wall_clock_that_jumps),
		cmocka_unit_test(test_restarts_under_another_time),
	};
	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
