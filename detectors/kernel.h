/*
 * Kernel change-point detection (Harchaoui and Cappe 2007; Arlot, Celisse and Harchaoui 2019) with
 * an exact optimal partition by PELT (Killick, Fearnhead and Eckley 2012).
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
 * The best partition of n values into segments of at least `min_size`: the least sum of the
 * segments' costs and of `penalty` for each cut. A segment costs its length less the mean, over its
 * values, of the sum of exp(-gamma d^2) to all of them. Writes the cuts, ascending, and returns
 * their number, less than n. Takes from `scratch`: O(n).
 */
size_t kernel_partition(const double *values, size_t n, double gamma, double penalty,
	size_t min_size, struct scratch *scratch, size_t *cuts);

/*
 * 1 / the median of the squared distances between all pairs of the n values, of those that are not
 * 0 where more than half are; 0 where all are equal, or so near to each other that a
 * double cannot tell the square. Takes from `scratch`.
 */
double kernel_gamma(const double *values, size_t n, struct scratch *scratch);

extern const struct detector kernel_detector;

#endif
