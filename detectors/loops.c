/*
 * The loops work in lanes with the compilers' portable vector types. These become vectors of the
 * target's width, and every element and every lane sees the same operations in the same order.
 */
#include "detectors/loops.h"

#include <math.h>
#include <string.h>

#include "detectors/edivisive/search.h"

enum { LANES = 4, DOTS_COLUMNS = 3 };

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

static void sum_distances(const double *y, size_t n, double *left, double *right)
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

static double sum_signs(const double *before, size_t n1, const double *after, size_t n2)
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
static void sum_kernel(const double *values, size_t from, size_t to, float *near, float *columns)
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
static struct sizes distances_to_next(const double *x, size_t m, double *sizes)
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

static void count_below(
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

static void clip_to_medians(const double *x, size_t n, double reach, double *clipped)
{
	for (size_t i = 0; i < n; i++) {
		double median = median_of_five(x + i), value = x[i + 2];
		double most = median + reach, least = median - reach;
		value = value > most ? most : value;
		clipped[i] = value < least ? least : value;
	}
}

static double split_statistics(
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

/*
 * The sweep of e-divisive's search (see edivisive/search.h). With a = tau - s, b = kappa - tau, m =
 * a + b, A and B the sums of distances within X and within Y, C those between them,
 *
 *     Q = 2/m C - 2b/(m(a-1)) A - 2a/(m(b-1)) B
 *
 * and C = W(kappa) - A - B, W being the sum over all pairs of [s, kappa), this is
 *
 *     Q = 2/m W - 2(m-1)/m (A/(a-1) + B/(b-1)).
 *
 * So only B(tau, kappa) is updated: kappa grows by one point, and each B(tau) grows by the sum of
 * that point's distances to the points from tau on, a running sum from the newest to the oldest.
 * A(tau) = B(s, tau) and W(kappa) = B(s, kappa) are known from before. All of it is elementwise in
 * tau except the running sum of distances, which is elementwise in kappa: blocks of four kappas by
 * four taus are transposed between the two.
 */

ALWAYS_INLINE void transpose(vector rows[LANES])
{
	vector even01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 2, 6);
	vector odd01 = __builtin_shufflevector(rows[0], rows[1], 1, 5, 3, 7);
	vector even23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 2, 6);
	vector odd23 = __builtin_shufflevector(rows[2], rows[3], 1, 5, 3, 7);
	rows[0] = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
	rows[1] = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
	rows[2] = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
	rows[3] = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
}

/*
 * B at tau .. tau + 3 for the four or eight kappas that `points` complete, from the last row, which
 * holds B for the kappa before; `running` are the sums of distances to what lies behind. If tau is
 * the place of points[diagonal], only distances to earlier points count, and B begins at 0. Eight
 * are two chains of additions that run side by side.
 */
ALWAYS_INLINE void sweep_taus(const struct search *search, const vector *points, size_t fours,
	size_t tau, size_t diagonal, vector *running)
{
	vector b = {0};
	if (diagonal == fours)
		b = *(const vector *)(search->right[SEARCH_ROWS - 1] + tau);
	for (size_t f = diagonal % fours; f < fours; f++) {
		double *const *rows = search->right + LANES * f;
		vector sums[LANES];
		for (int k = LANES - 1; k >= 0; k--) {
			counts earlier =
				f == diagonal ? ALL_LANES & ~LANES_BELOW(k + 1) : ALL_LANES;
			running[f] += SIZES(search->values[tau + (size_t)k] - points[f], earlier);
			sums[k] = running[f];
		}
		transpose(sums);
		for (size_t k = 0; k < LANES; k++) {
			b += sums[k];
			*(vector *)(rows[k] + tau) = b;
		}
	}
}

ALWAYS_INLINE void sweep_kappas(const struct search *search, size_t j, size_t fours)
{
	vector points[SEARCH_ROWS / LANES], running[SEARCH_ROWS / LANES];
	for (size_t f = 0; f < fours; f++) {
		points[f] = *(const vector *)(search->values + j + LANES * f);
		running[f] = (vector){0};
	}
	for (size_t f = fours; f-- > 0;)
		sweep_taus(search, points, fours, j + LANES * f, f, running);
	for (size_t tau = j; tau > 0; tau -= LANES)
		sweep_taus(search, points, fours, tau - LANES, fours, running);
}

