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

#include "detectors/describe.h"
#include "detectors/edivisive/chunk.h"
#include "detectors/edivisive/internal.h"
#include "detectors/finite.h"
#include "detectors/magnitude.h"
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
	struct chunk chunk;
	size_t chunk_start;
	struct fold fold; /* of the segment from the last settled point to a block's end before
			     the chunk */
	struct change *changes; /* the result: the settled ones, then those of the last chunk */
	size_t count, settled, capacity;
	size_t fixed;   /* the settled changes depend on the first `fixed` values */
	size_t *starts; /* places where the chunks after the first began */
	size_t start_count, start_capacity;
	size_t ramp_end; /* end of the last settled change's ramp; 0 if it has none */
	bool ramp_rises;
	size_t zeros; /* values before the first that is not zero */
	bool has_unit;
	int unit; /* moments are of values times 2^unit */
};

/* The existing values with the indices [first, end) among all existing ones, and their places in
 * the series. */
struct stretch {
	const double *values;
	const size_t *places;
	size_t first, end;
};

enum { SETTLED_WINDOWS = 5, ADVANCE_WINDOWS = 3, ORDINARY_EXPONENT = 300 };

static struct run run_new(const struct edivisive_options *options, size_t excursion)
{
	return (struct run){.chunk = chunk_new(options, excursion)};
}

static void run_free(struct run *run)
{
	chunk_free(&run->chunk);
	free(run->changes);
	free(run->starts);
}

/*
 * Frees data that can be computed again from the values from run_first on. Values from index
 * `fixed` on may differ when they come again.
 */
static void run_rest(struct run *run)
{
	size_t decided = run->chunk.decided;

	chunk_free(&run->chunk);
	run->chunk = chunk_new(&run->chunk.options, run->chunk.excursion);
	chunk_restart(&run->chunk, decided);
	run->count = run->capacity = run->settled;
	run->changes = scratch_resize(run->changes, run->capacity, sizeof *run->changes);
	if (run->zeros < run->fixed)
		return;
	run->zeros = run->fixed;
	run->has_unit = false;
	run->unit = 0;
}

/* The index of the first value that is still needed: a stretch may begin there. */
static size_t run_first(const struct run *run)
{
	return run->fold.end;
}

/* Values whose squares would leave the range of double are scaled by a power of two that suits the
 * first value other than zero. */
static void choose_unit(struct run *run, const struct stretch *stretch)
{
	if (run->has_unit)
		return;
	while (run->zeros < stretch->end && stretch->values[run->zeros - stretch->first] == 0)
		run->zeros++;
	if (run->zeros == stretch->end)
		return;
	run->has_unit = true;
	int exponent;
	frexp(stretch->values[run->zeros - stretch->first], &exponent);
	run->unit = abs(exponent) > ORDINARY_EXPONENT ? -exponent : 0;
}

static struct moments scaled_moments(const double *values, size_t n, int unit)
{
	double scaled[RUN_BLOCK];
	if (unit == 0)
		return moments_of(values, n);
	for (size_t i = 0; i < n; i++)
		scaled[i] = ldexp(values[i], unit);
	return moments_of(scaled, n);
}

/* Adds values up to `end`. */
static void fold_to(struct fold *fold, size_t end, const struct stretch *stretch, int unit)
{
	while (fold->end < end) {
		size_t stop = (fold->end / RUN_BLOCK + 1) * RUN_BLOCK;
		stop = stop < end ? stop : end;
		const double *values = stretch->values + (fold->end - stretch->first);
		fold->moments =
			moments_join(fold->moments, scaled_moments(values, stop - fold->end, unit));
		fold->end = stop;
	}
}

static void set_after(const struct run *run, struct change *change, struct moments after)
{
	change->mean_after = ldexp(after.mean, -run->unit);
	change->stddev_after = ldexp(moments_stddev(after, 1), -run->unit);
	change->count_after = after.n;
	change->magnitude = describe_magnitude(change->mean_before, change->mean_after);
}

