/*
 * With a = tau - s, b = kappa - tau, m = a + b, A and B the sums of distances within X and within
 * Y, C those between them,
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
 * tau except the running sum of distances, which is elementwise in kappa: the vector search takes
 * blocks of four kappas by four taus and transposes between the two. Each element sees the same
 * operations in the same order as in the scalar search.
 */
#include "detectors/edivisive/search.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LANES = 4, ROWS = SEARCH_ROWS };

/* 1 / (b - 1) for b = kappa - tau, at [tau]; 0 for b = 1, where B is 0, and NaN beyond the end of
 * Y. */
static const double *reciprocals_at(const struct search *search, size_t kappa)
{
	return search->reciprocals + (search->capacity + LANES - kappa);
}

static void sweep_scalar(const struct search *search, const double *values, size_t n)
{
	double *left = search->left, *right = search->right[0], *best = search->best;
	left[0] = left[1] = right[0] = 0;
	for (size_t j = 1; j < n; j++) {
		double distances = 0;
		right[j] = 0;
		for (size_t tau = j; tau-- > 0;) {
			distances += fabs(values[tau] - values[j]);
			right[tau] += distances;
		}
		size_t kappa = j + 1;
		const double *reciprocals = reciprocals_at(search, kappa);
		left[kappa] = right[0] * reciprocals[0];
		double whole = right[0] * search->halves[kappa], weight = 2 - search->halves[kappa];
		for (size_t tau = 1; tau < kappa; tau++) {
			double q = whole - weight * (left[tau] + right[tau] * reciprocals[tau]);
			best[tau] = q > best[tau] ? q : best[tau];
		}
	}
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

AVX2_INLINE __m256d distance(__m256d a, __m256d b)
{
	return _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(a, b));
}

AVX2_INLINE void transpose(__m256d *a, __m256d *b, __m256d *c, __m256d *d)
{
	__m256d ab_even = _mm256_unpacklo_pd(*a, *b), ab_odd = _mm256_unpackhi_pd(*a, *b);
	__m256d cd_even = _mm256_unpacklo_pd(*c, *d), cd_odd = _mm256_unpackhi_pd(*c, *d);
	*a = _mm256_permute2f128_pd(ab_even, cd_even, 0x20);
	*b = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20);
	*c = _mm256_permute2f128_pd(ab_even, cd_even, 0x31);
	*d = _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31);
}

/*
 * Adds the sums of distances of four points to B at tau .. tau + 3, one kappa after the other, and
 * writes one row for each; returns the last.
 */
AVX2_INLINE __m256d add_to_rows(double *const *rows, size_t tau, __m256d b, __m256d *sums)
{
	transpose(&sums[0], &sums[1], &sums[2], &sums[3]);
	for (size_t k = 0; k < LANES; k++) {
		b = _mm256_add_pd(b, sums[k]);
		_mm256_store_pd(rows[k] + tau, b);
	}
	return b;
}

/* The sums for tau = j .. j + 3 of points j .. j + 3. Only distances to earlier points count, which
 * are the lanes above 2, 1, 0. */
AVX2_INLINE __m256d sum_diagonal(const double *values, __m256d points, __m256d *sums)
{
	__m256d zero = _mm256_setzero_pd();
	sums[3] = zero;
	sums[2] = _mm256_blend_pd(zero, distance(_mm256_set1_pd(values[2]), points), 8);
	__m256d more = _mm256_blend_pd(zero, distance(_mm256_set1_pd(values[1]), points), 12);
	sums[1] = _mm256_add_pd(sums[2], more);
	more = _mm256_blend_pd(zero, distance(_mm256_set1_pd(values[0]), points), 14);
	sums[0] = _mm256_add_pd(sums[1], more);
	return sums[0];
}

/* The sums for four taus in front of those that `running` holds. */
AVX2_INLINE __m256d sum_block(const double *values, __m256d points, __m256d running, __m256d *sums)
{
	for (size_t k = LANES; k-- > 0;) {
		running = _mm256_add_pd(running, distance(_mm256_set1_pd(values[k]), points));
		sums[k] = running;
	}
	return running;
}

/* B for the four kappas that points j .. j + 3 complete; the last row holds B for the kappa before.
 */
AVX2 static void sweep_four(const struct search *search, size_t j)
{
	const double *values = search->values;
	__m256d points = _mm256_load_pd(values + j), sums[LANES];
	__m256d running = sum_diagonal(values + j, points, sums);
	add_to_rows(search->right, j, _mm256_setzero_pd(), sums);
	for (size_t tau = j; tau > 0;) {
		tau -= LANES;
		running = sum_block(values + tau, points, running, sums);
		__m256d b = _mm256_load_pd(search->right[ROWS - 1] + tau);
		add_to_rows(search->right, tau, b, sums);
	}
}

