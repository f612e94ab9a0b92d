/*
 * Excursions and the default profile: outages and bad nights that are over are no change, and hide
 * none close by.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/edivisive/edivisive.h"
#include "tests/unit/random_series.h"

enum { N = 480, SERIES = 60, MARGIN = 5, OUTAGE = 12, LASTING = 6 };

static const struct edivisive_options options = {.window = 50, .p_value = 0.001};
static struct change found[N];

static size_t detect(const double *values, size_t n, size_t excursion)
{
	struct samples samples = {.values = values, .n = n, .excursion = excursion};
	struct scratch *scratch = scratch_new();
	size_t count = edivisive_detector.detect(&samples, &options, scratch, found);

	scratch_free(scratch);
	return count;
}

/* 100 in noise of so many percent. */
static void flat(uint64_t *state, double *values, size_t n, double noise)
{
	for (size_t i = 0; i < n; i++)
		values[i] = 100 + noise * random_normal(state);
}

static void multiply(double *values, size_t from, size_t to, double by)
{
	for (size_t i = from; i < to; i++)
		values[i] *= by;
}

/* How many of the places a change was found at. */
static size_t hits_of(size_t count, const size_t *places, size_t place_count)
{
	size_t hits = 0;

	for (size_t k = 0; k < place_count; k++) {
		bool hit = false;

		for (size_t i = 0; i < count; i++)
			hit |= found[i].index + MARGIN >= places[k] &&
			       found[i].index <= places[k] + MARGIN;
		hits += hit;
	}
	return hits;
}

/* A step, and `length` points that are `height` as high, up to 60 points before or behind it. */
static size_t found_beside(double step, double noise, size_t length, double height)
{
	size_t hits = 0;

	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t state = seed * 977 + length;
		double values[200];
		size_t at = 80 + random_below(&state, 40), away = 8 + random_below(&state, 50);
		size_t start = seed % 2 ? at - away - length : at + away;

		flat(&state, values, 200, noise);
		multiply(values, at, 200, step);
		multiply(values, start, start + length, height);
		hits += hits_of(detect(values, 200, 0), &at, 1);
	}
	return hits;
}

static void test_step_beside_a_pulse(void **state)
{
	(void)state;
	assert_in_range(found_beside(1.05, 2, 3, 1.3), SERIES * 97 / 100, SERIES);
	assert_int_equal(found_beside(1.2, 2, 4, 2), SERIES);
	assert_in_range(found_beside(1.05, 2, 3, 0.6), SERIES * 97 / 100, SERIES);
}

/* F1 over series of so many steps of 10%, and dips beside every one in `every`, `gap` points
 * behind. */
static double score_steps(size_t steps, size_t every, size_t dip, size_t gap)
{
	size_t hits = 0, points = 0, truth = 0;

	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t state = seed * 131 + steps;
		size_t places[8], n = 50 * (steps + 1);
		double values[N];

		flat(&state, values, n, 2);
		for (size_t k = 0; k < steps; k++) {
			places[k] = 50 * (k + 1);
			multiply(values, places[k], n, (k + seed) % 2 ? 1.1 : 1 / 1.1);
		}
		for (size_t k = 0; k < steps; k += every)
			multiply(values, places[k] + gap, places[k] + gap + dip, 0.6);
		size_t count = detect(values, n, 0);

		hits += hits_of(count, places, steps);
		points += count;
		truth += steps;
	}
	return 2 * (double)hits / (double)(points + truth);
}

static void test_many_steps_and_dips(void **state)
{
	(void)state;
	assert_true(score_steps(4, 2, 4, 12) > 0.96);
	assert_true(score_steps(8, 8, 3, 10) > 0.99);
}

/* One point at a time, a step of 20% that lasts, 30 points after an outage of four. */
static void test_live_step_after_an_outage(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();

	for (uint64_t seed = 1; seed <= 25; seed++) {
		uint64_t random = seed;
		double values[160];
		size_t at = 134, seen = 0, count = 0;
		struct stream *stream = edivisive_detector.stream_new(&options, 0);
		bool told = false;

		flat(&random, values, 160, 2);
		multiply(values, 100, 104, 3);
		multiply(values, at, 160, 1.2);
		for (; seen < at + 3; seen++) {
			const struct change *changes = edivisive_detector.stream_append(
				stream, values + seen, 1, scratch, &count);

			told = count > 0 && changes[count - 1].index + 2 >= at;
		}
		assert_true(told);
		edivisive_detector.stream_free(stream);
	}
	scratch_free(scratch);
}

static void outage(uint64_t seed, double *values, size_t length, double height)
{
	uint64_t state = seed;

	flat(&state, values, N, 3);
	multiply(values, 150, 150 + length, height);
}

