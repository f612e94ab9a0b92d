/*
 * When a change is over: by a later change, by an excursion that can still be seen, and not while
 * it may only seem so.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>

#include "detectors/recovery.h"
#include "tests/unit/random.h"

enum { N = 200, PLACE = 100 };

/* About normal noise of 1. */
static double noise(uint64_t *random)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += (double)(random_next(random) % 10001) / 10000 - 0.5;
	return sum;
}

/* `size` more than 100 for so many points, and `left` more from there on. */
static void make(double *values, size_t width, double size, double left, uint64_t seed)
{
	uint64_t random = seed + 1;

	for (size_t i = 0; i < N; i++) {
		double level = i < PLACE ? 0 : i < PLACE + width ? size : left;

		values[i] = 100 + level + noise(&random);
	}
}

static struct change step(size_t index, double before, double after)
{
	return (struct change){.index = index,
		.level_before = before,
		.level_after = after,
		.place_from = index,
		.place_to = index};
}

static struct recovery by_changes(const double *values, size_t n, size_t width, double left)
{
	const struct change changes[] = {
		step(PLACE, 100, 110), step(PLACE + width, 110, 100 + left)};

	return recovery_by_changes(values, n, changes, 2, 0);
}

static struct recovery of_excursion(const double *values, size_t n, size_t place, double step)
{
	struct told_step told = {place, step, 5};

	return recovery_of_excursion(values, n, NULL, 0, &told);
}

static void a_level_that_is_back(void **state)
{
	(void)state;
	double values[N];
	size_t back = 0;

	for (uint64_t seed = 0; seed < 1000; seed++) {
		make(values, 20, 10, 0, seed);
		struct recovery end = by_changes(values, N, 20, 0);

		assert_int_equal(end.way, 1);
		assert_int_equal(end.from, PLACE + 20);
		assert_true(end.verdict == RECOVERY_OVER || end.verdict == RECOVERY_WAIT);
		back += end.verdict == RECOVERY_OVER;
		assert_false(end.beyond);
	}
	assert_in_range(back, 940, 1000); /* a 95% interval, and what is next to nothing */
}

static void half_the_way_is_not_back(void **state)
{
	(void)state;
	double values[N];

	make(values, 20, 10, 4, 3);
	assert_int_equal(by_changes(values, N, 20, 4).verdict, RECOVERY_WAIT);
	make(values, 20, 10, 6, 3);
	assert_int_equal(by_changes(values, N, 20, 6).verdict, RECOVERY_NONE);
	make(values, 20, 10, 20, 3);
	assert_int_equal(by_changes(values, N, 20, 20).verdict, RECOVERY_NONE);
}

/* Better than before is back, and may be something else besides. */
static void beyond_the_old_level(void **state)
{
	(void)state;
	double values[N];

	make(values, 20, 10, -3, 3);
	assert_int_equal(by_changes(values, N, 20, -3).verdict, RECOVERY_OVER);
	assert_false(by_changes(values, N, 20, -3).beyond);
	make(values, 20, 10, -8, 3);
	assert_true(by_changes(values, N, 20, -8).beyond);
	struct recovery few = by_changes(values, PLACE + 20 + RECOVERY_LEAST - 1, 20, -8);

	assert_true(few.verdict == RECOVERY_WAIT && few.few && few.beyond);
}

static void few_values_tell_nothing(void **state)
{
	(void)state;
	double values[N];

	make(values, 20, 10, 0, 3);
	for (size_t n = 1; n < RECOVERY_LEAST; n++) {
		assert_int_equal(by_changes(values, PLACE + 20 + n, 20, 0).verdict, RECOVERY_WAIT);
		assert_true(by_changes(values, PLACE + 20 + n, 20, 0).few);
	}
	assert_int_equal(
		by_changes(values, PLACE + 20 + RECOVERY_LEAST, 20, 0).verdict, RECOVERY_OVER);
	values[PLACE + 22] = (double)NAN;
	assert_int_equal(
		by_changes(values, PLACE + 20 + RECOVERY_LEAST, 20, 0).verdict, RECOVERY_WAIT);
}

static void next_to_nothing_is_nothing(void **state)
{
	(void)state;
	double values[N];

	for (size_t i = 0; i < N; i++)
		values[i] = i < PLACE ? 100 : i < PLACE + 20 ? 110 : 100.4;
	assert_int_equal(by_changes(values, N, 20, 0.4).verdict, RECOVERY_OVER);
	for (size_t i = PLACE + 20; i < N; i++)
		values[i] = 100.6;
	assert_int_equal(by_changes(values, N, 20, 0.6).verdict, RECOVERY_WAIT);
	for (size_t i = 0; i < N; i++)
		values[i] = i < PLACE || i >= PLACE + 20 ? 0 : 10;
	assert_int_equal(by_changes(values, N, 20, 0).verdict, RECOVERY_OVER);
	/* Little of the step, but more than the old level. */
	for (size_t i = 0; i < N; i++)
		values[i] = i < PLACE ? 1 : i < PLACE + 20 ? 50 : 2.2;
	const struct change changes[] = {step(PLACE, 1, 50), step(PLACE + 20, 50, 2.2)};
	assert_int_equal(recovery_by_changes(values, N, changes, 2, 0).verdict, RECOVERY_WAIT);
	for (size_t i = PLACE + 20; i < N; i++)
		values[i] = 1.3;
	assert_int_equal(recovery_by_changes(values, N, changes, 2, 0).verdict, RECOVERY_OVER);
}

