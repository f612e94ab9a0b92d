/*
 * docs/design/algorithms.md section 6.4. The groups are found by dynamic programming over the
 * sorted means. The best start of the last group never falls as values are added, so each row is
 * filled by halving.
 */
#include "detectors/modes.h"

#include <math.h>
#include <string.h>

#include "detectors/describe.h"
#include "detectors/finite.h"
#include "detectors/scratch.h"
#include "detectors/segments.h"
#include "detectors/sort.h"

static const struct field modes_fields[] = {
	OPTION_INT(struct modes_options, window, "6", 2, 1000,
		"runs that establish a level: one shorter by 2 runs or more is an excursion; one "
		"at the end is a change when it is at most 1 run shorter",
		.metavar = "RUNS"),
	OPTION_INT(struct modes_options, modes, "6", 2, MODES_MOST, "levels at most",
		.metavar = "COUNT"),
	OPTION_DOUBLE(struct modes_options, apart, "0.02", 0, 1e6,
		"minimum relative distance between two levels; 0.02 is 2%", .metavar = "SHARE"),
	OPTION_DOUBLE(struct modes_options, magnitude, "0.0", 0, 1e300,
		"minimum relative size of a change; 0.05 is 5%", .alias = "min_magnitude",
		.letter = 'M', .metavar = "SHARE"),
	{0},
};

struct modes_partition {
	size_t n;
	const double *sums, *squares; /* of the values before each index */
	double *row, *next; /* least cost of the values before each index: k, k + 1 groups */
	uint32_t *starts[MODES_MOST]; /* of k + 1 groups of those values: where the last begins */
	double least[MODES_MOST];     /* cost of all values in k + 1 groups */
};

/* The sum of squares around the mean of the values [from, to). */
static double group_cost(const struct modes_partition *partition, size_t from, size_t to)
{
	double sum = partition->sums[to] - partition->sums[from];
	double cost =
		partition->squares[to] - partition->squares[from] - sum * sum / (double)(to - from);
	return cost > 0 ? cost : 0;
}

/* Fills row k for the ends from low to high, whose best starts lie from first to last. */
static void fill_row(struct modes_partition *partition, size_t k, size_t low, size_t high,
	size_t first, size_t last)
{
	while (low <= high) {
		size_t end = low + (high - low) / 2, best = 0;
		double least = HUGE_VAL;
		for (size_t from = first > k ? first : k; from <= last && from < end; from++) {
			double cost = partition->row[from] + group_cost(partition, from, end);
			if (cost < least) {
				least = cost;
				best = from;
			}
		}
		partition->next[end] = least;
		partition->starts[k][end] = (uint32_t)best;
		if (end > low)
			fill_row(partition, k, low, end - 1, first, best);
		low = end + 1;
		first = best;
	}
}

struct modes_partition *modes_partition(
	const double *sorted, size_t n, size_t most, struct scratch *scratch)
{
	struct modes_partition *partition = scratch_take(scratch, 1, sizeof(*partition));
	double *sums = scratch_take(scratch, n + 1, sizeof(double));
	double *squares = scratch_take(scratch, n + 1, sizeof(double));
	sums[0] = squares[0] = 0;
	for (size_t i = 0; i < n; i++) {
		sums[i + 1] = sums[i] + sorted[i];
		squares[i + 1] = squares[i] + sorted[i] * sorted[i];
	}
	*partition = (struct modes_partition){.n = n, .sums = sums, .squares = squares};
	partition->row = scratch_take(scratch, n + 1, sizeof(double));
	partition->next = scratch_take(scratch, n + 1, sizeof(double));
	for (size_t end = 1; end <= n; end++)
		partition->row[end] = group_cost(partition, 0, end);
	partition->least[0] = partition->row[n];
	for (size_t k = 1; k < most; k++) {
		partition->starts[k] = scratch_take(scratch, n + 1, sizeof(uint32_t));
		fill_row(partition, k, k + 1, n, k, n - 1);
		double *row = partition->row;
		partition->row = partition->next;
		partition->next = row;
		partition->least[k] = partition->row[n];
	}
	return partition;
}

