/*
 * A heap of the tests that wait, by the time they are due; running tests are in no heap. The hash
 * is FNV-1a with a final mix, so that names which differ in their last letter lie far apart on the
 * grid, and part of no file or message: it may change between versions without harm.
 */
#include "agent/watch/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"

struct slot {
	int64_t interval, phase, due;
	uint64_t missed;
	bool running;
};

struct schedule {
	struct slot *slots;
	size_t *heap; /* ids */
	size_t count, capacity, waiting;
};

static uint64_t hash_name(const char *name)
{
	uint64_t hash = hash_add(HASH_START, name, strlen(name));
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccd;
	return hash ^ (hash >> 33);
}

struct schedule *schedule_new(void)
{
	return memory_new(1, sizeof(struct schedule));
}

void schedule_free(struct schedule *schedule)
{
	if (!schedule)
		return;
	free(schedule->slots);
	free(schedule->heap);
	free(schedule);
}

/* Tests that are due at the same time go in order of their ids. */
static bool before(const struct schedule *schedule, size_t a, size_t b)
{
	int64_t due_a = schedule->slots[a].due, due_b = schedule->slots[b].due;
	return due_a != due_b ? due_a < due_b : a < b;
}

static void swap(size_t *a, size_t *b)
{
	size_t kept = *a;
	*a = *b;
	*b = kept;
}

static void heap_add(struct schedule *schedule, size_t id)
{
	size_t *heap = schedule->heap, at = schedule->waiting++;
	heap[at] = id;
	for (; at > 0 && before(schedule, heap[at], heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&heap[at], &heap[(at - 1) / 2]);
}

static size_t heap_take(struct schedule *schedule)
{
	size_t *heap = schedule->heap, first = heap[0], count = --schedule->waiting, at = 0;
	heap[0] = heap[count];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= count)
			return first;
		if (child + 1 < count && before(schedule, heap[child + 1], heap[child]))
			child++;
		if (!before(schedule, heap[child], heap[at]))
			return first;
		swap(&heap[at], &heap[child]);
		at = child;
	}
}

size_t schedule_add(struct schedule *schedule, const char *name, int64_t interval, int64_t now,
	int64_t first_within)
{
	assert(interval > 0 && now >= 0);
	if (schedule->count == schedule->capacity) {
		schedule->capacity = schedule->capacity ? 2 * schedule->capacity : 64;
		schedule->slots =
			memory_resize(schedule->slots, schedule->capacity, sizeof *schedule->slots);
		schedule->heap =
			memory_resize(schedule->heap, schedule->capacity, sizeof *schedule->heap);
	}
	uint64_t hash = hash_name(name);
	int64_t within = first_within < interval ? first_within : interval;
	int64_t offset = within > 0 ? (int64_t)(hash % (uint64_t)within) : 0;
	size_t id = schedule->count++;
	schedule->slots[id] = (struct slot){
		.interval = interval,
		.phase = (int64_t)(hash % (uint64_t)interval),
		.due = now + offset,
	};
	heap_add(schedule, id);
	return id;
}

bool schedule_take(struct schedule *schedule, int64_t now, size_t *id)
{
	if (schedule_next(schedule) > now)
		return false;
	*id = heap_take(schedule);
	schedule->slots[*id].running = true;
	return true;
}

/* The number of the last place on the grid that is not after `time`; -1 for a time before the
 * first. */
static int64_t grid_place(const struct slot *slot, int64_t time)
{
	if (time < slot->phase)
		return -1;
	return (time - slot->phase) / slot->interval;
}

void schedule_done(struct schedule *schedule, size_t id, int64_t now)
{
	struct slot *slot = &schedule->slots[id];
	assert(slot->running && now >= slot->due);
	slot->running = false;
	if (slot->interval == WHEN_NEVER)
		return;
	int64_t last = grid_place(slot, now);
	slot->missed += (uint64_t)(last - grid_place(slot, slot->due));
	slot->due = slot->phase + (last + 1) * slot->interval;
	heap_add(schedule, id);
}

int64_t schedule_next(const struct schedule *schedule)
{
	return schedule->waiting ? schedule->slots[schedule->heap[0]].due : INT64_MAX;
}

uint64_t schedule_missed(const struct schedule *schedule, size_t id)
{
	return schedule->slots[id].missed;
}
