/*
 * Rhythm: how long data may be without a new point, by the points that there are.
 */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/monitor/rhythm.h"

enum { MINUTE = 60000, MOST = 100 };

static const struct rhythm_bounds bounds = {.interval = MINUTE};

/* A series and what it lies on. */
struct made {
	int64_t times[MOST];
	double values[MOST];
	struct axis axis;
	struct series series;
};

/* Points a minute apart, the last one at `last`. */
static void make(struct made *made, size_t n, int64_t spacing, int64_t last)
{
	for (size_t i = 0; i < n; i++) {
		made->times[i] = last - (int64_t)(n - 1 - i) * spacing;
		made->values[i] = 1;
	}
	made->axis = (struct axis){.n = n, .times = made->times};
	made->series = (struct series){.axis = &made->axis, .values = made->values};
}

static int64_t limit(const struct made *made, const struct rhythm_bounds *with)
{
	struct rhythm rhythm = rhythm_of(&made->series);

	return rhythm_limit(&rhythm, with);
}

static void test_three_times_the_longest_gap(void **state)
{
	struct made made;

	(void)state;
	make(&made, 40, (int64_t)10 * MINUTE, 0);
	assert_int_equal(limit(&made, &bounds), 30 * MINUTE);
	for (size_t i = 0; i < 20; i++) /* the 20th gap from the end is an hour longer */
		made.times[i] -= (int64_t)60 * MINUTE;
	assert_int_equal(limit(&made, &bounds), 3 * 70 * MINUTE);
	made.times[19] += (int64_t)60 * MINUTE; /* now it is the 21st */
	assert_int_equal(limit(&made, &bounds), 30 * MINUTE);
}

static void test_at_least_ten_intervals_and_three_steps(void **state)
{
	struct made made;
	struct rhythm_bounds with = {.interval = (int64_t)10 * MINUTE};

	(void)state;
	make(&made, 40, MINUTE, 0);
	assert_int_equal(limit(&made, &bounds), 10 * MINUTE);
	assert_int_equal(limit(&made, &with), 100 * MINUTE);
	with.step = (int64_t)60 * MINUTE;
	assert_int_equal(limit(&made, &with), 180 * MINUTE);
	with.delay = (int64_t)5 * MINUTE; /* so old is the newest point that is read */
	assert_int_equal(limit(&made, &with), 185 * MINUTE);
	with.interval = WHEN_NEVER;
	assert_int_equal(limit(&made, &with), 0);
}

static void test_none_below_ten_points(void **state)
{
	struct made made;

	(void)state;
	make(&made, 9, MINUTE, 0);
	assert_int_equal(limit(&made, &bounds), 0);
	make(&made, 10, MINUTE, 0);
	assert_int_equal(limit(&made, &bounds), 10 * MINUTE);
	made.values[4] = (double)NAN; /* is no point */
	assert_int_equal(limit(&made, &bounds), 0);
	make(&made, 10, MINUTE, 0);
	made.times[4] = made.times[5]; /* nor are two at one time */
	assert_int_equal(limit(&made, &bounds), 0);
	make(&made, 0, MINUTE, 0);
	assert_true(rhythm_of(&made.series).last == WHEN_ALWAYS);
}

static void test_series_together(void **state)
{
	static struct made made[3];
	struct series series[3];
	struct dataset data = {series, 3};
	int64_t newest;

	(void)state;
	make(&made[0], 40, (int64_t)60 * MINUTE, -MINUTE);
	make(&made[1], 40, (int64_t)10 * MINUTE, 0);
	make(&made[2], 40, MINUTE, -1440 * (int64_t)MINUTE); /* has ended */
	for (size_t i = 0; i < 3; i++)
		series[i] = made[i].series;
	assert_int_equal(rhythm_of_all(&data, &bounds, &newest), 30 * MINUTE);
	assert_int_equal(newest, 0);
	for (size_t i = 0; i < 40; i++)
		made[1].values[i] = (double)NAN;
	assert_int_equal(rhythm_of_all(&data, &bounds, &newest), 180 * MINUTE);
	assert_int_equal(newest, -MINUTE);
	data.count = 0;
	assert_int_equal(rhythm_of_all(&data, &bounds, &newest), 0);
	assert_true(newest == WHEN_ALWAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_times_the_longest_gap),
		cmocka_unit_test(test_at_least_ten_intervals_and_three_steps),
		cmocka_unit_test(test_none_below_ten_points),
		cmocka_unit_test(test_series_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
