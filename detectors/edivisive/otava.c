/*
 * Profile otava: Apache Otava 0.8, index for index. docs/design/algorithms.md section 1.
 *
 * Windows that overlap by half are cut greedily under a relaxed threshold; the points found are
 * then tested over the segments between them, and the weakest is removed until all are significant.
 * Otava recomputes the two points *after* the removed one and leaves its left neighbour stale,
 * which is reproduced here.
 *
 * A full window never changes, so a stream continues at the first window that was not full.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/describe.h"
#include "detectors/edivisive/internal.h"
#include "detectors/edivisive/search.h"
#include "detectors/loops.h"
#include "detectors/stats.h"
#include "detectors/tried.h"

/* An interval of a window between points found so far, with its best split. */
struct interval {
	size_t start, end;
	struct split split; /* tau counts from start */
};

/* A change point with the moments of the segments on its sides, as of when it was last computed. */
struct point {
	size_t index;
	struct moments before, after;
	double p;
};

/* The progress of the windows: those before `start` are done and found the first `count` points. */
struct progress {
	size_t start, count;
};

struct window_pass {
	const double *values;
	size_t n, window;
	double threshold;
	bool all_finite;
	struct search search;
	struct interval *intervals; /* as many as a window has points */
	size_t *found;              /* room for n */
};

struct run {
	struct stream stream;
	struct edivisive_options options;
	struct progress settled; /* before the first window that is not full */
	double *values;          /* with gaps filled */
	size_t *found;
	size_t n, capacity;
	size_t missing; /* values before the first existing one */
	struct change *changes;
	size_t change_capacity;
};

static bool all_finite(const double *values, size_t n)
{
	double zero = 0;
	for (size_t i = 0; i < n; i++)
		zero += values[i] - values[i];
	return zero == 0;
}

static bool split_is_significant(const struct window_pass *pass, const struct interval *interval)
{
	const double *values = pass->values + interval->start;
	size_t tau = interval->split.tau, n = interval->end - interval->start;
	return tau > 0 && scratch_spend(pass->search.scratch, n) &&
	       ttest_pooled_at_most(
		       moments_of(values, tau), moments_of(values + tau, n - tau), pass->threshold);
}

static struct interval interval_of(const struct window_pass *pass, size_t start, size_t end)
{
	return (struct interval){.start = start,
		.end = end,
		.split = search_split(&pass->search, pass->values + start, end - start)};
}

/* Notes the split at which a window was finished, if a trace is wanted. */
static void note_weak(const struct window_pass *pass, const struct interval *interval)
{
	struct tried_list *tried = scratch_tried(pass->search.scratch);
	const double *values = pass->values + interval->start;
	size_t tau = interval->split.tau, n = interval->end - interval->start;

	if (!tried || tau == 0)
		return;
	struct moments before = moments_of(values, tau);
	struct moments after = moments_of(values + tau, n - tau);
	double p = ttest_pooled(before, after).p;
	tried_note(tried, &(struct tried){.index = interval->start + tau,
				  .fate = TRIED_WEAK,
				  .pvalue = isnan(p) ? 1 : p,
				  .mean_before = before.mean,
				  .mean_after = after.mean,
				  .measure = "p",
				  .measured = isnan(p) ? 1 : p,
				  .limit = pass->threshold});
}

/* Cuts intervals[at] at its split and searches the two halves. */
static void cut_interval(const struct window_pass *pass, size_t count, size_t at)
{
	struct interval *cut = pass->intervals + at;
	memmove(cut + 1, cut, (count - at) * sizeof(*cut));
	size_t middle = cut->start + cut->split.tau;
	cut[0] = interval_of(pass, cut[0].start, middle);
	cut[1] = interval_of(pass, middle, cut[1].end);
}

/* Appends the points of the window [start, end) to the first `count` ones; returns how many there
 * are then. */
