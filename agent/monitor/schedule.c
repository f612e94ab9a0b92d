/*
 * Waiting jobs are in a heap by the time they are due, including those never due; running jobs are
 * not. The hash is FNV-1a with a final mix, so that names that differ in their last letter lie far
 * apart on the grid. It is not part of any file or message, so it may change between versions.
 */
#include "agent/monitor/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/hash.h"
#include "agent/base/when.h"

#define RUNNING SIZE_MAX /* as a place */

void schedule_free(struct schedule *schedule)
{
	free(schedule->heap);
	*schedule = (struct schedule){0};
}

/* Jobs that are due at the same time run in the order in which they were added. */
static bool before(const struct schedule_entry *a, const struct schedule_entry *b)
{
	return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void set_place(struct schedule *schedule, size_t place, struct schedule_entry *entry)
{
	schedule->heap[place] = entry;
	entry->place = place;
}

/* Moves the entry at the place up to its position. */
static void heap_rise(struct schedule *schedule, size_t at)
{
	struct schedule_entry **heap = schedule->heap, *entry = heap[at];

	for (; at > 0 && before(entry, heap[(at - 1) / 2]); at = (at - 1) / 2)
		set_place(schedule, at, heap[(at - 1) / 2]);
	set_place(schedule, at, entry);
}

/* Moves the entry at the place down to its position. */
static void heap_sink(struct schedule *schedule, size_t at)
{
	struct schedule_entry **heap = schedule->heap, *entry = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < schedule->count && before(heap[child + 1], heap[child]))
			child++;
		if (child >= schedule->count || !before(heap[child], entry))
			break;
		set_place(schedule, at, heap[child]);
		at = child;
	}
	set_place(schedule, at, entry);
}

static void heap_add(struct schedule *schedule, struct schedule_entry *entry)
{
	schedule->heap = memory_grow(schedule->heap, &schedule->capacity, schedule->count + 1,
		sizeof(struct schedule_entry *));
	schedule->heap[schedule->count] = entry;
	heap_rise(schedule, schedule->count++);
}

static void heap_remove(struct schedule *schedule, struct schedule_entry *entry)
{
	size_t at = entry->place;
	struct schedule_entry *last = schedule->heap[--schedule->count];

	entry->place = RUNNING;
	if (last == entry)
		return;
	set_place(schedule, at, last);
	heap_rise(schedule, at);
	heap_sink(schedule, last->place);
}

void schedule_add(struct schedule *schedule, struct schedule_entry *entry, const char *name,
	int64_t interval, int64_t now, int64_t first_within)
{
	assert(interval > 0 && now >= 0);
	uint64_t hash = hash_add(HASH_START, name, strlen(name));
	int64_t within = first_within < interval ? first_within : interval;
	int64_t offset;

	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccd;
	hash ^= hash >> 33;
	offset = within > 0 ? (int64_t)(hash % (uint64_t)within) : 0;

	*entry = (struct schedule_entry){
		.interval = interval,
		.phase = (int64_t)(hash % (uint64_t)interval),
		.due = now + offset,
		.hash = hash,
		.number = schedule->added++,
	};
	heap_add(schedule, entry);
}

struct schedule_entry *schedule_take(struct schedule *schedule, int64_t now)
{
	struct schedule_entry *first = schedule->count ? schedule->heap[0] : NULL;

	if (!first || first->due > now)
		return NULL;
	schedule_pick(schedule, first);
	return first;
}

void schedule_pick(struct schedule *schedule, struct schedule_entry *entry)
{
	assert(entry->place != RUNNING);
	heap_remove(schedule, entry);
}

void schedule_remove(struct schedule *schedule, struct schedule_entry *entry)
{
	if (entry->place != RUNNING)
		heap_remove(schedule, entry);
}

/* The number of the last grid place that is not after `time`; -1 for a time before the first. */
static int64_t grid_place(const struct schedule_entry *entry, int64_t time)
{
	if (time < entry->phase)
		return -1;
	return (time - entry->phase) / entry->interval;
}

/* The first grid place after `now`. */
static int64_t next_due(const struct schedule_entry *entry, int64_t now)
{
	if (entry->interval == WHEN_NEVER)
		return INT64_MAX;
	return entry->phase + (grid_place(entry, now) + 1) * entry->interval;
}

static uint64_t missed_since_due(const struct schedule_entry *entry, int64_t now)
{
	return (uint64_t)(grid_place(entry, now) - grid_place(entry, entry->due));
}

void schedule_done(struct schedule *schedule, struct schedule_entry *entry, int64_t now)
{
	assert(entry->place == RUNNING);
	if (now >= entry->due) {
		entry->missed += missed_since_due(entry, now);
		entry->due = next_due(entry, now);
	}
	heap_add(schedule, entry);
}

void schedule_put_off(struct schedule *schedule, struct schedule_entry *entry, int64_t due)
{
	assert(entry->place == RUNNING);
	entry->due = due;
	heap_add(schedule, entry);
}

void schedule_change(
	struct schedule *schedule, struct schedule_entry *entry, int64_t interval, int64_t now)
{
	bool running = entry->place == RUNNING;

	if (!running)
		heap_remove(schedule, entry);
	entry->phase = (int64_t)(entry->hash % (uint64_t)interval);
	entry->interval = interval;
	entry->due = next_due(entry, now);
	if (!running)
		heap_add(schedule, entry);
}

int64_t schedule_next(const struct schedule *schedule)
{
	return schedule->count ? schedule->heap[0]->due : INT64_MAX;
}

uint64_t schedule_missed(const struct schedule_entry *entry, int64_t now)
{
	bool late = entry->place == RUNNING && now >= entry->due;

	return entry->missed + (late ? missed_since_due(entry, now) : 0);
}
