/*
 * The default profile on a whole series, and as a stream: docs/design/algorithms.md section 2.1.
 *
 * A run goes over the existing values in chunks of 7W. Once there are values beyond a chunk, its
 * change points before 5W are settled, that is, final. Only the last chunk is evaluated again when
 * values are added, so an append costs the same however long the series is; a full run does nothing
 * else, so the result is the same.
 *
 * Reported means and deviations are those of whole segments: the moments of a segment are added up
 * from left to right in blocks (struct fold), and a run keeps the sum up to the start of the last
 * chunk. Values of extreme size are brought to an ordinary size for that, by a power of two that
 * the first value other than zero decides.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/describe.h"
#include "detectors/edivisive/chunk.h"
#include "detectors/edivisive/internal.h"
#include "detectors/finite.h"
#include "detectors/scratch.h"
#include "detectors/stats.h"

/* The moments of the values [start, end), added up from left to right in blocks that end at
 * multiples of RUN_BLOCK. */
struct fold {
	size_t start, end;
	struct moments moments;
};

enum { RUN_BLOCK = 64 };

struct run {
	struct stream stream;
	size_t n;       /* values so far, missing ones included */
	double *values; /* existing values with the indices [first, end) among all existing ones */
	size_t *places; /* theirs in the series */
	size_t first, end, room;
	struct chunk chunk;
	size_t chunk_start;
	struct fold fold; /* of the segment from the last settled point to a block's end before
			     the chunk; values before its end are not needed any more */
	struct change *changes; /* the result: the settled ones, then those of the last chunk */
	size_t count, settled, capacity;
	size_t fixed;   /* the settled changes depend on the first `fixed` values */
	size_t *starts; /* places where the chunks after the first began */
	size_t start_count, start_capacity;
	size_t ramp_end; /* end of the last settled change's ramp; 0 if it has none */
	bool ramp_rises;
	size_t zeros; /* values before the first that is not zero */
	bool has_unit;
	int unit;             /* moments are of values times 2^unit */
	struct change *large; /* those of the changes above the least magnitude */
};

enum { SETTLED_WINDOWS = 5, ADVANCE_WINDOWS = 3, ORDINARY_EXPONENT = 300 };

/* Values whose squares would leave the range of double are scaled by a power of two that suits the
 * first value other than zero. */
static void choose_unit(struct run *run)
{
	int exponent;
	if (run->has_unit)
		return;
	while (run->zeros < run->end && run->values[run->zeros - run->first] == 0)
		run->zeros++;
	if (run->zeros == run->end)
		return;
	run->has_unit = true;
	frexp(run->values[run->zeros - run->first], &exponent);
	run->unit = abs(exponent) > ORDINARY_EXPONENT ? -exponent : 0;
}

/* Adds values up to `end`. */
static void fold_to(const struct run *run, struct fold *fold, size_t end)
{
	double scaled[RUN_BLOCK];
	while (fold->end < end) {
		size_t stop = (fold->end / RUN_BLOCK + 1) * RUN_BLOCK;
		stop = stop < end ? stop : end;
		size_t n = stop - fold->end;
		const double *values = run->values + (fold->end - run->first);
		for (size_t i = 0; run->unit != 0 && i < n; i++)
			scaled[i] = ldexp(values[i], run->unit);
		fold->moments = moments_join(
			fold->moments, moments_of(run->unit == 0 ? values : scaled, n));
		fold->end = stop;
	}
}

/*
 * Writes `count` steps of the chunk behind the settled changes, with the statistics of the segments
 * between them; the last segment reaches to `end`. Returns the fold of that segment.
 */
static struct fold write_changes(
	struct run *run, const struct chunk_step *steps, size_t count, size_t end)
{
	struct fold fold = run->fold;
	if (run->settled + count > run->capacity) {
		run->capacity = 2 * (run->settled + count);
		run->changes = memory_resize(run->changes, run->capacity, sizeof *run->changes);
	}
	run->count = run->settled;
	for (size_t k = 0; k <= count; k++) {
		size_t stop = k < count ? run->chunk_start + steps[k].tau : end;
		fold_to(run, &fold, stop);
		double mean = ldexp(fold.moments.mean, -run->unit);
		double deviation = ldexp(moments_stddev(fold.moments, 1), -run->unit);
		if (run->count > 0) {
			struct change *change = &run->changes[run->count - 1];
			change->mean_after = mean;
			change->stddev_after = deviation;
			change->count_after = fold.moments.n;
			change->magnitude = describe_magnitude(change->mean_before, mean);
		}
		if (k == count)
			break;
		run->changes[run->count++] =
			(struct change){.index = run->places[stop - run->first],
				.pvalue = steps[k].p,
				.mean_before = mean,
				.stddev_before = deviation,
				.count_before = fold.moments.n};
		fold = (struct fold){.start = stop, .end = stop};
	}
	return fold;
}

