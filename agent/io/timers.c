/*
 * A binary heap by (due, order of adding). Nothing is removed from its middle: a call that has
 * become pointless must notice that itself.
 */
#include "agent/io/timers.h"

#include <stdlib.h>

#include "agent/base/arena.h"

struct timer {
	int64_t due;
	uint64_t order;
	timer_call *call;
	void *context;
};

static bool before(const struct timer *a, const struct timer *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void swap(struct timer *a, struct timer *b)
{
	struct timer kept = *a;
	*a = *b;
	*b = kept;
}

void timers_free(struct timers *timers)
{
	free(timers->heap);
	*timers = (struct timers){0};
}

void timers_add(struct timers *timers, int64_t due, timer_call *call, void *context)
{
	timers->heap = memory_grow(
		timers->heap, &timers->capacity, timers->count + 1, sizeof *timers->heap);
	size_t at = timers->count++;
	struct timer *heap = timers->heap;
	heap[at] = (struct timer){due, timers->added++, call, context};
	for (; at > 0 && before(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&heap[at], &heap[(at - 1) / 2]);
}

bool timers_next(const struct timers *timers, int64_t *due)
{
	if (timers->count == 0)
		return false;
	*due = timers->heap[0].due;
	return true;
}

static struct timer take_first(struct timers *timers)
{
	struct timer *heap = timers->heap, first = heap[0];
	size_t count = --timers->count, at = 0;
	heap[0] = heap[count];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= count)
			return first;
		if (child + 1 < count && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &heap[at]))
			return first;
		swap(&heap[at], &heap[child]);
		at = child;
	}
}

static void ring(void *context)
{
	struct alarm *alarm = context;

	if (!alarm->set || alarm->timers->now < alarm->due)
		return;
	alarm->set = false;
	alarm->call(alarm->context);
}

void timers_set_alarm(struct timers *timers, struct alarm *alarm, int64_t due)
{
	if (alarm->set && alarm->due <= due)
		return;
	alarm->timers = timers;
	alarm->due = due;
	alarm->set = true;
	timers_add(timers, due, ring, alarm);
}

void timers_run(struct timers *timers, int64_t now)
{
	uint64_t until = timers->added;
	timers->now = now;
	while (timers->count > 0 && timers->heap[0].due <= now && timers->heap[0].order < until) {
		struct timer timer = take_first(timers);
		timer.call(timer.context);
	}
}
