/*
 * Candidates, from windows that overlap by half and are cut greedily: docs/algorithms.md
 * section 2.3.
 *
 * The statistic is that of search.h with kappa fixed at the interval's end, so one pass over the
 * pairs gives all splits. With L[j] the sum of distances of j to the points before it, and R[i]
 * that of i to the points behind it, A(tau) is the sum of L before tau, B(tau) the sum of R from
 * tau on, and W the sum of all. A window takes O(W^2) for each candidate.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/edivisive/pairs.h"
#include "detectors/scratch.h"

/* Statistics that differ by less than this share of 2 W / m are equal. */
static const double TIE = 1e-12;

/* The interval [start, end) with its best split. */
static struct interval interval_of(
	const double *y, size_t start, size_t end, const struct chunk_workspace *workspace)
{
	struct interval interval = {.start = start, .end = end, .split.q = -HUGE_VAL};
	size_t n = end - start;
	if (n < 2 * LEAST_SIDE || !scratch_spend(workspace->scratch, n * n / 2))
		return interval;
	double *before = workspace->left, *behind = workspace->right, m = (double)n;
	pairs_best()->sum_distances(y + start, n, before, behind);
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
	double best = pairs_best()->split_statistics(before, behind, n, &terms);
	interval.tie = TIE * whole;
	size_t tau = LEAST_SIDE;
	while (before[tau] < best - interval.tie)
		tau++;
	interval.split = (struct split){.tau = tau, .q = best};
	return interval;
}

/* The interval with the largest q, the leftmost of equal ones. */
static size_t best_interval(const struct interval *intervals, size_t count)
{
	double most = -HUGE_VAL, tie = 0;
	for (size_t i = 0; i < count; i++)
		if (intervals[i].split.q > most) {
			most = intervals[i].split.q;
			tie = intervals[i].tie;
		}
	size_t best = 0;
	while (intervals[best].split.q < most - tie)
		best++;
	return best;
}

/* Notes the best split of a window that is no candidate. */
static void note_weak(const struct chunk *chunk, const struct interval *interval,
	const struct chunk_workspace *workspace)
{
	struct tried_list *tried = scratch_tried(workspace->scratch);
	size_t tau = interval->start + interval->split.tau;
	if (!tried || interval->split.tau == 0)
		return;
	struct opinion opinion = chunk_opinion(chunk, interval->start, tau, interval->end);
	struct tried one = {.index = tried->places[tau],
		.fate = TRIED_WEAK,
		.pvalue = opinion.p,
		.mean_before = opinion.before,
		.mean_after = opinion.after};
	tried_limit(&one, "p", opinion.p, RELAXED_P);
	tried_note(tried, &one);
}

/* Appends the candidates of the window [start, end) to the `found` ones; returns how many there are
 * then. */
static size_t search_window(struct chunk *chunk, size_t start, size_t end, size_t found,
	const struct chunk_workspace *workspace)
{
	struct interval *intervals = workspace->intervals;
	intervals[0] = interval_of(chunk->y, start, end, workspace);
	size_t parts = 1;
	for (;;) {
		scratch_spend(workspace->scratch, 2 * parts + end - start);
		struct interval *cut = intervals + best_interval(intervals, parts);
		size_t tau = cut->start + cut->split.tau;
		if (cut->split.tau == 0 || !relaxed_test(chunk, cut->start, tau, cut->end)) {
			note_weak(chunk, cut, workspace);
			break;
		}
		memmove(cut + 1, cut, (size_t)(intervals + parts - cut) * sizeof(*cut));
		cut[0] = interval_of(chunk->y, cut[0].start, tau, workspace);
		cut[1] = interval_of(chunk->y, tau, cut[1].end, workspace);
		parts++;
	}
	for (size_t i = 1; i < parts; i++)
		chunk->candidates[found++] = intervals[i].start;
	return found;
}

size_t chunk_windows(struct chunk *chunk, size_t same, const struct chunk_workspace *workspace)
{
	size_t n = chunk->n, window = (size_t)chunk->options.window, step = window / 2;
	size_t start = 0, found = 0, k = 0, kept = chunk->window_count;
	for (; start < n && !scratch_is_spent(workspace->scratch); k++) {
		struct chunk_window *done = chunk->windows + k;
		size_t end = n - start < window ? n : start + window, before = found;
		if (k < kept && done->end == end && end <= same)
			found = done->found;
		else {
			kept = 0;
			found = search_window(chunk, start, end, found, workspace);
		}
		*done = (struct chunk_window){.start = start, .end = end, .found = found};
		size_t last = found > before ? chunk->candidates[found - 1] : 0;
		start = last > start + step ? last : start + step;
	}
	chunk->window_count = k;
	return found;
}
