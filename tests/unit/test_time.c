/*
 * The agent and time: its own parts over a file that grows, an engine whose clock jumps, and a wall
 * clock that somebody sets to and fro. The schedule must not notice, and nothing may be told twice.
 */
#include "unit.h"

#include "agent_world.h"

enum { INTERVAL = 10 * MINUTE, SPREAD = 1000, TESTS = 3 };

/*
 * The file has a row for each hour that has passed; from the 30th on the values are others. It is
 * replaced, as another test may be reading it.
 */
static void write_rows(struct world *world, const char *test, int64_t now)
{
	char path[96], fresh[96];

	snprintf(path, sizeof path, "%s/rows.csv", world->folder);
	snprintf(fresh, sizeof fresh, "%s/%s.fresh", world->folder, test);
	FILE *file = fopen(fresh, "w");
	assert_non_null(file);
	fputs("time,value\n", file);
	for (int64_t hour = -40; hour * HOUR <= now; hour++)
		fprintf(file, "%lld,%lld\n", (long long)((START + hour * HOUR) / 1000),
			(long long)((hour < 30 ? 1000 : 1500) + hour * hour % 7));
	fclose(file);
	assert_int_equal(rename(fresh, path), 0);
}

static struct world *world_with(const struct jump *jumps, size_t jump_count, const char *delay)
{
	struct world *world = world_new();
	char agent[160], test[160];

	world->jumps = jumps;
	world->jump_count = jump_count;
	world->before = write_rows;
	snprintf(agent, sizeof agent,
		"agent: {interval: 10m, max_age: never, stale_after: 3h, evaluation_delay: %s}",
		delay);
	snprintf(test, sizeof test,
		"{type: csv, file: '%s/rows.csv', detection: {kind: benchmark}, "
		"metrics: {value: {}}}",
		world->folder);
	world_configure(world, agent, test, TESTS);
	return world;
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
	struct world *world = world_with(NULL, 0, "0");

	live(world, 4 * DAY);
	check_runs(world, 0);
	check_told(world);
	world_free(world);
}

/*
 * Before the change, when it comes, while it waits for its group, and afterwards. Half of the ways
 * with a delay, whose end jumps with the clock: the newest points are gone for a while then.
 */
static void test_a_wall_clock_that_jumps(void **state)
{
	static const int64_t shifts[] = {HOUR, -HOUR, DAY, -DAY};
	struct jump jumps[24];

	(void)state;
	for (size_t way = 0; way < 4; way++) {
		for (size_t i = 0; i < 24; i++)
			jumps[i] = (struct jump){.at = 20 * HOUR + (int64_t)i * 47 * MINUTE,
				.shift = i % 2 ? 0 : shifts[(way + i / 2) % 4]};
		struct world *world = world_with(jumps, 24, way % 2 ? "0" : "30m");

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
	struct world *world = world_with(jumps, 5, "0");

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
