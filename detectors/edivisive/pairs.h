/*
 * The inner loops of the default profile: sums over all pairs of points, counts, medians of few
 * values. They are compiled twice from one source, without vector instructions and for AVX2, and
 * both builds give the same bits; pairs_best chooses at run time.
 *
 * No function allocates. Arrays that are written must not overlap those that are read, unless a
 * parameter is both.
 */
#ifndef DETECTORS_EDIVISIVE_PAIRS_H
#define DETECTORS_EDIVISIVE_PAIRS_H

#include <stddef.h>

struct split_terms {
	double whole, weight;
	const double *reciprocals; /* 1 / i at [i] */
};

/* Of the first differences of a sample: the sum and the largest of their sizes. */
struct sizes {
	double sum, largest;
};

enum { LIMITS = 5, KERNEL_PADDING = 7 };

struct pair_loops {
	/*
	 * left[j] = sum of |y[i] - y[j]| over i < j; right[i] = the same over j > i. n >= 4; the
	 * arrays have room for n rounded up to a multiple of four, and the values in the padding
	 * do not matter. O(n^2).
	 */
	void (*sum_distances)(const double *y, size_t n, double *left, double *right);

	/*
	 * The statistic of each split, 2 <= tau <= n - 2: replaces before[tau] by whole - weight
	 * (before[tau] / (tau - 1) + behind[tau] / (n - tau - 1)). Returns the largest. n >= 4.
	 */
	double (*split_statistics)(
		double *before, const double *behind, size_t n, const struct split_terms *terms);

	/* Sum over all n1 n2 pairs of the sign of after - before. */
	double (*sum_signs)(const double *before, size_t n1, const double *after, size_t n2);

	/*
	 * columns[j] = sum of 1 / (1 + (near[i] - near[j])^2) over from <= i < to, for j < to; near
	 * are the values less values[from], each at most 10^4 in size, in single precision: enough
	 * for those that are near to each other. All arrays are used up to KERNEL_PADDING beyond
	 * `to`; near[] must be finite there.
	 */
	void (*sum_kernel)(
		const double *values, size_t from, size_t to, float *near, float *columns);

	/* sizes[i] = |x[i + 1] - x[i]| for i < m. */
	struct sizes (*distances_to_next)(const double *x, size_t m, double *sizes);

	/* How many of the values are less than each limit. */
	void (*count_below)(
		const double *values, size_t n, const double limits[LIMITS], size_t below[LIMITS]);

	/* clipped[i] = x[i + 2], but at most `reach` from the median of x[i .. i + 4]; i < n. */
	void (*clip_to_medians)(const double *x, size_t n, double reach, double *clipped);
};

/* The fastest build that this machine supports, and the one without vector instructions. */
const struct pair_loops *pairs_best(void);
const struct pair_loops *pairs_plain(void);

#endif
