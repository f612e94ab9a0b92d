/*
 * The default profile on one chunk, step by step.
 *
 * A chunk that has grown by a point mostly stays the same: the scale, all but the last few clipped
 * values, and every window that does not reach those. Each step compares its input with that of the
 * last evaluation, value by value, and keeps results of equal input; so keeping them cannot change
 * them.
 */
#include "detectors/edivisive/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/finite.h"
#include "detectors/loops.h"
#include "detectors/scratch.h"

/* For the trace: values are clipped CLIP_SPREADS from their neighbours; those that lie FAR_BEYOND
 * more spreads away are noted as outliers. */
static const double CLIP_SPREADS = 3, FAR_BEYOND = 3;

/* Values are read four at a time, the last time beyond the end. */
enum { PADDING = 3 };

struct chunk chunk_new(const struct edivisive_options *options, size_t excursion)
{
	return (struct chunk){.options = *options, .excursion = excursion};
}

void chunk_free(struct chunk *chunk)
{
	free(chunk->y);
	free(chunk->spread);
	free(chunk->candidates);
}

void chunk_restart(struct chunk *chunk, size_t decided)
{
	chunk->decided = decided;
	chunk->n = 0;
}

/* Windows begin W/2 points apart. An agent has many streams, so nothing grows beyond a full chunk.
 */
static void make_room(struct chunk *chunk, size_t n)
{
	if (n <= chunk->capacity)
		return;
	size_t window = (size_t)chunk->options.window, full = CHUNK_WINDOWS * window;
	size_t capacity = n + n / 2 + 16;
	capacity = capacity < full ? capacity : full;
	chunk->capacity = capacity;
	chunk->y = memory_resize(chunk->y, capacity + PADDING, sizeof(double));
	chunk->spread = memory_resize(chunk->spread, capacity / CLIP_BLOCK + 1, sizeof(double));
	chunk->candidates =
		memory_resize(chunk->candidates, capacity / (window / 2) + 1, sizeof(size_t));
}

/* Values and columns are read and written a whole vector at a time. */
static struct partition partition_new(size_t n, struct scratch *scratch)
{
	struct partition partition = {
		.edges = scratch_take(scratch, n + 2, sizeof(size_t)),
		.from = scratch_take(scratch, n + 2, sizeof(size_t)),
		.values = scratch_take(scratch, n + KERNEL_PADDING, sizeof(double)),
		.row = scratch_take(scratch, n + 2, sizeof(double)),
		.sums = scratch_take(scratch, n + 2, sizeof(double)),
		.best = scratch_take(scratch, n + 2, sizeof(double)),
		.near = scratch_take(scratch, n + KERNEL_PADDING, sizeof(float)),
		.columns = scratch_take(scratch, n + KERNEL_PADDING, sizeof(float)),
	};
	memset(partition.values, 0, (n + KERNEL_PADDING) * sizeof(double));
	memset(partition.near, 0, (n + KERNEL_PADDING) * sizeof(float));
	return partition;
}

struct chunk_workspace chunk_workspace_new(
	const struct edivisive_options *options, size_t n, struct scratch *scratch)
{
	size_t window = (size_t)options->window < n ? (size_t)options->window : n;
	double *reciprocals = scratch_take(scratch, window, sizeof(double));
	for (size_t i = 0; i < window; i++)
		reciprocals[i] = 1 / (double)i;
	return (struct chunk_workspace){
		.scratch = scratch,
		.reciprocals = reciprocals,
		.x = scratch_take(scratch, n, sizeof(double)),
		.plain = scratch_take(scratch, n + 1, sizeof(double)),
		.weighted = scratch_take(scratch, n + 1, sizeof(double)),
		.sum = scratch_take(scratch, n + 1, sizeof(double)),
		.room = scratch_take(scratch, 3 * (n + ROOM), sizeof(double)),
		.marks = scratch_take(scratch, n + 1, sizeof(bool)),
		.places = scratch_take(scratch, n, sizeof(size_t)),
		.partition = partition_new(n, scratch),
		.left = scratch_take(scratch, window + PADDING, sizeof(double)),
		.right = scratch_take(scratch, window + PADDING, sizeof(double)),
		.steps = scratch_take(scratch, n, sizeof(struct chunk_step)),
		.excursions = scratch_take(scratch, n, sizeof(struct excursion)),
	};
}