double modes_squares(const struct modes_partition *partition, size_t k)
{
	return partition->least[k - 1];
}

void modes_starts(const struct modes_partition *partition, size_t k, size_t *starts)
{
	size_t end = partition->n;
	while (k-- > 1)
		end = starts[k] = partition->starts[k][end];
	starts[0] = 0;
}

/* The number of levels with the least BIC. */
static size_t choose_count(const struct modes_partition *partition, size_t most, double noise)
{
	double n = (double)partition->n, least = HUGE_VAL, floor = 0.1 * noise;
	size_t best = 1;
	for (size_t k = 1; k <= most; k++) {
		double bic = n * log(modes_squares(partition, k) / n + floor * floor) +
			     2 * (double)k * log(n);
		if (bic < least) {
			least = bic;
			best = k;
		}
	}
	return best;
}

struct level {
	double top; /* its largest value */
	double mean;
	double count;
};

/* Levels in ascending order. */
struct mode_levels {
	struct level items[MODES_MOST];
	size_t count;
	double noise;
};

static struct mode_levels read_levels(
	const struct modes_partition *partition, const double *sorted, size_t count)
{
	struct mode_levels levels = {.count = count};
	size_t starts[MODES_MOST];
	modes_starts(partition, count, starts);
	for (size_t k = 0; k < count; k++) {
		size_t from = starts[k], to = k + 1 < count ? starts[k + 1] : partition->n;
		double sum = partition->sums[to] - partition->sums[from];
		levels.items[k] = (struct level){
			sorted[to - 1], sum / (double)(to - from), (double)(to - from)};
	}
	return levels;
}

/* The distance below which two levels are joined. */
static double least_distance(double one, double other, double noise, double apart, double shift)
{
	return fmax(2 * noise, apart * fmax(fabs(one + shift), fabs(other + shift)));
}

/* Joins the nearest two neighbouring levels that are too near, until none are. `shift` was
 * subtracted from all values. */
static void join_levels(struct mode_levels *levels, double noise, double apart, double shift)
{
	for (;;) {
		size_t nearest = 0;
		double least = HUGE_VAL;
		for (size_t k = 0; k + 1 < levels->count; k++) {
			double one = levels->items[k].mean, other = levels->items[k + 1].mean;
			bool near = other - one < least_distance(one, other, noise, apart, shift);
			if (near && other - one < least) {
				least = other - one;
				nearest = k + 1;
			}
		}
		if (nearest == 0)
			return;
		struct level *low = &levels->items[nearest - 1], high = levels->items[nearest];
		low->mean += (high.mean - low->mean) * high.count / (low->count + high.count);
		low->count += high.count;
		low->top = high.top;
		levels->count--;
		memmove(low + 1, low + 2, (levels->count - nearest) * sizeof(*low));
	}
}

/* The levels; *before are those before near ones were joined. */
static struct mode_levels find_levels(const double *values, size_t n,
	const struct modes_options *options, double shift, struct scratch *scratch,
	struct mode_levels *before)
{
	double *sorted = scratch_take(scratch, n, sizeof(double));
	const double normal = 1.4826;
	/* From successive differences, which changes of level hardly affect. */
	for (size_t i = 0; i + 1 < n; i++)
		sorted[i] = values[i + 1] - values[i];
	double middle = sort_median(sorted, n - 1);
	for (size_t i = 0; i + 1 < n; i++)
		sorted[i] = fabs(values[i + 1] - values[i] - middle);
	double noise = normal * sort_median(sorted, n - 1) / M_SQRT2;
	memcpy(sorted, values, n * sizeof(double));
	sort_sort(sorted, n);
	size_t most = n / 4 > 0 ? n / 4 : 1;
	most = most < (size_t)options->modes ? most : (size_t)options->modes;
	struct modes_partition *partition = modes_partition(sorted, n, most, scratch);
	struct mode_levels levels =
		read_levels(partition, sorted, choose_count(partition, most, noise));
	levels.noise = noise;
	*before = levels;
	join_levels(&levels, noise, options->apart, shift);
	return levels;
}

