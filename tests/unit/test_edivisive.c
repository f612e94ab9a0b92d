/*
 * What e-divisive promises beside the reference results: edges, invariances, options, and that the
 * fast search and the plain one are the same.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <string.h>

#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/permutation.h"
#include "detectors/edivisive/search.h"
#include "detectors/finite.h"
#include "detectors/loops.h"
#include "tests/unit/close.h"
#include "tests/unit/random_series.h"
#include "tests/unit/same_change.h"

enum { MOST = 1000 };

static struct change found[MOST];

static size_t detect_with(const struct edivisive_options *options, const double *values, size_t n)
{
	struct scratch *scratch = scratch_new();
	struct samples samples = {.values = values, .n = n};
	size_t count = edivisive_detector.detect(&samples, options, scratch, found);
	scratch_free(scratch);
	return count;
}

static size_t detect(enum edivisive_profile profile, const double *values, size_t n)
{
	struct edivisive_options options = {
		.window = 50, .p_value = 0.001, .profile = (int)profile};
	return detect_with(&options, values, n);
}

static void noisy_step(uint64_t seed, double *values, size_t n, size_t at, double share)
{
	uint64_t state = seed * 7919 + 1;
	for (size_t i = 0; i < n; i++)
		values[i] = (i < at ? 100 : 100 * (1 + share)) + random_normal(&state);
}

static void test_registry(void **state)
{
	(void)state;
	assert_ptr_equal(detectors[0], &detector_find("edivisive")->plugin);
	assert_ptr_equal(detector_find("edivisive_permutation"), &edivisive_permutation_detector);
	assert_null(detector_find("edivisiv"));
}

static void test_options(void **state)
{
	(void)state;
	struct edivisive_options options;
	field_defaults(edivisive_detector.plugin.fields, &options);
	assert_int_equal(options.window, 50);
	assert_close(options.p_value, 0.001, 0);
	assert_close(options.magnitude, 0, 0);
	assert_int_equal(options.profile, EDIVISIVE_DEFAULT);
	static const char *const bad[][2] = {{"window", "1"}, {"window_len", "0"},
		{"window", "1e7"}, {"p_value", "0"}, {"max_pvalue", "2"}, {"p-value", "-1"},
		{"magnitude", "-0.1"}, {"min_magnitude", "nan"}, {"profile", "hunter"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error error;
		const struct field *field = field_find(edivisive_detector.plugin.fields, bad[i][0]);
		assert_non_null(field);
		assert_false(field_parse(field, &options, bad[i][1], NULL, &error));
	}
	struct error error;
	const struct field *profile = field_find(edivisive_detector.plugin.fields, "profile");
	assert_true(field_parse(profile, &options, "otava", NULL, &error));
	assert_int_equal(options.profile, EDIVISIVE_OTAVA);
}

static void test_too_short_or_constant(void **state)
{
	(void)state;
	double values[200];
	static const double constants[] = {0, 0.1, 1e300, -1e-300, 5e-324};
	for (int profile = EDIVISIVE_DEFAULT; profile <= EDIVISIVE_OTAVA; profile++)
		for (size_t c = 0; c < 5; c++)
			for (size_t n = 0; n <= 200; n += n < 8 ? 1 : 24) {
				for (size_t i = 0; i < n; i++)
					values[i] = constants[c];
				assert_int_equal(
					detect((enum edivisive_profile)profile, values, n), 0);
			}
	for (size_t i = 0; i < 200; i++)
		values[i] = nan("");
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 200), 0);
	assert_int_equal(detect(EDIVISIVE_OTAVA, values, 200), 0);
	const double two[] = {1, 100};
	assert_int_equal(detect(EDIVISIVE_DEFAULT, two, 2), 0);
	assert_int_equal(detect(EDIVISIVE_OTAVA, two, 2), 0);
}

static void test_one_one_five(void **state)
{
	(void)state;
	const double values[] = {1, 1, 5};
	assert_int_equal(detect(EDIVISIVE_OTAVA, values, 3), 1);
	assert_int_equal(found[0].index, 2);
	assert_close(found[0].pvalue, 0, 0);
	assert_close(change_percent(&found[0]), 400, 1e-15);
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 3), 0);
}

static void test_constant_step(void **state)
{
	(void)state;
	double values[60];
	for (size_t i = 0; i < 60; i++)
		values[i] = i < 25 ? 0.1 : 0.3;
	for (int profile = EDIVISIVE_DEFAULT; profile <= EDIVISIVE_OTAVA; profile++) {
		assert_int_equal(detect((enum edivisive_profile)profile, values, 60), 1);
		assert_int_equal(found[0].index, 25);
		if (profile == EDIVISIVE_OTAVA)
			assert_close(found[0].pvalue, 0, 0);
		else
			assert_true(found[0].pvalue > 0 && found[0].pvalue < 1e-15);
		assert_close(found[0].mean_before, 0.1, 0);
		assert_close(found[0].mean_after, 0.3, 0);
		assert_close(found[0].stddev_before, 0, 0);
		assert_close(found[0].magnitude, 2, 1e-15);
		assert_int_equal(found[0].count_before, 25);
		assert_int_equal(found[0].count_after, 35);
	}
}

/* No variance is no certainty: the more often a value was kept, and the more often another one is,
 * the surer. */