/* Two steps up, and down in one. */
static void more_than_one_at_once(void **state)
{
	(void)state;
	const struct change changes[] = {
		step(PLACE, 100, 110), step(PLACE + 20, 110, 130), step(PLACE + 40, 130, 100)};
	double values[N];

	make(values, 40, 10, 0, 3);
	for (size_t i = PLACE + 20; i < PLACE + 40; i++)
		values[i] += 20;
	assert_int_equal(recovery_by_changes(values, N, changes, 3, 0).verdict, RECOVERY_OVER);
	assert_int_equal(recovery_by_changes(values, N, changes, 3, 1).verdict, RECOVERY_OVER);
	assert_int_equal(recovery_by_changes(values, N, changes, 3, 2).verdict, RECOVERY_NONE);
}

/* The step lies before the first value; what its level was is known. */
static void before_the_first_value(void **state)
{
	(void)state;
	double values[N];
	struct change down = step(PLACE, 110, 100);

	make(values, 0, 0, 0, 3);
	for (size_t i = 0; i < PLACE; i++)
		values[i] += 10;
	assert_int_equal(recovery_of_old(values, N, &down, 1, 100, 110).verdict, RECOVERY_OVER);
	assert_int_equal(recovery_of_old(values, N, &down, 1, 90, 110).verdict, RECOVERY_WAIT);
	assert_int_equal(recovery_of_old(values, N, &down, 1, 100, 140).verdict, RECOVERY_NONE);
	assert_int_equal(recovery_of_old(values, N, NULL, 0, 100, 110).verdict, RECOVERY_NONE);
}

/* Of each width, up and down, and as small as is told: where it ended, and at which level. */
static void excursions(void **state)
{
	(void)state;
	static const double sizes[] = {6, 10, 30, 200};
	double values[N];

	for (size_t width = 1; width <= 12; width++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			for (int sign = -1; sign <= 1; sign += 2) {
				make(values, width, sign * sizes[i], 0, width + i);
				for (size_t astray = 0; astray <= 4 && astray < width + 2;
					astray++) {
					struct told_step told = {
						PLACE - 2 + astray, sign * sizes[i], width};
					struct recovery end =
						recovery_of_excursion(values, N, NULL, 0, &told);

					assert_int_equal(end.verdict, RECOVERY_OVER);
					assert_in_range(
						end.from, PLACE + width - 1, PLACE + width + 1);
					assert_true(fabs(end.level - 100) < 1);
					told.step = -told.step;
					end = recovery_of_excursion(values, N, NULL, 0, &told);
					assert_int_equal(end.verdict, RECOVERY_NONE);
				}
			}
}

/* A value far off beside it is not what was told. */
static void an_outlier_beside_a_step(void **state)
{
	(void)state;
	double values[N];

	make(values, 1, 9, 0, 3);
	assert_int_equal(of_excursion(values, N, PLACE, 1).verdict, RECOVERY_NONE);
	assert_int_equal(of_excursion(values, N, PLACE, 9).verdict, RECOVERY_NONE);
	make(values, 3, 9, 0, 3);
	assert_int_equal(of_excursion(values, N, PLACE, 9).verdict, RECOVERY_OVER);
	assert_int_equal(of_excursion(values, N, PLACE, 40).verdict, RECOVERY_NONE);
	assert_int_equal(of_excursion(values, N, PLACE, (double)NAN).verdict, RECOVERY_NONE);
}

static void an_excursion_that_lasts(void **state)
{
	(void)state;
	double values[N];

	make(values, 10, 10, 0, 3);
	for (size_t n = PLACE + 3; n <= PLACE + 10; n++)
		assert_int_equal(of_excursion(values, n, PLACE, 10).verdict, RECOVERY_NONE);
	for (size_t n = PLACE + 11; n < PLACE + 10 + RECOVERY_LEAST; n++)
		assert_int_equal(of_excursion(values, n, PLACE, 10).verdict, RECOVERY_WAIT);
	make(values, 60, 10, 0, 3);
	assert_int_not_equal(of_excursion(values, N, PLACE, 10).verdict, RECOVERY_OVER);
	make(values, 0, 0, 0, 3);
	assert_int_equal(of_excursion(values, N, PLACE, 10).verdict, RECOVERY_NONE);
	assert_int_equal(of_excursion(values, N, N, 10).verdict, RECOVERY_NONE);
	assert_int_equal(of_excursion(values, 3, 1, 10).verdict, RECOVERY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_level_that_is_back),
		cmocka_unit_test(half_the_way_is_not_back),
		cmocka_unit_test(beyond_the_old_level),
		cmocka_unit_test(few_values_tell_nothing),
		cmocka_unit_test(next_to_nothing_is_nothing),
		cmocka_unit_test(more_than_one_at_once),
		cmocka_unit_test(before_the_first_value),
		cmocka_unit_test(excursions),
		cmocka_unit_test(an_outlier_beside_a_step),
		cmocka_unit_test(an_excursion_that_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