/* The same for eight, so that two chains of additions run side by side. */
AVX2 static void sweep_eight(const struct search *search, size_t j)
{
	const double *values = search->values;
	double *const *rows = search->right, *const *more_rows = search->right + LANES;
	__m256d points = _mm256_load_pd(values + j), sums[LANES];
	__m256d more_points = _mm256_load_pd(values + j + LANES), more_sums[LANES];
	__m256d more_running = sum_diagonal(values + j + LANES, more_points, more_sums);
	add_to_rows(more_rows, j + LANES, _mm256_setzero_pd(), more_sums);
	__m256d running = sum_diagonal(values + j, points, sums);
	__m256d b = add_to_rows(rows, j, _mm256_setzero_pd(), sums);
	more_running = sum_block(values + j, more_points, more_running, more_sums);
	add_to_rows(more_rows, j, b, more_sums);
	for (size_t tau = j; tau > 0;) {
		tau -= LANES;
		running = sum_block(values + tau, points, running, sums);
		more_running = sum_block(values + tau, more_points, more_running, more_sums);
		b = add_to_rows(rows, tau, _mm256_load_pd(more_rows[LANES - 1] + tau), sums);
		add_to_rows(more_rows, tau, b, more_sums);
	}
}

/* Q for the four kappas from `first` on; those beyond n get NaN, which is never the best. */
AVX2 static void sweep_statistics(
	const struct search *search, double *const *rows, size_t first, size_t n)
{
	__m256d whole[LANES], weight[LANES];
	const double *reciprocals[LANES];
	for (size_t k = 0; k < LANES; k++) {
		size_t kappa = first + k;
		double sum = rows[k][0], half = search->halves[kappa];
		reciprocals[k] = reciprocals_at(search, kappa);
		search->left[kappa] = sum * reciprocals[k][0];
		whole[k] = _mm256_set1_pd(kappa > n ? nan("") : sum * half);
		weight[k] = _mm256_set1_pd(2 - half);
	}
	for (size_t tau = 0; tau < first + LANES - 1; tau += LANES) {
		__m256d left = _mm256_load_pd(search->left + tau);
		__m256d best = _mm256_load_pd(search->best + tau);
		for (size_t k = 0; k < LANES; k++) {
			__m256d right = _mm256_mul_pd(_mm256_load_pd(rows[k] + tau),
				_mm256_loadu_pd(reciprocals[k] + tau));
			__m256d q = _mm256_sub_pd(
				whole[k], _mm256_mul_pd(weight[k], _mm256_add_pd(left, right)));
			best = _mm256_max_pd(q, best);
		}
		_mm256_store_pd(search->best + tau, best);
	}
}

AVX2 static void sweep_avx2(const struct search *search, const double *values, size_t n)
{
	memcpy(search->values, values, n * sizeof(double));
	for (size_t i = n; i % ROWS != 0; i++)
		search->values[i] = values[n - 1];
	search->left[0] = 0;
	for (size_t j = 0; j < n; j += ROWS) {
		if (n - j <= LANES) {
			sweep_four(search, j);
			sweep_statistics(search, search->right, j + 1, n);
			return;
		}
		sweep_eight(search, j);
		sweep_statistics(search, search->right, j + 1, n);
		sweep_statistics(search, search->right + LANES, j + LANES + 1, n);
	}
}

#endif

struct search search_new(size_t capacity, bool plain, struct scratch *scratch)
{
	size_t padded = (capacity / ROWS + 2) * ROWS, table = capacity + LANES + padded;
	struct search search = {.scratch = scratch, .capacity = capacity, .sweep = sweep_scalar};
	(void)plain;
#if defined(__x86_64__)
	if (!plain && __builtin_cpu_supports("avx2"))
		search.sweep = sweep_avx2;
#endif
	search.values = scratch_take(scratch, padded, sizeof(double));
	search.left = scratch_take(scratch, padded, sizeof(double));
	search.best = scratch_take(scratch, padded, sizeof(double));
	for (size_t k = 0; k < ROWS; k++)
		search.right[k] = scratch_take(scratch, padded, sizeof(double));
	search.halves = scratch_take(scratch, padded, sizeof(double));
	search.reciprocals = scratch_take(scratch, table, sizeof(double));
	for (size_t m = 0; m < padded; m++)
		search.halves[m] = 2 / (double)m;
	size_t least = capacity + LANES - 1; /* the place of b = 1 */
	for (size_t i = 0; i < least; i++)
		search.reciprocals[i] = 1 / (double)(least - i);
	search.reciprocals[least] = 0;
	for (size_t i = least + 1; i < table; i++)
		search.reciprocals[i] = nan("");
	return search;
}

/* The first of the largest of best[1..n); the rest of the last vector is -HUGE_VAL. */
static struct split best_split(const double *best, size_t n)
{
	double most[LANES] = {-HUGE_VAL, best[1], best[2], best[3]}, q = -HUGE_VAL;
	for (size_t tau = LANES; tau < n; tau += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			most[lane] = best[tau + lane] > most[lane] ? best[tau + lane] : most[lane];
	for (size_t lane = 0; lane < LANES; lane++)
		q = most[lane] > q ? most[lane] : q;
	if (q == -HUGE_VAL)
		return (struct split){.q = q};
	size_t tau = 1;
	while (best[tau] != q)
		tau++;
	return (struct split){.tau = tau, .q = q};
}

struct split search_split(const struct search *search, const double *values, size_t n)
{
	if (n < 2 || !scratch_spend(search->scratch, n * n / 2))
		return (struct split){.q = -HUGE_VAL};
	for (size_t tau = 0; tau < n + LANES; tau++)
		search->best[tau] = -HUGE_VAL;
	search->sweep(search, values, n);
	return best_split(search->best, n);
}
