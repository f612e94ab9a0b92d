/*
 * What the default profile makes of shapes that are not one step in plain noise: ramps and values
 * that alternate.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>
#include <string.h>

#include "detectors/edivisive/edivisive.h"
#include "detectors/loops.h"
#include "tests/unit/random_series.h"

enum { N = 200, LONG = 300, SERIES = 100 };

static struct change found[LONG];

static size_t detect(const double *values, size_t n)
{
	struct edivisive_options options = {.window = 50, .p_value = 0.001};
	struct samples samples = {.values = values, .n = n};
	struct scratch *scratch = scratch_new();
	size_t count = edivisive_detector.detect(&samples, &options, scratch, found);
	scratch_free(scratch);
	return count;
}

/* 100, rising by `rise` over `length` points from `start` on, in noise of 2. */
static void ramp(uint64_t seed, double *values, size_t start, size_t length, double rise)
{
	uint64_t state = seed * 7919 + 1;
	for (size_t i = 0; i < N; i++) {
		double share = ((double)i - (double)start + 0.5) / (double)length;
		values[i] = 100 + rise * fmin(fmax(share, 0), 1) + 2 * random_normal(&state);
	}
}

static void test_ramp_is_one_point(void **state)
{
	(void)state;
	size_t points = 0, within = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		double values[N];
		ramp(seed, values, 70, 60, seed % 2 ? 20 : -20);
		size_t count = detect(values, N);
		points += count;
		within += count > 0 && found[0].index >= 65 && found[0].index < 130;
	}
	assert_in_range(points, SERIES * 95 / 100, SERIES * 110 / 100);
	assert_in_range(within, SERIES * 95 / 100, SERIES);
}

static void test_ramp_over_everything(void **state)
{
	(void)state;
	size_t points = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		double values[N];
		ramp(seed, values, 0, N, 10);
		points += detect(values, N);
	}
	assert_in_range(points, 1, SERIES * 130 / 100);
}

/* In counts that are mostly 0 the ones are no outliers: the level is their mean. */
static void test_levels_of_counts(void **state)
{
	(void)state;
	double values[N];
	for (size_t i = 0; i < N; i++)
		values[i] = i < N / 2 ? i * 7 % 5 == 0 : 4 + (double)(i * 7 % 3 == 0);
	assert_int_equal(detect(values, N), 1);
	assert_int_equal(found[0].index, N / 2);
	assert_float_equal(found[0].level_before, 0.2, 1e-9);
	assert_float_equal(found[0].level_after, 4.33, 0.011);
	assert_float_equal(found[0].size, 2065, 6);
	assert_true(found[0].size_low > 1000 && found[0].size_high < 4500);
}

/* But among values that are mostly equal a few far away are. */
static void test_levels_of_equal_values(void **state)
{
	(void)state;
	double values[N];
	for (size_t i = 0; i < N; i++)
		values[i] = (i % 19 == 7 ? 500 : 100) + (i < N / 2 ? 0 : 20);
	assert_int_equal(detect(values, N), 1);
	assert_float_equal(found[0].level_before, 100, 3);
	assert_float_equal(found[0].level_after, 120, 3);
}

/* Two steps 60 points apart are two, however alike a ramp. */
static void test_stairs_stay(void **state)
{
	(void)state;
	size_t both = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		double values[N];
		uint64_t random = seed;
		for (size_t i = 0; i < N; i++)
			values[i] = 100 + (i >= 70 ? 5 : 0) + (i >= 130 ? 5 : 0) +
				    2 * random_normal(&random);
		both += detect(values, N) == 2;
	}
	assert_in_range(both, SERIES * 97 / 100, SERIES);
}

/* A level of 14 points, 2.5 deviations up. */
static void test_short_level(void **state)
{
	(void)state;
	size_t both = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		double values[N];
		uint64_t random = seed;
		for (size_t i = 0; i < N; i++)
			values[i] = 100 + (i >= 90 && i < 104 ? 5 : 0) + 2 * random_normal(&random);
		both += detect(values, N) == 2;
	}
	assert_in_range(both, SERIES * 85 / 100, SERIES);
}