static void test_zeros_and_ones(void **state)
{
	(void)state;
	double values[60] = {0}, last = 1;
	for (size_t ones = 2; ones <= 10; ones++) {
		values[50] = values[49 + ones] = 1;
		assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 50 + ones), 1);
		assert_int_equal(found[0].index, 50);
		assert_true(found[0].pvalue < last && found[0].pvalue > 0);
		if (ones == 2)
			assert_true(found[0].pvalue > 1e-7);
		last = found[0].pvalue;
	}
	const double few[] = {7, 7, 7, 7, 7, 9, 9, 9, 9, 9};
	assert_int_equal(detect(EDIVISIVE_DEFAULT, few, 10), 1);
	assert_int_equal(found[0].index, 5);
}

static void test_infinity(void **state)
{
	(void)state;
	double values[120];
	noisy_step(3, values, 120, 60, 0.1);
	values[30] = HUGE_VAL;
	values[90] = -HUGE_VAL;
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 120), 1);
	assert_int_equal(found[0].index, 60);
	assert_int_equal(found[0].count_before, 59);
	assert_true(isfinite(found[0].mean_after));
	values[60] = HUGE_VAL;
	assert_int_equal(detect(EDIVISIVE_OTAVA, values, 120), 0);
}

static void test_outlier_is_no_change(void **state)
{
	(void)state;
	double values[200];
	noisy_step(5, values, 200, 200, 0);
	values[80] = 1000;
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 200), 0);
	values[199] = 1000;
	values[0] = 1e15;
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 200), 0);
	for (size_t i = 100; i < 200; i++)
		values[i] += 10;
	assert_int_equal(detect(EDIVISIVE_DEFAULT, values, 200), 1);
	assert_int_equal(found[0].index, 100);
}

/* Found where it is, in number and place, over many seeds; and hardly anything where nothing is. */
static void test_accuracy(void **state)
{
	(void)state;
	size_t close = 0, extra = 0, false_alarms = 0;
	double values[200];
	for (uint64_t seed = 1; seed <= 500; seed++) {
		noisy_step(seed, values, 200, 60 + seed % 80, 0.04);
		size_t count = detect(EDIVISIVE_DEFAULT, values, 200);
		for (size_t i = 0; i < count; i++) {
			size_t at = 60 + seed % 80;
			bool near = found[i].index + 2 >= at && found[i].index <= at + 2;
			close += near;
			extra += !near;
		}
		noisy_step(seed + 1000, values, 200, 200, 0);
		false_alarms += detect(EDIVISIVE_DEFAULT, values, 200);
	}
	assert_true(close >= 495 && close <= 500);
	assert_true(extra <= 5);
	assert_true(false_alarms <= 10); /* 0.1 in 1,000 points */
}

