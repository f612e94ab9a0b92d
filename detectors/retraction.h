/*
 * Decides about an announced change that is not found any more at its place.
 *
 * A detector decides anew with each point, and where the evidence is near its threshold its
 * decision flips. So an announced change is held to another standard than a new one: it may have
 * moved, and it is retracted only once the evidence is really gone.
 */
#ifndef DETECTORS_RETRACTION_H
#define DETECTORS_RETRACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/change.h"

enum {
	RETRACTION_REACH = 100, /* points to either side that count as evidence at most */
	RETRACTION_MOVE = 50    /* points that a change may move at once */
};

/*
 * Whether there is still evidence of a change of that sign (1, -1) at `place`: of the existing
 * values between the changes found now (ascending), the nearest ones to either side of the place
 * must differ in that direction, by Welch's test with p at most 0.1.
 */
bool retraction_holds(const double *values, size_t n, const struct change *changes, size_t count,
	size_t place, int sign);

/* A change on the axis of points: one that was found now, or a known one that was not found at its
 * place. */
struct mark {
	double place;
	double followed; /* for a known change: points that followed it when it was announced */
	int sign;
	size_t index; /* the caller's index */
	int64_t tie;  /* decides between equal places */
	bool found;
	bool known; /* for a found change: it is already known */
};

struct move {
	size_t known, found; /* the caller's indices */
};

/*
 * Finds the known changes that are now found elsewhere: of the same sign, not otherwise known,
 * without another mark between, and not at a place that was still in the future when the known one
 * was announced: that would be news. Of two possible ones the nearer is taken. Sorts the marks;
 * `moves` has room for half as many; returns their number.
 */
size_t retraction_moves(struct mark *marks, size_t count, struct move *moves);

#endif
