/*
 * The permutation test: its p against all orders of a short series, its options, several changes.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/edivisive/permutation.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

enum { SHORT = 8 };

static double within(const double *values, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			sum += fabs(values[i] - values[j]);
	return sum;
}

/* The largest q-hat of all tau and kappa, term by term, and its tau. */
static double plain_q(const double *values, size_t n, size_t *best_tau)
{
	double best = -HUGE_VAL;
	for (size_t tau = 1; tau < n; tau++)
		for (size_t kappa = tau + 1; kappa <= n; kappa++) {
			double a = (double)tau, b = (double)(kappa - tau), between = 0;
			for (size_t i = 0; i < tau; i++)
				for (size_t j = tau; j < kappa; j++)
					between += fabs(values[i] - values[j]);
			double q = 2 / (a + b) * between;
			if (tau > 1)
				q -= 2 * b / ((a + b) * (a - 1)) * within(values, tau);
			if (kappa - tau > 1)
				q -= 2 * a / ((a + b) * (b - 1)) *
				     within(values + tau, kappa - tau);
			if (q > best) {
				best = q;
				*best_tau = tau;
			}
		}
	return best;
}

struct count {
	double q;
	size_t all, reached;
};

/* Goes through all orders of values[from..]. */
static void count_orders(double *values, size_t from, struct count *count)
{
	size_t tau;
	if (from == SHORT) {
		count->all++;
		count->reached += plain_q(values, SHORT, &tau) >= count->q * (1 - 1e-12);
		return;
	}
	for (size_t i = from; i < SHORT; i++) {
		double first = values[from];
		values[from] = values[i];
		values[i] = first;
		count_orders(values, from + 1, count);
		values[i] = values[from];
		values[from] = first;
	}
}

static void test_against_all_orders(void **state)
{
	(void)state;
	static const double cases[][SHORT] = {
		{1.1, 2, 1.4, 1.7, 3.9, 3.1, 4.2, 3.3},
		{1.1, 5, 1.4, 3.7, 3.9, 2.1, 4.2, 3.3},
		{2.5, 2.1, 2.9, 2.2, 2.6, 2.4, 2.8, 6},
	};
	for (size_t c = 0; c < 3; c++) {
		double values[SHORT];
		size_t tau = 0;
		memcpy(values, cases[c], sizeof values);
		struct count count = {.q = plain_q(values, SHORT, &tau)};
		count_orders(values, 0, &count);
		assert_int_equal(count.all, 40320);
		double exact = (double)count.reached / (double)count.all;
		const struct edivisive_permutation_options options = {20000, 1, 7};
		size_t n = detect(&edivisive_permutation_detector, &options, cases[c], SHORT);
		double p = -1;
		for (size_t i = 0; i < n; i++)
			if (found[i].index == tau)
				p = found[i].pvalue;
		double deviation = sqrt(exact * (1 - exact) / 20000);
		if (!(fabs(p - exact) < 4 * deviation + 1.0 / 20001))
			fail_msg("p is %g, and %g over all orders", p, exact);
		assert_close(p * 20001, rint(p * 20001), 1e-9);
	}
}

static void test_options(void **state)
{
	(void)state;
	struct error error;
	struct edivisive_permutation_options options;
	const struct field *fields = edivisive_permutation_detector.plugin.fields;
	field_defaults(fields, &options);
	assert_int_equal(options.permutations, 199);
	assert_close(options.p_value, 0.05, 0);
	assert_int_equal(options.seed, 1);
	static const char *const bad[][2] = {{"permutations", "0"}, {"permutations", "1e9"},
		{"p_value", "0"}, {"max_pvalue", "1.5"}, {"seed", "-1"}, {"seed", "x"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(field_parse(
			field_find(fields, bad[i][0]), &options, bad[i][1], NULL, &error));
}

static void test_several_changes(void **state)
{
	(void)state;
	double values[150];
	struct edivisive_permutation_options options = {199, 0.01, 1};
	noisy_steps(6, values, 150, 50, 8);
	for (int64_t seed = 1; seed <= 5; seed++) {
		options.seed = seed;
		assert_int_equal(detect(&edivisive_permutation_detector, &options, values, 150), 2);
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(found[i].index, 50 * (i + 1));
			assert_close(found[i].pvalue, 1.0 / 200, 1e-15);
			assert_int_equal(found[i].count_after, 50);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_all_orders),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_several_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
