/*
 * Waiting tests are in a heap by the time they are due, including those never due; running tests
 * are not. The hash is FNV-1a with a final mix, so that names that differ in their last letter lie
 * far apart on the grid. It is not part of any file or message, so it may change between versions.
 */
#include "agent/monitor/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"

struct slot {
	int64_t interval, phase, due;
	uint64_t hash, missed;
	bool running;
	size_t place; /* in the heap, if not running; of a removed test the next free id */
};

struct schedule {
	struct slot *slots;
	size_t *heap; /* ids */
	size_t count, capacity, waiting;
	size_t removed; /* the first free id; NONE */
};

#define NONE SIZE_MAX

static uint64_t hash_name(const char *name)
{
	uint64_t hash = hash_add(HASH_START, name, strlen(name));
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccd;
	return hash ^ (hash >> 33);
}

struct schedule *schedule_new(void)
{
	struct schedule *schedule = memory_new(1, sizeof *schedule);

	schedule->removed = NONE;
	return schedule;
}

void schedule_free(struct schedule *schedule)
{
	if (!schedule)
		return;
	free(schedule->slots);
	free(schedule->heap);
	free(schedule);
}

/* Tests that are due at the same time run in order of their ids. */
static bool before(const struct schedule *schedule, size_t a, size_t b)
{
	int64_t due_a = schedule->slots[a].due, due_b = schedule->slots[b].due;
	return due_a != due_b ? due_a < due_b : a < b;
}

static void set_place(struct schedule *schedule, size_t place, size_t id)
{
	schedule->heap[place] = id;
	schedule->slots[id].place = place;
}

/* Moves the test at the place up to its position. */
static void heap_rise(struct schedule *schedule, size_t at)
{
	size_t *heap = schedule->heap, id = heap[at];

	for (; at > 0 && before(schedule, id, heap[(at - 1) / 2]); at = (at - 1) / 2)
		set_place(schedule, at, heap[(at - 1) / 2]);
	set_place(schedule, at, id);
}

/* Moves the test at the place down to its position. */
static void heap_sink(struct schedule *schedule, size_t at)
{
	size_t *heap = schedule->heap, id = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < schedule->waiting && before(schedule, heap[child + 1], heap[child]))
			child++;
		if (child >= schedule->waiting || !before(schedule, heap[child], id))
			break;
		set_place(schedule, at, heap[child]);
		at = child;
	}
	set_place(schedule, at, id);
}

static void heap_add(struct schedule *schedule, size_t id)
{
	schedule->heap[schedule->waiting] = id;
	heap_rise(schedule, schedule->waiting++);
}

static void heap_remove(struct schedule *schedule, size_t id)
{
	size_t at = schedule->slots[id].place, last = schedule->heap[--schedule->waiting];

	if (last == id)
		return;
	set_place(schedule, at, last);
	heap_rise(schedule, at);
	heap_sink(schedule, schedule->slots[last].place);
}

static size_t new_id(struct schedule *schedule)
{
	size_t id = schedule->removed;

	if (id != NONE) {
		schedule->removed = schedule->slots[id].place;
		return id;
	}
	size_t capacity = schedule->capacity;

	schedule->slots = memory_grow(
		schedule->slots, &capacity, schedule->count + 1, sizeof *schedule->slots);
	schedule->heap = memory_grow(
		schedule->heap, &schedule->capacity, schedule->count + 1, sizeof *schedule->heap);
	return schedule->count++;
}

size_t schedule_add(struct schedule *schedule, const char *name, int64_t interval, int64_t now,
	int64_t first_within)
{
	assert(interval > 0 && now >= 0);
	uint64_t hash = hash_name(name);
	int64_t within = first_within < interval ? first_within : interval;
	int64_t offset = within > 0 ? (int64_t)(hash % (uint64_t)within) : 0;
	size_t id = new_id(schedule);
	schedule->slots[id] = (struct slot){
		.interval = interval,
		.phase = (int64_t)(hash % (uint64_t)interval),
		.due = now + offset,
		.hash = hash,
	};
	heap_add(schedule, id);
	return id;
}

bool schedule_take(struct schedule *schedule, int64_t now, size_t *id)
{
	if (schedule_next(schedule) > now)
		return false;
	*id = schedule->heap[0];
	schedule_pick(schedule, *id);
	return true;
}

void schedule_pick(struct schedule *schedule, size_t id)
{
	assert(!schedule->slots[id].running);
	heap_remove(schedule, id);
	schedule->slots[id].running = true;
}

void schedule_remove(struct schedule *schedule, size_t id)
{
	if (!schedule->slots[id].running)
		heap_remove(schedule, id);
	schedule->slots[id].place = schedule->removed;
	schedule->removed = id;
}

/* The number of the last grid place that is not after `time`; -1 for a time before the first. */
static int64_t grid_place(const struct slot *slot, int64_t time)
{
	if (time < slot->phase)
		return -1;
	return (time - slot->phase) / slot->interval;
}

/* The first grid place after `now`. */
static int64_t next_due(const struct slot *slot, int64_t now)
{
	if (slot->interval == WHEN_NEVER)
		return INT64_MAX;
	return slot->phase + (grid_place(slot, now) + 1) * slot->interval;
}

static uint64_t missed_since_due(const struct slot *slot, int64_t now)
{
	return (uint64_t)(grid_place(slot, now) - grid_place(slot, slot->due));
}

void schedule_done(struct schedule *schedule, size_t id, int64_t now)
{
	struct slot *slot = &schedule->slots[id];

	assert(slot->running);
	slot->running = false;
	if (now >= slot->due) {
		slot->missed += missed_since_due(slot, now);
		slot->due = next_due(slot, now);
	}
	heap_add(schedule, id);
}

void schedule_change(struct schedule *schedule, size_t id, int64_t interval, int64_t now)
{
	struct slot *slot = &schedule->slots[id];

	if (!slot->running)
		heap_remove(schedule, id);
	slot->phase = (int64_t)(slot->hash % (uint64_t)interval);
	slot->interval = interval;
	slot->due = next_due(slot, now);
	if (!slot->running)
		heap_add(schedule, id);
}

int64_t schedule_due(const struct schedule *schedule, size_t id)
{
	return schedule->slots[id].due;
}

int64_t schedule_next(const struct schedule *schedule)
{
	return schedule->waiting ? schedule->slots[schedule->heap[0]].due : INT64_MAX;
}

uint64_t schedule_missed(const struct schedule *schedule, size_t id, int64_t now)
{
	const struct slot *slot = &schedule->slots[id];
	bool late = slot->running && now >= slot->due;

	return slot->missed + (late ? missed_since_due(slot, now) : 0);
}
