/*
 * Moments and t-tests where the reference tables do not reach: constants, extremes, limits.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/stats.h"
#include "tests/unit/close.h"

static void test_moments(void **state)
{
	(void)state;
	const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct moments m = moments_of(values, 8);
	assert_int_equal(m.n, 8);
	assert_close(m.mean, 5, 0);
	assert_close(moments_variance(m, 0), 4, 0);
	assert_close(moments_variance(m, 1), 32.0 / 7, 1e-15);
	assert_close(moments_stddev(m, 0), 2, 0);
	assert_close(moments_variance(moments_of(values, 1), 1), 0, 0);
	assert_int_equal(moments_of(NULL, 0).n, 0);
}

/* The mean of n times 0.1 is 0.1 and nothing else. */
static void test_constants_are_exact(void **state)
{
	(void)state;
	static const double constants[] = {0.1, 1e300, -1e-300, 1e308, 5e-324, 0};
	for (size_t c = 0; c < sizeof constants / sizeof *constants; c++)
		for (size_t n = 1; n < 40; n++) {
			double values[40];
			for (size_t i = 0; i < n; i++)
				values[i] = constants[c];
			struct moments m = moments_of(values, n);
			assert_close(m.mean, constants[c], 0);
			assert_close(m.squares, 0, 0);
		}
}

static void test_join_equals_whole(void **state)
{
	(void)state;
	double values[100];
	for (size_t i = 0; i < 100; i++)
		values[i] = 1e6 + sin((double)i);
	struct moments whole = moments_of(values, 100);
	for (size_t cut = 0; cut <= 100; cut++) {
		struct moments joined =
			moments_join(moments_of(values, cut), moments_of(values + cut, 100 - cut));
		assert_int_equal(joined.n, 100);
		assert_close(joined.mean, whole.mean, 1e-15);
		assert_close(joined.squares, whole.squares, 1e-9);
	}
}

static void test_student_limits(void **state)
{
	(void)state;
	static const double dfs[] = {0.5, 1, 2, 7.3, 48, 1e3, 1e6, 1e9};
	for (size_t i = 0; i < sizeof dfs / sizeof *dfs; i++) {
		assert_close(student_two_sided(0, dfs[i]), 1, 0);
		assert_close(student_two_sided(HUGE_VAL, dfs[i]), 0, 0);
		assert_true(isnan(student_two_sided(nan(""), dfs[i])));
		double last = 1;
		for (double t = 0.01; t < 1e200; t *= 1.7) {
			double p = student_two_sided(t, dfs[i]);
			assert_true(p >= 0 && p <= last);
			last = p;
		}
	}
}

/* Closed forms: df = 1 is Cauchy's, df = 2 is algebraic, a huge df is normal. */
static void test_student_closed_forms(void **state)
{
	(void)state;
	for (double t = 0.001; t < 1e6; t *= 1.3) {
		assert_close(student_two_sided(t, 1), 2 / M_PI * atan2(1, t), 1e-12);
		double root = sqrt(2 + t * t);
		assert_close(student_two_sided(t, 2), 2 / (root * (root + t)), 1e-12);
		if (t < 30)
			assert_close(student_two_sided(t, 1e13), erfc(t * M_SQRT1_2), 1e-7);
	}
}

static void test_what_can_be_is_what_the_normal_tail_says(void **state)
{
	static const double limits[] = {0.5, 0.1, 0.05, 1e-2, 1e-3, 2.3e-5, 1e-6, 1e-9};
	(void)state;
	for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
		for (double t = 0; t < 8; t += 1.0 / 1024)
			assert_int_equal(student_can_be(t, limits[k]),
				erfc(t * M_SQRT1_2) <= limits[k] * (1 + 1e-9));
	assert_false(student_can_be(nan(""), 0.5));
}

static void test_at_most_agrees(void **state)
{
	(void)state;
	for (double df = 1; df < 1e5; df *= 2.3)
		for (double t = 0.01; t < 100; t *= 1.1)
			for (double p = 1e-12; p < 2; p *= 7)
				assert_int_equal(
					student_at_most(t, df, p), student_two_sided(t, df) <= p);
	assert_false(student_at_most(nan(""), 5, 1));
	double p = student_two_sided(2.5, 40);
	assert_true(student_at_most(-2.5, 40, p));
}

static void test_small_samples(void **state)
{
	(void)state;
	struct moments one = {.n = 1, .mean = 1}, other = {.n = 1, .mean = 2};
	struct moments five = {.n = 5, .mean = 2, .squares = 0}, same = {.n = 5, .mean = 2};
	assert_close(ttest_pooled(one, other).p, 1, 0);
	assert_close(ttest_welch(one, five).p, 1, 0);
	assert_close(ttest_pooled(one, five).p, 0, 0);
	assert_true(isnan(ttest_pooled(five, same).p));
	assert_close(ttest_welch(five, same).p, 1, 0);
	same.mean = 3;
	assert_close(ttest_welch(five, same).p, 0, 0);
	assert_true(ttest_welch(five, same).t < 0);
	assert_false(ttest_pooled_at_most(one, other, 0.5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_constants_are_exact),
		cmocka_unit_test(test_join_equals_whole),
		cmocka_unit_test(test_student_limits),
		cmocka_unit_test(test_student_closed_forms),
		cmocka_unit_test(test_what_can_be_is_what_the_normal_tail_says),
		cmocka_unit_test(test_at_most_agrees),
		cmocka_unit_test(test_small_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
