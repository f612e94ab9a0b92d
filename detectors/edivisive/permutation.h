/*
 * e-divisive as first published (Matteson and James 2014): on the whole series, tested by
 * permutations. docs/design/algorithms.md section 6.1.
 */
#ifndef DETECTORS_EDIVISIVE_PERMUTATION_H
#define DETECTORS_EDIVISIVE_PERMUTATION_H

#include "detectors/detector.h"

struct edivisive_permutation_options {
	int64_t permutations; /* raised as p_value requires: the least p is 1 / (permutations + 1)
			       */
	double p_value;
	int64_t seed;
};

extern const struct detector edivisive_permutation_detector;

#endif
