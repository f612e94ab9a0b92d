/*
 * A run is compared with the *nearest* of all samples of the runs before it: a level that was there
 * recently is no news. So noise with several modes gives no changes, and neither does the end of a
 * spike.
 *
 * Successive runs of one binary are pooled: they cannot differ, and together they have more
 * samples.
 */
#include "detectors/lookback.h"

#include <math.h>
#include <string.h>

#include "detectors/mannwhitney.h"
#include "detectors/scratch.h"
#include "detectors/segments.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

static const char *const bests[] = {"auto", "min", "max", "median", NULL};

static const struct field lookback_fields[] = {
	OPTION_INT(struct lookback_options, runs, "10", 1, 1000, "earlier runs to compare with",
		.metavar = "COUNT"),
	OPTION_CHOICE(struct lookback_options, best, "auto", bests,
		"the sample that represents a run; auto is max if higher is better, else min"),
	OPTION_DOUBLE(struct lookback_options, magnitude, "0.01", 0, 1e300,
		"minimum relative size of a change; 0.01 is 1%", .alias = "min_magnitude",
		.letter = 'M', .metavar = "SHARE"),
	OPTION_DOUBLE(struct lookback_options, floor, "0", 0, 1e300,
		"minimum absolute size of a change, in the unit of the values", .metavar = "X"),
	OPTION_DOUBLE(struct lookback_options, p_value, "0.05", 0, 1,
		"maximum p-value of a change, if there are enough samples for a Mann-Whitney test",
		.alias = "max_pvalue", .flags = FIELD_MIN_OPEN, .letter = 'P', .metavar = "P"),
	OPTION_INT(struct lookback_options, min_samples, "4", 1, 1e6,
		"minimum number of samples on each side for the test", .metavar = "COUNT"),
	OPTION_DOUBLE(struct lookback_options, deviations, "2.576", 0, 1e6,
		"minimum size of a change in standard deviations of the run's samples, if it has "
		"several",
		.metavar = "X"),
	{0},
};

static double best_of(
	const struct lookback_side *side, int best, int direction, struct scratch *scratch)
{
	if (best == LOOKBACK_MEDIAN) {
		scratch_reset(scratch);
		double *sorted = scratch_take(scratch, side->n, sizeof(double));
		memcpy(sorted, side->values, side->n * sizeof(double));
		return sort_median(sorted, side->n);
	}
	bool largest = best == LOOKBACK_MAX || (best == LOOKBACK_AUTO && direction > 0);
	double found = side->values[0];
	for (size_t i = 1; i < side->n; i++)
		if (largest ? side->values[i] > found : side->values[i] < found)
			found = side->values[i];
	return found;
}

static struct lookback_result unchanged(struct lookback_result result, enum tried_fate fate,
	const char *measure, double measured, double limit)
{
	result.fate = fate;
	result.measure = measure;
	result.measured = measured;
	result.limit = limit;
	return result;
}

struct lookback_result lookback_compare(const struct lookback_side *now,
	const struct lookback_side *before, int direction, const struct lookback_options *options,
	struct scratch *scratch)
{
	struct lookback_result result = {.p = 1};
	size_t least = (size_t)options->min_samples;
	if (now->n == 0 || before->n == 0)
		return result;
	double best = best_of(now, options->best, direction, scratch);
	double nearest = before->values[0], size;
	for (size_t i = 1; i < before->n; i++)
		if (fabs(before->values[i] - best) < fabs(nearest - best))
			nearest = before->values[i];
	result.delta = best - nearest;
	size = fabs(result.delta);
	bool same_binary = now->hash != 0 && now->hash == before->hash;
	if (same_binary || size == 0)
		return unchanged(result, TRIED_BINARY, NULL, 0, 0);
	if (size < options->magnitude * fabs(nearest))
		return unchanged(result, TRIED_MAGNITUDE, "magnitude", size / fabs(nearest),
			options->magnitude);
	if (size < options->floor)
		return unchanged(result, TRIED_FLOOR, "size", size, options->floor);
	result.tested = now->n >= least && before->n >= least;
	if (result.tested)
		result.p = mannwhitney_test(
			now->values, now->n, before->values, before->n, true, scratch)
				   .p;
	if (result.tested && result.p > options->p_value)
		return unchanged(result, TRIED_TEST, "p", result.p, options->p_value);
	double deviation = moments_stddev(moments_of(now->values, now->n), 1);
	if (now->n > 1 && size <= options->deviations * deviation)
		return unchanged(
			result, TRIED_SAMPLES, "size", size, options->deviations * deviation);
	bool better = direction > 0 ? result.delta > 0 : result.delta < 0;
	result.verdict = better ? LOOKBACK_IMPROVED : LOOKBACK_REGRESSED;
	return result;
}

