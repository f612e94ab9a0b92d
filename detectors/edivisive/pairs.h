/*
 * The loops in which the default profile spends its time: sums over all pairs of points, counts,
 * medians of few. Each comes in a plain build and in one for AVX2, of the same source and the same
 * to the bit; what the machine can do is asked at run time.
 */
#ifndef DETECTORS_EDIVISIVE_PAIRS_H
#define DETECTORS_EDIVISIVE_PAIRS_H

#include <stddef.h>

/* left[j] = sum of |y[i] - y[j]| over i < j; right[i] = that over j > i. n >= 4; the arrays have
 * room for n rounded up to a multiple of four, and what lies there does not matter. */
void sum_distances(const double *y, size_t n, double *left, double *right);

struct split_terms {
	double whole, weight;
	const double *reciprocals; /* 1 / i at [i] */
};

/* Puts the statistic of each split to before[tau], 2 <= tau <= n - 2: whole - weight (before[tau] /
 * (tau - 1) + behind[tau] / (n - tau - 1)). Returns the largest. n >= 4. */
double split_statistics(
	double *before, const double *behind, size_t n, const struct split_terms *terms);

/* Sum over all pairs of the sign of after - before. */
double sum_signs(const double *before, size_t n1, const double *after, size_t n2);

struct sizes {
	double sum, largest;
};

/* sizes[i] = |x[i + 1] - x[i]| for i < m. */
struct sizes distances_to_next(const double *x, size_t m, double *sizes);

enum { LIMITS = 5 };

/* How many of the values are less than each limit. */
void count_below(const double *values, size_t n, const double limits[LIMITS], size_t below[LIMITS]);

/* clipped[i] = x[i + 2], but at most `reach` from the median of x[i .. i + 4]; i < n. */
void clip_to_medians(const double *x, size_t n, double reach, double *clipped);

/* The plain builds, for comparison. */
void sum_distances_plain(const double *y, size_t n, double *left, double *right);
double split_statistics_plain(
	double *before, const double *behind, size_t n, const struct split_terms *terms);
double sum_signs_plain(const double *before, size_t n1, const double *after, size_t n2);
struct sizes distances_to_next_plain(const double *x, size_t m, double *sizes);
void count_below_plain(
	const double *values, size_t n, const double limits[LIMITS], size_t below[LIMITS]);
void clip_to_medians_plain(const double *x, size_t n, double reach, double *clipped);

#endif
