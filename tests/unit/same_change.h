/*
 * Whether two lists of changes are the same, each number bit for bit. What lies between the members
 * of the struct is not compared: compilers leave it as it was.
 */
#ifndef TESTS_SAME_CHANGE_H
#define TESTS_SAME_CHANGE_H

#include <stdbool.h>
#include <string.h>

#include "agent/model/change.h"

static inline bool same_doubles(const double *a, const double *b, size_t count)
{
	return memcmp(a, b, count * sizeof(*a)) == 0;
}

static inline bool same_change(const struct change *a, const struct change *b)
{
	return a->index == b->index && same_doubles(&a->pvalue, &b->pvalue, 1) &&
	       a->kind == b->kind && a->count_before == b->count_before &&
	       a->count_after == b->count_after &&
	       same_doubles(&a->mean_before, &b->mean_before, 1) &&
	       same_doubles(&a->mean_after, &b->mean_after, 1) &&
	       same_doubles(&a->stddev_before, &b->stddev_before, 1) &&
	       same_doubles(&a->stddev_after, &b->stddev_after, 1) &&
	       same_doubles(&a->magnitude, &b->magnitude, 1) &&
	       same_doubles(&a->level_before, &b->level_before, 1) &&
	       same_doubles(&a->level_after, &b->level_after, 1) &&
	       same_doubles(&a->size, &b->size, 1) && same_doubles(&a->size_low, &b->size_low, 1) &&
	       same_doubles(&a->size_high, &b->size_high, 1) && a->place_from == b->place_from &&
	       a->place_to == b->place_to && a->cause_from == b->cause_from &&
	       a->cause_to == b->cause_to;
}

static inline bool same_changes(const struct change *a, const struct change *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!same_change(a + i, b + i))
			return false;
	return true;
}

#endif