static size_t detect_window(const struct window_pass *pass, size_t start, size_t end, size_t count)
{
	if (!pass->all_finite && !all_finite(pass->values + start, end - start))
		return count;
	struct interval *intervals = pass->intervals;
	intervals[0] = interval_of(pass, start, end);
	size_t parts = 1;
	for (;;) {
		size_t best = 0;
		scratch_spend(pass->search.scratch, 2 * parts);
		for (size_t i = 1; i < parts; i++)
			if (intervals[i].split.q > intervals[best].split.q)
				best = i;
		if (!split_is_significant(pass, &intervals[best])) {
			note_weak(pass, &intervals[best]);
			break;
		}
		cut_interval(pass, parts, best);
		parts++;
	}
	for (size_t i = 1; i < parts; i++)
		pass->found[count++] = intervals[i].start;
	return count;
}

/* Searches the windows after the settled ones, moves `settled` past the full ones and returns the
 * number of points found. */
static size_t detect_windows(const struct window_pass *pass, struct progress *settled)
{
	size_t step = pass->window / 2, start = settled->start, count = settled->count;
	while (start < pass->n && !scratch_is_spent(pass->search.scratch)) {
		bool full = pass->n - start >= pass->window;
		size_t before = count;
		count = detect_window(pass, start, full ? start + pass->window : pass->n, count);
		size_t last = count > before ? pass->found[count - 1] : 0;
		start = last > start + step ? last : start + step;
		if (full)
			*settled = (struct progress){.start = start, .count = count};
	}
	return count;
}

/* Tests point k between its neighbouring segments. A p that is NaN is never significant. */
static void test_point(const double *values, size_t n, struct point *points, size_t count, size_t k)
{
	struct point *point = points + k;
	size_t start = k > 0 ? point[-1].index : 0, end = k + 1 < count ? point[1].index : n;
	point->before = moments_of(values + start, point->index - start);
	point->after = moments_of(values + point->index, end - point->index);
	double p = ttest_pooled(point->before, point->after).p;
	point->p = isnan(p) ? 1 : p;
}

static double point_magnitude(const struct point *point)
{
	return describe_magnitude(point->before.mean, point->after.mean);
}

/* The next point to remove: the largest p, or if all are significant the smallest magnitude;
 * `count` if all points stand. */
static size_t weakest_point(
	const struct point *points, size_t count, const struct edivisive_options *options)
{
	size_t weakest = 0;
	for (size_t k = 1; k < count; k++)
		if (points[k].p > points[weakest].p)
			weakest = k;
	if (!(points[weakest].p < options->p_value))
		return weakest;
	for (size_t k = weakest = 0; k < count; k++)
		if (point_magnitude(&points[k]) < point_magnitude(&points[weakest]))
			weakest = k;
	return point_magnitude(&points[weakest]) > options->magnitude ? count : weakest;
}

static void note_removed(const struct point *point, const struct edivisive_options *options,
	struct tried_list *tried)
{
	bool weak = !(point->p < options->p_value);

	if (tried)
		tried_note(tried, &(struct tried){.index = point->index,
					  .fate = weak ? TRIED_TEST : TRIED_MAGNITUDE,
					  .pvalue = point->p,
					  .mean_before = point->before.mean,
					  .mean_after = point->after.mean,
					  .measure = weak ? "p" : "magnitude",
					  .measured = weak ? point->p : point_magnitude(point),
					  .limit = weak ? options->p_value : options->magnitude});
}

static size_t merge_points(const double *values, size_t n, struct point *points, size_t count,
	const struct edivisive_options *options, struct scratch *scratch)
{
	while (count > 0) {
		size_t k = weakest_point(points, count, options);
		/* Two points are tested again. */
		size_t start = k > 0 ? points[k - 1].index : 0;
		size_t end = k + 3 < count ? points[k + 3].index : n;
		if (k == count || !scratch_spend(scratch, end - start + 16 * count))
			break;
		note_removed(&points[k], options, scratch_tried(scratch));
		count--;
		memmove(points + k, points + k + 1, (count - k) * sizeof(*points));
		for (size_t i = k; i < count && i <= k + 1; i++)
			test_point(values, n, points, count, i);
	}
	return count;
}

