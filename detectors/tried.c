/*
 * A chunk is searched several times where excursions are taken out of it, so one place may be noted
 * with each.
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
	[TRIED_SHORT] = "short",
	[TRIED_RAMP] = "ramp",
};

const char *const tried_sentences[TRIED_FATES] = {
	[TRIED_STANDS] = "it stands",
	[TRIED_WEAK] = "the best place of its window, and too little to be a candidate",
	[TRIED_TEST] = "p is not below p_value",
	[TRIED_RANKS] =
		"p is below p_value, but the ranks do not agree: a few extreme values make it",
	[TRIED_MAGNITUDE] = "it is not larger than the magnitude that the configuration asks for",
	[TRIED_ENDS] = "only one point lies before or behind it",
	[TRIED_EXCURSION] = "an excursion: the values come back after a few points",
	[TRIED_SHORT] = "a stronger one lies within a few points",
	[TRIED_RAMP] = "a part of a ramp, which stands as one change",
};

int tried_weight(enum tried_fate fate)
{
	switch (fate) {
	case TRIED_STANDS: return 4;
	case TRIED_EXCURSION:
	case TRIED_RAMP: return 3;
	case TRIED_RANKS:
	case TRIED_MAGNITUDE:
	case TRIED_ENDS:
	case TRIED_SHORT: return 2;
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

void tried_note(struct tried_list *list, const struct tried *one)
{
	for (size_t i = 0; i < list->count; i++) {
		struct tried *old = &list->items[i];

		if (old->index != one->index)
			continue;
		if (tried_weight(one->fate) < tried_weight(old->fate))
			return;
		if (isnan(one->pvalue))
			old->fate = one->fate;
		else
			*old = *one;
		return;
	}
	if (list->count == list->room) {
		list->room = 2 * list->room + 16;
		list->items = scratch_resize(list->items, list->room, sizeof *list->items);
	}
	list->items[list->count++] = *one;
}

void tried_forget(struct tried_list *list, size_t index)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].index < index)
			list->items[kept++] = list->items[i];
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
