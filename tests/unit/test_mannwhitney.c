/*
 * The Mann-Whitney test against all orders written out, against closed forms, and against the
 * normal approximation where there are too many to count.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/mannwhitney.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

static struct scratch *scratch;

static double u_of(const double *values, size_t n, unsigned chosen)
{
	double u = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (chosen >> i & 1 && !(chosen >> j & 1))
				u += values[i] > values[j] ? 1 : values[i] == values[j] ? 0.5 : 0;
	return u;
}

/* Twice the share of choices of n1 values whose U is as far out, on the side of the middle that it
 * is on. */
static double counted_p(const double *values, size_t n1, size_t n2)
{
	size_t n = n1 + n2, all = 0, low = 0, high = 0;
	double u = u_of(values, n, (1U << n1) - 1);
	for (unsigned chosen = 0; chosen < 1U << n; chosen++) {
		if ((size_t)__builtin_popcount(chosen) != n1)
			continue;
		double other = u_of(values, n, chosen);
		all++;
		low += other <= u;
		high += other >= u;
	}
	double p = 2 * (double)(2 * u <= (double)(n1 * n2) ? low : high) / (double)all;
	return p < 1 ? p : 1;
}

static void test_against_counting(void **state)
{
	(void)state;
	uint64_t random = 11;
	for (int trial = 0; trial < 300; trial++) {
		double values[10];
		size_t n1 = 1 + random_below(&random, 5), n2 = 1 + random_below(&random, 5);
		size_t kinds = 2 + random_below(&random, 12);
		for (size_t i = 0; i < n1 + n2; i++)
			values[i] = (double)random_below(&random, kinds);
		struct mannwhitney test =
			mannwhitney_test(values, n1, values + n1, n2, true, scratch);
		assert_close(test.u, u_of(values, n1 + n2, (1U << n1) - 1), 0);
		assert_close(test.p, counted_p(values, n1, n2), 1e-12);
	}
}

static void test_separated(void **state)
{
	(void)state;
	double values[100], ways = 1; /* n over n/2 */
	for (size_t i = 0; i < 100; i++)
		values[i] = (double)i;
	for (size_t n = 1; n <= 50; n++) {
		ways = ways * (double)(2 * n) * (double)(2 * n - 1) / (double)(n * n);
		struct mannwhitney low = mannwhitney_test(values, n, values + n, n, true, scratch);
		struct mannwhitney high = mannwhitney_test(values + n, n, values, n, true, scratch);
		assert_close(low.p, 2 / ways, 1e-12);
		assert_close(high.p, low.p, 0);
		assert_close(low.u, 0, 0);
		assert_close(high.u, (double)(n * n), 0);
	}
}

/* Uneven sizes and ties up to the limits of what is counted. */
static void test_near_the_normal_approximation(void **state)
{
	(void)state;
	uint64_t random = 5;
	for (int trial = 0; trial < 200; trial++) {
		double values[100];
		bool tied = trial % 2;
		size_t most = tied ? 25 : 50, n1 = 15 + random_below(&random, most - 14);
		size_t n2 = 15 + random_below(&random, most - 14);
		for (size_t i = 0; i < n1 + n2; i++)
			values[i] = tied ? (double)random_below(&random, 12)
					 : random_unit(&random) + (i < n1 ? 0.1 : 0);
		double exact = mannwhitney_test(values, n1, values + n1, n2, true, scratch).p;
		double normal = mannwhitney_test(values, n1, values + n1, n2, false, scratch).p;
		assert_true(fabs(exact - normal) < 0.02);
	}
}

static void test_edges(void **state)
{
	(void)state;
	const double values[] = {3, 3, 3, HUGE_VAL, nan("")};
	assert_close(mannwhitney_test(values, 0, values, 3, true, scratch).p, 1, 0);
	assert_close(mannwhitney_test(values, 3, values, 0, true, scratch).p, 1, 0);
	struct mannwhitney flat = mannwhitney_test(values, 2, values, 3, true, scratch);
	assert_true(flat.flat);
	assert_close(flat.p, 1, 0);
	assert_true(mannwhitney_test(values + 3, 1, values + 4, 1, true, scratch).flat);
	assert_close(mannwhitney_test(values, 3, values + 3, 2, true, scratch).p, 0.2, 1e-15);
	double many[600];
	for (size_t i = 0; i < 600; i++)
		many[i] = 7;
	struct mannwhitney large = mannwhitney_test(many, 300, many + 300, 300, true, scratch);
	assert_true(large.flat);
	assert_close(large.p, 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_counting),
		cmocka_unit_test(test_separated),
		cmocka_unit_test(test_near_the_normal_approximation),
		cmocka_unit_test(test_edges),
	};
	scratch = scratch_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_free(scratch);
	return failed;
}
