/*
 * No matrix is held: each candidate for the last cut carries the sum of the kernel over its
 * segment, and a new value adds to all of them in one walk back along the series. Time is quadratic
 * where nothing changes (PELT has nothing to prune there), memory linear. Series of more than CHUNK
 * values are processed in overlapping chunks, which bounds the time: docs/design/algorithms.md
 * section 6.2.
 */
#include "detectors/kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "detectors/describe.h"
#include "detectors/finite.h"
#include "detectors/scratch.h"
#include "detectors/segments.h"
#include "detectors/sort.h"

enum { CHUNK = 10000, DECIDED = 7500, ADVANCE = 3750, STRETCH = 2000 };

static const struct field kernel_fields[] = {
	OPTION_DOUBLE(struct kernel_options, penalty, "1", 0, 1e6,
		"a change must save C ln n; higher values give fewer changes",
		.flags = FIELD_MIN_OPEN, .metavar = "C"),
	OPTION_INT(struct kernel_options, min_size, "2", 1, 10000,
		"minimum number of points between two changes", .metavar = "POINTS"),
	OPTION_DOUBLE(struct kernel_options, magnitude, "0.0", 0, 1e300,
		"minimum relative size of a change; 0.05 is 5%", .alias = "min_magnitude",
		.letter = 'M', .metavar = "SHARE"),
	{0},
};

/* Pairs of sorted values at most `distance` apart. */
static uint64_t pairs_within(const double *sorted, size_t n, double distance)
{
	uint64_t pairs = 0;
	size_t low = 0;
	for (size_t high = 1; high < n; high++) {
		while (sorted[high] - sorted[low] > distance)
			low++;
		pairs += high - low;
	}
	return pairs;
}

/*
 * The distance of that rank (from 1). Doubles that are not negative are ordered like their bits as
 * integers, so bisection over the bits ends at it.
 */
static double ranked_distance(const double *sorted, size_t n, uint64_t rank)
{
	uint64_t low = 0, high;
	double widest = sorted[n - 1] - sorted[0];
	memcpy(&high, &widest, sizeof high);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		double distance;
		memcpy(&distance, &middle, sizeof distance);
		if (pairs_within(sorted, n, distance) >= rank)
			high = middle;
		else
			low = middle + 1;
	}
	double distance;
	memcpy(&distance, &low, sizeof distance);
	return distance;
}

double kernel_gamma(const double *values, size_t n, struct scratch *scratch)
{
	double *sorted = scratch_take(scratch, n, sizeof(double));
	memcpy(sorted, values, n * sizeof(double));
	sort_sort(sorted, n);
	if (n < 2 || sorted[n - 1] - sorted[0] == 0)
		return 0;
	uint64_t pairs = (uint64_t)n * (n - 1) / 2, zero = pairs_within(sorted, n, 0);
	if (zero <= pairs / 2)
		zero = 0;
	uint64_t count = pairs - zero;
	double lower = ranked_distance(sorted, n, zero + (count + 1) / 2);
	double upper = ranked_distance(sorted, n, zero + count / 2 + 1);
	double median = 0.5 * (lower * lower + upper * upper);
	return median >= DBL_MIN ? 1 / median : 0;
}

/* A place where the last segment may begin. */
struct candidate {
	size_t start;
	double sum;    /* of the kernel over all ordered pairs from start to the current end */
	size_t retire; /* is dropped from this end on */
};

struct pelt {
	const double *values;
	double gamma, penalty;
	size_t min_size;
	double *best;  /* the least cost of the values before each end */
	size_t *begin; /* of the last segment of that partition */
	struct candidate *candidates;
	size_t count;
};

/* Extends the segments of all candidates by the value before `end`. */
static void add_value(struct pelt *pelt, size_t end)
{
	const double *values = pelt->values;
	double last = values[end - 1], sum = 0;
	size_t at = end - 1;
	for (size_t c = pelt->count; c-- > 0;) {
		for (; at > pelt->candidates[c].start; at--) {
			double distance = values[at - 1] - last;
			sum += exp(-pelt->gamma * distance * distance);
		}
		pelt->candidates[c].sum += 2 * sum + 1;
	}
}

/* The cost of the partition whose last segment begins at the candidate, without the last penalty.
 */
