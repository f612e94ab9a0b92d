/*
 * Kernel change-point detection (Harchaoui and Cappe 2007; Arlot, Celisse and Harchaoui 2019) with
 * an exact optimal partition by PELT (Killick, Fearnhead and Eckley 2012):
 * docs/design/algorithms.md section 6.2.
 */
#ifndef DETECTORS_KERNEL_H
#define DETECTORS_KERNEL_H

#include "detectors/detector.h"

struct kernel_options {
	double penalty; /* of a change, in ln n */
	int64_t min_size;
	double magnitude;
};

/*
 * The partition of n values into segments of at least `min_size` values with the least sum of the
 * segments' costs and of `penalty` for each cut. The cost of m values is m less the mean, over
 * them, of the sum of exp(-gamma d^2) to all m. Writes the cuts, ascending, and returns their
 * number, less than n. O(n) memory of the scratch; O(n^2) time if there are no cuts.
 */
size_t kernel_partition(const double *values, size_t n, double gamma, double penalty,
	size_t min_size, struct scratch *scratch, size_t *cuts);

/*
 * 1 / the median of the squared distances of all pairs of values, without those of 0 if they are
 * more than half; 0 if all values are equal, or so close that the square underflows. Uses the
 * scratch.
 */
double kernel_gamma(const double *values, size_t n, struct scratch *scratch);

extern const struct detector kernel_detector;

#endif