/* Merges the points that the windows found, and writes those that stand. */
static size_t judge_points(const struct window_pass *pass, size_t found,
	const struct edivisive_options *options, struct scratch *scratch, struct change *out)
{
	struct point *points = scratch_take(scratch, found, sizeof(*points));
	for (size_t k = 0; k < found; k++)
		points[k].index = pass->found[k];
	for (size_t k = 0; k < found; k++)
		test_point(pass->values, pass->n, points, found, k);
	size_t count = merge_points(pass->values, pass->n, points, found, options, scratch);
	for (size_t k = 0; k < count; k++) {
		size_t start = k > 0 ? points[k - 1].index : 0;
		size_t end = k + 1 < count ? points[k + 1].index : pass->n;
		out[k] = (struct change){
			.index = points[k].index,
			.pvalue = points[k].p,
			.mean_before = points[k].before.mean,
			.mean_after = points[k].after.mean,
			.stddev_before = moments_stddev(points[k].before, 0),
			.stddev_after = moments_stddev(points[k].after, 0),
			.count_before = points[k].before.n,
			.count_after = points[k].after.n,
			.magnitude = point_magnitude(&points[k]),
		};
		describe_step(&out[k], pass->values, NULL, start, points[k].index, end, 0);
	}
	return count;
}

static struct stream *stream_begin(const struct edivisive_options *options, size_t excursion)
{
	struct run *run = memory_new(1, sizeof *run);
	(void)excursion;
	run->options = *options;
	return &run->stream;
}

/* Missing values are as the one before, the first ones as the first that exists. */
static void add_values(struct run *run, const double *values, size_t n)
{
	size_t needed = run->n + n;
	if (needed > run->capacity) {
		run->capacity = needed + needed / 2;
		run->values = memory_resize(run->values, run->capacity, sizeof *run->values);
		run->found = memory_resize(run->found, run->capacity, sizeof *run->found);
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = run->n + i;
		run->values[at] = isnan(values[i]) && at > 0 ? run->values[at - 1] : values[i];
	}
	if (run->missing == run->n) {
		while (run->missing < needed && isnan(run->values[run->missing]))
			run->missing++;
		for (size_t i = 0; run->missing < needed && i < run->missing; i++)
			run->values[i] = run->values[run->missing];
		if (run->missing < needed)
			run->settled = (struct progress){0};
	}
	run->n = needed;
}

static const struct change *stream_append(struct stream *stream, const double *values, size_t n,
	struct scratch *scratch, size_t *count)
{
	struct run *run = (struct run *)stream;
	add_values(run, values, n);
	*count = 0;
	if (run->n <= 2)
		return run->changes;
	scratch_reset(scratch);
	size_t window = (size_t)run->options.window, longest = window < run->n ? window : run->n;
	double p = run->options.p_value;
	const struct window_pass pass = {
		.values = run->values,
		.n = run->n,
		.window = window,
		.threshold = p < 0.05  ? 10 * p
			     : p < 0.5 ? 2 * p
				       : p,
		.all_finite = all_finite(run->values, run->n),
		.search = search_new(longest, loops_best(), scratch),
		.intervals = scratch_take(scratch, longest, sizeof(struct interval)),
		.found = run->found,
	};
	size_t found = detect_windows(&pass, &run->settled);
	if (found > run->change_capacity) {
		run->change_capacity = 2 * found;
		run->changes = memory_resize(run->changes, 2 * found, sizeof *run->changes);
	}
	*count = judge_points(&pass, found, &run->options, scratch, run->changes);
	return run->changes;
}

static void free_all(struct run *run)
{
	free(run->values);
	free(run->found);
	free(run->changes);
}

/* All segments are tested again in each call, so nothing can be kept. */
static size_t stream_rest(struct stream *stream, size_t *fixed)
{
	struct run *run = (struct run *)stream;
	free_all(run);
	*run = (struct run){.stream = run->stream, .options = run->options};
	return *fixed = 0;
}

static size_t stream_chunk(const struct stream *stream, size_t at)
{
	(void)stream;
	(void)at;
	return 0;
}

static void stream_end(struct stream *stream)
{
	free_all((struct run *)stream);
	free(stream);
}

const struct profile otava_profile = {
	stream_begin, stream_append, stream_rest, stream_chunk, stream_end};