/* Q for the four kappas from `first` on; those beyond n get NaN, which is never the best. */
ALWAYS_INLINE void sweep_statistics(
	const struct search *search, double *const *rows, size_t first, size_t n)
{
	double whole[LANES], weight[LANES];
	const double *reciprocals[LANES];
	for (size_t k = 0; k < LANES; k++) {
		size_t kappa = first + k;
		double sum = rows[k][0], half = search->halves[kappa];
		reciprocals[k] = search->reciprocals + (search->capacity + LANES - kappa);
		search->left[kappa] = sum * reciprocals[k][0];
		whole[k] = kappa > n ? nan("") : sum * half;
		weight[k] = 2 - half;
	}
	for (size_t tau = 0; tau < first + LANES - 1; tau += LANES) {
		vector left = *(const vector *)(search->left + tau);
		vector best = *(const vector *)(search->best + tau);
		for (size_t k = 0; k < LANES; k++) {
			vector right = *(const vector *)(rows[k] + tau) *
				       *(const vector *)(reciprocals[k] + tau);
			vector q = whole[k] - weight[k] * (left + right);
#if defined(__AVX__)
			best = (vector)__builtin_ia32_maxpd256(q, best);
#else
			best = CHOSEN(q > best, q, best);
#endif
		}
		*(vector *)(search->best + tau) = best;
	}
}

static void sweep(const struct search *search, const double *values, size_t n)
{
	memcpy(search->values, values, n * sizeof(double));
	for (size_t i = n; i % SEARCH_ROWS != 0; i++)
		search->values[i] = values[n - 1];
	search->left[0] = 0;
	for (size_t j = 0; j < n; j += SEARCH_ROWS) {
		if (n - j <= LANES)
			sweep_kappas(search, j, 1);
		else
			sweep_kappas(search, j, SEARCH_ROWS / LANES);
		for (size_t at = 0; at < SEARCH_ROWS && j + at < n; at += LANES)
			sweep_statistics(search, search->right + at, j + at + 1, n);
	}
}

/* Always the same order, like all else here. */
ALWAYS_INLINE float add_lanes(floats lanes)
{
	halves four = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3) +
		      __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
	return (four[0] + four[2]) + (four[1] + four[3]);
}

/* The products of DOTS_ROWS rows with `count` columns: the running sums stay in registers. */
ALWAYS_INLINE void dots_block(const float *const *rows, const float *columns, size_t count,
	size_t stride, size_t at, float *const *out)
{
	floats sums[DOTS_ROWS][DOTS_COLUMNS] = {{{0}}};
	for (size_t i = 0; i < stride; i += FLOAT_LANES)
		for (size_t row = 0; row < DOTS_ROWS; row++)
			for (size_t column = 0; column < count; column++)
				sums[row][column] +=
					*(const floats *)(rows[row] + i) *
					*(const floats *)(columns + (at + column) * stride + i);
	for (size_t row = 0; row < DOTS_ROWS; row++)
		for (size_t column = 0; column < count; column++)
			out[row][at + column] = add_lanes(sums[row][column]);
}

/* Three columns at a time: twelve sums, for which seven loads feed twelve multiplications, and
 * columns that do not fit into the nearest cache are read once for four rows, so that memory
 * bandwidth is not the limit. */
static void dots(const float *const *rows, const float *columns, size_t count, size_t stride,
	float *const *out)
{
	size_t at = 0;
	for (; at + DOTS_COLUMNS <= count; at += DOTS_COLUMNS)
		dots_block(rows, columns, DOTS_COLUMNS, stride, at, out);
	for (; at < count; at++)
		dots_block(rows, columns, 1, stride, at, out);
}

static float square(const float *a, const float *b, size_t stride)
{
	floats sum = {0};
	for (size_t i = 0; i < stride; i += FLOAT_LANES) {
		floats apart = *(const floats *)(a + i) - *(const floats *)(b + i);
		sum += apart * apart;
	}
	return add_lanes(sum);
}

#define ALL                                                                                        \
	{                                                                                          \
		sum_distances, split_statistics, sum_signs, sum_kernel, distances_to_next,         \
			count_below, clip_to_medians, sweep, dots, square                          \
	}

#if defined(LOOPS_FOR_AVX2)
const struct loops loops_avx2 = ALL;
#else
const struct loops loops_plain = ALL;

const struct loops *loops_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return &loops_avx2;
#endif
	return &loops_plain;
}
#endif
