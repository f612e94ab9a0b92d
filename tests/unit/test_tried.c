/*
 * What detectors say of the places that they try: each reason where it is provoked, and results
 * that are the same to the bit whether anyone asks or not.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/combine.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/permutation.h"
#include "detectors/kernel.h"
#include "detectors/lookback.h"
#include "detectors/modes.h"
#include "detectors/scratch.h"
#include "detectors/stepfit.h"
#include "detectors/tried.h"
#include "tests/unit/random_series.h"
#include "tests/unit/same_change.h"

enum { SERIES = 600, LONGEST = 900, POINTS = 200 };

static const struct edivisive_options usual = {.window = 50, .p_value = 0.001};

static size_t detect_by(const struct detector *detector, const struct samples *samples,
	const void *options, struct tried_list *tried, struct change *out)
{
	struct scratch *scratch = scratch_new();
	struct error error;
	size_t count;

	scratch_trace(scratch, tried);
	assert_true(detector_run(detector, samples, options, scratch, out, &count, &error));
	scratch_free(scratch);
	return count;
}

static size_t detect(const double *values, size_t n, const struct edivisive_options *options,
	struct tried_list *tried, struct change *out)
{
	struct samples samples = {.values = values, .n = n};

	return detect_by(&edivisive_detector, &samples, options, tried, out);
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
		assert_true(same_changes(with, without, count));
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
	assert_true(has(values, &usual, 80, 120, TRIED_WEAK));
}

/* What p would let pass and the partition does not is said to cost too much, not to be weak. */
static void test_weak_ones_have_no_small_p(void **state)
{
	double values[POINTS];
	struct change changes[POINTS];
	size_t costly = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct tried_list tried = {0};
		flat(values, seed);
		for (size_t i = 100; i < POINTS; i++)
			values[i] += 0.5;
		detect(values, POINTS, &usual, &tried, changes);
		for (size_t i = 0; i < tried.count; i++) {
			costly += tried.items[i].fate == TRIED_COST;
			assert_true(tried.items[i].fate != TRIED_WEAK ||
				    tried.items[i].pvalue >= usual.p_value);
		}
		tried_free(&tried);
	}
	assert_true(costly > 0);
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

/* What is dropped as a movement of a wandering level is said with the usual size of those. */
static void test_wandering_has_a_size(void **state)
{
	double values[POINTS];
	struct change changes[POINTS];
	size_t wanders = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct tried_list tried = {0};
		uint64_t random = seed * 7919;
		double level = 0;
		for (size_t i = 0; i < POINTS; i++) {
			level += 0.3 * random_normal(&random);
			values[i] = 100 + level + random_normal(&random);
		}
		detect(values, POINTS, &usual, &tried, changes);
		for (size_t i = 0; i < tried.count; i++) {
			const struct tried *one = &tried.items[i];
			if (one->fate != TRIED_WANDER)
				continue;
			wanders++;
			assert_string_equal(one->measure, "wandering");
			assert_true(one->limit > 1 && one->limit < 10);
			assert_true(one->measured < one->limit);
		}
		tried_free(&tried);
	}
	assert_in_range(wanders, 20, 400);
}

static void test_a_single_value_is_an_outlier(void **state)
{
	double values[POINTS];

	(void)state;
	flat(values, 2);
	values[100] += 30;
	assert_true(has(values, &usual, 100, 100, TRIED_OUTLIER));
	assert_false(has(values, &usual, 1, POINTS - 1, TRIED_STANDS));
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
	size_t noted = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		flat(values, seed);
		for (size_t i = 80; i < POINTS; i++)
			values[i] += 0.5 * (double)(i < 140 ? i - 80 : 60);
		noted += has(values, &usual, 60, 150, TRIED_RAMP);
	}
	assert_in_range(noted, 16, 20);
}

static const struct edivisive_options otava = {
	.window = 50, .p_value = 0.001, .profile = EDIVISIVE_OTAVA};
static const struct edivisive_permutation_options permuted = {
	.permutations = 99, .p_value = 0.05, .seed = 1};