/* Successive runs on one level, an element of a linked list. */
struct stay {
	size_t from, to;
	size_t level;
	size_t before, after; /* indices of the neighbours, or NONE */
};

#define NONE SIZE_MAX

static size_t level_of(const struct mode_levels *levels, double value)
{
	size_t k = 0;
	while (k + 1 < levels->count && value > levels->items[k].top)
		k++;
	return k;
}

/* Writes all stays; returns their number. */
static size_t list_stays(
	const double *values, size_t n, const struct mode_levels *levels, struct stay *stays)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		size_t level = level_of(levels, values[i]);
		if (count > 0 && stays[count - 1].level == level) {
			stays[count - 1].to = i + 1;
			continue;
		}
		stays[count] = (struct stay){i, i + 1, level, count - 1, NONE};
		if (count > 0)
			stays[count - 1].after = count;
		count++;
	}
	return count;
}

/* The neighbour whose level is nearer to the mean of the stay's values. */
static size_t nearer(
	const struct stay *stays, size_t at, const struct mode_levels *levels, const double *values)
{
	const struct stay *stay = &stays[at];
	if (stay->before == NONE)
		return stay->after;
	double sum = 0;
	for (size_t i = stay->from; i < stay->to; i++)
		sum += values[i];
	double mean = sum / (double)(stay->to - stay->from);
	double before = fabs(mean - levels->items[stays[stay->before].level].mean);
	double after = fabs(mean - levels->items[stays[stay->after].level].mean);
	return before <= after ? stay->before : stay->after;
}

/* Joins the stay after this one to it. */
static void join_next(struct stay *stays, size_t at)
{
	size_t next = stays[at].after;
	stays[at].to = stays[next].to;
	stays[at].after = stays[next].after;
	if (stays[at].after != NONE)
		stays[stays[at].after].before = at;
}

/*
 * Joins each stay of that length, except the last stay, to its nearer neighbour. The results are
 * longer, so one pass is enough for a length.
 */
static void absorb(
	struct stay *stays, size_t length, const struct mode_levels *levels, const double *values)
{
	for (size_t at = 0; at != NONE && stays[at].after != NONE;) {
		if (stays[at].to - stays[at].from != length) {
			at = stays[at].after;
			continue;
		}
		stays[at].level = stays[nearer(stays, at, levels, values)].level;
		if (stays[stays[at].after].level == stays[at].level)
			join_next(stays, at);
		size_t before = stays[at].before;
		if (before != NONE && stays[before].level == stays[at].level) {
			at = before;
			join_next(stays, at);
		}
		at = stays[at].after;
	}
}

/* Writes the starts of the stays that remain, without the first; returns their number. */
static size_t find_cuts(const double *values, size_t n, const struct mode_levels *levels,
	size_t window, struct scratch *scratch, size_t *cuts)
{
	struct stay *stays = scratch_take(scratch, n, sizeof(*stays));
	list_stays(values, n, levels, stays);
	for (size_t length = 1; length + 2 <= window; length++)
		absorb(stays, length, levels, values);
	size_t count = 0;
	for (size_t at = stays[0].after; at != NONE; at = stays[at].after) {
		bool pending =
			stays[at].after == NONE && stays[at].to - stays[at].from + 1 < window;
		if (!pending)
			cuts[count++] = stays[at].from;
	}
	return count;
}

/* The result, for the trace; `scaled` and the cuts are by run. */
struct modes_trace {
	const struct segments *segments;
	const struct runs *runs;
	const double *scaled;
	const struct mode_levels *apart, *levels; /* before and after near ones were joined */
	double shift;
	const struct modes_options *options;
};