static struct change change_at(const struct run *run, size_t place, double p, struct moments before)
{
	return (struct change){
		.index = place,
		.pvalue = p,
		.mean_before = ldexp(before.mean, -run->unit),
		.stddev_before = ldexp(moments_stddev(before, 1), -run->unit),
		.count_before = before.n,
	};
}

static void make_room(struct run *run, size_t more)
{
	if (run->settled + more <= run->capacity)
		return;
	run->capacity = 2 * (run->settled + more);
	run->changes = scratch_resize(run->changes, run->capacity, sizeof(struct change));
}

/*
 * Writes `count` steps of the chunk behind the settled changes, with the statistics of the segments
 * between them; the last segment reaches to `end`. Returns the fold of that segment.
 */
static struct fold write_changes(struct run *run, const struct stretch *stretch,
	const struct chunk_step *steps, size_t count, size_t end)
{
	make_room(run, count);
	struct fold fold = run->fold;
	run->count = run->settled;
	for (size_t k = 0; k <= count; k++) {
		size_t stop = k < count ? run->chunk_start + steps[k].tau : end;
		fold_to(&fold, stop, stretch, run->unit);
		if (run->count > 0)
			set_after(run, &run->changes[run->count - 1], fold.moments);
		if (k == count)
			break;
		size_t place = stretch->places[stop - stretch->first];
		run->changes[run->count++] = change_at(run, place, steps[k].p, fold.moments);
		fold = (struct fold){.start = stop, .end = stop};
	}
	return fold;
}

/* Sets the levels, size and place of a trend from its ramp. */
static void describe_trend(const struct run *run, const struct stretch *stretch,
	const struct chunk_step *step, struct change *change)
{
	const struct chunk *chunk = &run->chunk;
	const size_t *places = stretch->places + (run->chunk_start - stretch->first);
	change->kind = CHANGE_TREND;
	const struct slope *slope = &step->slope;
	struct levels levels = {
		.before = slope->from + chunk->shift,
		.after = slope->to + chunk->shift,
		.variance_before = slope->from_variance,
		.variance_after = slope->to_variance,
		.covariance = slope->covariance,
		.df = slope->df,
	};
	change->level_before = ldexp(levels.before, -chunk->exponent);
	change->level_after = ldexp(levels.after, -chunk->exponent);
	change->place_from = places[slope->start];
	change->place_to = places[slope->end - 1];
	change->cause_from = change->place_from;
	change->cause_to = change->place_to;
	describe_size(change, &levels);
}

/* Sets levels, size and place of the first `count` of `total` steps, which were just written. */
static void describe_changes(struct run *run, const struct stretch *stretch,
	const struct chunk_step *steps, size_t count, size_t total)
{
	const double *values = stretch->values + (run->chunk_start - stretch->first);
	const size_t *places = stretch->places + (run->chunk_start - stretch->first);
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
			describe_trend(run, stretch, &steps[k], change);
	}
}

