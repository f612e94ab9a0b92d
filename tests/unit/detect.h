/*
 * For tests of detectors: one call with a scratch of its own, and the options from a table.
 */
#ifndef TESTS_UNIT_DETECT_H
#define TESTS_UNIT_DETECT_H

#include <stdlib.h>

#include "detectors/detector.h"

enum { DETECT_MOST = 20000 };

static struct change found[DETECT_MOST];

/* The changes are in `found`. */
static inline size_t detect_samples(
	const struct detector *detector, const void *options, const struct samples *samples)
{
	struct scratch *scratch = scratch_new();
	size_t count = detector->detect(samples, options, scratch, found);
	scratch_free(scratch);
	return count;
}

static inline size_t detect(
	const struct detector *detector, const void *options, const double *values, size_t n)
{
	const struct samples samples = {.values = values, .n = n};
	return detect_samples(detector, options, &samples);
}

/* What every detector owes to whatever it is given. */
static inline void assert_changes_sound(size_t count, const double *values, size_t n)
{
	for (size_t i = 0; i < count; i++) {
		assert_true(found[i].index >= 1 && found[i].index < n);
		assert_true(i == 0 || found[i].index > found[i - 1].index);
		assert_true(isfinite(values[found[i].index]));
		assert_true(found[i].pvalue >= 0 && found[i].pvalue <= 1);
		assert_true(found[i].count_before > 0 && found[i].count_after > 0);
		assert_false(isnan(found[i].mean_before) || isnan(found[i].mean_after));
	}
}

/* Constants, nothing, nothing that exists, single points, any kind of series at any scale. */
static inline void assert_survives(const struct detector *detector, const void *options)
{
	static double values[1000];
	static const double constants[] = {0, 0.1, 1e300, -1e-300, 5e-324};
	for (size_t c = 0; c < 5; c++)
		for (size_t n = 0; n <= 100; n += n < 8 ? 1 : 23) {
			for (size_t i = 0; i < n; i++)
				values[i] = constants[c];
			assert_int_equal(detect(detector, options, values, n), 0);
		}
	for (size_t i = 0; i < 50; i++)
		values[i] = i % 2 ? nan("") : -HUGE_VAL;
	assert_int_equal(detect(detector, options, values, 50), 0);
	for (uint64_t seed = 1; seed <= 100; seed++) {
		uint64_t state = seed;
		size_t n = 1 + random_below(&state, 300);
		random_series(&state, values, n);
		assert_changes_sound(detect(detector, options, values, n), values, n);
	}
}

/* Base 100 with normal noise of 1 and a step at each multiple of `every`, up and down in turn. */
static inline void noisy_steps(uint64_t seed, double *values, size_t n, size_t every, double step)
{
	uint64_t state = seed * 7919 + 1;
	for (size_t i = 0; i < n; i++)
		values[i] = 100 + (i / every % 2 ? step : 0) + random_normal(&state);
}

#endif
