/*
 * The groups against all partitions tried out, and the levels of series with excursions.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/modes.h"
#include "detectors/scratch.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"

#include "tests/unit/detect.h"

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;
	return (one > other) - (one < other);
}

static double squares_of(const double *values, size_t n)
{
	double mean = 0, sum = 0;
	for (size_t i = 0; i < n; i++)
		mean += values[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sum;
}

/* The least sum of squares of k groups, by trying every end of the last but one. */
static double least_squares(const double *sorted, size_t n, size_t k)
{
	if (k == 1)
		return squares_of(sorted, n);
	double least = HUGE_VAL;
	for (size_t from = k - 1; from < n; from++)
		least = fmin(least,
			least_squares(sorted, from, k - 1) + squares_of(sorted + from, n - from));
	return least;
}

static void test_partition(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();
	for (uint64_t seed = 1; seed <= 100; seed++) {
		double values[25];
		uint64_t random = seed;
		size_t n = 5 + random_below(&random, 21);
		for (size_t i = 0; i < n; i++)
			values[i] = (double)random_below(&random, 4) + 0.1 * random_normal(&random);
		qsort(values, n, sizeof(double), by_size);
		scratch_reset(scratch);
		struct modes_partition *partition = modes_partition(values, n, 5, scratch);
		for (size_t k = 1; k <= 5; k++) {
			size_t starts[5];
			double sum = 0;
			modes_starts(partition, k, starts);
			assert_int_equal(starts[0], 0);
			for (size_t g = 0; g < k; g++)
				sum += squares_of(values + starts[g],
					(g + 1 < k ? starts[g + 1] : n) - starts[g]);
			double least = least_squares(values, n, k);
			assert_close(sum, least, 1e-9);
			assert_true(fabs(modes_squares(partition, k) - least) < 1e-9);
		}
	}
	scratch_free(scratch);
}

static struct modes_options defaults(void)
{
	struct modes_options options;
	field_defaults(modes_detector.plugin.fields, &options);
	return options;
}

/* Levels by letter: a is 100, b 120, c 140; a little noise. */
static size_t detect_letters(const char *letters, int64_t window)
{
	double values[200];
	struct modes_options options = defaults();
	options.window = window;
	uint64_t random = 9;
	size_t n = strlen(letters);
	for (size_t i = 0; i < n; i++)
		values[i] = 100 + 20 * (letters[i] - 'a') + 0.3 * random_normal(&random);
	return detect(&modes_detector, &options, values, n);
}

static void test_excursions(void **state)
{
	(void)state;
	static const struct {
		const char *letters;
		int64_t window;
		size_t count, first;
	} cases[] = {
		{"aaaaaaaaaaaaaaaaaaaa", 6, 0, 0}, {"aaaaaaaaaabbbbbbbbbb", 6, 1, 10},
		{"aaaaaaaaaabaaaaaaaaa", 6, 0, 0},      /* one run */
		{"aaaaaaaaaabbbbaaaaaaaa", 6, 0, 0},    /* 4 + 2 <= 6 */
		{"aaaaaaaaaabbbbbaaaaaaaa", 6, 2, 10},  /* 5 + 2 > 6 */
		{"aaaaaaaaaabbbbbaaaaaaaa", 7, 0, 0},   /* wider */
		{"aaaaaaaaaaaaabbbb", 6, 0, 0},         /* pending */
		{"aaaaaaaaaaaaabbbbb", 6, 1, 13},       /* long enough */
		{"aaaaaaaaaaaabbcccccccc", 6, 1, 12},   /* the way up is the new level's */
		{"aaaaaaaaaaaabbaccccccccc", 6, 1, 15}, /* shortest first, to the nearer level */
		{"bbaaaaaaaaaaaaaaaaaa", 6, 0, 0},      /* at the beginning */
		{"abababababababababab", 4, 0, 0},      /* never rests */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t count = detect_letters(cases[i].letters, cases[i].window);
		if (count != cases[i].count || (count > 0 && found[0].index != cases[i].first))
			fail_msg("%s: %zu change points, the first at %zu", cases[i].letters, count,
				count ? found[0].index : 0);
	}
}

static void test_levels(void **state)
{
	(void)state;
	double values[120];
	struct modes_options options = defaults();
	noisy_steps(5, values, 120, 30, 20);
	assert_int_equal(detect(&modes_detector, &options, values, 120), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(found[i].index, 30 * (i + 1));
	assert_true(found[0].pvalue < 1e-20);
	options.magnitude = 0.5;
	assert_int_equal(detect(&modes_detector, &options, values, 120), 0);
	for (size_t i = 0; i < 120; i++)
		values[i] = i < 60 ? 100 : 101;
	options = defaults();
	assert_int_equal(detect(&modes_detector, &options, values, 120), 0); /* within 2% */
	options.apart = 0.005;
	assert_int_equal(detect(&modes_detector, &options, values, 120), 1);
	assert_int_equal(found[0].index, 60);
}

/* Points of a run count as one, by their mean. */
static void test_runs(void **state)
{
	(void)state;
	enum { RUNS = 40, EACH = 3 };
	double values[RUNS * EACH];
	size_t runs[RUNS * EACH];
	uint64_t random = 3;
	for (size_t i = 0; i < RUNS * EACH; i++) {
		runs[i] = 7 + i / EACH;
		values[i] = (i / EACH < 20 ? 100 : 110) + random_normal(&random);
	}
	struct modes_options options = defaults();
	const struct samples samples = {.values = values, .n = RUNS * EACH, .runs = runs};
	assert_int_equal(detect_samples(&modes_detector, &options, &samples), 1);
	assert_int_equal(found[0].index, 20 * EACH);
	assert_int_equal(found[0].count_before, 20 * EACH);
}

static void test_edges(void **state)
{
	(void)state;
	struct modes_options options = defaults();
	assert_survives(&modes_detector, &options);
	options.modes = MODES_MOST;
	options.window = 2;
	options.apart = 0;
	assert_survives(&modes_detector, &options);
	options.modes = 1;
	options.window = 1000;
	assert_survives(&modes_detector, &options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_partition),
		cmocka_unit_test(test_excursions),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
