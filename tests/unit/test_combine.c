/*
 * Agreements of detectors: how many are needed, how near they must be, and what is told of them.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/combine.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/kernel.h"
#include "detectors/modes.h"
#include "detectors/stepfit.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

/* Step fits of the absolute algorithm with a radius of 2 on constants: their places are known. */
static struct stepfit_options steps_above(double threshold)
{
	return (struct stepfit_options){.algorithm = STEPFIT_ABSOLUTE,
		.threshold = threshold,
		.min_stddev = 0.001,
		.radius = 2};
}

static size_t combine(size_t need, int64_t tolerance, const struct combine_member *members,
	size_t count, const double *values, size_t n)
{
	const struct combine_options options = {tolerance, need, members, count};
	return detect(&combine_detector, &options, values, n);
}

/* Small steps at 10 and 30, a large one at 20. */
static void fill_steps(double *values)
{
	for (size_t i = 0; i < 40; i++)
		values[i] = i < 10 ? 1 : i < 20 ? 2 : i < 30 ? 12 : 13;
}

static void test_need(void **state)
{
	(void)state;
	double values[40];
	const struct stepfit_options fine = steps_above(0.9), coarse = steps_above(5);
	const struct combine_member members[] = {
		{"stepfit", &fine}, {"stepfit", &fine}, {"stepfit", &coarse}};
	fill_steps(values);
	assert_int_equal(combine(1, 5, members, 3, values, 40), 3);
	assert_int_equal(combine(2, 5, members, 3, values, 40), 3);
	assert_int_equal(found[0].index, 10);
	assert_int_equal(found[1].index, 20);
	assert_int_equal(found[2].index, 30);
	assert_close(found[1].mean_before, 2, 0);
	assert_close(found[1].mean_after, 12, 0);
	assert_int_equal(found[1].count_before, 10);
	assert_int_equal(combine(3, 5, members, 3, values, 40), 1);
	assert_int_equal(found[0].index, 20);
	assert_close(found[0].mean_before, 1.5, 0);
	assert_int_equal(found[0].count_before, 20);
	assert_int_equal(combine(3, 0, members, 3, values, 40), 1);
}

/* A step at 20, and the largest value at 24. */
static void test_tolerance(void **state)
{
	(void)state;
	double values[40];
	const struct stepfit_options step = steps_above(4);
	const struct stepfit_options high = {
		.algorithm = STEPFIT_CONST, .threshold = 10.5, .min_stddev = 0.001, .radius = 2};
	const struct combine_member members[] = {{"stepfit", &step}, {"stepfit", &high}};
	for (size_t i = 0; i < 40; i++)
		values[i] = i < 20 ? 1 : i == 24 ? 11 : 10;
	assert_int_equal(combine(2, 3, members, 2, values, 40), 0);
	assert_int_equal(combine(2, 4, members, 2, values, 40), 1);
	assert_int_equal(found[0].index, 20);
	assert_int_equal(combine(1, 3, members, 2, values, 40), 2);
	assert_int_equal(found[1].index, 24);
	assert_int_equal(combine(1, 4, members, 2, values, 40), 1);
}

/* The best p-value and its place are told. */
static void test_best(void **state)
{
	(void)state;
	double values[200];
	struct edivisive_options edivisive;
	struct kernel_options kernel;
	struct modes_options modes;
	field_defaults(edivisive_detector.plugin.fields, &edivisive);
	field_defaults(kernel_detector.plugin.fields, &kernel);
	field_defaults(modes_detector.plugin.fields, &modes);
	const struct combine_member members[] = {
		{"edivisive", &edivisive}, {"kernel", &kernel}, {"modes", &modes}};
	size_t close = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		noisy_steps(seed, values, 200, 100, 5);
		assert_int_equal(detect(&edivisive_detector, &edivisive, values, 200), 1);
		double best = found[0].pvalue;
		assert_int_equal(detect(&kernel_detector, &kernel, values, 200), 1);
		best = fmin(best, found[0].pvalue);
		size_t at = found[0].pvalue == best ? found[0].index : 0;
		assert_int_equal(combine(2, 5, members, 2, values, 200), 1);
		assert_close(found[0].pvalue, best, 0);
		assert_true(at == 0 || found[0].index == at);
		close += found[0].index >= 98 && found[0].index <= 102;
	}
	assert_true(close >= 39);
	noisy_steps(2, values, 200, 200, 0);
	assert_int_equal(combine(3, 5, members, 3, values, 200), 0);
}

/* Two changes of one member are two, however wide the tolerance. */
static void test_one_vote_each(void **state)
{
	(void)state;
	double values[40];
	const struct stepfit_options fine = steps_above(0.9);
	const struct combine_member members[] = {{"stepfit", &fine}, {"stepfit", &fine}};
	fill_steps(values);
	assert_int_equal(combine(1, 1000, members, 1, values, 40), 3);
	assert_int_equal(combine(2, 1000, members, 2, values, 40), 3);
}

/* Otava's profile fills gaps in and may name a place without a value: it is the next one's. */
static void test_missing_values(void **state)
{
	(void)state;
	double values[60];
	struct edivisive_options otava;
	field_defaults(edivisive_detector.plugin.fields, &otava);
	otava.profile = EDIVISIVE_OTAVA;
	const struct combine_member members[] = {{"edivisive", &otava}};
	for (size_t i = 0; i < 60; i++)
		values[i] = i < 30 ? 1 + 0.01 * (double)(i % 3) : 5;
	for (size_t i = 50; i < 60; i++)
		values[i] = nan("");
	assert_int_equal(combine(1, 5, members, 1, values, 60), 1);
	assert_int_equal(found[0].index, 30);
	assert_int_equal(found[0].count_after, 20);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		random_series(&random, values, 60);
		for (size_t i = 60 - seed % 20; i < 60; i++)
			values[i] = nan("");
		otava.p_value = 0.9;
		size_t count = combine(1, 0, members, 1, values, 60);
		assert_changes_sound(count, values, 60);
	}
}

static void test_edges(void **state)
{
	(void)state;
	struct edivisive_options edivisive;
	struct kernel_options kernel;
	struct stepfit_options stepfit;
	field_defaults(edivisive_detector.plugin.fields, &edivisive);
	field_defaults(kernel_detector.plugin.fields, &kernel);
	field_defaults(stepfit_detector.plugin.fields, &stepfit);
	const struct combine_member members[] = {
		{"edivisive", &edivisive}, {"kernel", &kernel}, {"stepfit", &stepfit}};
	for (size_t need = 1; need <= 3; need++) {
		struct combine_options options = {5, need, members, 3};
		assert_survives(&combine_detector, &options);
	}
	struct error error;
	struct combine_options none = {0};
	assert_false(combine_detector.plugin.check(&none, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_need),
		cmocka_unit_test(test_tolerance),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_one_vote_each),
		cmocka_unit_test(test_missing_values),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
