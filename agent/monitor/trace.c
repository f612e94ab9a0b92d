/*
 * A block whose first point is the answer's first may have lost a part of its front (its twins), so
 * the search begins at the next one. The hash is a multiply and fold for each word; it tells data
 * from corrected data, and nobody gains by two that are alike.
 */
#include "agent/monitor/trace.h"

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

/* All missing values are the same. */
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

static const struct trace_block *block_at(const struct trace *trace, size_t number)
{
	return &trace->blocks[number - trace->first];
}

static size_t points_of(const struct trace *trace, size_t block)
{
	size_t rest = trace->n - block * TRACE_BLOCK;

	return rest < TRACE_BLOCK ? rest : TRACE_BLOCK;
}

/* The first block that lies within the answer whole, and where; false if there is none. */
static bool align(
	const struct trace *trace, const struct axis *axis, size_t *block, ptrdiff_t *shift)
{
	if (axis->n == 0)
		return false;
	for (size_t at = trace->first; at < trace->end; at++) {
		const struct trace_block *candidate = block_at(trace, at);
		size_t index;

		if (candidate->time < axis->times[0] ||
			(at > 0 && candidate->time == axis->times[0]))
			continue;
		index = axis_lower_bound(axis, candidate->time) + candidate->twins;
		*block = at;
		*shift = (ptrdiff_t)(at * TRACE_BLOCK) - (ptrdiff_t)index;
		return true;
	}
	return false;
}

static bool same_block(
	const struct trace *trace, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(trace, block);

	return index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == block_at(trace, block)->hash;
}

/* Whether of the block, the last one, the last point alone is another one, or gone. */
static bool same_but_last(
	const struct trace *trace, const struct series *series, size_t block, size_t index)
{
	size_t n = points_of(trace, block) - 1;

	return block + 1 == trace->end && n > 0 && index + n <= series->axis->n &&
	       add_points(HASH_START, series, index, n) == trace->but_last;
}

size_t trace_compare(const struct trace *trace, const struct series *series, ptrdiff_t *shift)
{
	size_t first;

	if (!align(trace, series->axis, &first, shift))
		return 0;
	for (size_t block = first; block < trace->end; block++) {
		size_t index = (size_t)((ptrdiff_t)(block * TRACE_BLOCK) - *shift);

		if (same_block(trace, series, block, index))
			continue;
		if (same_but_last(trace, series, block, index))
			return trace->n - 1;
		return block > first ? block * TRACE_BLOCK : 0;
	}
	return trace->n;
}

static void drop_front(struct trace *trace, size_t first)
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

static struct trace_block *next_block(struct trace *trace)
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

void trace_note(struct trace *trace, const struct series *series, ptrdiff_t shift, size_t same)
{
	size_t n = (size_t)((ptrdiff_t)series->axis->n + shift), block = same / TRACE_BLOCK;

	if (same == trace->n && n == same)
		return;
	if (trace->first < block && trace->end > block)
		trace->end = block;
	else if (trace->end > block)
		trace->first = trace->end = block;
	if (shift > 0)
		drop_front(trace, ((size_t)shift + TRACE_BLOCK - 1) / TRACE_BLOCK);
	trace->n = n;
	while (trace->end * TRACE_BLOCK < n) {
		size_t number = trace->end;
		size_t index = (size_t)((ptrdiff_t)(number * TRACE_BLOCK) - shift);
		struct trace_block *next = next_block(trace);
		size_t points = points_of(trace, number);

		trace->but_last = add_points(HASH_START, series, index, points - 1);
		*next = (struct trace_block){.time = series->axis->times[index],
			.hash = add_point(trace->but_last, series, index + points - 1),
			.twins = twins_of(series->axis, index)};
	}
}

void trace_clear(struct trace *trace)
{
	free(trace->blocks);
	*trace = (struct trace){0};
}
