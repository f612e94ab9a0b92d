/*
 * Which candidates are cuts: docs/design/algorithms.md section 2.3. Of all partitions at these
 * places the one with the least cost, by a dynamic programme over the sums of a kernel between the
 * stretches that they bound (Harchaoui and Cappe 2007, with Cauchy's kernel instead of a normal
 * one).
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/loops.h"
#include "detectors/scratch.h"
#include "detectors/tried.h"

/* The kernel of two values that are d units of noise apart is 1 / (1 + WIDTH d^2). A cut costs
 * PENALTY ln n; the last one of a service the share AT_END of that: the few values behind it can
 * save little. */
static const double WIDTH = 0.2, MOST_SCALE = 1e300, PENALTY = 2.0 / 3, AT_END = 0.75;

/* Values are counts if this share of them equals the one before: measurements seldom do, and a
 * series that mostly keeps its value is a level. */
static const double COUNTS_FROM = 0.1, COUNTS_TO = 0.6;

static double sum_of(const float *columns, size_t n)
{
	double lanes[4] = {0};
	size_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++)
			lanes[lane] += (double)columns[i + lane];
	for (; i < n; i++)
		lanes[0] += (double)columns[i];
	return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/*
 * Writes, for each number of stretches, where the last segment of their best partition begins; of
 * equal ones the shortest.
 */
static void find_best(
	const struct partition *partition, size_t count, double penalty, double last_penalty)
{
	const size_t *edges = partition->edges;
	double *best = partition->best, *sums = partition->sums, *row = partition->row;
	best[0] = 0;
	for (size_t end = 1; end <= count; end++) {
		double cross = 0;
		/* The sums of the kernel of the last stretch with each stretch up to itself; those
		 * of its own pairs count both orders. */
		loops_best()->sum_kernel(partition->values, edges[end - 1], edges[end],
			partition->near, partition->columns);
		for (size_t j = 0; j < end; j++)
			row[j] = sum_of(partition->columns + edges[j], edges[j + 1] - edges[j]);
		sums[end - 1] = 0;
		best[end] = HUGE_VAL;
		for (size_t start = end; start-- > 0;) {
			double length = (double)(edges[end] - edges[start]);
			cross += start + 1 < end ? row[start] : 0;
			sums[start] += row[end - 1] + 2 * cross;
			double cost = best[start] + length - sums[start] / length;
			cost += start == 0 ? 0 : end == count ? last_penalty : penalty;
			if (length >= LEAST_SIDE && cost < best[end]) {
				best[end] = cost;
				partition->from[end] = start;
			}
		}
	}
}

/* Writes y times the scale; where values alternate, their means over a period. */
static void scale_values(const struct chunk *chunk, size_t period, double scale, double *values)
{
	const double *sum = chunk->sum;
	size_t n = chunk->n;
	for (size_t i = 0; i < n; i++) {
		size_t from = i < period / 2 ? 0 : i - period / 2;
		from = from + period > n ? n - period : from;
		values[i] =
			scale * (period == 1 ? chunk->y[i]
					     : (sum[from + period] - sum[from]) / (double)period);
	}
}

/* Notes in the trace the candidates that are no cuts, each between its two neighbouring cuts. */
static void note_others(const struct chunk *chunk, size_t count, size_t cuts)
{
	const struct chunk_workspace *workspace = chunk->workspace;
	struct tried_list *tried = scratch_tried(workspace->scratch);
	const size_t *edges = workspace->partition.edges, *places = workspace->places;
	for (size_t k = 1, next = 0; tried && k <= count; k++) {
		size_t place = edges[k], end = next < cuts ? places[next] : chunk->n;
		if (place == end) {
			next++;
			continue;
		}
		struct opinion opinion =
			chunk_opinion(chunk, next > 0 ? places[next - 1] : 0, place, end);
		bool is_weak = opinion.p >= chunk->options.p_value;
		struct tried one = {.index = tried->places[place],
			.fate = is_weak ? TRIED_WEAK : TRIED_COST,
			.pvalue = opinion.p,
			.mean_before = opinion.before,
			.mean_after = opinion.after};
		if (is_weak)
			tried_limit(&one, "p", opinion.p, chunk->options.p_value);
		tried_note(tried, &one);
	}
}

static bool are_counts(const struct chunk *chunk)
{
	const double *x = chunk->x;
	double equal = 0, n = (double)chunk->n;
	for (size_t i = 1; i < chunk->n; i++)
		equal += x[i] <= x[i - 1] && x[i] >= x[i - 1];
	return equal >= COUNTS_FROM * (n - 1) && equal < COUNTS_TO * (n - 1);
}

/* The candidate within (start, end) that explains the most of those that the test confirms; 0: it
 * confirms none. */
static size_t best_confirmed(const struct chunk *chunk, size_t start, size_t end, size_t count)
{
	const struct chunk_workspace *workspace = chunk->workspace;
	size_t best = 0, cost = (size_t)chunk->options.window * (size_t)chunk->options.window;
	double most = 0;
	for (size_t k = 1; k <= count; k++) {
		size_t place = workspace->partition.edges[k];
		if (place < start + LEAST_SIDE || place + LEAST_SIDE > end ||
			!scratch_spend(workspace->scratch, end - start + cost))
			continue;
		struct chunk_step step = chunk_test(chunk, start, place, end);
		if (!step.separated && step.p < chunk->options.p_value && step.strength > most) {
			best = place;
			most = step.strength;
		}
	}
	return best;
}

/* Among counts, whose spread grows with their mean, a cut saves less than the test shows: adds to
 * the `found` cuts what the test confirms between them, and returns their number. */
static size_t add_confirmed(const struct chunk *chunk, size_t count, size_t found)
{
	size_t *places = chunk->workspace->places;
	for (size_t k = 0; k <= found;) {
		size_t start = k > 0 ? places[k - 1] : 0, end = k < found ? places[k] : chunk->n;
		size_t place = best_confirmed(chunk, start, end, count);
		if (place == 0) {
			k++;
			continue;
		}
		memmove(places + k + 1, places + k, (found - k) * sizeof *places);
		places[k] = place;
		found++;
	}
	return found;
}

size_t chunk_partition(const struct chunk *chunk, struct noise_unit noise, size_t count)
{
	const struct chunk_workspace *workspace = chunk->workspace;
	const struct partition *partition = &workspace->partition;
	size_t n = chunk->n, *edges = partition->edges, *from = partition->from, found = 0;
	double scale = fmin(sqrt(WIDTH) / noise.size, MOST_SCALE);
	if (count == 0 || !scratch_spend(workspace->scratch, n * n / 2))
		return 0;
	scale_values(chunk, noise.period, scale, partition->values);
	edges[0] = 0;
	for (size_t k = 0; k < count; k++)
		edges[k + 1] = workspace->places[k];
	edges[count + 1] = n;
	double penalty = PENALTY * log((double)n);
	find_best(partition, count + 1, penalty, chunk->excursion > 0 ? AT_END * penalty : penalty);
	for (size_t end = from[count + 1]; end > 0; end = from[end])
		found++;
	for (size_t end = from[count + 1], at = found; end > 0; end = from[end])
		workspace->places[--at] = edges[end];
	if (are_counts(chunk))
		found = add_confirmed(chunk, count, found);
	note_others(chunk, count, found);
	return found;
}
