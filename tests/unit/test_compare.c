/*
 * Hunter's comparison: which points make a level, and when two levels differ.
 */
#include "unit.h"

#include "agent/analysis/compare.h"
#include "close.h"
#include "data.h"

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

/* R: t.test(c(10.43,10.23,10.29,10.91,10.34,10.69), c(9.23,9.11,9.13,9.03)) */
static void welch_judges_two_levels(void **state)
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
	assert_close(c.pvalue, 1.5577905437323823e-5, 1e-9);
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

/* One value against a sample: t = (130 - 101) / (sd * sqrt(1 + 1/6)), 5 degrees of freedom. */
static void a_single_point_can_be_judged(void **state)
{
	static const double values[] = {100, 101, 102, 99, 103, 101, 130};
	struct comparison c = compare(*state, values, 7, 6);
	assert_int_equal(c.after.count, 1);
	assert_close(c.pvalue, 7.4719110690900141e-6, 1e-9);
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
	assert_true(c.pvalue == 0 && comparison_is_regression(&c, -1, 0.001));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spans_end_at_change_points, setup, teardown),
		cmocka_unit_test_setup_teardown(welch_judges_two_levels, setup, teardown),
		cmocka_unit_test_setup_teardown(scale_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_single_point_can_be_judged, setup, teardown),
		cmocka_unit_test_setup_teardown(edges_are_no_regressions, setup, teardown),
		cmocka_unit_test_setup_teardown(infinities_are_no_part_of_a_level, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