/* `period` values are repeated; from `at` on all are higher by `step`. */
static size_t detect_alternating(
	const double *levels, size_t period, size_t n, size_t at, double step, double noise)
{
	double values[N];
	uint64_t state = 77;
	for (size_t i = 0; i < n; i++)
		values[i] = levels[i % period] + (i >= at ? step : 0) +
			    noise * (random_unit(&state) - 0.5);
	return detect(values, n);
}

static void assert_near(size_t place, size_t expected)
{
	assert_in_range(place, expected - 2, expected + 2);
}

static void test_alternating_values(void **state)
{
	(void)state;
	const double two[] = {5, 6}, four[] = {5, 6, 6, 5};
	for (int noisy = 0; noisy <= 1; noisy++) {
		double noise = noisy ? 0.3 : 0;
		assert_int_equal(detect_alternating(two, 2, 24, 24, 0, noise), 0);
		assert_int_equal(detect_alternating(four, 4, 24, 24, 0, noise), 0);
		assert_int_equal(detect_alternating(two, 2, 24, 12, 1, noise), 1);
		assert_near(found[0].index, 12);
		assert_int_equal(detect_alternating(four, 4, 40, 20, 1, noise), 1);
		assert_near(found[0].index, 20);
		assert_int_equal(detect_alternating(two, 2, 24, 12, 0.5, noise), 1);
		assert_near(found[0].index, 12);
	}
}

static void test_counts(void **state)
{
	(void)state;
	uint64_t random = 5;
	for (size_t n = 0; n < 90; n++) {
		double values[90], limits[LIMITS];
		size_t less[LIMITS] = {0}, below[LIMITS], plain[LIMITS];
		for (int k = 0; k < LIMITS; k++)
			limits[k] = (double)random_below(&random, 9);
		for (size_t i = 0; i < n; i++) {
			values[i] = (double)random_below(&random, 9);
			for (int k = 0; k < LIMITS; k++)
				less[k] += values[i] < limits[k];
		}
		loops_best()->count_below(values, n, limits, below);
		loops_plain.count_below(values, n, limits, plain);
		assert_memory_equal(below, less, sizeof less);
		assert_memory_equal(plain, less, sizeof less);
	}
}

/* Points found in SERIES series of LONG values in noise of 1, made by `next` from the state. */
static size_t points_in(double (*next)(uint64_t *, size_t, double *), size_t step, double height)
{
	static double values[LONG];
	size_t points = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t random = seed * 104729;
		double level = 0;
		for (size_t i = 0; i < LONG; i++)
			values[i] = 100 + next(&random, i, &level) + random_normal(&random) +
				    (i >= step ? height : 0);
		points += detect(values, LONG);
	}
	return points;
}

/* Two modes, 6 deviations apart, that are left every tenth time. */
static double sticking(uint64_t *random, size_t i, double *level)
{
	(void)i;
	if (random_below(random, 10) == 0)
		*level = 6 - *level;
	return *level;
}

/* An autoregression that forgets in a hundred points. */
static double wandering(uint64_t *random, size_t i, double *level)
{
	(void)i;
	*level = 0.99 * *level + 0.2 * random_normal(random);
	return *level;
}

/* Zeros and ones, and counts, in which a share or a mean rises after 100 values: how often a point
 * is found near to it, and in as many series without one. */
static size_t found_among_ties(uint64_t (*next)(uint64_t *, bool), size_t *wrong)
{
	double values[N];
	size_t right = 0;
	*wrong = 0;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t random = seed * 15485863;
		for (size_t i = 0; i < N; i++)
			values[i] = (double)next(&random, i >= N / 2);
		bool near = false;
		for (size_t count = detect(values, N), k = 0; k < count; k++)
			near |= found[k].index + 12 >= N / 2 && found[k].index <= N / 2 + 12;
		right += near;
		for (size_t i = 0; i < N; i++)
			values[i] = (double)next(&random, false);
		*wrong += detect(values, N) > 0;
	}
	return right;
}

/* 3% of ones, then 40%. */
static uint64_t one_or_none(uint64_t *random, bool changed)
{
	return random_below(random, 100) < (changed ? 40 : 3);
}