/* The same over many chunks. */
static void test_accuracy_of_long_series(void **state)
{
	(void)state;
	enum { N = 3000, EVERY = 300, SERIES = 20 };
	static double values[N];
	static struct change room[N];
	size_t close = 0, all = 0, false_alarms = 0;
	struct scratch *scratch = scratch_new();
	struct edivisive_options options = {.window = 50, .p_value = 0.001};
	struct samples samples = {.values = values, .n = N};
	for (uint64_t seed = 1; seed <= SERIES; seed++) {
		noisy_step(seed, values, N, N, 0);
		false_alarms += edivisive_detector.detect(&samples, &options, scratch, room);
		for (size_t i = 0; i < N; i++)
			values[i] += i / EVERY % 2 ? 4 : 0;
		size_t count = edivisive_detector.detect(&samples, &options, scratch, room);
		for (size_t i = 0; i < count; i++)
			close += (room[i].index + 2) % EVERY <= 4;
		all += count;
	}
	scratch_free(scratch);
	size_t changes = SERIES * (N / EVERY - 1);
	assert_true(close >= changes - 2 && close <= changes);
	assert_true(all <= close + 6);
	assert_true(false_alarms <= 6); /* 0.1 in 1,000 points */
}

static void assert_same_indexes(const size_t *expected, size_t n, size_t count, const char *how)
{
	if (count != n)
		fail_msg("%s: %zu change points instead of %zu", how, count, n);
	for (size_t i = 0; i < n; i++)
		if (found[i].index != expected[i])
			fail_msg("%s: index %zu instead of %zu", how, found[i].index, expected[i]);
}

static void test_invariance(void **state)
{
	(void)state;
	enum { N = 700 };
	double values[N], changed[N];
	size_t total = 0;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t random = seed;
		double level = 0;
		for (size_t i = 0; i < N; i++) {
			level += random_below(&random, 80) == 0 ? 6 * random_normal(&random) : 0;
			values[i] = level + random_normal(&random);
		}
		size_t count = detect(EDIVISIVE_DEFAULT, values, N), expected[N];
		for (size_t i = 0; i < count; i++)
			expected[i] = found[i].index;
		total += count;
		static const double factors[] = {1e-300, 1e300, -1, 0x1p-900, 0x1p900, 3};
		for (size_t f = 0; f < 6; f++) {
			double mean = count ? found[0].mean_after : 0;
			for (size_t i = 0; i < N; i++)
				changed[i] = values[i] * factors[f];
			size_t got = detect(EDIVISIVE_DEFAULT, changed, N);
			assert_same_indexes(expected, count, got, "scaled");
			if (f > 0)
				continue;
			for (size_t i = 0; i < count; i++)
				assert_true(isfinite(found[i].stddev_before) &&
					    found[i].stddev_before > 0);
			if (count > 0)
				assert_close(found[0].mean_after, mean * 1e-300, 1e-9);
		}
		for (size_t i = 0; i < N; i++)
			changed[i] = values[i] + 1e6;
		assert_same_indexes(
			expected, count, detect(EDIVISIVE_DEFAULT, changed, N), "shifted");
	}
	assert_true(total > 500);
}

/* Missing values change nothing but the count of places. */
static void test_missing_values(void **state)
{
	(void)state;
	enum { N = 500 };
	double values[N], thinned[N];
	size_t places[N], total = 0;
	static struct change all[MOST];
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t random = seed;
		size_t n = 0;
		for (size_t i = 0; i < N; i++) {
			double value = (i / 120 % 2 ? 100 : 105) + random_normal(&random);
			values[i] = random_below(&random, 4) == 0 ? nan("") : value;
			if (isnan(values[i]))
				continue;
			places[n] = i;
			thinned[n++] = value;
		}
		size_t count = detect(EDIVISIVE_DEFAULT, values, N);
		memcpy(all, found, count * sizeof(*found));
		assert_int_equal(detect(EDIVISIVE_DEFAULT, thinned, n), count);
		for (size_t i = 0; i < count; i++) {
			found[i].index = places[found[i].index];
			found[i].place_from = places[found[i].place_from];
			found[i].place_to = places[found[i].place_to];
			found[i].cause_from = places[found[i].cause_from];
			found[i].cause_to = places[found[i].cause_to];
			assert_true(same_change(&found[i], &all[i]));
		}
		total += count;
	}
	assert_true(total > 600);
}