/* Whether more than one point of [from, to) outside of excursions lies beyond `level`. */
static bool is_visited(
	const struct chunk *chunk, size_t count, size_t from, size_t to, double level, double sign)
{
	const struct excursion *all = chunk->workspace->excursions;
	size_t beyond = 0, at = from;
	for (size_t i = 0; i <= count && at < to; i++) {
		size_t stop = i < count ? all[i].start : to;
		for (; at < stop && at < to; at++)
			beyond += sign * (chunk->x[at] - level) > 0;
		if (i < count && at < all[i].end)
			at = all[i].end;
	}
	return beyond > 1;
}

/* Whether the values visit the level of an excursion elsewhere, before and after it: then it is one
 * of their modes, and a stay on it is not an excursion. */
static bool is_mode(const struct chunk *chunk, size_t count, const struct excursion *one)
{
	size_t n = chunk->n, window = (size_t)chunk->options.window;
	size_t before = one->start < window ? 0 : one->start - window;
	size_t after = n - one->end < window ? n : one->end + window;
	double sides = 0.5 * (chunk->x[one->start - 1] + chunk->x[one->end]);
	double middle = chunk->x[one->start + (one->end - one->start) / 2];
	double sign = middle > sides ? 1 : -1, half = 0.5 * (middle + sides);
	return is_visited(chunk, count, before, one->start, half, sign) &&
	       is_visited(chunk, count, one->end, after, half, sign);
}

/* Fills the excursions, except modes and those at the chunk's ends, with the values around them.
 * Returns whether any was filled. */
static bool fill(struct chunk *chunk, size_t count)
{
	const struct excursion *all = chunk->workspace->excursions;
	struct tried_list *tried = scratch_tried(chunk->workspace->scratch);
	bool *chosen = chunk->marks, any = false;
	for (size_t i = 0; i < count; i++)
		chosen[i] = all[i].start > 0 && all[i].end < chunk->n &&
			    !is_mode(chunk, count, &all[i]);
	for (size_t i = 0; i < count; i++) {
		const size_t edges[] = {all[i].start, all[i].end};
		if (!chosen[i])
			continue;
		for (size_t k = 0; tried && k < 2; k++) {
			struct tried edge =
				tried_untested(tried->places[edges[k]], TRIED_EXCURSION);
			tried_note(tried, &edge);
		}
		chunk_mirror(chunk, &all[i]);
		any = true;
	}
	return any;
}

/* Notes values that are clipped by far. */
static void note_clipped(const struct chunk *chunk, struct tried_list *tried)
{
	for (size_t i = 0; tried && i < chunk->n; i++) {
		double spread = chunk->spread[i / CLIP_BLOCK];
		struct tried one = tried_untested(tried->places[i], TRIED_OUTLIER);
		double beyond = fabs(chunk->x[i] - chunk->y[i]);

		if (beyond < FAR_BEYOND * spread || beyond == 0)
			continue;
		one.mean_before = ldexp(chunk->y[i] + chunk->shift, -chunk->exponent);
		one.mean_after = ldexp(chunk->x[i] + chunk->shift, -chunk->exponent);
		tried_limit(&one, "deviations", CLIP_SPREADS + beyond / spread, CLIP_SPREADS);
		tried_note(tried, &one);
	}
}

size_t chunk_evaluate(struct chunk *chunk, const double *values, size_t n,
	const struct chunk_workspace *workspace)
{
	make_room(chunk, n);
	chunk->workspace = workspace;
	chunk->x = workspace->x;
	chunk->sum = workspace->sum;
	chunk->room = workspace->room;
	chunk->marks = workspace->marks;
	struct scale scale = finite_scale(values, n, chunk->x);
	bool equal = scale.exponent == chunk->exponent && scale.shift == chunk->shift;
	size_t known = equal ? chunk->n : 0, kept = known;
	chunk->exponent = scale.exponent;
	chunk->shift = scale.shift;
	chunk->n = n;
	chunk_spread(chunk, known);
	bool filled = fill(chunk, chunk_pulses(chunk, workspace->excursions));
	size_t same = chunk_clip(chunk, filled || chunk->filled ? 0 : known, kept);
	note_clipped(chunk, scratch_tried(workspace->scratch));
	chunk->filled = filled;
	chunk_add_up(chunk);
	/* 2.3 to 2.5 */
	size_t count = chunk_windows(chunk, same);
	struct noise_unit noise = chunk_noise_unit(chunk);
	if (noise.size > 0) {
		count = chunk_places(chunk, noise.size, count, workspace->places);
		count = chunk_partition(chunk, noise, count);
	} else {
		count = 0;
	}
	return chunk_passes(chunk, count);
}
