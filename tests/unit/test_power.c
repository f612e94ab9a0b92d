/*
 * How small a step is told: by the noise, the rule of confirmation, the level and the points there
 * are; and what becomes of a change as its points come.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "agent/base/when.h"
#include "agent/monitor/power.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/scratch.h"
#include "tests/unit/data.h"
#include "tests/unit/random_series.h"

enum { POINTS = 300, PLACE = POINTS - POWER_POINTS };

static const struct edivisive_options usual = {.window = 50, .p_value = 0.001};
static const struct plugin plugin = {.name = "edivisive"};

/* A series alone in its test. */
struct world {
	struct arena *arena;
	struct scratch *scratch;
	struct test test;
	struct dataset data;
	struct power_request ask;
	double values[POINTS];
};

static void fill(struct world *world, double base, double noise, uint64_t seed)
{
	for (size_t i = 0; i < POINTS; i++)
		world->values[i] = base + noise * random_normal(&seed);
}

static void begin(struct world *world, size_t n)
{
	world->arena = arena_new();
	world->scratch = scratch_new();
	world->data = (struct dataset){0};
	world->test = (struct test){.name = "t",
		.detection = {.detector = &plugin, .options = &usual, .season = SEASON_NONE}};
	data_series(world->arena, &world->data, data_axis(world->arena, n, NEW_YEAR, DAY), "p99",
		-1, world->values);
	world->ask = (struct power_request){.test = &world->test,
		.data = &world->data,
		.series = world->data.series,
		.max_age = WHEN_NEVER,
		.scratch = world->scratch};
}

static void end(struct world *world)
{
	arena_free(world->arena);
	scratch_free(world->scratch);
}

static struct power measure(struct world *world, size_t place)
{
	struct power power;
	struct error error;

	assert_true(power_measure(&world->ask, place, NULL, 0, &power, &error));
	return power;
}

static void check_side(const struct power_side *side, double most)
{
	assert_true(side->tried > 0 && side->smallest <= most);
	for (size_t i = 0; i < side->tried; i++) {
		const struct arrival *one = &side->tries[i];
		bool told = power_sizes[POWER_SIZES - 1 - i] >= side->smallest;

		assert_int_equal(one->told > 0, told);
		assert_true(!told || (one->found > 0 && one->found <= one->told));
	}
}

static void test_the_noise_decides(void **state)
{
	static const double noises[] = {0, 1, 4}, most[] = {1, 5, 20};
	double before = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world world;

		fill(&world, 100, noises[i], 7);
		begin(&world, POINTS);
		struct power power = measure(&world, PLACE);

		assert_int_equal(power.place, PLACE);
		assert_false(power.moved || power.added || power.evened);
		check_side(&power.up, most[i]);
		check_side(&power.down, most[i]);
		assert_true(power.up.smallest >= before);
		before = power.up.smallest;
		end(&world);
	}
}

static void test_points_that_are_waited_for_are_the_delay(void **state)
{
	struct world world;

	(void)state;
	fill(&world, 100, 1, 7);
	begin(&world, POINTS);
	world.test.detection.confirm = (struct confirm_rule){.mode = CONFIRM_POINTS, .points = 12};
	struct power power = measure(&world, PLACE);

	assert_int_equal(power.up.tries[0].told, 12);
	assert_true(power.up.tries[0].found < 12);
	world.test.detection.confirm =
		(struct confirm_rule){.mode = CONFIRM_POINTS, .points = POWER_POINTS + 1};
	power = measure(&world, PLACE);
	assert_true(isnan(power.up.smallest) && power.up.tried == 1);
	assert_true(power.up.tries[0].waits);
	end(&world);
}

static void test_levels_around_zero_get_steps_of_their_size(void **state)
{
	struct world world;

	(void)state;
	fill(&world, 0, 1, 7);
	begin(&world, POINTS);
	struct power power = measure(&world, PLACE);

	assert_true(power.added);
	end(&world);
	fill(&world, -100, 1, 7);
	begin(&world, POINTS);
	power = measure(&world, PLACE);
	assert_false(power.added);
	check_side(&power.up, 5);
	check_side(&power.down, 5);
	end(&world);
}

