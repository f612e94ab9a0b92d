/*
 * Loops in lanes of four, with the compilers' portable vector types: they come out as vectors of
 * whatever width the target has, and every element and every lane sees the same operations in the
 * same order.
 */
#include "detectors/edivisive_pairs.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4 };

typedef double vector __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t counts __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void sum_distances_here(
	const double *y, size_t n, double *left, double *right)
{
	const counts no_sign = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
	memset(left, 0, n * sizeof(double));
	for (size_t i = 0; i < n; i++) {
		double from = y[i];
		vector lanes = {0};
		size_t j = i + 1;
		for (; j + LANES <= n; j += LANES) {
			vector difference = from - *(const vector *)(y + j);
			vector distance = (vector)((counts)difference & no_sign);
			*(vector *)(left + j) += distance;
			lanes += distance;
		}
		for (; j < n; j++) {
			double distance = fabs(from - y[j]);
			left[j] += distance;
			lanes[0] += distance;
		}
		right[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
	}
}

static inline __attribute__((always_inline)) double sum_signs_here(
	const double *before, size_t n1, const double *after, size_t n2)
{
	counts lanes = {0};
	for (size_t i = 0; i < n1; i++) {
		double from = before[i];
		size_t j = 0;
		for (; j + LANES <= n2; j += LANES) {
			vector to = *(const vector *)(after + j);
			lanes += (to < from) - (to > from);
		}
		for (; j < n2; j++)
			lanes[0] += (after[j] > from) - (after[j] < from);
	}
	return (double)(lanes[0] + lanes[1] + lanes[2] + lanes[3]);
}

static inline __attribute__((always_inline)) struct below count_below_here(
	const double *values, size_t n, double limit)
{
	counts less = {0}, equal = {0};
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		vector some = *(const vector *)(values + i);
		less -= some < limit;
		equal -= some == limit;
	}
	for (; i < n; i++) {
		less[0] += values[i] < limit;
		equal[0] += values[i] == limit;
	}
	return (struct below){
		.less = (size_t)(less[0] + less[1] + less[2] + less[3]),
		.equal = (size_t)(equal[0] + equal[1] + equal[2] + equal[3]),
	};
}

void sum_distances_plain(const double *y, size_t n, double *left, double *right)
{
	sum_distances_here(y, n, left, right);
}

double sum_signs_plain(const double *before, size_t n1, const double *after, size_t n2)
{
	return sum_signs_here(before, n1, after, n2);
}

struct below count_below_plain(const double *values, size_t n, double limit)
{
	return count_below_here(values, n, limit);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static void sum_distances_avx2(
	const double *y, size_t n, double *left, double *right)
{
	sum_distances_here(y, n, left, right);
}

__attribute__((target("avx2"))) static double sum_signs_avx2(
	const double *before, size_t n1, const double *after, size_t n2)
{
	return sum_signs_here(before, n1, after, n2);
}

__attribute__((target("avx2"))) static struct below count_below_avx2(
	const double *values, size_t n, double limit)
{
	return count_below_here(values, n, limit);
}

struct below count_below(const double *values, size_t n, double limit)
{
	if (__builtin_cpu_supports("avx2"))
		return count_below_avx2(values, n, limit);
	return count_below_plain(values, n, limit);
}

void sum_distances(const double *y, size_t n, double *left, double *right)
{
	if (__builtin_cpu_supports("avx2"))
		sum_distances_avx2(y, n, left, right);
	else
		sum_distances_plain(y, n, left, right);
}

double sum_signs(const double *before, size_t n1, const double *after, size_t n2)
{
	if (__builtin_cpu_supports("avx2"))
		return sum_signs_avx2(before, n1, after, n2);
	return sum_signs_plain(before, n1, after, n2);
}

#else

struct below count_below(const double *values, size_t n, double limit)
{
	return count_below_plain(values, n, limit);
}

void sum_distances(const double *y, size_t n, double *left, double *right)
{
	sum_distances_plain(y, n, left, right);
}

double sum_signs(const double *before, size_t n1, const double *after, size_t n2)
{
	return sum_signs_plain(before, n1, after, n2);
}

#endif
