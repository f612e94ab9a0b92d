/*
 * What becomes of a change that was announced and is not found any more where it was.
 *
 * A detector decides anew with each point, and where the evidence lies just about its threshold it
 * decides now so, now otherwise. What people have been told is held to another measure than what
 * they shall be told: it may turn out to stand elsewhere, and it is taken back only once the
 * evidence is really gone.
 */
#ifndef DETECTORS_STANDING_H
#define DETECTORS_STANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/change.h"

enum {
	STANDING_REACH = 100, /* points to either side that are evidence, at most */
	STANDING_MOVE = 50    /* points that a change may move at once */
};

/*
 * Is there still evidence of a change of that sign (1, -1) at `place`? Of the existing values
 * between the changes that are found now (ascending), the nearest ones to either side of the place
 * must differ that way, by Welch's test with p at most 0.1.
 */
bool retraction_holds(const double *values, size_t n, const struct change *changes, size_t count,
	size_t place, int sign);

/* A change on the line of points: one that was found now, or one that is known and stands, and was
 * not found at its place. */
struct mark {
	double place;
	double followed; /* of a known one: by how many points when it was told */
	int sign;
	size_t index; /* the caller's */
	int64_t tie;  /* what decides between equal places */
	bool found;
	bool known; /* of a found one: it is a known one already */
};

struct move {
	size_t known, found; /* the caller's indices */
};

/*
 * Which of the known changes are found elsewhere: one of the same sign, not known otherwise,
 * with no other mark between, and not so far on that its place was yet to come when the known one
 * was told: that is news. Of two that could be, the nearer one. Sorts the marks; `moves` has room
 * for half as many; returns how many there are.
 */
size_t retraction_moves(struct mark *marks, size_t count, struct move *moves);

#endif
