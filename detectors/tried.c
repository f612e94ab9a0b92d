/*
 * A chunk is searched again with the next one, so one place may be noted several times.
 */
#include "detectors/tried.h"

#include <math.h>
#include <stdlib.h>

#include "agent/base/arena.h"

const struct tried_kind tried_kinds[TRIED_FATES] = {
	[TRIED_STANDS] = {"stands", "it stands", 4},
	[TRIED_WEAK] = {"weak", "too weak: explains too little of the variance", 0},
	[TRIED_TEST] = {"test", "not significant: p is not below p_value", 1},
	[TRIED_RANKS] = {"rank rule",
		"caused by a few extreme values: the ranks on both sides do not differ", 2},
	[TRIED_MAGNITUDE] = {"magnitude", "its magnitude is not above the required one", 2},
	[TRIED_ENDS] = {"ends", "only one point before or after it", 2},
	[TRIED_EXCURSION] = {"excursion", "an excursion: the level came back after a few points",
		3},
	[TRIED_RAMP] = {"ramp", "part of a ramp, reported as one change", 3},
	[TRIED_OUTLIER] = {"outlier", "an outlier: the values beside it are unchanged", 2},
	[TRIED_MODE] = {"mode",
		"the level came back before: the values visit both levels repeatedly", 3},
	[TRIED_WANDER] = {"wanders",
		"the level moves as much all the time: inside this series' usual wandering", 3},
	[TRIED_DRIFT] = {"drift", "within a slow drift that is too small to report", 3},
	[TRIED_OUTDONE] = {"outdone",
		"not tested, since a better place of the series failed the test", 1},
	[TRIED_COST] = {"penalty", "another level would explain less than its penalty", 1},
	[TRIED_THRESHOLD] = {"threshold", "the step is below the threshold", 1},
	[TRIED_APART] = {"apart",
		"the two levels count as one: they are nearer than `apart`, or than the noise", 2},
	[TRIED_PENDING] = {"pending", "too few points after it yet", 2},
	[TRIED_FLOOR] = {"floor", "it is smaller than the floor", 2},
	[TRIED_SAMPLES] = {"deviations", "it is within the deviation of the run's samples", 2},
	[TRIED_BINARY] = {"binary", "the binary is the same as before", 2},
	[TRIED_VOTES] = {"votes", "too few detectors agree on it", 3},
};

void tried_ramp(struct tried_list *list, size_t from, size_t to)
{
	for (size_t i = 0; i < list->count; i++) {
		struct tried *one = &list->items[i];

		if (one->index >= from && one->index <= to &&
			tried_kinds[one->fate].weight < tried_kinds[TRIED_RAMP].weight)
			one->fate = TRIED_RAMP;
	}
}

/* Replaces the entry of a place; a change that stands keeps the limit that its place missed
 * before. */
static void replace(struct tried *old, const struct tried *one)
{
	const char *measure = old->measure;
	double measured = old->measured, limit = old->limit;

	if (isnan(one->pvalue) && !one->measure) {
		old->fate = one->fate;
		return;
	}
	*old = *one;
	if (old->measure || old->fate != TRIED_STANDS)
		return;
	old->measure = measure;
	old->measured = measured;
	old->limit = limit;
}

void tried_note(struct tried_list *list, const struct tried *one)
{
	struct tried noted = *one;

	noted.by = noted.by ? noted.by : list->by;
	for (size_t i = 0; noted.index <= list->last && i < list->count; i++) {
		struct tried *old = &list->items[i];

		if (old->index != noted.index || old->by != noted.by)
			continue;
		if (tried_kinds[noted.fate].weight >= tried_kinds[old->fate].weight)
			replace(old, &noted);
		return;
	}
	list->items = memory_grow(list->items, &list->room, list->count + 1, sizeof *list->items);
	list->items[list->count++] = noted;
	list->last = noted.index > list->last ? noted.index : list->last;
}

struct tried tried_untested(size_t index, enum tried_fate fate)
{
	return (struct tried){.index = index,
		.fate = fate,
		.pvalue = (double)NAN,
		.mean_before = (double)NAN,
		.mean_after = (double)NAN};
}

void tried_limit(struct tried *one, const char *measure, double measured, double limit)
{
	one->measure = measure;
	one->measured = measured;
	one->limit = limit;
}

bool tried_nearer(const struct tried *one, const struct tried *other)
{
	if (!isnan(one->pvalue) && !isnan(other->pvalue))
		return one->pvalue < other->pvalue;
	if (one->measure && other->measure && isnan(one->pvalue) == isnan(other->pvalue))
		return one->measured > other->measured;
	return !isnan(one->pvalue) && isnan(other->pvalue);
}

void tried_flush(struct tried_list *list, struct tried_best *best)
{
	if (best->item.measure)
		tried_note(list, &best->item);
	best->item.measure = NULL;
}

void tried_offer(
	struct tried_list *list, struct tried_best *best, size_t number, const struct tried *one)
{
	if (best->block != number / TRIED_BLOCK)
		tried_flush(list, best);
	best->block = number / TRIED_BLOCK;
	if (!best->item.measure || tried_nearer(one, &best->item))
		best->item = *one;
}

void tried_forget(struct tried_list *list, size_t index)
{
	size_t kept = 0;

	list->last = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].index < index) {
			list->items[kept++] = list->items[i];
			list->last = list->items[i].index > list->last ? list->items[i].index
								       : list->last;
		}
	list->count = kept;
}

static int by_index(const void *a, const void *b)
{
	const struct tried *one = a, *other = b;

	return (one->index > other->index) - (one->index < other->index);
}

void tried_sort(struct tried_list *list)
{
	if (list->count > 0)
		qsort(list->items, list->count, sizeof *list->items, by_index);
}

void tried_free(struct tried_list *list)
{
	free(list->items);
	*list = (struct tried_list){0};
}
