/*
 * For detectors that only find places: makes changes of them, with the statistics of the segments
 * between them. docs/design/algorithms.md section 6.
 */
#ifndef DETECTORS_SEGMENTS_H
#define DETECTORS_SEGMENTS_H

#include "detectors/detector.h"
#include "detectors/tried.h"

/* The existing values of a series; the arrays are in a scratch. */
struct segments {
	double *values; /* times 2^unit, so that their squares stay within double's range */
	size_t *places; /* their indices in the series */
	size_t n;
	int unit;
};

struct segments segments_of(const struct samples *samples, struct scratch *scratch);

/*
 * Writes a change for each of `count` cuts (indices into segments->values, ascending, within
 * 1..n - 1), with means, deviations (n - 1) and counts of its two neighbouring segments. The
 * p-value is that of `pvalues`; if that is negative, or NULL, that of ttest_any between them, not
 * corrected for the choice of the cut.
 */
void segments_changes(const struct segments *segments, const size_t *cuts, const double *pvalues,
	size_t count, struct change *out);

/* A cut between [from, cut) and [cut, to), with their means and the p-value of the test between
 * them, for the trace. */
struct tried segments_tried(
	const struct segments *segments, size_t from, size_t cut, size_t to, enum tried_fate fate);

/* The runs of a series: consecutive points that were measured together. A run has a hash, that of
 * the binary it measured. */
struct runs {
	size_t *starts; /* indices into the existing values, ascending; starts[count] is the end */
	uint64_t *hashes; /* of each run, from its first point that has one; 0: unknown */
	size_t count;     /* runs that have values */
};

/* The result is in the scratch. */
struct runs runs_of(
	const struct samples *samples, const struct segments *segments, struct scratch *scratch);

/* Merges consecutive runs with equal hashes. */
void runs_pool(struct runs *runs);

/* Writes the mean of each run's values. */
void runs_means(const struct runs *runs, const struct segments *segments, double *means);

#endif
