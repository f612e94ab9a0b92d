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

size_t point_hashes_compare(
	const struct point_hashes *hashes, const struct series *series, ptrdiff_t *shift)
{
	size_t first;

	if (!align(hashes, series->axis, &first, shift))
		return 0;
	for (size_t block = first; block < hashes->end; block++) {
		size_t index = (size_t)((ptrdiff_t)(block * POINT_HASHES_BLOCK) - *shift);
		size_t n = points_of(hashes, block), end = series->axis->n;

		if (index + n <= end &&
			add_points(HASH_START, series, index, n) == block_at(hashes, block)->hash)
			continue;
		/* Whether the last block differs in its last point only, or lacks only that. */
		if (block + 1 == hashes->end && n > 1 && index + n - 1 <= end &&
			add_points(HASH_START, series, index, n - 1) == hashes->but_last)
			return hashes->n - 1;
		return block > first ? block * POINT_HASHES_BLOCK : 0;
	}
	return hashes->n;
}

void point_hashes_note(
	struct point_hashes *hashes, const struct series *series, ptrdiff_t shift, size_t same)
{
	const int64_t *times = series->axis->times;
	size_t n = (size_t)((ptrdiff_t)series->axis->n + shift), block = same / POINT_HASHES_BLOCK;
	size_t front =
		shift > 0 ? ((size_t)shift + POINT_HASHES_BLOCK - 1) / POINT_HASHES_BLOCK : 0;

	if (same == hashes->n && n == same)
		return;
	if (hashes->first < block && hashes->end > block)
		hashes->end = block;
	else if (hashes->end > block)
		hashes->first = hashes->end = block;
	if (front > hashes->first && front < hashes->end)
		memmove(hashes->blocks, block_at(hashes, front),
			(hashes->end - front) * sizeof *hashes->blocks);
	if (front > hashes->end)
		hashes->end = front;
	if (front > hashes->first)
		hashes->first = front;
	hashes->n = n;
	while (hashes->end * POINT_HASHES_BLOCK < n) {
		size_t number = hashes->end;
		size_t index = (size_t)((ptrdiff_t)(number * POINT_HASHES_BLOCK) - shift);
		size_t points = points_of(hashes, number), used = number - hashes->first;
		uint32_t twins = 0;

		while (index > twins && times[index - twins - 1] == times[index])
			twins++;
		if (used == hashes->room) {
			hashes->room += hashes->room / 2 + 2;
			hashes->blocks =
				memory_resize(hashes->blocks, hashes->room, sizeof *hashes->blocks);
		}
		hashes->end++;
		hashes->but_last = add_points(HASH_START, series, index, points - 1);
		hashes->blocks[used] = (struct point_hashes_block){.time = times[index],
			.hash = add_point(hashes->but_last, series, index + points - 1),
			.twins = twins};
	}
}

void point_hashes_clear(struct point_hashes *hashes)
{
	free(hashes->blocks);
	*hashes = (struct point_hashes){0};
}
