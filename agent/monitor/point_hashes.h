/*
 * Hashes of a series' points, by which the points are recognised in the next answer.
 *
 * Points are numbered from the first one noted, which is 0. Later answers may begin elsewhere,
 * because the front of the range has moved on or more was queried, and may have other values where
 * history was corrected. The hashes take a few bytes for 64 points.
 */
#ifndef AGENT_MONITOR_POINT_HASHES_H
#define AGENT_MONITOR_POINT_HASHES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/model/series.h"

enum { POINT_HASHES_BLOCK = 64 };

/* 64 points, the last block fewer. */
struct point_hashes_block {
	int64_t time;   /* time of its first point */
	uint64_t hash;  /* of times and values */
	uint32_t twins; /* points just before it with the same time */
};

/* All zero: nothing is noted. */
struct point_hashes {
	size_t n;                          /* points noted so far */
	struct point_hashes_block *blocks; /* starting at number `first` */
	size_t first, end, room;
	uint64_t but_last; /* hash of the last block without its last point */
};

/*
 * Locates the noted points in the answer: number = index on the axis + *shift. Returns how many of
 * them are unchanged, up to the first that is not (to the precision of a block, except for the very
 * last point); points before the answer's front count as unchanged. Returns 0 if nothing can be
 * located; *shift is undefined then.
 */
size_t point_hashes_compare(
	const struct point_hashes *hashes, const struct series *series, ptrdiff_t *shift);

/* Notes the answer's points from number 0 on, the first `same` of which are noted already. Forgets
 * points before its front. */
void point_hashes_note(
	struct point_hashes *hashes, const struct series *series, ptrdiff_t shift, size_t same);

/* Frees the hashes and forgets everything. */
void point_hashes_clear(struct point_hashes *hashes);

#endif