static const struct kernel_options kernel = {.penalty = 1, .min_size = 2};
static const struct stepfit_options cohen = {
	.algorithm = STEPFIT_COHEN, .min_stddev = 0.001, .radius = 10};
static const struct stepfit_options ranks = {
	.algorithm = STEPFIT_MANNWHITNEYU, .min_stddev = 0.001, .radius = 10};
static const struct modes_options modes = {.window = 6, .modes = 6, .apart = 0.02};
static const struct lookback_options lookback = {
	.runs = 10, .magnitude = 0.01, .p_value = 0.05, .deviations = 2.576, .min_samples = 4};
static const struct combine_member members[] = {
	{"edivisive", &usual}, {"kernel", &kernel}, {"stepfit", &cohen}};
static const struct combine_options two_of = {
	.tolerance = 5, .need = 2, .members = members, .count = 3};

static const struct other {
	const struct detector *detector;
	const void *options;
	size_t series, longest; /* of the test: some are slow */
} others[] = {
	{&edivisive_detector, &otava, 200, 600},
	{&edivisive_permutation_detector, &permuted, 40, 100},
	{&kernel_detector, &kernel, 100, 400},
	{&stepfit_detector, &cohen, 200, 600},
	{&stepfit_detector, &ranks, 100, 300},
	{&modes_detector, &modes, 200, 600},
	{&lookback_detector, &lookback, 200, 600},
	{&combine_detector, &two_of, 100, 400},
};

static void check_others(const struct other *other, const struct samples *samples)
{
	struct change with[LONGEST], without[LONGEST];
	struct tried_list tried = {0};
	size_t count = detect_by(other->detector, samples, other->options, &tried, with);

	assert_int_equal(detect_by(other->detector, samples, other->options, NULL, without), count);
	assert_true(same_changes(with, without, count));
	for (size_t i = 0, standing = 0; i < tried.count; i++) {
		const struct tried *one = &tried.items[i];

		assert_true(one->index < samples->n);
		standing += one->fate == TRIED_STANDS;
		assert_true(i + 1 < tried.count || standing == count);
		if (one->fate == TRIED_TEST || one->fate == TRIED_MAGNITUDE)
			assert_true(one->measure && !isnan(one->measured));
		for (size_t k = 0; k < i; k++)
			assert_true(
				tried.items[k].index != one->index || tried.items[k].by != one->by);
	}
	tried_free(&tried);
}

/* In runs of up to five points, some of a binary that is known. */
static void group_runs(uint64_t *random, struct samples *samples, size_t *runs, uint64_t *hashes)
{
	for (size_t i = 0; i < samples->n; i++) {
		runs[i] = i == 0 ? 0 : runs[i - 1] + (random_below(random, 3) == 0);
		hashes[i] = random_below(random, 4);
	}
	samples->runs = runs;
	samples->hashes = hashes;
}

static void test_no_result_depends_on_the_list(void **state)
{
	static double values[LONGEST];
	static size_t runs[LONGEST];
	static uint64_t hashes[LONGEST];

	(void)state;
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		for (uint64_t seed = 0; seed < others[k].series; seed++) {
			uint64_t random = seed * 0x9e3779b97f4a7c15 + 11;
			size_t n = 1 + random_below(&random, others[k].longest - 1);
			struct samples samples = {.values = values, .n = n, .direction = -1};

			random_series(&random, values, n);
			if (seed % 2)
				group_runs(&random, &samples, runs, hashes);
			check_others(&others[k], &samples);
		}
}

/* What became of what was tried nearest to the middle of [from, to], by the detector; its numbers
 * are those of a place that has failed. */
static bool says(const struct detector *detector, const void *options, const double *values,
	size_t from, size_t to, enum tried_fate fate, const char *measure)
{
	struct samples samples = {.values = values, .n = POINTS};
	struct tried_list tried = {0};
	struct change changes[POINTS];
	bool found = false;

	detect_by(detector, &samples, options, &tried, changes);
	for (size_t i = 0; i < tried.count; i++) {
		const struct tried *one = &tried.items[i];

		if (one->fate != fate || one->index < from || one->index > to)
			continue;
		assert_non_null(one->measure);
		assert_string_equal(one->measure, measure);
		assert_true(strcmp(measure, "p") == 0 ? one->measured >= one->limit
						      : one->measured <= one->limit);
		found = true;
	}
	tried_free(&tried);
	return found;
}

