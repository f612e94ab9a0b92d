/*
 * Decides whether an announced change that is no longer found at its place still stands.
 *
 * A detector decides again with each point, and near the threshold its decision flips. So an
 * announced change is held to another standard than a new one: it may move, and it is retracted
 * only when the evidence is gone. docs/design/algorithms.md section 5.
 */
#ifndef DETECTORS_RETRACTION_H
#define DETECTORS_RETRACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/model/change.h"

enum {
	RETRACTION_REACH = 100, /* points on each side that count as evidence, at most */
	RETRACTION_MOVE = 50    /* points that a change may move in one run */
};

/*
 * Whether there is still evidence of a change of that sign (1, -1) at `place`: the nearest existing
 * values on both sides, up to the next of the changes found now (ascending), must differ in that
 * direction by Welch's test, with p at most 0.1.
 */
bool retraction_holds(const double *values, size_t n, const struct change *changes, size_t count,
	size_t place, int sign);

/* A change that was found now, or a known one that was not found at its place. */
struct mark {
	double place;
	double followed; /* of a known change: points that followed it when it was announced; 0:
			    there is no evidence of it at its place */
	double before, after; /* its levels */
	int sign;
	size_t index; /* the caller's index */
	int64_t tie;  /* order of marks at the same place */
	bool found;
	bool known; /* for a found change: it is already known */
};

struct move {
	size_t known, found; /* the caller's indices */
};

/*
 * Finds the known changes that are now found elsewhere: at a change of the same sign that is not
 * known otherwise, without another mark between. One behind the points that existed when the known
 * one was announced is news, unless it is between about the same levels; the same is required of
 * any if there is no evidence of the known one. Of two such changes the nearer one is taken. Sorts
 * the marks; `moves` has room for half as many; returns the number of moves.
 */
size_t retraction_moves(struct mark *marks, size_t count, struct move *moves);

#endif
