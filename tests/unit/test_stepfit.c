/*
 * Step fits against Skia Perf's own code (golden/stepfit.jsonl), and the sliding detector.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/stepfit.h"
#include "tests/unit/close.h"
#include "tests/unit/jsonl.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

enum { ALGORITHMS = 6 };

static const char *const algorithms[] = {
	"original", "absolute", "const", "percent", "cohen", "mannwhitneyu"};
static const char *const statuses[] = {"Uninteresting", "High", "Low"};

static int algorithm_of(const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "algo"));
	for (int i = 0; i < ALGORITHMS; i++)
		if (strcmp(algorithms[i], name) == 0)
			return i;
	fail_msg("algorithm %s", name);
	return 0;
}

/* Their floats have seven digits, of which sums and differences cost some. */
static bool is_near(const json_t *row, const char *key, double got)
{
	double expected = jsonl_number(json_object_get(row, key));
	return is_close(expected, got, 1e-4) || fabs(expected - got) < 1e-7;
}

struct tally {
	struct scratch *scratch;
	size_t compared, evaluated;
};

static void compare_row(json_t *row, void *context)
{
	const double missing = 1e32;
	struct tally *tally = context;
	struct stepfit_options options = {
		.algorithm = algorithm_of(row),
		.threshold = jsonl_number(json_object_get(row, "interesting_threshold")),
		.min_stddev = jsonl_number(json_object_get(row, "stddev_threshold")),
	};
	size_t n;
	double *values = jsonl_numbers(json_object_get(row, "series"), &n);
	for (size_t i = 0; i < n; i++)
		values[i] = values[i] >= missing ? nan("") : values[i];
	struct stepfit fit = stepfit_fit(values, n, &options, tally->scratch);
	free(values);
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *status = json_string_value(json_object_get(row, "status"));
	if (strcmp(status, statuses[fit.status]) != 0)
		fail_msg("%s %s: %s instead of %s", algorithms[options.algorithm], name,
			statuses[fit.status], status);
	tally->evaluated += json_is_true(json_object_get(row, "evaluated"));
	if (json_is_true(json_object_get(row, "f32_fragile")))
		return;
	bool big = options.algorithm == STEPFIT_CONST && fit.regression == HUGE_VAL;
	if (!is_near(row, "step_size", fit.step) ||
		!is_near(row, "regression", big ? missing : fit.regression))
		fail_msg("%s %s: %g %g", algorithms[options.algorithm], name, fit.step,
			fit.regression);
	tally->compared++;
}

static void test_golden(void **state)
{
	(void)state;
	struct tally tally = {.scratch = scratch_new()};
	assert_int_equal(jsonl_each("golden/stepfit.jsonl", compare_row, &tally), 792);
	assert_int_equal(tally.compared, 734);
	assert_int_equal(tally.evaluated, 752);
	scratch_free(tally.scratch);
}

static struct stepfit_options options_of(int algorithm)
{
	struct stepfit_options options;
	field_defaults(stepfit_detector.plugin.fields, &options);
	options.algorithm = algorithm;
	if (algorithm == STEPFIT_ABSOLUTE)
		options.threshold = 5;
	if (algorithm == STEPFIT_CONST)
		options.threshold = 106;
	if (algorithm == STEPFIT_ORIGINAL)
		options.threshold = 20;
	return options;
}

static void test_options(void **state)
{
	(void)state;
	struct error error;
	struct stepfit_options options;
	field_defaults(stepfit_detector.plugin.fields, &options);
	assert_int_equal(options.algorithm, STEPFIT_COHEN);
	assert_int_equal(options.radius, 10);
	for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
		bool needs = algorithm == STEPFIT_ABSOLUTE || algorithm == STEPFIT_CONST;
		options.algorithm = algorithm;
		options.threshold = 0;
		assert_int_equal(stepfit_detector.plugin.check(&options, &error), !needs);
		options.threshold = 0.5;
		assert_true(stepfit_detector.plugin.check(&options, &error));
	}
}

/* Each algorithm finds clear steps where they are, and once. */
static void test_sliding(void **state)
{
	(void)state;
	double values[250];
	for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
		struct stepfit_options options = options_of(algorithm);
		noisy_steps(3, values, 250, 50, 10);
		for (size_t i = 7; i < 250; i += 31)
			values[i] = nan("");
		size_t count = detect(&stepfit_detector, &options, values, 250);
		assert_changes_sound(count, values, 250);
		if (algorithm == STEPFIT_CONST) {
			assert_true(count > 0 && found[0].index >= 50);
			continue;
		}
		assert_int_equal(count, 4);
		for (size_t i = 0; i < 4; i++) {
			size_t at = 50 * (i + 1);
			assert_in_range(found[i].index, at - 1, at + 1);
			assert_true(found[i].pvalue < 1e-3);
		}
	}
}

static void test_flat_noise(void **state)
{
	(void)state;
	double values[400];
	size_t wrong = 0;
	struct stepfit_options options = options_of(STEPFIT_COHEN);
	for (uint64_t seed = 1; seed <= 50; seed++) {
		noisy_steps(seed, values, 400, 400, 0);
		wrong += detect(&stepfit_detector, &options, values, 400);
	}
	assert_true(wrong <= 10); /* of 20,000 points */
}

static void test_edges(void **state)
{
	(void)state;
	double values[20];
	for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
		struct stepfit_options options = options_of(algorithm);
		options.threshold = algorithm == STEPFIT_CONST ? 1e301 : options.threshold;
		assert_survives(&stepfit_detector, &options);
	}
	struct stepfit_options options = options_of(STEPFIT_COHEN);
	for (size_t i = 0; i < 20; i++)
		values[i] = (i < 10 ? 1 : 2) * 1e300;
	assert_int_equal(detect(&stepfit_detector, &options, values, 20), 1);
	assert_int_equal(found[0].index, 10);
	assert_close(found[0].mean_after, 2e300, 1e-15);
	assert_int_equal(detect(&stepfit_detector, &options, values, 19), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_sliding),
		cmocka_unit_test(test_flat_noise),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
