/*
 * The trace that a series' points leave: hashes by which they are known again.
 *
 * Points are numbered from the first that was noted, number 0. Later answers may begin elsewhere,
 * because the front of the range has slid away or more of it was asked for, and may have other
 * values where the past was corrected. A trace takes a few bytes for 64 points.
 */
#ifndef AGENT_MONITOR_TRACE_H
#define AGENT_MONITOR_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/series.h"

enum { POINT_HASHES_BLOCK = 64 };

/* 64 points, the last block fewer. */
struct point_hashes_block {
	int64_t time;   /* of its first point */
	uint64_t hash;  /* over times and values */
	uint32_t twins; /* points just before it that have the same time */
};

/* All zero: nothing was noted. */
struct point_hashes {
	size_t n;                          /* points so far */
	struct point_hashes_block *blocks; /* from number `first` on */
	size_t first, end, room;
	uint64_t but_last; /* hash of the last block without its last point */
};

/*
 * Finds the points again: number = index of the axis + *shift. Returns how many of those that were
 * noted are as they were, up to the first that is not (with the precision of a block, but for the
 * very last); what lies before the answer's front counts as unchanged. 0 where nothing can be
 * found again, and *shift is nothing then.
 */
size_t point_hashes_compare(
	const struct point_hashes *trace, const struct series *series, ptrdiff_t *shift);

/* Notes the answer's points from number 0 on, of which the first `same` are noted already. What
 * lies before its front is forgotten. */
void point_hashes_note(
	struct point_hashes *trace, const struct series *series, ptrdiff_t shift, size_t same);

/* Frees what it holds and forgets all. */
void point_hashes_clear(struct point_hashes *trace);

#endif