/* Ten chances of a tenth each, then of a quarter. */
static uint64_t counted(uint64_t *random, bool changed)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < 10; i++)
		sum += random_below(random, 100) < (changed ? 25 : 10);
	return sum;
}

/* A mean of 1 that becomes 2: counts do not stay on a level longer than chance has it. */
static uint64_t rare(uint64_t *random, bool changed)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < 20; i++)
		sum += random_below(random, 100) < (changed ? 10 : 5);
	return sum;
}

static void test_ties(void **state)
{
	(void)state;
	size_t wrong;
	assert_in_range(found_among_ties(one_or_none, &wrong), SERIES * 80 / 100, SERIES);
	assert_in_range(wrong, 0, 2);
	assert_in_range(found_among_ties(counted, &wrong), SERIES * 80 / 100, SERIES);
	assert_in_range(wrong, 0, 2);
	assert_in_range(found_among_ties(rare, &wrong), SERIES * 55 / 100, SERIES);
	assert_in_range(wrong, 0, 2);
}

/* Counts that were once missed: a mean of 1.0 that becomes 1.9, and two shares of ones that rise.
 */
static void test_missed_counts(void **state)
{
	(void)state;
	static const char *const digits[] = {
		"12212020110032312110001120211003012032121111102101111200101011121040200230200201"
		"21310010120001111300432431132101521112211400004301120313113303123314151121113223"
		"0031121432121110014133122343912071301123",
		"00000000000000000000000000000000001000000000000000000000000000000000000000000000"
		"00000000000000000000101101010000000010000000000010000100000000111000100001000000"
		"0001001010001100000000001010000000001010",
		"00000000000000000000100000001000000000000000000000000000000000000000000000000000"
		"00000000000000000000000010000000000000000000000000000000000000000000000000000000"
		"00000010000000000000000000100000000000000001010100011001001000011100110000101011"
		"00111110010100011101100110110011001010001011100011111101000011010010111100001100"
		"10010000110001001010101000001010010100100001111100000010100101010111100101010000",
	};
	static const size_t places[] = {100, 100, 203};
	for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
		double values[2 * N];
		size_t n = strlen(digits[k]);
		for (size_t i = 0; i < n; i++)
			values[i] = digits[k][i] - '0';
		assert_int_equal(detect(values, n), 1);
		assert_int_equal(found[0].index, places[k]);
	}
}

/* One that forgets in ten, and hides the noise. */
static double correlated(uint64_t *random, size_t i, double *level)
{
	(void)i;
	*level = 0.9 * *level + 3 * random_normal(random);
	return *level;
}

static double drifting(uint64_t *random, size_t i, double *level)
{
	(void)random;
	(void)level;
	return 3 * (double)i / LONG;
}

static double resting(uint64_t *random, size_t i, double *level)
{
	(void)random;
	(void)i;
	(void)level;
	return 0;
}

static void test_restless_levels(void **state)
{
	(void)state;
	assert_in_range(points_in(sticking, LONG, 0), 0, 5);
	assert_in_range(points_in(wandering, LONG, 0), 0, 120);
	assert_in_range(points_in(correlated, LONG, 0), 0, 4);
	assert_in_range(points_in(drifting, LONG, 0), 0, 50);
	assert_in_range(points_in(sticking, 150, 20), 95, 125);
	assert_in_range(points_in(sticking, 150, 12), 95, 125);
	assert_in_range(points_in(wandering, 150, 6), 95, 200);
	assert_in_range(points_in(resting, 150, 1.5), 99, 103);
}

/* Series of n values in noise of 2, in half of which a step begins with the fourth to sixth: how
 * often it is found, and how often something is where there is none. */
