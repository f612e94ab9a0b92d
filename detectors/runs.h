/*
 * The runs of a series: consecutive points that were measured together. A run has a hash, that of
 * the binary it measured.
 */
#ifndef DETECTORS_RUNS_H
#define DETECTORS_RUNS_H

#include "detectors/segments.h"

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
