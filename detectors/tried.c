/*
 * A chunk is searched again with the next one, so one place may be noted several times.
 */
#include "detectors/tried.h"

#include <math.h>
#include <stdlib.h>

#include "detectors/scratch.h"

const char *const tried_names[TRIED_FATES] = {
	[TRIED_STANDS] = "stands",
	[TRIED_WEAK] = "weak",
	[TRIED_TEST] = "test",
	[TRIED_RANKS] = "rank rule",
	[TRIED_MAGNITUDE] = "magnitude",
	[TRIED_ENDS] = "ends",
	[TRIED_EXCURSION] = "excursion",
	[TRIED_RAMP] = "ramp",
	[TRIED_OUTLIER] = "outlier",
	[TRIED_MODE] = "mode",
	[TRIED_WANDER] = "wanders",
	[TRIED_DRIFT] = "drift",
	[TRIED_OUTDONE] = "outdone",
	[TRIED_COST] = "penalty",
	[TRIED_THRESHOLD] = "threshold",
	[TRIED_APART] = "apart",
	[TRIED_PENDING] = "pending",
	[TRIED_FLOOR] = "floor",
	[TRIED_SAMPLES] = "deviations",
	[TRIED_BINARY] = "binary",
	[TRIED_VOTES] = "votes",
};

const char *const tried_sentences[TRIED_FATES] = {
	[TRIED_STANDS] = "it stands",
	[TRIED_WEAK] = "too weak: explains too little of the variance",
	[TRIED_TEST] = "not significant: p is not below p_value",
	[TRIED_RANKS] = "caused by a few extreme values: the ranks on both sides do not differ",
	[TRIED_MAGNITUDE] = "its magnitude is not above the required one",
	[TRIED_ENDS] = "only one point before or after it",
	[TRIED_EXCURSION] = "an excursion: the level came back after a few points",
	[TRIED_RAMP] = "part of a ramp, reported as one change",
	[TRIED_OUTLIER] = "an outlier: the values beside it are unchanged",
	[TRIED_MODE] = "the level came back before: the values visit both levels repeatedly",
	[TRIED_WANDER] =
		"the level moves as much all the time: inside this series' usual wandering",
	[TRIED_DRIFT] = "within a slow drift that is too small to report",
	[TRIED_OUTDONE] = "not tested, since a better place of the series failed the test",
	[TRIED_COST] = "another level would explain less than its penalty",
	[TRIED_THRESHOLD] = "the step is below the threshold",
	[TRIED_APART] =
		"the two levels count as one: they are nearer than `apart`, or than the noise",
	[TRIED_PENDING] = "too few points after it yet",
	[TRIED_FLOOR] = "it is smaller than the floor",
	[TRIED_SAMPLES] = "it is within the deviation of the run's samples",
	[TRIED_BINARY] = "the binary is the same as before",
	[TRIED_VOTES] = "too few detectors agree on it",
};

int tried_weight(enum tried_fate fate)
{
	switch (fate) {
	case TRIED_STANDS: return 4;
	case TRIED_EXCURSION:
	case TRIED_VOTES:
	case TRIED_MODE:
	case TRIED_WANDER:
	case TRIED_DRIFT:
	case TRIED_RAMP: return 3;
	case TRIED_RANKS:
	case TRIED_MAGNITUDE:
	case TRIED_ENDS:
	case TRIED_OUTLIER:
	case TRIED_APART:
	case TRIED_PENDING:
	case TRIED_FLOOR:
	case TRIED_SAMPLES:
	case TRIED_BINARY: return 2;
	case TRIED_OUTDONE:
	case TRIED_COST:
	case TRIED_THRESHOLD:
	case TRIED_TEST: return 1;
	case TRIED_WEAK:
	case TRIED_FATES: break;
	}
	return 0;
}

void tried_ramp(struct tried_list *list, size_t from, size_t to)
{
	for (size_t i = 0; i < list->count; i++) {
		struct tried *one = &list->items[i];

		if (one->index >= from && one->index <= to &&
			tried_weight(one->fate) < tried_weight(TRIED_RAMP))
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
		if (tried_weight(noted.fate) >= tried_weight(old->fate))
			replace(old, &noted);
		return;
	}
	if (list->count == list->room) {
		list->room = 2 * list->room + 16;
		list->items = scratch_resize(list->items, list->room, sizeof *list->items);
	}
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
