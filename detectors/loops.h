/*
 * The inner loops of detection and of clustering: sums over all pairs of points or rows, counts,
 * medians of few values. loops.c is compiled twice, without vector instructions and for AVX2, and
 * both builds give the same bits; loops_best chooses at run time.
 *
 * No function allocates. Arrays that are written must not overlap those that are read, unless a
 * parameter is both.
 */
#ifndef DETECTORS_LOOPS_H
#define DETECTORS_LOOPS_H

#include <stddef.h>

struct split_terms {
	double whole, weight;
	const double *reciprocals; /* 1 / i at [i] */
};

/* Of the first differences of a sample: the sum and the largest of their sizes. */
struct sizes {
	double sum, largest;
};

enum { LIMITS = 5, KERNEL_PADDING = 7, FLOAT_LANES = 8, DOTS_ROWS = 4 };

struct search;

struct loops {
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

	/* The statistic of all splits of n values and all kappa: writes the best of each tau. */
	void (*sweep)(const struct search *search, const double *values, size_t n);

	/* Dot products of DOTS_ROWS rows with each of `count` consecutive columns. A row or column
	 * is `stride` floats, a multiple of FLOAT_LANES, padded with zeros. */
	void (*dots)(const float *const *rows, const float *columns, size_t count, size_t stride,
		float *const *out);

	/* The squared distance of two rows. */
	float (*square)(const float *a, const float *b, size_t stride);
};

/* The build without vector instructions, that for AVX2 (only on x86-64), and the fastest one that
 * this machine supports. */
extern const struct loops loops_plain, loops_avx2;
const struct loops *loops_best(void);

#endif