/* Sets the levels, size and place of a trend from its ramp. */
static void describe_trend(const struct run *run, const struct slope *slope, struct change *change)
{
	const struct chunk *chunk = &run->chunk;
	const size_t *places = run->places + (run->chunk_start - run->first);
	struct levels levels = {
		.before = slope->from + chunk->shift,
		.after = slope->to + chunk->shift,
		.variance_before = slope->from_variance,
		.variance_after = slope->to_variance,
		.covariance = slope->covariance,
		.df = slope->df,
	};
	change->kind = CHANGE_TREND;
	change->level_before = ldexp(levels.before, -chunk->exponent);
	change->level_after = ldexp(levels.after, -chunk->exponent);
	change->cause_from = change->place_from = places[slope->start];
	change->cause_to = change->place_to = places[slope->end - 1];
	describe_size(change, &levels);
}

/* Sets levels, size and place of the first `count` of `total` steps, which were just written. */
static void describe_changes(
	struct run *run, const struct chunk_step *steps, size_t count, size_t total)
{
	const double *values = run->values + (run->chunk_start - run->first);
	const size_t *places = run->places + (run->chunk_start - run->first);
	double sides[2 * DESCRIBE_SIDE];
	for (size_t k = 0; k < count; k++) {
		struct change *change = &run->changes[run->settled + k];
		size_t cut = steps[k].tau, start = k > 0 ? steps[k - 1].tau : 0;
		size_t end = k + 1 < total ? steps[k + 1].tau : run->chunk.n;
		start = cut - start > DESCRIBE_SIDE ? cut - DESCRIBE_SIDE : start;
		end = end - cut > DESCRIBE_SIDE ? cut + DESCRIBE_SIDE : end;
		for (size_t i = start; i < end; i++)
			sides[i - start] = ldexp(values[i], run->unit);
		describe_step(
			change, sides, places + start, 0, cut - start, end - start, run->unit);
		if (steps[k].ramp)
			describe_trend(run, &steps[k].slope, change);
	}
}

/* A chunk that begins on a ramp finds the rest of that ramp again, which is no change of its own.
 */
static size_t drop_rest_of_ramp(
	const struct run *run, struct chunk_step *steps, size_t count, struct tried_list *tried)
{
	size_t kept = 0;
	for (size_t k = 0; k < count; k++) {
		bool rises = steps[k].slope.to > steps[k].slope.from;
		bool rest = steps[k].ramp && rises == run->ramp_rises &&
			    run->chunk_start + steps[k].tau < run->ramp_end;
		if (!rest) {
			steps[kept++] = steps[k];
		} else if (tried) {
			struct tried one = tried_untested(tried->places[steps[k].tau], TRIED_RAMP);
			one.pvalue = steps[k].p;
			tried_note(tried, &one);
		}
	}
	return kept;
}

/* Settles the changes that a full chunk found before 5W, and moves to the next chunk. */
static void settle_chunk(struct run *run, const struct chunk_step *steps, size_t count)
{
	size_t window = (size_t)run->chunk.options.window, settled = 0;
	while (settled < count && steps[settled].tau < SETTLED_WINDOWS * window)
		settled++;
	const struct chunk_step *newest = settled > 0 ? &steps[settled - 1] : NULL;
	size_t advance = ADVANCE_WINDOWS * window;
	if (newest && newest->tau > advance)
		advance = newest->tau;
	size_t next = run->chunk_start + advance;
	size_t last = newest ? run->chunk_start + newest->tau : run->fold.start;
	size_t block = next / RUN_BLOCK * RUN_BLOCK;
	run->fold = write_changes(run, steps, settled, last);
	describe_changes(run, steps, settled, count);
	if (block > run->fold.end)
		fold_to(run, &run->fold, block);
	run->settled = run->count;
	run->fixed = run->chunk_start + CHUNK_WINDOWS * window + 1;
	run->starts = memory_grow(
		run->starts, &run->start_capacity, run->start_count + 1, sizeof *run->starts);
	run->starts[run->start_count++] = run->places[next - run->first];
	size_t decided = run->chunk_start + SETTLED_WINDOWS * window - REFINE_REACH;
	if (newest) { /* the next chunk may begin on its ramp */
		run->ramp_end = newest->ramp ? run->chunk_start + newest->slope.end : 0;
		run->ramp_rises = newest->slope.to > newest->slope.from;
	}
	run->chunk_start = next;
	chunk_restart(&run->chunk, decided > next ? decided - next : 0);
}

/* Processes the values up to run->end; run->changes are then the change points of all values so
 * far. */