/* The end of the stay on one of the levels that begins with run `from`. */
static size_t stay_end(
	const struct modes_trace *trace, const struct mode_levels *levels, size_t from)
{
	size_t level = level_of(levels, trace->scaled[from]), to = from + 1;

	while (to < trace->runs->count && level_of(levels, trace->scaled[to]) == level)
		to++;
	return to;
}

/* Notes the distance of two levels that were joined, if it alone explains that: they may have been
 * joined by way of levels between them. */
static void limit_apart(const struct modes_trace *trace, size_t cut, struct tried *noted)
{
	const struct level *levels = trace->apart->items;
	double one = levels[level_of(trace->apart, trace->scaled[cut - 1])].mean;
	double other = levels[level_of(trace->apart, trace->scaled[cut])].mean;
	double size = fmax(fabs(one + trace->shift), fabs(other + trace->shift));
	double least = least_distance(
		one, other, trace->levels->noise, trace->options->apart, trace->shift);

	if (size > 0 && fabs(one - other) < least)
		tried_limit(noted, "apart", fabs(one - other) / size, least / size);
}

/* Notes places where the values change their level without a cut. */
static void note_moves(
	const struct modes_trace *trace, const size_t *cuts, size_t count, struct tried_list *tried)
{
	const size_t *starts = trace->runs->starts;
	size_t n = trace->runs->count, next = 0;
	double window = (double)trace->options->window - 1;

	for (size_t from = 0, cut; (cut = stay_end(trace, trace->apart, from)) < n; from = cut) {
		bool joined = level_of(trace->levels, trace->scaled[cut - 1]) ==
			      level_of(trace->levels, trace->scaled[cut]);
		size_t to = stay_end(trace, joined ? trace->apart : trace->levels, cut);
		size_t runs = to == n || to - cut < cut - from ? to - cut : cut - from;
		struct tried one =
			segments_tried(trace->segments, starts[from], starts[cut], starts[to],
				joined    ? TRIED_APART
				: to == n ? TRIED_PENDING
					  : TRIED_EXCURSION);
		one.pvalue = (double)NAN; /* nothing is tested */

		while (next < count && cuts[next] < cut)
			next++;
		if (next < count && cuts[next] == cut)
			continue;
		if (joined)
			limit_apart(trace, cut, &one);
		else if ((double)runs < window)
			tried_limit(&one, "runs", (double)runs, window);
		tried_note(tried, &one);
	}
}

static size_t modes_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	const struct modes_options *given = options;
	scratch_reset(scratch);
	struct segments segments = segments_of(samples, scratch);
	struct runs runs = runs_of(samples, &segments, scratch);
	size_t n = runs.count;
	if (n < 2 || n >= UINT32_MAX)
		return 0;
	double *means = scratch_take(scratch, n, sizeof(double));
	double *scaled = scratch_take(scratch, n, sizeof(double));
	size_t *cuts = scratch_take(scratch, n, sizeof(size_t));
	runs_means(&runs, &segments, means);
	double shift = finite_scale(means, n, scaled).shift;
	struct mode_levels apart, levels = find_levels(scaled, n, given, shift, scratch, &apart);
	size_t count = find_cuts(scaled, n, &levels, (size_t)given->window, scratch, cuts);
	if (scratch_tried(scratch))
		note_moves(&(struct modes_trace){&segments, &runs, scaled, &apart, &levels, shift,
				   given},
			cuts, count, scratch_tried(scratch));
	for (size_t i = 0; i < count; i++)
		cuts[i] = runs.starts[cuts[i]];
	segments_changes(&segments, cuts, NULL, count, out);
	return magnitude_filter(out, count, given->magnitude, scratch_tried(scratch));
}

const struct detector modes_detector = {
	.plugin = {.name = "modes",
		.summary = "levels by k-means of the runs' means, ignoring short excursions "
			   "(Firefox OS)",
		.fields = modes_fields,
		.options_size = sizeof(struct modes_options)},
	.thrift = "choose fewer modes",
	.detect = modes_detect,
};
