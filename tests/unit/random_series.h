/*
 * Seeded random series for property tests: every kind that e-divisive meets, and some it would
 * rather not.
 */
#ifndef TESTS_UNIT_RANDOM_SERIES_H
#define TESTS_UNIT_RANDOM_SERIES_H

#include <math.h>
#include <stdbool.h>

#include "tests/unit/random.h"

static inline double random_normal(uint64_t *state)
{
	return sqrt(-2 * log(random_unit(state) + 1e-300)) * cos(2 * M_PI * random_unit(state));
}

/* Base 100 with noise of a random kind, a few steps; sometimes outliers, ties, constants, missing
 * values, odd scales. */
static inline void random_series(uint64_t *state, double *values, size_t n)
{
	static const double scales[] = {1, 1, 1, 1e-3, 1e6, -1, 1e150, 1e-150, 1e300, 1e-300};
	double scale = scales[random_below(state, 10)], level = 100, last = 0;
	double noise = random_below(state, 6) == 0 ? 0 : 5 * random_unit(state);
	double memory = random_below(state, 3) == 0 ? 0.8 * random_unit(state) : 0;
	bool quantised = random_below(state, 5) == 0, ramp = random_below(state, 8) == 0;
	double missing = random_below(state, 3) == 0 ? 0.3 * random_unit(state) : 0;
	double wild = random_below(state, 4) == 0 ? 0.05 : 0;
	for (size_t i = 0; i < n; i++) {
		if (random_below(state, 60) == 0)
			level *= 1 + 0.3 * (random_unit(state) - 0.5);
		if (ramp)
			level += 0.2;
		last = memory * last + random_normal(state) * noise;
		double value = level + last;
		if (random_unit(state) < wild)
			value *= 1 + 3 * random_unit(state);
		if (quantised)
			value = rint(value / 5) * 5;
		values[i] = random_unit(state) < missing ? nan("") : value * scale;
		if (wild > 0 && random_below(state, 300) == 0)
			values[i] = HUGE_VAL;
	}
}

#endif