static void extend(struct run *run, struct scratch *scratch)
{
	size_t longest = CHUNK_WINDOWS * (size_t)run->chunk.options.window;
	size_t rest = run->end - run->chunk_start;
	struct tried_list *tried = scratch_tried(scratch);
	struct chunk_workspace workspace =
		chunk_workspace_new(&run->chunk.options, rest < longest ? rest : longest, scratch);
	choose_unit(run);
	for (;;) {
		size_t n = run->end - run->chunk_start, offset = run->chunk_start - run->first;
		bool is_last = n <= longest;
		if (tried)
			tried->places = run->places + offset;
		size_t count = chunk_evaluate(
			&run->chunk, run->values + offset, is_last ? n : longest, &workspace);
		count = drop_rest_of_ramp(run, workspace.steps, count, tried);
		if (scratch_is_spent(scratch))
			return;
		if (!is_last) {
			settle_chunk(run, workspace.steps, count);
			if (tried) /* the next chunk decides on the places from there on */
				tried_forget(tried, run->places[run->chunk_start +
								run->chunk.decided - run->first]);
			continue;
		}
		if (count == 0 && run->chunk_start == 0)
			count = chunk_short(&run->chunk, workspace.steps);
		write_changes(run, workspace.steps, count, run->end);
		describe_changes(run, workspace.steps, count, count);
		/* Places within a trend are parts of it. (detector_run notes the changes.) */
		for (size_t k = 0; tried && k < run->count; k++)
			if (run->changes[k].kind == CHANGE_TREND)
				tried_ramp(tried, run->changes[k].place_from,
					run->changes[k].place_to);
		return;
	}
}

static struct stream *stream_begin(const struct edivisive_options *options, size_t excursion)
{
	struct run *run = memory_new(1, sizeof *run);
	run->chunk = chunk_new(options, excursion);
	return &run->stream;
}

static void resize(struct run *run, size_t room)
{
	run->room = room;
	run->values = memory_resize(run->values, room, sizeof *run->values);
	run->places = memory_resize(run->places, room, sizeof *run->places);
}

static void add_values(struct run *run, const double *values, size_t n)
{
	size_t held = run->end - run->first;
	if (held + n > run->room || !run->values)
		resize(run, held + n + (held + n) / 2);
	size_t count = finite_values(values, n, run->values + held, run->places + held);
	for (size_t i = 0; i < count; i++)
		run->places[held + i] += run->n;
	run->end += count;
	run->n += n;
}

/* Drops values that are not needed any more, and shrinks the arrays after a long append. */
static void drop_values(struct run *run)
{
	size_t first = run->fold.end, done = first - run->first, held = run->end - first;
	if (done == 0)
		return;
	memmove(run->values, run->values + done, held * sizeof(double));
	memmove(run->places, run->places + done, held * sizeof(size_t));
	run->first = first;
	if (run->room > 4 * held)
		resize(run, 2 * held);
}

/* The run keeps its changes as they are: whether one is large depends on those before it. */
static const struct change *stream_append(struct stream *stream, const double *values, size_t n,
	struct scratch *scratch, size_t *count)
{
	struct run *run = (struct run *)stream;
	double least = run->chunk.options.magnitude;
	scratch_reset(scratch);
	add_values(run, values, n);
	extend(run, scratch);
	drop_values(run);
	*count = run->count;
	if (least <= 0 || run->count == 0)
		return run->changes;
	run->large = memory_resize(run->large, run->count, sizeof *run->changes);
	memcpy(run->large, run->changes, run->count * sizeof *run->changes);
	*count = magnitude_filter(run->large, run->count, least, scratch_tried(scratch));
	return run->large;
}

/* The place of the existing value with that index, or where the next one would be. */
static size_t place_of(const struct run *run, size_t number)
{
	return number < run->end ? run->places[number - run->first] : run->n;
}

/* Frees what can be computed again from the values from run->first on. */
static size_t stream_rest(struct stream *stream, size_t *fixed)
{
	struct run *run = (struct run *)stream;
	size_t from = place_of(run, run->first), decided = run->chunk.decided;

	*fixed = run->fixed > 0 ? place_of(run, run->fixed - 1) + 1 : 0;
	chunk_free(&run->chunk);
	run->chunk = chunk_new(&run->chunk.options, run->chunk.excursion);
	chunk_restart(&run->chunk, decided);
	run->count = run->capacity = run->settled;
	run->changes = memory_resize(run->changes, run->capacity, sizeof *run->changes);
	if (run->zeros >= run->fixed) {
		run->zeros = run->fixed;
		run->has_unit = false;
		run->unit = 0;
	}
	free(run->values);
	free(run->places);
	run->values = NULL;
	run->places = NULL;
	run->room = 0;
	run->end = run->first;
	run->n = from;
	return from;
}

static size_t stream_chunk(const struct stream *stream, size_t at)
{
	const struct run *run = (const struct run *)stream;
	size_t count = run->start_count;

	while (count > 0 && run->starts[count - 1] > at)
		count--;
	return count > 0 ? run->starts[count - 1] : 0;
}

static void stream_end(struct stream *stream)
{
	struct run *run = (struct run *)stream;
	chunk_free(&run->chunk);
	free(run->changes);
	free(run->starts);
	free(run->large);
	free(run->values);
	free(run->places);
	free(run);
}

const struct profile default_profile = {
	stream_begin, stream_append, stream_rest, stream_chunk, stream_end};