static void shifted(double *values, uint64_t seed, size_t from, size_t to, double height)
{
	flat(values, seed);
	for (size_t i = from; i < to; i++)
		values[i] += height;
}

static void test_other_detectors_say_what_drops_a_place(void **state)
{
	struct edivisive_options large = otava;
	struct kernel_options high = kernel;
	struct lookback_options least = lookback;
	struct modes_options near_ones = modes;
	struct combine_options all = two_of;
	double values[POINTS];

	(void)state;
	shifted(values, 5, 100, POINTS, 0.6);
	assert_true(says(&edivisive_detector, &otava, values, 1, POINTS, TRIED_WEAK, "p"));
	assert_true(says(&kernel_detector, &kernel, values, 80, 120, TRIED_COST, "saving"));
	assert_true(says(&stepfit_detector, &cohen, values, 90, 110, TRIED_THRESHOLD, "cohen"));
	assert_true(says(&stepfit_detector, &ranks, values, 90, 110, TRIED_THRESHOLD, "p"));
	flat(values, 5);
	assert_true(says(
		&edivisive_permutation_detector, &permuted, values, 1, POINTS, TRIED_TEST, "p"));
	least.magnitude = 0.5;
	assert_true(
		says(&lookback_detector, &least, values, 1, POINTS, TRIED_MAGNITUDE, "magnitude"));
	least.magnitude = 0.001;
	least.floor = 50;
	assert_true(says(&lookback_detector, &least, values, 1, POINTS, TRIED_FLOOR, "size"));
	shifted(values, 6, 100, POINTS, 8);
	large.magnitude = high.magnitude = 0.5;
	assert_true(
		says(&edivisive_detector, &large, values, 98, 102, TRIED_MAGNITUDE, "magnitude"));
	assert_true(says(&kernel_detector, &high, values, 98, 102, TRIED_MAGNITUDE, "magnitude"));
	assert_true(says(
		&edivisive_permutation_detector, &permuted, values, 1, POINTS, TRIED_OUTDONE, "q"));
	near_ones.apart = 0.2;
	assert_true(says(&modes_detector, &near_ones, values, 98, 102, TRIED_APART, "apart"));
	shifted(values, 6, POINTS - 3, POINTS, 20);
	for (size_t i = 100; i < 140; i++)
		values[i] += 20;
	assert_true(says(
		&modes_detector, &modes, values, POINTS - 4, POINTS - 2, TRIED_PENDING, "runs"));
	shifted(values, 6, 100, 140, 20);
	values[60] += 20;
	assert_true(says(&modes_detector, &modes, values, 60, 61, TRIED_EXCURSION, "runs"));
	shifted(values, 7, 100, 107, 30);
	all.need = 3;
	assert_true(says(&combine_detector, &all, values, 98, 105, TRIED_VOTES, "detectors"));
}

static void test_every_fate_has_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < TRIED_FATES; i++) {
		assert_non_null(tried_kinds[i].name);
		assert_non_null(tried_kinds[i].sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_do_not_depend_on_the_list),
		cmocka_unit_test(test_steps_stand_and_small_ones_fail_the_test),
		cmocka_unit_test(test_weak_ones_have_no_small_p),
		cmocka_unit_test(test_excursions_come_back),
		cmocka_unit_test(test_wandering_has_a_size),
		cmocka_unit_test(test_a_single_value_is_an_outlier),
		cmocka_unit_test(test_ranks_have_to_agree),
		cmocka_unit_test(test_parts_of_a_ramp_are_one),
		cmocka_unit_test(test_no_result_depends_on_the_list),
		cmocka_unit_test(test_other_detectors_say_what_drops_a_place),
		cmocka_unit_test(test_every_fate_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