static struct lookback_side side_of(
	const struct runs *runs, const struct segments *segments, size_t from, size_t to)
{
	size_t start = runs->starts[from];
	return (struct lookback_side){segments->values + start, runs->starts[to] - start,
		to > from ? runs->hashes[to - 1] : 0};
}

/* Where the comparisons are noted, if a trace is wanted. */
struct lookback_trace {
	struct tried_list *list;
	const struct runs *runs;
	const struct segments *segments;
	struct tried_best small; /* differences below the magnitude */
};

static void note_unchanged(
	struct lookback_trace *trace, size_t run, size_t back, const struct lookback_result *result)
{
	const size_t *starts = trace->runs->starts;
	double size = fabs(result->delta), unit = ldexp(1, -trace->segments->unit);
	bool is_size = result->measure && strcmp(result->measure, "size") == 0;
	struct tried one = segments_tried(
		trace->segments, starts[run - back], starts[run], starts[run + 1], result->fate);

	one.pvalue = result->tested ? result->p : (double)NAN;
	tried_limit(&one, result->measure, result->measured * (is_size ? unit : 1),
		result->limit * (is_size ? unit : 1));
	if (result->fate == TRIED_MAGNITUDE)
		tried_offer(trace->list, &trace->small, run, &one);
	else if (size > 0)
		tried_note(trace->list, &one);
}

/* Writes the starts of runs that differ from those before, and the p-values of the tests, -1
 * without one; returns their number. */
static size_t find_cuts(const struct runs *runs, const struct segments *segments, int direction,
	const struct lookback_options *options, struct scratch *scratch, size_t *cuts,
	double *pvalues)
{
	struct scratch *tests = scratch_child(scratch);
	size_t count = 0;
	struct lookback_trace trace = {
		.list = scratch_tried(scratch), .runs = runs, .segments = segments};
	for (size_t run = 1; run < runs->count; run++) {
		size_t back = run < (size_t)options->runs ? run : (size_t)options->runs;
		struct lookback_side now = side_of(runs, segments, run, run + 1);
		struct lookback_side before = side_of(runs, segments, run - back, run);
		if (!scratch_spend(tests, 4 * (now.n + before.n)))
			break;
		struct lookback_result result =
			lookback_compare(&now, &before, direction, options, tests);
		if (result.verdict == LOOKBACK_UNCHANGED) {
			if (trace.list && result.delta != 0)
				note_unchanged(&trace, run, back, &result);
			continue;
		}
		pvalues[count] = result.tested ? result.p : -1;
		cuts[count++] = runs->starts[run];
	}
	if (trace.list)
		tried_flush(trace.list, &trace.small);
	scratch_free(tests);
	return count;
}

static size_t lookback_detect(const struct samples *samples, const void *options,
	struct scratch *scratch, struct change *out)
{
	struct lookback_options given = *(const struct lookback_options *)options;
	scratch_reset(scratch);
	struct segments segments = segments_of(samples, scratch);
	struct runs runs = runs_of(samples, &segments, scratch);
	runs_pool(&runs);
	size_t *cuts = scratch_take(scratch, runs.count, sizeof(size_t));
	double *pvalues = scratch_take(scratch, runs.count, sizeof(double));
	given.floor = ldexp(given.floor, segments.unit);
	size_t count =
		find_cuts(&runs, &segments, samples->direction, &given, scratch, cuts, pvalues);
	segments_changes(&segments, cuts, pvalues, count, out);
	return count;
}

const struct detector lookback_detector = {
	.plugin = {.name = "lookback",
		.summary = "each run against the recent ones, with the rules of LNT (LLVM)",
		.fields = lookback_fields,
		.options_size = sizeof(struct lookback_options)},
	.thrift = "choose fewer runs",
	.detect = lookback_detect,
};
