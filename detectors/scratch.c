/*
 * Memory comes in blocks, each at least twice as large as the one before, so that a second call of
 * the same size finds all of it in one: reset frees the smaller blocks and keeps the newest, which
 * is larger than all the others together.
 */
#include "detectors/scratch.h"

#include <stdlib.h>

#include "agent/base/arena.h"
#include "detectors/detector.h"

enum { ALIGNMENT = 64, FIRST_BLOCK = 16384 };

struct block {
	struct block *older;
	size_t size, used; /* bytes behind the header */
};

struct scratch {
	struct block *newest;
	struct scratch *budget; /* the scratch whose budget is charged; NULL: this one */
	uint64_t steps;         /* left */
	uint64_t done;
	bool spent;
	struct tried_list *tried; /* or NULL */
};

struct scratch *scratch_new(void)
{
	struct scratch *scratch = memory_new(1, sizeof *scratch);

	scratch->steps = UINT64_MAX;
	return scratch;
}

struct scratch *scratch_child(struct scratch *scratch)
{
	struct scratch *child = scratch_new();

	child->budget = scratch->budget ? scratch->budget : scratch;
	return child;
}

void scratch_allow(struct scratch *scratch, uint64_t steps)
{
	scratch->steps = steps;
	scratch->spent = false;
}

bool scratch_spend(struct scratch *scratch, uint64_t steps)
{
	struct scratch *budget = scratch->budget ? scratch->budget : scratch;

	if (budget->steps == UINT64_MAX)
		return true;
	budget->done += steps;
	budget->spent |= steps > budget->steps;
	if (!budget->spent)
		budget->steps -= steps;
	return !budget->spent;
}

void scratch_trace(struct scratch *scratch, struct tried_list *tried)
{
	scratch->tried = tried;
}

struct tried_list *scratch_tried(const struct scratch *scratch)
{
	return scratch->tried;
}

uint64_t scratch_done(const struct scratch *scratch)
{
	return scratch->budget ? scratch->budget->done : scratch->done;
}

bool scratch_is_spent(const struct scratch *scratch)
{
	return scratch->budget ? scratch->budget->spent : scratch->spent;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *older = block->older;
		free(block);
		block = older;
	}
}

void scratch_free(struct scratch *scratch)
{
	if (!scratch)
		return;
	free_blocks(scratch->newest);
	free(scratch);
}

void scratch_reset(struct scratch *scratch)
{
	if (!scratch->newest)
		return;
	free_blocks(scratch->newest->older);
	scratch->newest->older = NULL;
	scratch->newest->used = 0;
}

static void add_block(struct scratch *scratch, size_t bytes)
{
	size_t size = scratch->newest ? 2 * scratch->newest->size : FIRST_BLOCK;
	while (size < bytes)
		size *= 2;
	struct block *block = aligned_alloc(ALIGNMENT, ALIGNMENT + size);
	if (!block)
		abort();
	*block = (struct block){.older = scratch->newest, .size = size};
	scratch->newest = block;
}

void *scratch_take(struct scratch *scratch, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4)
		abort();
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct block *block = scratch->newest;
	if (!block || block->size - block->used < bytes) {
		add_block(scratch, bytes);
		block = scratch->newest;
	}
	void *room = (char *)block + ALIGNMENT + block->used;
	block->used += bytes;
	return room;
}