/* Remembers the ramp of the last settled change, if it has one: the next chunk may begin on it. */
static void keep_ramp(struct run *run, const struct chunk_step *last)
{
	run->ramp_end = last->ramp ? run->chunk_start + last->slope.end : 0;
	run->ramp_rises = last->slope.to > last->slope.from;
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
static void settle_chunk(struct run *run, const struct stretch *stretch,
	const struct chunk_step *steps, size_t count)
{
	size_t window = (size_t)run->chunk.options.window, settled = 0;
	while (settled < count && steps[settled].tau < SETTLED_WINDOWS * window)
		settled++;
	size_t advance = ADVANCE_WINDOWS * window;
	if (settled > 0 && steps[settled - 1].tau > advance)
		advance = steps[settled - 1].tau;
	size_t next = run->chunk_start + advance;
	size_t last = settled > 0 ? run->chunk_start + steps[settled - 1].tau : run->fold.start;
	size_t block = next / RUN_BLOCK * RUN_BLOCK;
	run->fold = write_changes(run, stretch, steps, settled, last);
	describe_changes(run, stretch, steps, settled, count);
	if (block > run->fold.end)
		fold_to(&run->fold, block, stretch, run->unit);
	run->settled = run->count;
	run->fixed = run->chunk_start + CHUNK_WINDOWS * window + 1;
	if (run->start_count == run->start_capacity) {
		run->start_capacity = 2 * run->start_count + 1;
		run->starts = scratch_resize(run->starts, run->start_capacity, sizeof(size_t));
	}
	run->starts[run->start_count++] = stretch->places[next - stretch->first];
	size_t decided = run->chunk_start + SETTLED_WINDOWS * window - REFINE_REACH;
	if (settled > 0)
		keep_ramp(run, &steps[settled - 1]);
	run->chunk_start = next;
	chunk_restart(&run->chunk, decided > next ? decided - next : 0);
}

/* Places within a trend are parts of it. (detector_run notes the changes themselves.) */
static void note_trends(const struct run *run, struct tried_list *tried)
{
	for (size_t k = 0; k < run->count; k++)
		if (run->changes[k].kind == CHANGE_TREND)
			tried_ramp(tried, run->changes[k].place_from, run->changes[k].place_to);
}

/* Forgets the notes on places that the next chunk will decide. */
static void forget_unsettled(
	const struct run *run, const struct stretch *stretch, struct tried_list *tried)
{
	size_t decided = run->chunk_start + run->chunk.decided;
	tried_forget(tried, stretch->places[decided - stretch->first]);
}

/* Processes the values up to stretch->end; run->changes are then the change points of all values so
 * far. */
static void run_extend(struct run *run, const struct stretch *stretch, struct scratch *scratch)
{
	size_t longest = CHUNK_WINDOWS * (size_t)run->chunk.options.window;
	size_t rest = stretch->end - run->chunk_start;
	choose_unit(run, stretch);
	struct tried_list *tried = scratch_tried(scratch);
	struct chunk_workspace workspace =
		chunk_workspace_new(&run->chunk.options, rest < longest ? rest : longest, scratch);
	for (;;) {
		size_t n = stretch->end - run->chunk_start;
		bool is_last = n <= longest;
		if (tried)
			tried->places = stretch->places + (run->chunk_start - stretch->first);
		size_t count = chunk_evaluate(&run->chunk,
			stretch->values + (run->chunk_start - stretch->first),
			is_last ? n : longest, &workspace);
		count = drop_rest_of_ramp(run, workspace.steps, count, tried);
		if (scratch_is_spent(scratch))
			return;
		if (is_last && count == 0 && run->chunk_start == 0)
			count = chunk_short(&run->chunk, workspace.steps);
		if (is_last) {
			write_changes(run, stretch, workspace.steps, count, stretch->end);
			describe_changes(run, stretch, workspace.steps, count, count);
			if (tried)
				note_trends(run, tried);
			return;
		}
		settle_chunk(run, stretch, workspace.steps, count);
		if (tried)
			forget_unsettled(run, stretch, tried);
	}
}

struct default_stream {
	struct run run;
	size_t n;       /* values so far, missing ones included */
	double *values; /* existing values with the indices [first, end) among all existing ones */
	size_t *places;
	size_t first, end, capacity;
	struct change *large; /* of the run's changes those above the least magnitude */
};

size_t default_detect(const struct samples *samples, const struct edivisive_options *options,
	struct scratch *scratch, struct change *out)
{
	scratch_reset(scratch);
	double *values = scratch_take(scratch, samples->n, sizeof(double));
	size_t *places = scratch_take(scratch, samples->n, sizeof(size_t));
	size_t n = finite_values(samples->values, samples->n, values, places);
	struct run run = run_new(options, samples->excursion);
	struct stretch stretch = {.values = values, .places = places, .end = n};
	run_extend(&run, &stretch, scratch);
	size_t count = run.count;
	if (count > 0)
		memcpy(out, run.changes, count * sizeof(*out));
	run_free(&run);
	return magnitude_filter(out, count, options->magnitude, scratch_tried(scratch));
}

struct default_stream *default_stream_new(const struct edivisive_options *options, size_t excursion)
{
	struct default_stream *stream = scratch_resize(NULL, 1, sizeof(*stream));
	stream->run = run_new(options, excursion);
	return stream;
}

static void resize(struct default_stream *stream, size_t capacity)
{
	stream->capacity = capacity;
	stream->values = scratch_resize(stream->values, capacity, sizeof(double));
	stream->places = scratch_resize(stream->places, capacity, sizeof(size_t));
}

static void add_values(struct default_stream *stream, const double *values, size_t n)
{
	size_t held = stream->end - stream->first;
	if (held + n > stream->capacity || !stream->values)
		resize(stream, held + n + (held + n) / 2);
	size_t count = finite_values(values, n, stream->values + held, stream->places + held);
	for (size_t i = 0; i < count; i++)
		stream->places[held + i] += stream->n;
	stream->end += count;
	stream->n += n;
}

/* Drops values that the run does not need any more, and shrinks the arrays after a long append. */
static void drop_values(struct default_stream *stream)
{
	size_t first = run_first(&stream->run), done = first - stream->first;
	if (done == 0)
		return;
	size_t held = stream->end - first;
	memmove(stream->values, stream->values + done, held * sizeof(double));
	memmove(stream->places, stream->places + done, held * sizeof(size_t));
	stream->first = first;
	if (stream->capacity > 4 * held)
		resize(stream, 2 * held);
}

/* The run keeps its changes as they are: whether one is large depends on those before it. */
static const struct change *large_changes(
	struct default_stream *stream, struct scratch *scratch, size_t *count)
{
	const struct run *run = &stream->run;
	double least = run->chunk.options.magnitude;
	*count = run->count;
	if (least <= 0 || run->count == 0)
		return run->changes;
	stream->large = scratch_resize(stream->large, run->count, sizeof *run->changes);
	memcpy(stream->large, run->changes, run->count * sizeof *run->changes);
	*count = magnitude_filter(stream->large, run->count, least, scratch_tried(scratch));
	return stream->large;
}

const struct change *default_stream_append(struct default_stream *stream, const double *values,
	size_t n, struct scratch *scratch, size_t *count)
{
	scratch_reset(scratch);
	add_values(stream, values, n);
	struct stretch stretch = {
		.values = stream->values,
		.places = stream->places,
		.first = stream->first,
		.end = stream->end,
	};
	run_extend(&stream->run, &stretch, scratch);
	drop_values(stream);
	return large_changes(stream, scratch, count);
}

/* The place of the existing value with that index, or where the next one would be. */
static size_t place_of(const struct default_stream *stream, size_t number)
{
	return number < stream->end ? stream->places[number - stream->first] : stream->n;
}

size_t default_stream_rest(struct default_stream *stream, size_t *fixed)
{
	struct run *run = &stream->run;
	size_t rest = place_of(stream, stream->first);

	*fixed = run->fixed > 0 ? place_of(stream, run->fixed - 1) + 1 : 0;
	run_rest(run);
	free(stream->values);
	free(stream->places);
	stream->values = NULL;
	stream->places = NULL;
	stream->capacity = 0;
	stream->end = stream->first;
	stream->n = rest;
	return rest;
}

size_t default_stream_chunk(const struct default_stream *stream, size_t at)
{
	const struct run *run = &stream->run;
	size_t count = run->start_count;

	while (count > 0 && run->starts[count - 1] > at)
		count--;
	return count > 0 ? run->starts[count - 1] : 0;
}

void default_stream_free(struct default_stream *stream)
{
	run_free(&stream->run);
	free(stream->large);
	free(stream->values);
	free(stream->places);
	free(stream);
}
