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
	double means[2][CHANGE_MEANS], levels[2][CHANGE_LEVELS];
	change_means(a, means[0]);
	change_means(b, means[1]);
	change_levels(a, levels[0]);
	change_levels(b, levels[1]);
	return a->index == b->index && same_doubles(&a->pvalue, &b->pvalue, 1) &&
	       a->kind == b->kind && a->count_before == b->count_before &&
	       a->count_after == b->count_after && same_doubles(means[0], means[1], CHANGE_MEANS) &&
	       same_doubles(levels[0], levels[1], CHANGE_LEVELS) &&
	       a->place_from == b->place_from && a->place_to == b->place_to &&
	       a->cause_from == b->cause_from && a->cause_to == b->cause_to;
}

static inline bool same_changes(const struct change *a, const struct change *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!same_change(a + i, b + i))
			return false;
	return true;
}

#endif
