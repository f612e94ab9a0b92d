/*
 * What e-divisive says of the places that it tries: each reason where it is provoked, and results
 * that are the same to the bit whether anyone asks or not.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "detectors/edivisive.h"
#include "detectors/scratch.h"
#include "detectors/tried.h"
#include "tests/unit/random_series.h"

enum { SERIES = 600, LONGEST = 900, POINTS = 200 };

static const struct edivisive_options usual = {.window = 50, .p_value = 0.001};

static size_t detect(const double *values, size_t n, const struct edivisive_options *options,
	struct tried_list *tried, struct change *out)
{
	struct scratch *scratch = scratch_new();
	struct samples samples = {.values = values, .n = n};
	size_t count;

	scratch_trace(scratch, tried);
	count = edivisive_detector.detect(&samples, options, scratch, out);
	scratch_free(scratch);
	return count;
}

/* Every change is among them as standing, nothing else stands, and each place is there once. */
static void check_list(
	const struct tried_list *tried, const struct change *changes, size_t count, size_t n)
{
	size_t standing = 0;

	for (size_t i = 0; i < tried->count; i++) {
		const struct tried *one = &tried->items[i];

		assert_true(one->index < n);
		assert_true(i == 0 || tried->items[i - 1].index < one->index);
		if (one->fate != TRIED_STANDS)
			continue;
		assert_true(standing < count);
		assert_int_equal(changes[standing].index, one->index);
		standing++;
	}
	assert_int_equal(standing, count);
}

static void test_results_do_not_depend_on_the_list(void **state)
{
	static double values[LONGEST];
	static struct change with[LONGEST], without[LONGEST];
	size_t dropped = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SERIES; seed++) {
		uint64_t random = seed * 0x9e3779b97f4a7c15 + 1;
		size_t n = 1 + random_below(&random, LONGEST - 1), count;
		struct edivisive_options options = usual;
		struct tried_list tried = {0};

		options.window = seed % 3 ? 50 : 20;
		random_series(&random, values, n);
		count = detect(values, n, &options, &tried, with);
		assert_int_equal(detect(values, n, &options, NULL, without), count);
		if (count > 0)
			assert_memory_equal(with, without, count * sizeof *with);
		tried_sort(&tried);
		check_list(&tried, with, count, n);
		dropped += tried.count - count;
		tried_free(&tried);
	}
	assert_true(dropped > SERIES);
}

/* 100 with noise of 1. */
static void flat(double *values, uint64_t seed)
{
	uint64_t random = seed;

	for (size_t i = 0; i < POINTS; i++)
		values[i] = 100 + random_normal(&random);
}

static bool has(const double *values, const struct edivisive_options *options, size_t from,
	size_t to, enum tried_fate fate)
{
	struct tried_list tried = {0};
	struct change changes[POINTS];
	bool found = false;

	detect(values, POINTS, options, &tried, changes);
	for (size_t i = 0; i < tried.count; i++)
		found |= tried.items[i].fate == fate && tried.items[i].index >= from &&
			 tried.items[i].index <= to;
	tried_free(&tried);
	return found;
}

static void test_steps_stand_and_small_ones_fail_the_test(void **state)
{
	struct edivisive_options large = usual;
	double values[POINTS];

	(void)state;
	large.magnitude = 0.5;
	flat(values, 1);
	for (size_t i = 100; i < POINTS; i++)
		values[i] += 8;
	assert_true(has(values, &usual, 99, 101, TRIED_STANDS));
	assert_true(has(values, &large, 99, 101, TRIED_MAGNITUDE));
	flat(values, 1);
	for (size_t i = 100; i < POINTS; i++)
		values[i] += 0.5;
	assert_true(has(values, &usual, 80, 120, TRIED_TEST));
}

static void test_excursions_come_back(void **state)
{
	double values[POINTS];

	(void)state;
	flat(values, 2);
	for (size_t i = 100; i < 104; i++)
		values[i] += 30;
	assert_true(has(values, &usual, 99, 101, TRIED_EXCURSION));
}

static void test_ranks_have_to_agree(void **state)
{
	struct edivisive_options lenient = usual;
	bool found = false;

	(void)state;
	lenient.p_value = 0.05;
	for (uint64_t seed = 1; seed < 200 && !found; seed++) {
		uint64_t random = seed * 77;
		double values[POINTS];

		flat(values, seed);
		for (size_t i = 120; i < POINTS; i++)
			if (random_below(&random, 5) == 0)
				values[i] += 12;
		found = has(values, &lenient, 1, POINTS - 1, TRIED_RANKS);
	}
	assert_true(found);
}

static void test_parts_of_a_ramp_are_one(void **state)
{
	double values[POINTS];

	(void)state;
	flat(values, 3);
	for (size_t i = 80; i < POINTS; i++)
		values[i] += 0.5 * (double)(i < 140 ? i - 80 : 60);
	assert_true(has(values, &usual, 60, 150, TRIED_RAMP));
}

static void test_every_fate_has_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < TRIED_FATES; i++) {
		assert_non_null(tried_names[i]);
		assert_non_null(tried_sentences[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_do_not_depend_on_the_list),
		cmocka_unit_test(test_steps_stand_and_small_ones_fail_the_test),
		cmocka_unit_test(test_excursions_come_back),
		cmocka_unit_test(test_ranks_have_to_agree),
		cmocka_unit_test(test_parts_of_a_ramp_are_one),
		cmocka_unit_test(test_every_fate_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
