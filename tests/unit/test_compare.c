/*
 * Hunter's comparison: which points make a level, and when two levels differ.
 */
#include "unit.h"

#include <math.h>

#include "agent/analysis/compare.h"
#include "close.h"
#include "data.h"
#include "detectors/edivisive/edivisive.h"
#include "random.h"

enum { N = 12 };

static int setup(void **state)
{
	*state = arena_new();
	return 0;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static struct series *series_of(struct arena *arena, const double *values, size_t n)
{
	struct dataset data = {0};
	return data_series(arena, &data, data_axis(arena, n, NEW_YEAR, DAY), "m", -1, values);
}

static void assert_span(struct compare_span span, size_t from, size_t to)
{
	assert_int_equal(span.from, from);
	assert_int_equal(span.to, to);
}

static void spans_end_at_change_points(void **state)
{
	static const double values[N] = {0};
	const struct change changes[] = {{.index = 4}, {.index = 9}};
	struct findings found = {
		.series = series_of(*state, values, N), .changes = changes, .count = 2};
	assert_span(stable_span(&found, 0), 0, 4);
	assert_span(stable_span(&found, 3), 0, 4);
	assert_span(stable_span(&found, 4), 4, 9);
	assert_span(stable_span(&found, 8), 4, 9);
	assert_span(stable_span(&found, 9), 9, N);
	assert_span(stable_span(&found, N), 9, N);
	found.count = 0;
	assert_span(stable_span(&found, 5), 0, N);
}

/* t = 9.9045 with 8 degrees of freedom: both variances are nearly the pooled one. */
static void two_levels_are_judged(void **state)
{
	static const double values[] = {
		10.43, 10.23, 10.29, 10.91, 10.34, 10.69, 9.23, 9.11, 9.13, 9.03};
	const struct series *series = series_of(*state, values, 10);
	struct comparison c = compare_spans(series->values, (struct compare_span){0, 6},
		series->values, (struct compare_span){6, 10});
	assert_int_equal(c.before.count, 6);
	assert_close(c.before.mean, 10.481666666666667, 1e-14);
	assert_close(c.after.mean, 9.125, 1e-14);
	assert_close(c.percent, -12.943234218476705, 1e-12);
	assert_close(c.pvalue, 9.5941355767474605e-06, 1e-9);
	assert_true(comparison_is_regression(&c, 1, 0.001));
	assert_false(comparison_is_regression(&c, -1, 0.001));
	assert_true(comparison_is_regression(&c, 0, 0.001));
	assert_false(comparison_is_regression(&c, 1, c.pvalue));
}

static void scale_changes_nothing(void **state)
{
	double values[] = {10.43, 10.23, 10.29, 10.91, 10.34, 10.69, 9.23, 9.11, 9.13, 9.03};
	const struct series *plain = series_of(*state, values, 10);
	struct comparison expected = compare_spans(plain->values, (struct compare_span){0, 6},
		plain->values, (struct compare_span){6, 10});
	static const double scales[] = {1e-300, 1e300, 0x1p-1060};
	for (size_t s = 0; s < 2; s++) {
		double scaled[10];
		for (size_t i = 0; i < 10; i++)
			scaled[i] = values[i] * scales[s];
		const struct series *series = series_of(*state, scaled, 10);
		struct comparison c = compare_spans(series->values, (struct compare_span){0, 6},
			series->values, (struct compare_span){6, 10});
		assert_close(c.pvalue, expected.pvalue, 1e-9);
		assert_close(c.percent, expected.percent, 1e-9);
		assert_close(c.before.stddev, expected.before.stddev * scales[s], 1e-9);
	}
}

static struct comparison compare(struct arena *arena, const double *values, size_t n, size_t cut)
{
	const struct series *series = series_of(arena, values, n);
	return compare_spans(series->values, (struct compare_span){0, cut}, series->values,
		(struct compare_span){cut, n});
}

/* One value against a sample: t = (130 - 101) / (sd * sqrt(1 + 1/6)), with 3 degrees of freedom, as
 * it may be an outlier, else with 5. */
static void a_single_point_can_be_judged(void **state)
{
	static const double values[] = {100, 101, 102, 99, 103, 101, 130};
	struct comparison c = compare(*state, values, 7, 6);
	assert_int_equal(c.after.count, 1);
	assert_close(c.pvalue, 3.1909579359365279e-4, 1e-9);
	assert_close(c.plain_pvalue, 7.4719110690900141e-6, 1e-9);
	assert_true(comparison_is_regression(&c, -1, 0.001));
	c = compare(*state, values + 5, 2, 1);
	assert_true(c.pvalue == 1);
}

static void edges_are_no_regressions(void **state)
{
	static const double constant[] = {5, 5, 5, 5, 5, 5};
	static const double steps[] = {5, 5, 5, 6, 6, 6};
	const double missing[] = {(double)NAN, (double)NAN, (double)NAN, 6, 6, 6};
	const double infinite[] = {5, 5, 5, (double)INFINITY, (double)INFINITY, -(double)INFINITY};
	static const double zeros[] = {0, 0, 0, 1, 1.5, 1};
	struct comparison c = compare(*state, constant, 6, 3);
	assert_true(c.pvalue == 1 && c.percent == 0);
	c = compare(*state, steps, 6, 3);
	assert_true(c.pvalue == 1 && c.df < COMPARE_LEAST);
	c = compare(*state, missing, 6, 3);
	assert_int_equal(c.before.count, 0);
	assert_false(comparison_is_regression(&c, 0, 0.001));
	c = compare(*state, infinite, 6, 3);
	assert_int_equal(c.after.count, 0);
	assert_false(comparison_is_regression(&c, 0, 0.001));
	c = compare(*state, zeros, 6, 3);
	assert_true(c.percent == 0);
	c = compare(*state, constant, 6, 0);
	assert_false(comparison_is_regression(&c, 0, 0.001));
}

/* Equal values say nothing of the noise until there are many; what arithmetic adds to them is no
 * noise either. */
static void constant_levels_need_points(void **state)
{
	double values[20];

	for (size_t tiny = 0; tiny < 2; tiny++)
		for (size_t n = 3; n <= 20; n++)
			for (size_t cut = 2; cut < n; cut++) {
				for (size_t i = 0; i < n; i++)
					values[i] = (i < cut ? 100 : 101) *
						    (i % 2 && tiny ? 1 + 1e-15 : 1);
				struct comparison c = compare(*state, values, n, cut);
				assert_true(comparison_is_regression(&c, -1, 0.001) == (n >= 10));
				assert_true((c.df >= COMPARE_LEAST) == (n >= 10));
			}
}

/* An infinity (a division by zero somewhere) must not hide a regression. */
static void infinities_are_no_part_of_a_level(void **state)
{
	static const double values[] = {
		10, 11, (double)INFINITY, 10, 11, 10, 20, 21, -(double)INFINITY, 20, 21, 20};
	struct series *series = series_of(*state, values, N);
	struct comparison found = compare_spans(series->values, (struct compare_span){0, 6},
		series->values, (struct compare_span){6, N});
	assert_int_equal(found.before.count, 5);
	assert_close(found.before.mean, 10.4, 1e-12);
	assert_close(found.after.mean, 20.4, 1e-12);
	assert_true(comparison_is_regression(&found, -1, 0.001));
}

enum { MAIN = 110, RUNS = 10, BRANCHES = 10000 };

static double draw_normal(uint64_t *state)
{
	double size = sqrt(-2 * log(1 - random_unit(state)));

	return size * cos(6.283185307179586 * random_unit(state));
}

/* Main with a noise of 2%, as the default profile divides it into levels, and RUNS of a branch. */
struct branch {
	double values[MAIN + RUNS];
	struct axis axis;
	struct series series;
	struct change changes[MAIN];
	struct findings found;
	struct scratch *scratch;
};

/* One run in fifty ten deviations off; a lognormal. */
enum noise { NORMAL, OUTLIERS, SKEWED };

static double shaped(enum noise noise, double z, uint64_t *state)
{
	if (noise == OUTLIERS)
		return random_unit(state) < 0.02 ? z + 10 : z;
	return noise == SKEWED ? exp(0.5 * z) / 0.604 : z;
}

static void draw_branch(struct branch *branch, uint64_t *state, double memory, enum noise noise)
{
	struct samples samples = {.values = branch->values, .n = MAIN};
	struct edivisive_options options;
	double last = 0;

	field_defaults(edivisive_detector.plugin.fields, &options);
	for (size_t i = 0; i < MAIN + RUNS; i++) {
		last = memory * last + sqrt(1 - memory * memory) * draw_normal(state);
		branch->values[i] = 20 * (1 + 0.02 * shaped(noise, last, state));
	}
	branch->axis.n = MAIN;
	branch->series.axis = &branch->axis;
	branch->found = (struct findings){.series = &branch->series, .changes = branch->changes};
	branch->found.count =
		edivisive_detector.detect(&samples, &options, branch->scratch, branch->changes);
}

/* Whether the branch is worse by its first runs, raised by so much. */
static bool is_worse(const struct branch *branch, size_t runs, double raised, int direction)
{
	double values[MAIN + RUNS];
	struct comparison comparison;

	for (size_t i = 0; i < MAIN + RUNS; i++)
		values[i] = branch->values[i] + (i < MAIN ? 0 : raised);
	comparison = compare_spans(values, stable_span(&branch->found, MAIN), values,
		(struct compare_span){MAIN, MAIN + runs});
	return comparison_is_regression(&comparison, direction, 0.001);
}

/* More runs never decide less than one: +50% is always found, +10% from the second run on. */
static void few_runs_decide(void **state)
{
	struct branch branch = {.scratch = scratch_new()};
	uint64_t random = 1;
	size_t found = 0;

	(void)state;
	for (size_t b = 0; b < 100; b++) {
		draw_branch(&branch, &random, 0, NORMAL);
		for (size_t runs = 1; runs <= RUNS; runs++) {
			assert_true(is_worse(&branch, runs, 10, -1));
			found += runs > 1 && is_worse(&branch, runs, 2, -1);
		}
	}
	assert_in_range(found, 100 * (RUNS - 1) * 95 / 100, 100 * (RUNS - 1));
	scratch_free(branch.scratch);
}

/* Of branches that change nothing at most P are worse, within two standard errors: of independent
 * runs, in either direction, and of runs that go with the one before. */
static void unchanged_branches_pass(void **state)
{
	struct branch branch = {.scratch = scratch_new()};
	size_t most = 10 + (size_t)(2 * sqrt(10)), worse[RUNS + 1] = {0}, related[RUNS + 1] = {0};
	uint64_t random = 2;

	(void)state;
	for (size_t b = 0; b < BRANCHES; b++) {
		draw_branch(&branch, &random, 0, NORMAL);
		for (size_t runs = 1; runs <= RUNS; runs += 1 + runs / 2)
			worse[runs] += is_worse(&branch, runs, 0, 0);
		draw_branch(&branch, &random, 0.5, NORMAL);
		for (size_t runs = 1; runs <= RUNS; runs += 1 + runs / 2)
			related[runs] += is_worse(&branch, runs, 0, -1);
	}
	for (size_t runs = 1; runs <= RUNS; runs++) {
		assert_in_range(worse[runs], 0, most);
		assert_in_range(related[runs], 0, most);
	}
	scratch_free(branch.scratch);
}

/* A single run that is an outlier is no worse branch, where the baseline shows none, either. */
static void single_outliers_pass(void **state)
{
	struct branch branch = {.scratch = scratch_new()};
	size_t most = 10 + (size_t)(2 * sqrt(10)), worse[SKEWED + 1] = {0};
	uint64_t random = 4;

	(void)state;
	for (size_t b = 0; b < BRANCHES; b++)
		for (enum noise noise = OUTLIERS; noise <= SKEWED; noise++) {
			draw_branch(&branch, &random, 0, noise);
			worse[noise] += is_worse(&branch, 1, 0, -1);
		}
	assert_in_range(worse[OUTLIERS], 0, most);
	assert_in_range(worse[SKEWED], 0, most);
	scratch_free(branch.scratch);
}

/* A baseline with one run at +50% does not hide a level of +10%, nor does its like accuse a single
 * run of another branch. */
static void rare_runs_are_allowed_for(void **state)
{
	struct branch branch = {.scratch = scratch_new()};
	uint64_t random = 3;

	(void)state;
	draw_branch(&branch, &random, 0, NORMAL);
	branch.values[80] *= 1.5;
	branch.found.count = 0;
	assert_true(is_worse(&branch, RUNS, 2, -1));
	assert_false(is_worse(&branch, 1, 4, -1));
	scratch_free(branch.scratch);
}

static void few_points_tell_nothing(void **state)
{
	static const double values[] = {100, 101, 99, 100, 102, 98, 101, 150};

	assert_true(compare(*state, values + 1, 4, 3).df < COMPARE_LEAST);
	assert_true(compare(*state, values, 8, 7).df >= COMPARE_LEAST);
	assert_true(compare(*state, values, 1, 1).df < COMPARE_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spans_end_at_change_points, setup, teardown),
		cmocka_unit_test_setup_teardown(two_levels_are_judged, setup, teardown),
		cmocka_unit_test_setup_teardown(scale_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_single_point_can_be_judged, setup, teardown),
		cmocka_unit_test_setup_teardown(edges_are_no_regressions, setup, teardown),
		cmocka_unit_test_setup_teardown(constant_levels_need_points, setup, teardown),
		cmocka_unit_test(few_runs_decide),
		cmocka_unit_test(unchanged_branches_pass),
		cmocka_unit_test(single_outliers_pass),
		cmocka_unit_test(rare_runs_are_allowed_for),
		cmocka_unit_test_setup_teardown(few_points_tell_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(infinities_are_no_part_of_a_level, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