static void test_options_matter(void **state)
{
	(void)state;
	double values[200];
	noisy_step(12, values, 200, 100, 0.05);
	for (int profile = EDIVISIVE_DEFAULT; profile <= EDIVISIVE_OTAVA; profile++) {
		struct edivisive_options options = {
			.window = 50, .p_value = 0.001, .profile = profile};
		assert_int_equal(detect_with(&options, values, 200), 1);
		assert_int_equal(found[0].index, 100);
		assert_true(found[0].pvalue < 1e-30);
		options.magnitude = 0.1;
		assert_int_equal(detect_with(&options, values, 200), 0);
		options.magnitude = 0.04;
		options.p_value = 1e-200;
		assert_int_equal(detect_with(&options, values, 200), 0);
		options.p_value = 0.001;
		options.window = 1000000;
		assert_int_equal(detect_with(&options, values, 200), 1);
		options.window = 2;
		assert_true(detect_with(&options, values, 200) < 200);
		options.p_value = 1;
		assert_true(detect_with(&options, values, 200) < 200);
	}
}

/* Levels of 100, then so many percent more, in noise of 1%: from 60 on, from 80 on, from 130 on. */
static size_t detect_levels(uint64_t seed, const double percent[3], double magnitude)
{
	struct edivisive_options options = {.window = 50, .p_value = 0.001, .magnitude = magnitude};
	double values[200];
	uint64_t random = seed * 7919 + 1;
	for (size_t i = 0; i < 200; i++) {
		double rise = i < 60 ? 0 : i < 80 ? percent[0] : i < 130 ? percent[1] : percent[2];
		values[i] = 100 + rise + random_normal(&random);
	}
	return detect_with(&options, values, 200);
}

/* The least magnitude decides what is reported, not what is found; small steps that add up are
 * reported once they do. */
static void test_magnitude_is_a_filter(void **state)
{
	static const double back_and_up[3] = {12, 0, 7}, stairs[3] = {6, 6, 12};
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		assert_int_equal(detect_levels(seed, back_and_up, 0), 3);
		double pvalue = found[0].pvalue, size = found[0].size;
		assert_int_equal(detect_levels(seed, back_and_up, 0.09), 2);
		assert_in_range(found[0].index, 59, 61);
		assert_in_range(found[1].index, 79, 81);
		assert_close(found[0].pvalue, pvalue, 0);
		assert_close(found[0].size, size, 0);
		assert_int_equal(detect_levels(seed, stairs, 0), 2);
		assert_int_equal(detect_levels(seed, stairs, 0.09), 1);
		assert_in_range(found[0].index, 129, 131);
		assert_int_equal(detect_levels(seed, stairs, 0.2), 0);
	}
}

static void test_every_point_is_significant(void **state)
{
	(void)state;
	static double values[MOST];
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t random = seed;
		random_series(&random, values, MOST);
		size_t count = detect(EDIVISIVE_DEFAULT, values, MOST);
		for (size_t i = 0; i < count; i++) {
			assert_true(found[i].pvalue < 0.001);
			assert_true(found[i].index > 0 && found[i].index < MOST);
			assert_true(i == 0 || found[i].index > found[i - 1].index);
			assert_true(i == 0 || found[i].count_before == found[i - 1].count_after);
			assert_true(found[i].count_before >= 2 && found[i].count_after >= 2);
		}
	}
}

static void test_searches_agree_to_the_bit(void **state)
{
	(void)state;
	enum { N = 300 };
	struct scratch *scratch = scratch_new();
	struct search plain = search_new(N, &loops_plain, scratch);
	struct search fast = search_new(N, loops_best(), scratch);
	if (plain.loops == fast.loops) {
		scratch_free(scratch);
		skip("this machine has no AVX2: nothing to compare");
	}
	double values[N];
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		uint64_t random = seed;
		size_t n = seed <= 300 ? seed : 1 + random_below(&random, 120);
		random_series(&random, values, n);
		for (size_t i = 0; i < n; i++)
			values[i] = isfinite(values[i]) ? values[i] : 7;
		struct split a = search_split(&plain, values, n);
		struct split b = search_split(&fast, values, n);
		assert_int_equal(a.tau, b.tau);
		assert_memory_equal(&a.q, &b.q, sizeof(double));
		for (size_t tau = 1; tau < n; tau++)
			assert_memory_equal(&plain.best[tau], &fast.best[tau], sizeof(double));
	}
	scratch_free(scratch);
}

