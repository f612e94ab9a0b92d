/*
 * The pruned search against a plain dynamic programme, gamma against all pairs, and what the
 * detector finds.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/kernel.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

enum { MOST = 150 };

static double segment_cost(const double *values, size_t from, size_t to, double gamma)
{
	double sum = 0;
	for (size_t i = from; i < to; i++)
		for (size_t j = from; j < to; j++)
			sum += exp(-gamma * (values[i] - values[j]) * (values[i] - values[j]));
	return (double)(to - from) - sum / (double)(to - from);
}

/* The least cost of any partition, every segment's cost worked out by itself. */
static double least_cost(
	const double *values, size_t n, double gamma, double penalty, size_t min_size)
{
	double best[MOST + 1];
	best[0] = -penalty;
	for (size_t end = 1; end <= n; end++) {
		best[end] = HUGE_VAL;
		for (size_t from = 0; from + min_size <= end; from++)
			best[end] = fmin(best[end],
				best[from] + penalty + segment_cost(values, from, end, gamma));
	}
	return best[n];
}

static double cost_of(const double *values, size_t n, double gamma, double penalty,
	const size_t *cuts, size_t count)
{
	double cost = penalty * (double)count;
	for (size_t i = 0; i <= count; i++)
		cost += segment_cost(
			values, i > 0 ? cuts[i - 1] : 0, i < count ? cuts[i] : n, gamma);
	return cost;
}

static void test_against_plain_programme(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();
	size_t all = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed;
		double values[MOST];
		size_t cuts[MOST], n = 2 + random_below(&random, 60);
		size_t min_size = 1 + random_below(&random, 4);
		double gamma = 0.02 + random_unit(&random), penalty = 4 * random_unit(&random);
		if (n < min_size)
			n = min_size;
		noisy_steps(seed, values, n, 5 + random_below(&random, 20), 4);
		size_t count = kernel_partition(values, n, gamma, penalty, min_size, scratch, cuts);
		for (size_t i = 0; i <= count; i++)
			assert_true(
				(i < count ? cuts[i] : n) - (i > 0 ? cuts[i - 1] : 0) >= min_size);
		assert_close(cost_of(values, n, gamma, penalty, cuts, count),
			least_cost(values, n, gamma, penalty, min_size), 1e-9);
		all += count;
	}
	assert_true(all > 60);
	scratch_free(scratch);
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;
	return (one > other) - (one < other);
}

static double plain_gamma(const double *values, size_t n)
{
	static double squares[MOST * MOST];
	size_t count = 0, zeros = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			double distance = values[i] - values[j];
			squares[count++] = distance * distance;
			zeros += distance == 0;
		}
	qsort(squares, count, sizeof(double), by_size);
	size_t skip = zeros > count / 2 ? zeros : 0;
	const double *from = squares + skip;
	count -= skip;
	return count ? 1 / (0.5 * (from[(count - 1) / 2] + from[count / 2])) : 0;
}

static void test_gamma(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();
	double values[MOST];
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t random = seed;
		size_t n = 1 + random_below(&random, MOST), kinds = 1 + random_below(&random, 40);
		for (size_t i = 0; i < n; i++)
			values[i] = seed % 2 ? random_normal(&random)
					     : (double)random_below(&random, kinds);
		assert_close(kernel_gamma(values, n, scratch), plain_gamma(values, n), 1e-14);
	}
	scratch_free(scratch);
}

static struct kernel_options defaults(void)
{
	struct kernel_options options;
	field_defaults(kernel_detector.plugin.fields, &options);
	return options;
}

static void test_steps(void **state)
{
	(void)state;
	double values[300];
	struct kernel_options options = defaults();
	size_t close = 0, all = 0, wrong = 0;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		noisy_steps(seed, values, 300, 60, 4);
		size_t count = detect(&kernel_detector, &options, values, 300);
		for (size_t i = 0; i < count; i++)
			close += (found[i].index + 2) % 60 <= 4;
		all += count;
		noisy_steps(seed, values, 300, 300, 0);
		wrong += detect(&kernel_detector, &options, values, 300);
	}
	assert_int_equal(all, 200);
	assert_true(close >= 196);
	assert_int_equal(wrong, 0);
}

static void test_numbers(void **state)
{
	(void)state;
	double values[60];
	struct kernel_options options = defaults();
	for (size_t i = 0; i < 60; i++)
		values[i] = i < 25 ? 0.1 : 0.3;
	assert_int_equal(detect(&kernel_detector, &options, values, 60), 1);
	assert_int_equal(found[0].index, 25);
	assert_close(found[0].mean_before, 0.1, 0);
	assert_close(found[0].mean_after, 0.3, 0);
	assert_close(found[0].magnitude, 2, 1e-15);
	assert_close(found[0].pvalue, 0, 0);
	assert_int_equal(found[0].count_before, 25);
	assert_int_equal(found[0].count_after, 35);
	options.magnitude = 2.1;
	assert_int_equal(detect(&kernel_detector, &options, values, 60), 0);
}

/* Small changes are found, and not reported. */
static void test_magnitude(void **state)
{
	(void)state;
	double values[400];
	struct kernel_options options = defaults();
	static const double levels[] = {100, 120, 126, 100};
	uint64_t random = 4;
	for (size_t i = 0; i < 400; i++)
		values[i] = levels[i / 100] + random_normal(&random);
	assert_int_equal(detect(&kernel_detector, &options, values, 400), 3);
	options.magnitude = 0.1;
	assert_int_equal(detect(&kernel_detector, &options, values, 400), 2);
	assert_in_range(found[0].index, 99, 101);
	assert_in_range(found[1].index, 299, 301);
	assert_in_range(found[0].count_after, 99, 101); /* up to the step that is not reported */
}

/* In chunks; the steps are found across their borders, and once. */
static void test_long_series(void **state)
{
	(void)state;
	enum { N = 18000, EVERY = 1500 };
	static double values[N];
	struct kernel_options options = defaults();
	noisy_steps(1, values, N, EVERY, 6);
	size_t count = detect(&kernel_detector, &options, values, N), close = 0;
	for (size_t i = 0; i < count; i++)
		close += (found[i].index + 3) % EVERY <= 6;
	assert_int_equal(count, N / EVERY - 1);
	assert_int_equal(close, count);
}

static void test_edges(void **state)
{
	(void)state;
	struct kernel_options options = defaults();
	assert_survives(&kernel_detector, &options);
	options.min_size = 1;
	options.penalty = 0.01;
	assert_survives(&kernel_detector, &options);
	options.min_size = 10000;
	assert_survives(&kernel_detector, &options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_plain_programme),
		cmocka_unit_test(test_gamma),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_magnitude),
		cmocka_unit_test(test_long_series),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
