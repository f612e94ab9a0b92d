/*
 * The places that e-divisive proposes, one in each of windows that overlap by half:
 * docs/design/algorithms.md section 2.3.
 *
 * The statistic is that of search.h with kappa fixed at the window's end, so one pass over the
 * pairs gives all splits. With L[j] the sum of distances of j to the points before it, and R[i]
 * that of i to the points behind it, A(tau) is the sum of L before tau, B(tau) the sum of R from
 * tau on, and W the sum of all. A window takes O(W^2).
 */
#include "detectors/edivisive/chunk.h"
#include "detectors/edivisive/pairs.h"
#include "detectors/scratch.h"

/* Statistics that differ by less than this share of 2 W / m are equal. */
static const double TIE = 1e-12;

/* The best split of n values. */
static size_t best_split(const double *y, size_t n, const struct chunk_workspace *workspace)
{
	double *before = workspace->left, *behind = workspace->right, m = (double)n;
	pairs_best()->sum_distances(y, n, before, behind);
	double sum = 0, rest = 0;
	for (size_t tau = 0; tau < n; tau++) {
		double distances = before[tau];
		before[tau] = sum;
		sum += distances;
		rest += behind[n - 1 - tau];
		behind[n - 1 - tau] = rest;
	}
	double whole = 2 * sum / m;
	struct split_terms terms = {
		.whole = whole, .weight = 2 * (m - 1) / m, .reciprocals = workspace->reciprocals};
	double best = pairs_best()->split_statistics(before, behind, n, &terms) - TIE * whole;
	size_t tau = LEAST_SIDE;
	while (before[tau] < best)
		tau++;
	return tau;
}

size_t chunk_windows(struct chunk *chunk, size_t same, const struct chunk_workspace *workspace)
{
	size_t n = chunk->n, window = (size_t)chunk->options.window, step = window / 2, k = 0;
	for (size_t start = 0; start + 2 * LEAST_SIDE <= n; start += step, k++) {
		size_t length = n - start < window ? n - start : window;
		if (length < 2 * LEAST_SIDE)
			break;
		if (start + window <= same)
			continue;
		if (!scratch_spend(workspace->scratch, length * length / 2))
			break;
		chunk->candidates[k] = start + best_split(chunk->y + start, length, workspace);
	}
	return k;
}