static double total(const struct pelt *pelt, const struct candidate *candidate, size_t end)
{
	double length = (double)(end - candidate->start);
	return pelt->best[candidate->start] + length - candidate->sum / length;
}

static void choose_begin(struct pelt *pelt, size_t end)
{
	double best = HUGE_VAL;
	for (size_t c = 0; c < pelt->count; c++) {
		const struct candidate *candidate = &pelt->candidates[c];
		if (end - candidate->start < pelt->min_size)
			break;
		double cost = total(pelt, candidate, end);
		if (cost < best) {
			best = cost;
			pelt->begin[end] = candidate->start;
		}
	}
	pelt->best[end] = best + pelt->penalty;
}

/*
 * Apart from the penalty, cutting a segment never raises the cost. So a candidate that is worse
 * here without a penalty than the best partition with one stays worse, once a segment fits behind
 * here.
 */
static void prune(struct pelt *pelt, size_t end)
{
	const double rounding = 1e-9;
	size_t kept = 0;
	for (size_t c = 0; c < pelt->count; c++) {
		struct candidate candidate = pelt->candidates[c];
		bool fits = end - candidate.start >= pelt->min_size;
		if (fits && candidate.retire == SIZE_MAX &&
			total(pelt, &candidate, end) > pelt->best[end] + rounding * (double)end)
			candidate.retire = end + pelt->min_size;
		if (candidate.retire > end + 1)
			pelt->candidates[kept++] = candidate;
	}
	pelt->count = kept;
	if (end >= pelt->min_size)
		pelt->candidates[pelt->count++] =
			(struct candidate){.start = end, .retire = SIZE_MAX};
}

size_t kernel_partition(const double *values, size_t n, double gamma, double penalty,
	size_t min_size, struct scratch *scratch, size_t *cuts)
{
	struct pelt pelt = {
		.values = values,
		.gamma = gamma,
		.penalty = penalty,
		.min_size = min_size,
		.best = scratch_take(scratch, n + 1, sizeof(double)),
		.begin = scratch_take(scratch, n + 1, sizeof(size_t)),
		.candidates = scratch_take(scratch, n + 1, sizeof(struct candidate)),
		.count = 1,
	};
	if (n < min_size)
		return 0;
	pelt.best[0] = -penalty;
	pelt.candidates[0] = (struct candidate){.start = 0, .retire = SIZE_MAX};
	for (size_t end = 1; end <= n; end++) {
		/* Most time goes into an exponential for each value back to the first candidate. */
		size_t reach = pelt.count > 0 ? end - pelt.candidates[0].start : 0;
		if (!scratch_spend(scratch, 10 * reach + 10 * pelt.count))
			return 0;
		add_value(&pelt, end);
		choose_begin(&pelt, end);
		prune(&pelt, end);
	}
	size_t count = 0;
	for (size_t end = pelt.begin[n]; end > 0; end = pelt.begin[end])
		count++;
	for (size_t end = pelt.begin[n], at = count; end > 0; end = pelt.begin[end])
		cuts[--at] = end;
	return count;
}

/* A stretch of the values without cuts, for the trace. */
struct whole {
	const struct segments *segments;
	const double *values; /* scaled, all */
	size_t from, to;
	double gamma, penalty;
	size_t min_size;
};

/* The sums of the kernel over the pairs of the stretch that end, and that begin, at each place. */
static void add_pairs(const struct whole *whole, double *ending, double *beginning)
{
	const double *values = whole->values + whole->from;
	size_t n = whole->to - whole->from;

	for (size_t i = 0; i < n; i++)
		ending[i] = beginning[i] = 0;
	for (size_t j = 1; j < n; j++)
		for (size_t i = 0; i < j; i++) {
			double apart = values[i] - values[j];
			double near = exp(-whole->gamma * apart * apart);

			ending[j] += near;
			beginning[i] += near;
		}
}

static double cost_of(double sum, size_t n)
{
	return (double)n - sum / (double)n;
}

