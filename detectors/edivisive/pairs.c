/*
 * The loops work in lanes of four with the compilers' portable vector types. These become vectors
 * of the target's width, and every element and every lane sees the same operations in the same
 * order.
 */
#include "detectors/edivisive/pairs.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 4 };

typedef double vector __attribute__((vector_size(32), aligned(8), may_alias));
typedef float halves __attribute__((vector_size(16), aligned(4), may_alias));
typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef int64_t counts __attribute__((vector_size(32)));
typedef counts loose_counts __attribute__((aligned(8), may_alias));

#define ALWAYS_INLINE static inline __attribute__((always_inline))
/* By lanes, where the comparison holds and where it does not. */
#define CHOSEN(where, yes, no) ((vector)(((counts)(yes) & (where)) | ((counts)(no) & ~(where))))
/* 1 + the square of the distances of some values to another. */
#define BEYOND_ONE(some, other) (1 + (some - (other)) * (some - (other)))
#define ALL_LANES ((counts){INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX})
/* Sizes in the lanes of the mask, 0 in the others. */
#define SIZES(difference, mask) ((vector)((counts)(difference) & (mask)))
/* A mask of the lanes below `limit`, -LANES <= limit <= 2 LANES. */
#define LANES_BELOW(limit) (*(const loose_counts *)(lane_masks + 2 * LANES - (limit)))
#define FIRST_AND_LAST(a, b) __builtin_shufflevector(a, b, 0, 1, 6, 7)
#define ORDER(a, b)                                                                                \
	do {                                                                                       \
		double low = a < b ? a : b, high = a < b ? b : a;                                  \
		a = low;                                                                           \
		b = high;                                                                          \
	} while (0)
#define EVEN_AND_ODD(a, b) __builtin_shufflevector(a, b, 0, 5, 2, 7)
#define TURNED(a, by) __builtin_shufflevector(a, a, by, (by + 1) % 4, (by + 2) % 4, (by + 3) % 4)

