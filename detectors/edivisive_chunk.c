/*
 * The default profile on one chunk, step by step.
 *
 * A chunk that grows by a point mostly stays as it is: the scale, the clipped values but for the
 * last few, and every window that does not reach those. Each step compares what it would start from
 * with what it started from last time, value by value, and keeps results that rest on equal input;
 * so keeping them cannot change them.
 */
#include "detectors/edivisive_chunk.h"

#include <stdlib.h>

#include "detectors/existing.h"
#include "detectors/scratch.h"

struct chunk chunk_new(const struct edivisive_options *options)
{
	return (struct chunk){.options = *options};
}

void chunk_free(struct chunk *chunk)
{
	free(chunk->y);
	free(chunk->spread);
	free(chunk->candidates);
	free(chunk->windows);
}

void chunk_restart(struct chunk *chunk, size_t decided)
{
	chunk->decided = decided;
	chunk->n = 0;
	chunk->window_count = 0;
}

/* Windows begin at least W/2 points apart, candidates two. Streams are many: nothing grows beyond a
 * full chunk. */
static void make_room(struct chunk *chunk, size_t n)
{
	if (n <= chunk->capacity)
		return;
	size_t window = (size_t)chunk->options.window, full = CHUNK_WINDOWS * window;
	size_t capacity = n + n / 2 + 16;
	capacity = capacity < full ? capacity : full;
	chunk->capacity = capacity;
	chunk->y = scratch_resize(chunk->y, capacity, sizeof(double));
	chunk->spread = scratch_resize(chunk->spread, capacity / CLIP_BLOCK + 1, sizeof(double));
	chunk->candidates = scratch_resize(chunk->candidates, capacity / 2 + 1, sizeof(size_t));
	chunk->windows =
		scratch_resize(chunk->windows, capacity / (window / 2) + 1, sizeof(struct window));
}

struct chunk_room chunk_room_new(
	const struct edivisive_options *options, size_t n, struct scratch *scratch)
{
	size_t window = (size_t)options->window < n ? (size_t)options->window : n;
	double *reciprocals = scratch_take(scratch, window, sizeof(double));
	for (size_t i = 0; i < window; i++)
		reciprocals[i] = 1 / (double)i;
	return (struct chunk_room){
		.scratch = scratch,
		.reciprocals = reciprocals,
		.x = scratch_take(scratch, n, sizeof(double)),
		.plain = scratch_take(scratch, n + 1, sizeof(double)),
		.weighted = scratch_take(scratch, n + 1, sizeof(double)),
		.left = scratch_take(scratch, window, sizeof(double)),
		.right = scratch_take(scratch, window, sizeof(double)),
		.intervals = scratch_take(scratch, window, sizeof(struct interval)),
		.steps = scratch_take(scratch, n, sizeof(struct step)),
	};
}

size_t chunk_evaluate(
	struct chunk *chunk, const double *values, size_t n, const struct chunk_room *room)
{
	make_room(chunk, n);
	chunk->x = room->x;
	struct scale scale = existing_scale(values, n, chunk->x);
	bool equal = scale.exponent == chunk->exponent && scale.shift == chunk->shift;
	size_t known = equal ? chunk->n : 0;
	chunk->exponent = scale.exponent;
	chunk->shift = scale.shift;
	chunk->n = n;
	size_t same = chunk_clip(chunk, known);
	return chunk_passes(chunk, chunk_windows(chunk, same, room), room);
}