/* What is an outage where points come by the hour is a regression that was mended where they are
 * builds, if it lasts for six of them. */
static void test_long_outages(void **state)
{
	(void)state;
	size_t both = 0, none = 0, cases = 0, lasting = 0;

	for (size_t length = 5; length <= OUTAGE; length++)
		for (uint64_t seed = 1; seed <= 10; seed++) {
			const size_t places[] = {150, 150 + length};
			double values[N];

			outage(seed, values, length, seed % 2 ? 1.5 : 0.6);
			none += detect(values, N, OUTAGE) == 0;
			cases++;
			both += length >= LASTING && detect(values, N, 0) == 2 &&
				hits_of(2, places, 2) == 2;
			lasting += length >= LASTING;
		}
	assert_in_range(none, cases * 97 / 100, cases);
	assert_in_range(both, lasting * 97 / 100, lasting);
}

static void test_longer_than_an_outage(void **state)
{
	(void)state;
	size_t places[] = {150, 150 + 2 * OUTAGE};
	double values[N];

	outage(1, values, 2 * OUTAGE, 1.5);
	assert_int_equal(detect(values, N, OUTAGE), 2);
	assert_int_equal(hits_of(2, places, 2), 2);
}

/* Outages of 5 to 12 points all over the series, one that goes over into the step. */
static void test_step_among_long_outages(void **state)
{
	(void)state;
	size_t hits = 0, points = 0;

	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t random = seed + 5;
		double values[N];
		size_t at = 200 + random_below(&random, 100);

		flat(&random, values, N, 3);
		multiply(values, at, N, 1.2);
		for (size_t i = 30; i + 60 < N; i += 60 + random_below(&random, 30)) {
			size_t length = 5 + random_below(&random, OUTAGE - 4);

			if (i > at + 12 || i + length + 12 < at)
				multiply(values, i, i + length, 1.4 + 2 * random_unit(&random));
		}
		size_t count = detect(values, N, OUTAGE);

		hits += hits_of(count, &at, 1);
		points += count;
	}
	assert_in_range(hits, SERIES * 97 / 100, SERIES);
	assert_in_range(points, hits, hits + SERIES * 4 / 100);
}

/* How many steps of two deviations at the end are found with so many points behind them. */
static size_t found_at_the_end(size_t behind, size_t excursion)
{
	size_t hits = 0;

	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t random = seed * 31;
		double values[N];
		size_t at = 300, n = at + behind;

		flat(&random, values, n, 5);
		multiply(values, at, n, 1.1);
		hits += hits_of(detect(values, n, excursion), &at, 1);
	}
	return hits;
}

/* Where a step among points by the hour is weighed further before it is told, it is found early. */
static void test_end_of_a_service(void **state)
{
	(void)state;
	assert_in_range(found_at_the_end(8, OUTAGE), SERIES * 65 / 100, SERIES);
}

/* Four values of a step of three deviations are enough where each depends on the one before. */
static void test_onset_in_dependent_noise(void **state)
{
	size_t hits = 0, points = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		uint64_t random = seed * 17;
		double values[N], noise = 0;
		size_t at = 300, n = at + 4;

		for (size_t i = 0; i < n; i++) {
			noise = 0.6 * noise + 0.8 * 5 * random_normal(&random);
			values[i] = 100 + noise + (i < at ? 0 : 20);
		}
		size_t count = detect(values, n, OUTAGE);

		hits += hits_of(count, &at, 1);
		points += count;
	}
	assert_in_range(hits, SERIES * 55 / 100, SERIES);
	assert_in_range(points, hits, hits + SERIES * 4 / 100);
}

/* Errors that are mostly none: 1, 1, 0 are no new level, but one in each of eight values is. */
static void test_few_errors_after_none(void **state)
{
	double values[N] = {0};
	size_t at = 300;

	(void)state;
	for (size_t i = 7; i < at; i += 29)
		values[i] = 1;
	values[at] = values[at + 1] = 1;
	assert_int_equal(detect(values, at + 3, OUTAGE), 0);
	assert_int_equal(detect(values, at + 3, 0), 0);
	for (size_t i = at; i < at + 8; i++)
		values[i] = 1;
	assert_int_equal(hits_of(detect(values, at + 8, OUTAGE), &at, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step_beside_a_pulse),
		cmocka_unit_test(test_many_steps_and_dips),
		cmocka_unit_test(test_live_step_after_an_outage),
		cmocka_unit_test(test_long_outages),
		cmocka_unit_test(test_longer_than_an_outage),
		cmocka_unit_test(test_step_among_long_outages),
		cmocka_unit_test(test_end_of_a_service),
		cmocka_unit_test(test_onset_in_dependent_noise),
		cmocka_unit_test(test_few_errors_after_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