static const int64_t lane_masks[4 * LANES] = {
	INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

/*
 * Row i is the distances of point i to the points behind it. Each row is added to left[] element by
 * element. right[i] is the sum of row i in four lanes that begin at i + 1; up to three last
 * elements that fill no vector are added to the first lane. This defines the result to the bit.
 *
 * Four rows are done at once, so that left[] is read and written once for them. Their columns are
 * aligned to the first row, so the lanes of that row are those of the definition rotated by one,
 * those of the next row by two, and so on.
 */
struct rows {
	vector points; /* the points of these rows */
	vector sums[LANES];
};

/* For each row, the lanes of the last two vectors of columns that it adds by lanes. */
struct last_columns {
	size_t first;
	counts full[2][LANES];
	counts rests; /* of each row: how many elements follow those */
};

ALWAYS_INLINE void last_columns_of(size_t n, struct last_columns *last)
{
	last->first = (n - LANES + 1) / LANES * LANES;
	for (size_t k = 0; k < LANES; k++) {
		size_t rest = (n + LANES - 1 - k) % LANES;
		ptrdiff_t full = (ptrdiff_t)(n - last->first - rest);
		last->full[0][k] = LANES_BELOW(full);
		last->full[1][k] = LANES_BELOW(full - LANES);
		last->rests[k] = (int64_t)rest;
	}
}

/* Adds the distances of the rows to the points of four columns; `full` as in struct last_columns,
 * or NULL for all. */
ALWAYS_INLINE void add_columns(
	struct rows *rows, const double *columns, double *left, const counts *full)
{
	vector to = *(const vector *)columns, sum = *(const vector *)left;
	for (int k = 0; k < LANES; k++) {
		vector distances = SIZES(rows->points[k] - to, ALL_LANES);
		sum += distances;
		rows->sums[k] += full ? SIZES(distances, full[k]) : distances;
	}
	*(vector *)left = sum;
}

/* Starts the rows with their distances to each other. */
ALWAYS_INLINE void begin_rows(
	struct rows *rows, const double *points, double *left, const counts *full)
{
	vector sum = *(const vector *)left;
	rows->points = *(const vector *)points;
	for (int k = 0; k < LANES; k++) {
		vector distances =
			SIZES(rows->points[k] - rows->points, ALL_LANES & ~LANES_BELOW(k + 1));
		sum += distances;
		rows->sums[k] = full ? SIZES(distances, full[k]) : distances;
	}
	*(vector *)left = sum;
}

/* Writes the sums of the rows, including the elements behind their last vectors. */
ALWAYS_INLINE void end_rows(
	const struct rows *rows, const double *end, const struct last_columns *last, double *right)
{
	const vector *row = rows->sums;
	vector even01 = EVEN_AND_ODD(row[0], row[1]), even12 = EVEN_AND_ODD(row[1], row[2]);
	vector even23 = EVEN_AND_ODD(row[2], row[3]), even30 = EVEN_AND_ODD(row[3], row[0]);
	vector lane0 = FIRST_AND_LAST(even30, even12), lane1 = FIRST_AND_LAST(even23, even01);
	vector lane2 = FIRST_AND_LAST(even12, even30), lane3 = FIRST_AND_LAST(even01, even23);
	lane0 = TURNED(lane0, 1);
	lane1 = TURNED(lane1, 2);
	lane2 = TURNED(lane2, 3);
	for (int k = LANES - 1; k > 0; k--)
		lane0 += SIZES(rows->points - end[-k], (last->rests >= k) & ALL_LANES);
	*(vector *)right = (lane0 + lane1) + (lane2 + lane3);
}

ALWAYS_INLINE void sum_distances(const double *y, size_t n, double *left, double *right)
{
	struct last_columns last;
	struct rows rows;
	last_columns_of(n, &last);
	memset(left, 0, (n + LANES - 1) / LANES * LANES * sizeof(double));
	for (size_t i = 0; i < n; i += LANES) {
		size_t j = i + LANES;
		if (i < last.first)
			begin_rows(&rows, y + i, left + i, NULL);
		else
			begin_rows(&rows, y + i, left + i, last.full[(i - last.first) / LANES]);
		for (; j < last.first; j += LANES)
			add_columns(&rows, y + j, left + j, NULL);
		for (; j < n; j += LANES)
			add_columns(&rows, y + j, left + j, last.full[(j - last.first) / LANES]);
		end_rows(&rows, y + n, &last, right + i);
	}
}

ALWAYS_INLINE double sum_signs(const double *before, size_t n1, const double *after, size_t n2)
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

/* The reciprocals of four are added as one fraction, since a division takes as long as all else.
 * Their product stays below 10^35. */
ALWAYS_INLINE void sum_kernel(
	const double *values, size_t from, size_t to, float *near, float *columns)
{
	const vector most = (vector){0} + 1e4;
	for (size_t j = 0; j < to; j += LANES) {
		vector apart = *(const vector *)(values + j) - values[from];
		apart = CHOSEN(apart > most, most, apart);
		apart = CHOSEN(apart < -most, -most, apart);
		*(halves *)(near + j) = __builtin_convertvector(apart, halves);
	}
	for (size_t j = 0; j < to; j += 2 * LANES) {
		floats some = *(const floats *)(near + j), sum = {0};
		size_t i = from;
		for (; i + 4 <= to; i += 4) {
			floats a = BEYOND_ONE(some, near[i]), b = BEYOND_ONE(some, near[i + 1]);
			floats c = BEYOND_ONE(some, near[i + 2]);
			floats d = BEYOND_ONE(some, near[i + 3]), ab = a * b, cd = c * d;
			sum += ((a + b) * cd + (c + d) * ab) / (ab * cd);
		}
		for (; i < to; i++)
			sum += 1 / BEYOND_ONE(some, near[i]);
		*(floats *)(columns + j) = sum;
	}
}

/* The sum and the largest are formed in four lanes; elements that fill no vector go to the first.
 */
ALWAYS_INLINE struct sizes distances_to_next(const double *x, size_t m, double *sizes)
{
	double sums[LANES] = {0}, most[LANES] = {0};
	size_t i = 0;
	for (size_t j = 0; j < m; j++)
		sizes[j] = fabs(x[j + 1] - x[j]);
	for (; i + LANES <= m; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++) {
			double size = sizes[i + lane];
			sums[lane] += size;
			most[lane] = size > most[lane] ? size : most[lane];
		}
	for (; i < m; i++) {
		sums[0] += sizes[i];
		most[0] = sizes[i] > most[0] ? sizes[i] : most[0];
	}
	for (size_t lane = 1; lane < LANES; lane++)
		most[0] = most[lane] > most[0] ? most[lane] : most[0];
	return (struct sizes){(sums[0] + sums[1]) + (sums[2] + sums[3]), most[0]};
}

ALWAYS_INLINE void count_below(
	const double *values, size_t n, const double limits[LIMITS], size_t below[LIMITS])
{
	counts less[LIMITS] = {{0}};
	size_t i = 0;
	for (; i + LANES <= n; i += LANES) {
		vector some = *(const vector *)(values + i);
		for (int k = 0; k < LIMITS; k++)
			less[k] += some < limits[k];
	}
	for (int k = 0; k < LIMITS; k++)
		below[k] = (size_t) - (less[k][0] + less[k][1] + less[k][2] + less[k][3]);
	for (; i < n; i++)
		for (int k = 0; k < LIMITS; k++)
			below[k] += values[i] < limits[k];
}

ALWAYS_INLINE double median_of_five(const double *x)
{
	double a = x[0], b = x[1], c = x[2], d = x[3], e = x[4];
	ORDER(a, b);
	ORDER(d, e);
	ORDER(a, d); /* a is the least of four, */
	ORDER(b, e); /* e the largest: neither is the median */
	ORDER(b, c);
	ORDER(c, d);
	ORDER(b, c);
	return c;
}

ALWAYS_INLINE void clip_to_medians(const double *x, size_t n, double reach, double *clipped)
{
	for (size_t i = 0; i < n; i++) {
		double median = median_of_five(x + i), value = x[i + 2];
		double most = median + reach, least = median - reach;
		value = value > most ? most : value;
		clipped[i] = value < least ? least : value;
	}
}

ALWAYS_INLINE double split_statistics(
	double *before, const double *behind, size_t n, const struct split_terms *terms)
{
	const double *shares = terms->reciprocals;
	double whole = terms->whole, weight = terms->weight, lanes[LANES];
	size_t end = n - 1, i = 2;
	for (size_t tau = 2; tau < end; tau++)
		before[tau] = whole - weight * (before[tau] * shares[tau - 1] +
						       behind[tau] * shares[n - tau - 1]);
	for (size_t lane = 0; lane < LANES; lane++)
		lanes[lane] = before[2];
	for (; i + LANES <= end; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			lanes[lane] =
				before[i + lane] > lanes[lane] ? before[i + lane] : lanes[lane];
	for (; i < end; i++)
		lanes[0] = before[i] > lanes[0] ? before[i] : lanes[0];
	for (size_t lane = 1; lane < LANES; lane++)
		lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
	return lanes[0];
}

/* Compiles all loops for a target and lists them as `name`. */
#define BUILD(name, target)                                                                        \
	target static void sum_distances_##name(                                                   \
		const double *y, size_t n, double *left, double *right)                            \
	{                                                                                          \
		sum_distances(y, n, left, right);                                                  \
	}                                                                                          \
	target static double split_statistics_##name(                                              \
		double *before, const double *behind, size_t n, const struct split_terms *terms)   \
	{                                                                                          \
		return split_statistics(before, behind, n, terms);                                 \
	}                                                                                          \
	target static double sum_signs_##name(                                                     \
		const double *before, size_t n1, const double *after, size_t n2)                   \
	{                                                                                          \
		return sum_signs(before, n1, after, n2);                                           \
	}                                                                                          \
	target static void sum_kernel_##name(                                                      \
		const double *values, size_t from, size_t to, float *near, float *columns)         \
	{                                                                                          \
		sum_kernel(values, from, to, near, columns);                                       \
	}                                                                                          \
	target static struct sizes distances_to_next_##name(                                       \
		const double *x, size_t m, double *sizes)                                          \
	{                                                                                          \
		return distances_to_next(x, m, sizes);                                             \
	}                                                                                          \
	target static void count_below_##name(                                                     \
		const double *values, size_t n, const double limits[LIMITS], size_t below[LIMITS]) \
	{                                                                                          \
		count_below(values, n, limits, below);                                             \
	}                                                                                          \
	target static void clip_to_medians_##name(                                                 \
		const double *x, size_t n, double reach, double *clipped)                          \
	{                                                                                          \
		clip_to_medians(x, n, reach, clipped);                                             \
	}                                                                                          \
	static const struct pair_loops name = {sum_distances_##name, split_statistics_##name,      \
		sum_signs_##name, sum_kernel_##name, distances_to_next_##name, count_below_##name, \
		clip_to_medians_##name}

BUILD(plain, );

const struct pair_loops *pairs_plain(void)
{
	return &plain;
}

#if defined(__x86_64__)

BUILD(avx2, __attribute__((target("avx2"))));

const struct pair_loops *pairs_best(void)
{
	return __builtin_cpu_supports("avx2") ? &avx2 : &plain;
}

#else

const struct pair_loops *pairs_best(void)
{
	return &plain;
}

#endif