static void assert_few(size_t n, double height, size_t percent, size_t most_wrong)
{
	size_t right = 0, wrong = 0;
	double values[N];
	for (uint64_t seed = 1; seed <= 4 * SERIES; seed++) {
		uint64_t random = seed * 15485863 + n;
		size_t step = seed % 2 ? n : 4 + n / 10 % 2 + seed / 2 % 2;
		for (size_t i = 0; i < n; i++)
			values[i] = 100 + 2 * random_normal(&random) + (i >= step ? height : 0);
		size_t count = detect(values, n);
		if (step < n)
			right += count == 1 && found[0].index + 1 >= step &&
				 found[0].index <= step + 1;
		else
			wrong += count > 0;
	}
	assert_in_range(right, 2 * SERIES * percent / 100, 2 * SERIES);
	assert_in_range(wrong, 0, most_wrong);
}

static void test_few_points(void **state)
{
	(void)state;
	assert_few(8, 20, 93, 3);
	assert_few(10, 10, 90, 3);
	assert_few(17, 10, 95, 2);
	assert_few(24, 10, 95, 2);
	assert_few(38, 8, 95, 2);
}

/* A level of twelve times the size, with twelve times the noise, for 19 points. */
static void test_noise_that_grows_with_the_level(void **state)
{
	(void)state;
	double values[] = {
		1.03,
		1,
		0.99,
		0.89,
		1,
		1,
		1.23,
		0.88,
		1.56,
		0.64,
		0.86,
		1.13,
		1,
		0.86,
		0.94,
		1.12,
		1.32,
		5.69,
		10.2,
		8.24,
		17.36,
		10.57,
		12.2,
		20.19,
		12.18,
		13.23,
		8.26,
		8.83,
		4.04,
		5.18,
		6.68,
		6.69,
		26.71,
		4.98,
		2.85,
		7.77,
		1.11,
		1.05,
		1.25,
		1.6,
		1.06,
		0.77,
		0.87,
		1.18,
		1.13,
		0.99,
		1.04,
		1.05,
		0.72,
		0.95,
		0.82,
		0.88,
		0.85,
		0.94,
		1.16,
		0.99,
		1.01,
		1.18,
		1.14,
		0.9,
		1.11,
		0.94,
		0.91,
		1,
		1.32,
		0.92,
		0.88,
		0.97,
		0.83,
		0.94,
		1.23,
		0.75,
		0.9,
		0.82,
		1.37,
		1.24,
		1.2,
		1.03,
		0.81,
		0.93,
		1.03,
		1,
		1.4,
		1.29,
		0.9,
		0.88,
	};
	assert_int_equal(detect(values, sizeof values / sizeof *values), 2);
	assert_int_equal(found[0].index, 17);
	assert_in_range(found[1].index, 31, 41);
}

static void test_rounding_is_no_change(void **state)
{
	(void)state;
	double values[60];
	for (size_t i = 0; i < 60; i++)
		values[i] = i < 30 ? 0.1 : nextafter(0.1, 1);
	assert_int_equal(detect(values, 60), 0);
}

static void test_trend_has_an_interval(void **state)
{
	(void)state;
	size_t trends = 0, held = 0;
	for (uint64_t seed = 1; seed <= 4 * SERIES; seed++) {
		double values[N];
		ramp(seed, values, 70, 60, 30);
		if (detect(values, N) != 1 || found[0].kind != CHANGE_TREND)
			continue;
		trends++;
		held += found[0].size_low <= 30 && found[0].size_high >= 30;
		assert_true(found[0].size_low < found[0].size);
		assert_true(found[0].size_high > found[0].size);
		assert_true(found[0].size_high - found[0].size_low < 3);
	}
	assert_in_range(trends, 4 * SERIES * 95 / 100, 4 * SERIES);
	assert_in_range(held, trends * 93 / 100, trends * 99 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ramp_is_one_point),
		cmocka_unit_test(test_ramp_over_everything),
		cmocka_unit_test(test_levels_of_counts),
		cmocka_unit_test(test_levels_of_equal_values),
		cmocka_unit_test(test_stairs_stay),
		cmocka_unit_test(test_short_level),
		cmocka_unit_test(test_alternating_values),
		cmocka_unit_test(test_restless_levels),
		cmocka_unit_test(test_few_points),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_missed_counts),
		cmocka_unit_test(test_noise_that_grows_with_the_level),
		cmocka_unit_test(test_rounding_is_no_change),
		cmocka_unit_test(test_trend_has_an_interval),
		cmocka_unit_test(test_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
