/*
 * Candidates: docs/design/algorithms.md section 2.3. The windows of e-divisive propose places, and
 * so do the points at which the means of a few values to either side differ the most. Which of them
 * are cuts is decided by the partition.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/loops.h"
#include "detectors/sort.h"

/* The two numbers of values to either side. A contrast is that of a place if it exceeds CONTRAST
 * units of noise, and those of the NEAR places to either side. */
enum { SHORT_SIDE = 5, LONG_SIDE = 15, NEAR = 2 };
static const double CONTRAST = 2.5;

/* The unit of noise is found among differences of values 1 to LAGS_TRIED apart: other lags than 1
 * where values alternate, which shows if theirs are smaller by the share ALTERNATING. If fewer than
 * half of the differences are not 0, they are steps rather than noise, which is TIES times smaller.
 * It is that of whole blocks of values, so that it seldom changes when a value arrives. */
enum { LAGS_TRIED = 4, UNIT_BLOCK = 25 };
static const double ALTERNATING = 0.75, TIES = 6;

/* The mean size of the differences of values that are `lag` apart. */
static double mean_difference(const double *y, size_t n, size_t lag)
{
	double lanes[4] = {0};
	size_t i = lag;
	for (; i + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++)
			lanes[lane] += fabs(y[i + lane] - y[i + lane - lag]);
	for (; i < n; i++)
		lanes[0] += fabs(y[i] - y[i - lag]);
	return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) / (double)(n - lag);
}

/* The unit of noise of the first n values. */
static struct noise_unit unit_of(const struct chunk *chunk, size_t n)
{
	const double *y = chunk->y;
	size_t lag = 1, count = 0;
	double *sizes = chunk->room, least = ALTERNATING * mean_difference(y, n, 1);
	for (size_t other = 2; other <= LAGS_TRIED && 2 * other < n; other++) {
		double mean = mean_difference(y, n, other);
		if (mean < least) {
			least = mean;
			lag = other;
		}
	}
	struct noise_unit noise = {.period = lag};
	for (size_t i = lag; i < n; i++) {
		sizes[count] = fabs(y[i] - y[i - lag]);
		count += sizes[count] > 0;
	}
	if (count > 0)
		noise.size = sort_median(sizes, count) / sqrt((double)lag);
	if (2 * count < n - lag)
		noise.size /= TIES;
	return noise;
}

struct noise_unit chunk_noise_unit(const struct chunk *chunk)
{
	size_t n = chunk->n, whole = n / UNIT_BLOCK * UNIT_BLOCK;
	struct noise_unit noise = whole > 0 ? unit_of(chunk, whole) : (struct noise_unit){0};
	return noise.size > 0 || whole == n ? noise : unit_of(chunk, n);
}

/* The square that a step between the means of up to `side` values before and from i on explains. */
static double contrast_at(const struct chunk *chunk, size_t i, size_t side)
{
	const double *sum = chunk->sum;
	size_t n1 = i < side ? i : side, n2 = chunk->n - i < side ? chunk->n - i : side;
	double before = (sum[i] - sum[i - n1]) / (double)n1;
	double after = (sum[i + n2] - sum[i]) / (double)n2, delta = after - before;
	return (double)(n1 * n2) / (double)(n1 + n2) * delta * delta;
}

/* Writes the contrasts of all places, from -1 for those too near to the ends. */
static void contrasts_of(const struct chunk *chunk, size_t side, double *contrasts)
{
	const double *sum = chunk->sum;
	size_t n = chunk->n, inner = side < n ? side : n, outer = n > 2 * side ? n - side : inner;
	double share = 1 / (2 * (double)side);
	for (size_t i = 0; i < inner; i++)
		contrasts[i] =
			i < LEAST_SIDE || i + LEAST_SIDE > n ? -1 : contrast_at(chunk, i, side);
	for (size_t i = inner; i < outer; i++) {
		double apart = (sum[i + side] - sum[i]) - (sum[i] - sum[i - side]);
		contrasts[i] = share * apart * apart;
	}
	for (size_t i = outer; i <= n + NEAR; i++)
		contrasts[i] = i + LEAST_SIDE > n ? -1 : contrast_at(chunk, i, side);
}

/* Marks the places of that scale in `marks`. */
static void mark_places(const struct chunk *chunk, size_t side, double least, bool *marks)
{
	size_t n = chunk->n;
	double *contrasts = chunk->room;
	contrasts_of(chunk, side, contrasts);
	for (size_t i = LEAST_SIDE; i + LEAST_SIDE <= n; i++) {
		bool is_top = contrasts[i] > least;
		for (size_t j = 1; j <= NEAR && is_top; j++)
			is_top =
				contrasts[i] > contrasts[i - j] && contrasts[i] >= contrasts[i + j];
		marks[i] |= is_top;
	}
}

size_t chunk_places(const struct chunk *chunk, double unit, size_t windows_found, size_t *places)
{
	size_t n = chunk->n, count = 0;
	bool *marks = chunk->marks;
	double least = CONTRAST * unit * (CONTRAST * unit);
	memset(marks, 0, n + 1);
	mark_places(chunk, SHORT_SIDE, least, marks);
	mark_places(chunk, LONG_SIDE, least, marks);
	for (size_t k = 0; k < windows_found; k++)
		marks[chunk->candidates[k]] = true;
	for (size_t i = LEAST_SIDE; i + LEAST_SIDE <= n; i++)
		if (marks[i])
			places[count++] = i;
	return count;
}

/*
 * The places that e-divisive proposes, one in each of windows that overlap by half:
 * docs/design/algorithms.md section 2.3.
 *
 * The statistic is that of search.h with kappa fixed at the window's end, so one pass over the
 * pairs gives all splits. With L[j] the sum of distances of j to the points before it, and R[i]
 * that of i to the points behind it, A(tau) is the sum of L before tau, B(tau) the sum of R from
 * tau on, and W the sum of all. A window takes O(W^2).
 */

/* Statistics that differ by less than this share of 2 W / m are equal. */
static const double TIE = 1e-12;

/* The best split of n values. */
static size_t best_split(const double *y, size_t n, const struct chunk_workspace *workspace)
{
	double *before = workspace->left, *behind = workspace->right, m = (double)n;
	loops_best()->sum_distances(y, n, before, behind);
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
	double best = loops_best()->split_statistics(before, behind, n, &terms) - TIE * whole;
	size_t tau = LEAST_SIDE;
	while (before[tau] < best)
		tau++;
	return tau;
}

size_t chunk_windows(struct chunk *chunk, size_t same)
{
	size_t n = chunk->n, window = (size_t)chunk->options.window, step = window / 2, k = 0;
	for (size_t start = 0; start + 2 * LEAST_SIDE <= n; start += step, k++) {
		size_t length = n - start < window ? n - start : window;
		if (length < 2 * LEAST_SIDE)
			break;
		if (start + window <= same)
			continue;
		if (!scratch_spend(chunk->workspace->scratch, length * length / 2))
			break;
		chunk->candidates[k] =
			start + best_split(chunk->y + start, length, chunk->workspace);
	}
	return k;
}
