/*
 * With a = tau - s, b = kappa - tau, m = a + b, A and B the sums of distances within X and within
 * Y, C those across,
 *
 *     Q = 2/m C - 2b/(m(a-1)) A - 2a/(m(b-1)) B
 *
 * and C = W(kappa) - A - B, W being the sum over all pairs of [s, kappa), this is
 *
 *     Q = 2/m W - 2(m-1)/m (A/(a-1) + B/(b-1)).
 *
 * So only B(tau, kappa) has to be carried along: kappa grows by one point, whose distances to the
 * points before it, summed from the newest to the oldest, are what each B(tau) grows by; A(tau) =
 * B(s, tau) and W(kappa) = B(s, kappa) have passed by before. All of it is elementwise in tau but
 * the running sum of distances, which is elementwise in kappa: the vector search takes blocks of
 * four kappas by four taus and transposes between the two. Each element sees the same operations in
 * the same order as in the scalar search.
 */
#include "detectors/edivisive_search.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Reads 1 / (b - 1) for b = kappa - tau at [tau]; 0 for b = 1, where B is 0, and NaN beyond the end
 * of Y. */
static const double *reciprocals_at(const struct search *search, size_t kappa)
{
	return search->reciprocals + (search->capacity - kappa);
}

static void sweep_scalar(const struct search *search, const double *values, size_t n)
{
	double *left = search->within_left, *right = search->within_right, *best = search->best;
	left[0] = left[1] = right[0] = 0;
	for (size_t j = 1; j < n; j++) {
		double distances = 0;
		right[j] = 0;
		for (size_t tau = j; tau-- > 0;) {
			distances += fabs(values[tau] - values[j]);
			right[tau] += distances;
		}
		size_t kappa = j + 1;
		double m = (double)kappa;
		left[kappa] = right[0] / (double)j;
		double whole = 2 * right[0] / m, weight = 2 * (m - 1) / m;
		const double *reciprocals = reciprocals_at(search, kappa);
		for (size_t tau = 1; tau < kappa; tau++) {
			double q = whole - weight * (left[tau] + right[tau] * reciprocals[tau]);
			best[tau] = q > best[tau] ? q : best[tau];
		}
	}
}

struct search search_new(size_t capacity, enum search_kind kind, struct scratch *scratch)
{
	size_t padded = (capacity + 3) / 4 * 4 + 4;
	struct search search = {.capacity = capacity, .sweep = sweep_scalar};
	(void)kind;
	search.values = scratch_take(scratch, padded, sizeof(double));
	search.within_left = scratch_take(scratch, padded, sizeof(double));
	search.within_right = scratch_take(scratch, 4 * padded, sizeof(double));
	search.best = scratch_take(scratch, padded, sizeof(double));
	search.reciprocals = scratch_take(scratch, capacity + padded, sizeof(double));
	for (size_t i = 0; i < capacity + padded; i++) {
		double b = (double)capacity - (double)i;
		search.reciprocals[i] = b > 1 ? 1 / (b - 1) : b == 1 ? 0 : nan("");
	}
	return search;
}

struct split search_split(const struct search *search, const double *values, size_t n)
{
	if (n < 2)
		return (struct split){.q = -HUGE_VAL};
	for (size_t tau = 0; tau < n + 4; tau++)
		search->best[tau] = -HUGE_VAL;
	search->sweep(search, values, n);
	struct split split = {.q = -HUGE_VAL};
	for (size_t tau = 1; tau < n; tau++)
		if (search->best[tau] > split.q)
			split = (struct split){.tau = tau, .q = search->best[tau]};
	return split;
}
