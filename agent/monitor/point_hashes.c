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

#include "agent/base/arena.h"
#include "agent/base/hash.h"

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

static const struct point_hashes_block *block_at(const struct point_hashes *hashes, size_t number)
{
	return &hashes->blocks[number - hashes->first];
}

static size_t points_of(const struct point_hashes *hashes, size_t block)
{
	size_t rest = hashes->n - block * POINT_HASHES_BLOCK;

	return rest < POINT_HASHES_BLOCK ? rest : POINT_HASHES_BLOCK;
}

/* Finds the first block that the answer contains completely, and its position; false if there is
 * none. */
static bool align(
	const struct point_hashes *hashes, const struct axis *axis, size_t *block, ptrdiff_t *shift)
{
	if (axis->n == 0)
		return false;
	for (size_t at = hashes->first; at < hashes->end; at++) {
		const struct point_hashes_block *candidate = block_at(hashes, at);
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
	const struct point_hashes *hashes, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(hashes, block);

	return index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == block_at(hashes, block)->hash;
}

/* Whether the last block differs in its last point only, or lacks only that. */
static bool same_but_last(
	const struct point_hashes *hashes, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(hashes, block) - 1;

	return block + 1 == hashes->end && n > 0 && index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == hashes->but_last;
}

size_t point_hashes_compare(
	const struct point_hashes *hashes, const struct series *series, ptrdiff_t *shift)
{
	size_t first;

	if (!align(hashes, series->axis, &first, shift))
		return 0;
	for (size_t block = first; block < hashes->end; block++) {
		size_t index = (size_t)((ptrdiff_t)(block * POINT_HASHES_BLOCK) - *shift);

		if (same_block(hashes, series, block, index))
			continue;
		if (same_but_last(hashes, series, block, index))
			return hashes->n - 1;
		return block > first ? block * POINT_HASHES_BLOCK : 0;
	}
	return hashes->n;
}

static void drop_front(struct point_hashes *hashes, size_t first)
{
	if (first <= hashes->first)
		return;
	if (first < hashes->end)
		memmove(hashes->blocks, block_at(hashes, first),
			(hashes->end - first) * sizeof *hashes->blocks);
	else
		hashes->end = first;
	hashes->first = first;
}

static struct point_hashes_block *next_block(struct point_hashes *hashes)
{
	if (hashes->end - hashes->first == hashes->room) {
		hashes->room = hashes->room + hashes->room / 2 + 2;
		hashes->blocks =
			memory_resize(hashes->blocks, hashes->room, sizeof *hashes->blocks);
	}
	return &hashes->blocks[hashes->end++ - hashes->first];
}

static uint32_t twins_of(const struct axis *axis, size_t index)
{
	uint32_t twins = 0;

	while (index > twins && axis->times[index - twins - 1] == axis->times[index])
		twins++;
	return twins;
}

void point_hashes_note(
	struct point_hashes *hashes, const struct series *series, ptrdiff_t shift, size_t same)
{
	size_t n = (size_t)((ptrdiff_t)series->axis->n + shift), block = same / POINT_HASHES_BLOCK;

	if (same == hashes->n && n == same)
		return;
	if (hashes->first < block && hashes->end > block)
		hashes->end = block;
	else if (hashes->end > block)
		hashes->first = hashes->end = block;
	if (shift > 0)
		drop_front(hashes, ((size_t)shift + POINT_HASHES_BLOCK - 1) / POINT_HASHES_BLOCK);
	hashes->n = n;
	while (hashes->end * POINT_HASHES_BLOCK < n) {
		size_t number = hashes->end;
		size_t index = (size_t)((ptrdiff_t)(number * POINT_HASHES_BLOCK) - shift);
		struct point_hashes_block *next = next_block(hashes);
		size_t points = points_of(hashes, number);

		hashes->but_last = add_points(HASH_START, series, index, points - 1);
		*next = (struct point_hashes_block){.time = series->axis->times[index],
			.hash = add_point(hashes->but_last, series, index + points - 1),
			.twins = twins_of(series->axis, index)};
	}
}

void point_hashes_clear(struct point_hashes *hashes)
{
	free(hashes->blocks);
	*hashes = (struct point_hashes){0};
}