static void test_the_place_leaves_room_and_few_points_say_nothing(void **state)
{
	struct world world;
	struct power power;
	struct error error;

	(void)state;
	fill(&world, 100, 1, 7);
	begin(&world, POINTS);
	power = measure(&world, POINTS - 5);
	assert_int_equal(power.place, PLACE);
	assert_true(power.moved);
	end(&world);
	begin(&world, POWER_POINTS + 9);
	assert_false(power_measure(&world.ask, POINTS, NULL, 0, &power, &error));
	assert_int_equal(error.kind, ERROR_NONE);
	end(&world);
}

static void test_a_change_of_its_own_is_taken_out_or_said(void **state)
{
	struct world world;
	struct power power;
	struct error error;

	(void)state;
	fill(&world, 100, 1, 7);
	for (size_t i = PLACE; i < POINTS; i++)
		world.values[i] += 20;
	begin(&world, POINTS);
	power = measure(&world, PLACE);
	assert_true(power.up.anyway && power.up.tried == 0 && !power.down.anyway);
	assert_true(power_typical(&world.ask, world.arena, &power, &error));
	assert_true(power.evened && !power.up.anyway);
	check_side(&power.up, 5);
	end(&world);
}

/* A point is a window: the one before the place has some of the new level, and is told of with it.
 */
static void test_a_point_that_the_change_has_touched_is_no_old_news(void **state)
{
	struct world world;
	struct arrival arrival;
	struct error error;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		fill(&world, 100, 0.35, seed);
		world.values[PLACE - 1] += 2.4;
		for (size_t i = PLACE; i < POINTS; i++)
			world.values[i] += 12;
		begin(&world, POINTS);
		assert_true(power_arrive(
			&world.ask, world.values, PLACE, POWER_POINTS, 0, &arrival, &error));
		assert_in_range(arrival.found, 1, 3);
		assert_in_range(arrival.told, 4, 5);
		end(&world);
	}
}

static void test_work_is_bounded(void **state)
{
	struct world world;
	struct power power;

	(void)state;
	fill(&world, 100, 1, 7);
	begin(&world, POINTS);
	assert_int_equal(scratch_done(world.scratch), 0);
	world.ask.limit = 1;
	power = measure(&world, PLACE);
	assert_true(power.up.cut && power.down.cut);
	assert_true(isnan(power.up.smallest));
	assert_true(scratch_done(world.scratch) < POWER_STEPS / 100);
	end(&world);
}

static void test_a_change_arrives(void **state)
{
	struct world world;
	struct arrival arrival;
	struct error error;

	(void)state;
	fill(&world, 100, 1, 7);
	for (size_t i = 200; i < POINTS; i++)
		world.values[i] += i < 203 ? 30 : 0;
	for (size_t i = 250; i < POINTS; i++)
		world.values[i] += 8;
	begin(&world, POINTS);
	assert_true(
		power_arrive(&world.ask, world.values, 250, 2 * POWER_POINTS, 1, &arrival, &error));
	assert_true(arrival.found > 0 && arrival.told >= arrival.found && arrival.lost == 0);
	assert_true(power_arrive(
		&world.ask, world.values, 250, 2 * POWER_POINTS, -1, &arrival, &error));
	assert_int_equal(arrival.found, 0);
	assert_int_equal(arrival.seen, 2 * POWER_POINTS);
	assert_true(
		power_arrive(&world.ask, world.values, 200, 2 * POWER_POINTS, 0, &arrival, &error));
	assert_true(arrival.found == 0 || arrival.lost > arrival.found);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_noise_decides),
		cmocka_unit_test(test_points_that_are_waited_for_are_the_delay),
		cmocka_unit_test(test_levels_around_zero_get_steps_of_their_size),
		cmocka_unit_test(test_the_place_leaves_room_and_few_points_say_nothing),
		cmocka_unit_test(test_a_change_of_its_own_is_taken_out_or_said),
		cmocka_unit_test(test_a_point_that_the_change_has_touched_is_no_old_news),
		cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_a_change_arrives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