/* Notes the gain of one more cut, for the best place of each block. */
static void note_whole(const struct whole *whole, struct tried_list *tried, struct scratch *work)
{
	size_t n = whole->to - whole->from;
	double *ending = scratch_take(work, n, sizeof *ending);
	double *beginning = scratch_take(work, n, sizeof *beginning);
	double before = 0, all = 0, behind;
	struct tried_best best = {0};

	add_pairs(whole, ending, beginning);
	for (size_t i = 0; i < n; i++)
		all += 2 * ending[i] + 1;
	behind = all;
	for (size_t cut = 1; cut < n; cut++) {
		double saved = cost_of(all, n);
		size_t at = whole->from + cut;
		struct tried one;

		before += 2 * ending[cut - 1] + 1;
		behind -= 2 * beginning[cut - 1] + 1;
		saved -= cost_of(before, cut) + cost_of(behind, n - cut);
		if (cut < whole->min_size || n - cut < whole->min_size)
			continue;
		if (best.item.measure && best.block == at / TRIED_BLOCK &&
			saved <= best.item.measured)
			continue;
		one = segments_tried(whole->segments, whole->from, at, whole->to, TRIED_COST);
		one.pvalue = (double)NAN; /* nothing is tested */
		tried_limit(&one, "saving", saved, whole->penalty);
		tried_offer(tried, &best, at, &one);
	}
	tried_flush(tried, &best);
}

/*
 * The search finds the least cost, not the cost of each place, so that is computed here. This work
 * is outside the budget; long stretches are processed in pieces.
 */
static void note_chunk(const struct whole *chunk, const size_t *cuts, size_t count,
	struct tried_list *tried, struct scratch *work)
{
	struct whole whole = *chunk;

	for (size_t k = 0; k <= count; k++) {
		size_t end = k < count ? chunk->from + cuts[k] : chunk->to;

		for (; whole.from < end; whole.from = whole.to) {
			whole.to = end - whole.from > STRETCH ? whole.from + STRETCH : end;
			scratch_reset(work);
			note_whole(&whole, tried, work);
		}
	}
}

/* Partitions the values, in chunks if there are many; writes the cuts and returns their number. */
static size_t cut_chunks(const struct segments *segments, const double *values,
	const struct kernel_options *options, struct scratch *scratch, size_t *cuts)
{
	struct tried_list *tried = scratch_tried(scratch);
	size_t n = segments->n;
	double penalty = options->penalty * log((double)n);
	size_t count = 0, start = 0, from = 0, longest = n < CHUNK ? n : CHUNK;
	size_t *found = scratch_take(scratch, longest, sizeof(size_t));
	struct scratch *work = scratch_child(scratch);
	for (;;) {
		bool is_last = n - start <= CHUNK;
		size_t length = is_last ? n - start : CHUNK;
		size_t to = is_last ? n : start + DECIDED;
		scratch_reset(work);
		double gamma = kernel_gamma(values + start, length, work);
		size_t in_chunk = gamma > 0
					  ? kernel_partition(values + start, length, gamma, penalty,
						    (size_t)options->min_size, work, found)
					  : 0;
		if (tried && gamma > 0 && !scratch_is_spent(scratch))
			note_chunk(&(struct whole){segments, values, start, start + length, gamma,
					   penalty, (size_t)options->min_size},
				found, in_chunk, tried, work);
		for (size_t i = 0; i < in_chunk; i++)
			if (start + found[i] >= from && start + found[i] < to)
				cuts[count++] = start + found[i];
		if (is_last || scratch_is_spent(scratch))
			break;
		size_t last = count > 0 ? cuts[count - 1] : 0;
		start = last > start + ADVANCE ? last : start + ADVANCE;
		from = to;
	}
	scratch_free(work);
	return count;
}

static size_t kernel_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	const struct kernel_options *given = options;
	scratch_reset(scratch);
	struct segments segments = segments_of(samples, scratch);
	if (segments.n < 2)
		return 0;
	double *scaled = scratch_take(scratch, segments.n, sizeof(double));
	size_t *cuts = scratch_take(scratch, segments.n, sizeof(size_t));
	finite_scale(segments.values, segments.n, scaled);
	size_t count = cut_chunks(&segments, scaled, given, scratch, cuts);
	segments_changes(&segments, cuts, NULL, count, out);
	return magnitude_filter(out, count, given->magnitude, scratch_tried(scratch));
}

const struct detector kernel_detector = {
	.plugin = {.name = "kernel",
		.summary = "minimum-cost partition under a Gaussian kernel (PELT)",
		.fields = kernel_fields,
		.options_size = sizeof(struct kernel_options)},
	.thrift = "choose a smaller penalty",
	.detect = kernel_detect,
};