/* What detectors/loops.c defines, value by value. */
static void sum_by_definition(const double *y, size_t n, double *left, double *right)
{
	memset(left, 0, n * sizeof(double));
	for (size_t i = 0; i < n; i++) {
		double lanes[4] = {0};
		size_t whole = (n - i - 1) / 4 * 4;
		for (size_t k = 0; i + 1 + k < n; k++) {
			double distance = fabs(y[i] - y[i + 1 + k]);
			left[i + 1 + k] += distance;
			lanes[k < whole ? k % 4 : 0] += distance;
		}
		right[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
	}
}

static void scaled_series(uint64_t *random, double *values, size_t n)
{
	double raw[MOST];
	random_series(random, raw, n);
	for (size_t i = 0; i < n; i++)
		raw[i] = isfinite(raw[i]) ? raw[i] : 7;
	finite_scale(raw, n, values);
}

static void test_pair_sums_agree_to_the_bit(void **state)
{
	(void)state;
	enum { N = 124 };
	double values[N] = {0}, left[N], right[N], other_left[N], other_right[N];
	for (uint64_t seed = 1; seed <= 1500; seed++) {
		uint64_t random = seed;
		size_t n = 4 + random_below(&random, N - 7), half = n / 2;
		scaled_series(&random, values, n);
		sum_by_definition(values, n, other_left, other_right);
		loops_best()->sum_distances(values, n, left, right);
		assert_memory_equal(left, other_left, n * sizeof(double));
		assert_memory_equal(right, other_right, n * sizeof(double));
		loops_plain.sum_distances(values, n, left, right);
		assert_memory_equal(left, other_left, n * sizeof(double));
		assert_memory_equal(right, other_right, n * sizeof(double));
		double signs = 0;
		for (size_t i = 0; i < half; i++)
			for (size_t j = half; j < n; j++)
				signs += (values[j] > values[i]) - (values[j] < values[i]);
		assert_close(
			loops_best()->sum_signs(values, half, values + half, n - half), signs, 0);
		assert_close(
			loops_plain.sum_signs(values, half, values + half, n - half), signs, 0);
	}
}

/* The sums of the kernel: those of its definition but for single precision, and the same to the bit
 * in both builds. */
static void test_kernel_sums_agree(void **state)
{
	(void)state;
	enum { N = 130, ROOM = N + KERNEL_PADDING };
	double values[ROOM] = {0};
	float near[ROOM] = {0}, plain[ROOM], fast[ROOM];
	for (uint64_t seed = 1; seed <= 500; seed++) {
		uint64_t random = seed;
		size_t to = 2 + random_below(&random, N - 1), from = random_below(&random, to);
		scaled_series(&random, values, to);
		for (size_t i = 0; i < to; i++)
			values[i] *= seed % 5 ? 20 : 1e9;
		loops_plain.sum_kernel(values, from, to, near, plain);
		loops_best()->sum_kernel(values, from, to, near, fast);
		assert_memory_equal(plain, fast, to * sizeof(float));
		for (size_t j = 0; seed % 5 && j < to; j++) {
			double sum = 0;
			for (size_t i = from; i < to; i++)
				sum += 1 / (1 + (values[i] - values[j]) * (values[i] - values[j]));
			assert_close((double)plain[j], sum, 1e-4);
		}
	}
}

static void test_split_statistics_agree_to_the_bit(void **state)
{
	(void)state;
	enum { N = 120 };
	double shares[N], left[N], right[N], plain[N], fast[N];
	for (size_t i = 0; i < N; i++)
		shares[i] = 1 / (double)i;
	for (uint64_t seed = 1; seed <= 500; seed++) {
		uint64_t random = seed;
		size_t n = 4 + random_below(&random, N - 4);
		struct split_terms terms = {.whole = 3, .weight = 1.5, .reciprocals = shares};
		scaled_series(&random, left, n);
		scaled_series(&random, right, n);
		memcpy(plain, left, n * sizeof(double));
		memcpy(fast, left, n * sizeof(double));
		double best = loops_plain.split_statistics(plain, right, n, &terms),
		       largest = -HUGE_VAL;
		assert_true(loops_best()->split_statistics(fast, right, n, &terms) == best);
		assert_memory_equal(plain, fast, n * sizeof(double));
		for (size_t i = 2; i <= n - 2; i++) {
			double q =
				3 - 1.5 * (left[i] * shares[i - 1] + right[i] * shares[n - i - 1]);
			assert_true(plain[i] == q);
			largest = q > largest ? q : largest;
		}
		assert_true(largest == best);
	}
}

static void test_sizes_and_medians_agree_to_the_bit(void **state)
{
	(void)state;
	enum { N = 80 };
	double values[N], plain[N], fast[N];
	for (uint64_t seed = 1; seed <= 500; seed++) {
		uint64_t random = seed;
		size_t n = 5 + random_below(&random, N - 5);
		double reach = 0.1 * random_unit(&random);
		scaled_series(&random, values, n);
		struct sizes one = loops_best()->distances_to_next(values, n - 1, fast);
		struct sizes other = loops_plain.distances_to_next(values, n - 1, plain);
		assert_memory_equal(plain, fast, (n - 1) * sizeof(double));
		assert_true(one.sum == other.sum && one.largest == other.largest);
		loops_best()->clip_to_medians(values, n - 4, reach, fast);
		loops_plain.clip_to_medians(values, n - 4, reach, plain);
		assert_memory_equal(plain, fast, (n - 4) * sizeof(double));
	}
}

static size_t permute(const double *values, size_t n, int64_t seed, double p_value)
{
	struct edivisive_permutation_options options;
	field_defaults(edivisive_permutation_detector.plugin.fields, &options);
	options.seed = seed;
	options.p_value = p_value;
	struct scratch *scratch = scratch_new();
	struct samples samples = {.values = values, .n = n};
	size_t count = edivisive_permutation_detector.detect(&samples, &options, scratch, found);
	scratch_free(scratch);
	return count;
}

static void test_permutation(void **state)
{
	(void)state;
	double values[120];
	noisy_step(1, values, 120, 50, 0.05);
	values[10] = nan("");
	size_t count = permute(values, 120, 1, 0.01);
	assert_int_equal(count, 1);
	assert_int_equal(found[0].index, 50);
	assert_close(found[0].pvalue, 1.0 / 200, 1e-15);
	assert_int_equal(found[0].count_before, 49);
	struct change first = found[0];
	assert_int_equal(permute(values, 120, 1, 0.01), 1);
	assert_true(same_change(&first, &found[0]));
	/* A smaller p takes more permutations, however few are asked for. */
	assert_int_equal(permute(values, 120, 1, 0.001), 1);
	assert_close(found[0].pvalue, 0.001, 1e-12);
	for (size_t i = 0; i < 120; i++)
		values[i] *= 1e300;
	assert_int_equal(permute(values, 120, 1, 0.01), 1);
	assert_int_equal(found[0].index, 50);
	for (size_t i = 0; i < 120; i++)
		values[i] = 4;
	assert_int_equal(permute(values, 120, 1, 0.05), 0);
	assert_int_equal(permute(values, 0, 1, 0.05), 0);
	size_t alarms = 0;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		noisy_step(seed, values, 60, 60, 0);
		alarms += permute(values, 60, 1, 0.05) > 0;
	}
	assert_true(alarms <= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registry),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_too_short_or_constant),
		cmocka_unit_test(test_one_one_five),
		cmocka_unit_test(test_constant_step),
		cmocka_unit_test(test_zeros_and_ones),
		cmocka_unit_test(test_infinity),
		cmocka_unit_test(test_outlier_is_no_change),
		cmocka_unit_test(test_accuracy),
		cmocka_unit_test(test_accuracy_of_long_series),
		cmocka_unit_test(test_invariance),
		cmocka_unit_test(test_missing_values),
		cmocka_unit_test(test_options_matter),
		cmocka_unit_test(test_magnitude_is_a_filter),
		cmocka_unit_test(test_every_point_is_significant),
		cmocka_unit_test(test_searches_agree_to_the_bit),
		cmocka_unit_test(test_pair_sums_agree_to_the_bit),
		cmocka_unit_test(test_kernel_sums_agree),
		cmocka_unit_test(test_split_statistics_agree_to_the_bit),
		cmocka_unit_test(test_sizes_and_medians_agree_to_the_bit),
		cmocka_unit_test(test_permutation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
