/*
 * Statistics of segments, for detectors that only name places: the numbers of the segments between
 * them.
 */
#ifndef DETECTORS_SEGMENTS_H
#define DETECTORS_SEGMENTS_H

#include "detectors/detector.h"
#include "detectors/tried.h"

/* The existing values of a series, in a scratch. */
struct segments {
	double *values; /* times 2^unit, so that their squares stay within double's range */
	size_t *places; /* of each in the series */
	size_t n;
	int unit;
};

struct segments segments_of(const struct samples *samples, struct scratch *scratch);

/*
 * Writes a change for each of `count` cuts (numbers of existing values, ascending, within 1..n - 1)
 * with means, deviations (n - 1) and counts of its two neighbouring segments. The p-value is that
 * of Welch's test between them; if one has a single value, of Student's, with the other's variance.
 * It is not corrected for the choice of the cut.
 */
void segments_changes(
	const struct segments *segments, const size_t *cuts, size_t count, struct change *out);

/*
 * Drops cuts whose magnitude is not above `magnitude`, the smallest first; what follows is judged
 * by the segments as they are then. Returns how many are left.
 */
size_t segments_drop_small(const struct segments *segments, size_t *cuts, size_t count,
	double magnitude, struct scratch *scratch);

/* A cut between [from, cut) and [cut, to), with their means and the p-value of the test between
 * them, for the trace. */
struct tried segments_tried(
	const struct segments *segments, size_t from, size_t cut, size_t to, enum tried_fate fate);

#endif
