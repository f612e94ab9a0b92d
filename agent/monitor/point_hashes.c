/*
 * If the first point of a block is also the first point of the answer, points with the same time
 * (its twins) may have been cut off, so the search begins at the next block. The hash is a
 * multiply and fold for each word; it distinguishes data from corrected data, and nobody gains
 * from a collision.
 */
#include "agent/monitor/point_hashes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"

static uint64_t add_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* All missing values hash alike. */
static uint64_t add_point(uint64_t hash, const struct series *series, size_t index)
{
	double value = isnan(series->values[index]) ? (double)NAN : series->values[index];
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return add_word(add_word(hash, (uint64_t)series->axis->times[index]), bits);
}

static uint64_t add_points(uint64_t hash, const struct series *series, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		hash = add_point(hash, series, i);
	return hash;
}

static const struct point_hashes_block *block_at(const struct point_hashes *trace, size_t number)
{
	return &trace->blocks[number - trace->first];
}

static size_t points_of(const struct point_hashes *trace, size_t block)
{
	size_t rest = trace->n - block * POINT_HASHES_BLOCK;

	return rest < POINT_HASHES_BLOCK ? rest : POINT_HASHES_BLOCK;
}

/* Finds the first block that the answer contains completely, and its position; false if there is
 * none. */
static bool align(
	const struct point_hashes *trace, const struct axis *axis, size_t *block, ptrdiff_t *shift)
{
	if (axis->n == 0)
		return false;
	for (size_t at = trace->first; at < trace->end; at++) {
		const struct point_hashes_block *candidate = block_at(trace, at);
		size_t index;

		if (candidate->time < axis->times[0] ||
			(at > 0 && candidate->time == axis->times[0]))
			continue;
		index = axis_lower_bound(axis, candidate->time) + candidate->twins;
		*block = at;
		*shift = (ptrdiff_t)(at * POINT_HASHES_BLOCK) - (ptrdiff_t)index;
		return true;
	}
	return false;
}

static bool same_block(
	const struct point_hashes *trace, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(trace, block);

	return index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == block_at(trace, block)->hash;
}

/* Whether the last block differs in its last point only, or lacks only that. */
static bool same_but_last(
	const struct point_hashes *trace, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(trace, block) - 1;

	return block + 1 == trace->end && n > 0 && index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == trace->but_last;
}

size_t point_hashes_compare(
	const struct point_hashes *trace, const struct series *series, ptrdiff_t *shift)
{
	size_t first;

	if (!align(trace, series->axis, &first, shift))
		return 0;
	for (size_t block = first; block < trace->end; block++) {
		size_t index = (size_t)((ptrdiff_t)(block * POINT_HASHES_BLOCK) - *shift);

		if (same_block(trace, series, block, index))
			continue;
		if (same_but_last(trace, series, block, index))
			return trace->n - 1;
		return block > first ? block * POINT_HASHES_BLOCK : 0;
	}
	return trace->n;
}

static void drop_front(struct point_hashes *trace, size_t first)
{
	if (first <= trace->first)
		return;
	if (first < trace->end)
		memmove(trace->blocks, block_at(trace, first),
			(trace->end - first) * sizeof *trace->blocks);
	else
		trace->end = first;
	trace->first = first;
}

static struct point_hashes_block *next_block(struct point_hashes *trace)
{
	if (trace->end - trace->first == trace->room) {
		trace->room = trace->room + trace->room / 2 + 2;
		trace->blocks = memory_resize(trace->blocks, trace->room, sizeof *trace->blocks);
	}
	return &trace->blocks[trace->end++ - trace->first];
}

static uint32_t twins_of(const struct axis *axis, size_t index)
{
	uint32_t twins = 0;

	while (index > twins && axis->times[index - twins - 1] == axis->times[index])
		twins++;
	return twins;
}

void point_hashes_note(
	struct point_hashes *trace, const struct series *series, ptrdiff_t shift, size_t same)
{
	size_t n = (size_t)((ptrdiff_t)series->axis->n + shift), block = same / POINT_HASHES_BLOCK;

	if (same == trace->n && n == same)
		return;
	if (trace->first < block && trace->end > block)
		trace->end = block;
	else if (trace->end > block)
		trace->first = trace->end = block;
	if (shift > 0)
		drop_front(trace, ((size_t)shift + POINT_HASHES_BLOCK - 1) / POINT_HASHES_BLOCK);
	trace->n = n;
	while (trace->end * POINT_HASHES_BLOCK < n) {
		size_t number = trace->end;
		size_t index = (size_t)((ptrdiff_t)(number * POINT_HASHES_BLOCK) - shift);
		struct point_hashes_block *next = next_block(trace);
		size_t points = points_of(trace, number);

		trace->but_last = add_points(HASH_START, series, index, points - 1);
		*next = (struct point_hashes_block){.time = series->axis->times[index],
			.hash = add_point(trace->but_last, series, index + points - 1),
			.twins = twins_of(series->axis, index)};
	}
}

void point_hashes_clear(struct point_hashes *trace)
{
	free(trace->blocks);
	*trace = (struct point_hashes){0};
}
