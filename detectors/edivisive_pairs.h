/*
 * Sums over all pairs of points, and counts, where the default profile spends its time. Both come
 * in a plain build and in one for AVX2, of the same source and the same to the bit; what the
 * machine can do is asked at run time.
 */
#ifndef DETECTORS_EDIVISIVE_PAIRS_H
#define DETECTORS_EDIVISIVE_PAIRS_H

#include <stddef.h>

/* left[j] = sum of |y[i] - y[j]| over i < j; right[i] = that over j > i. */
void sum_distances(const double *y, size_t n, double *left, double *right);

/* Sum over all pairs of the sign of after - before. */
double sum_signs(const double *before, size_t n1, const double *after, size_t n2);

struct below {
	size_t less, equal;
};

/* How many of the values are less than the limit, and equal to it. */
struct below count_below(const double *values, size_t n, double limit);

/* The plain builds, for comparison. */
void sum_distances_plain(const double *y, size_t n, double *left, double *right);
struct below count_below_plain(const double *values, size_t n, double limit);
double sum_signs_plain(const double *before, size_t n1, const double *after, size_t n2);

#endif
