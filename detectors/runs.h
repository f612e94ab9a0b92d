/*
 * The runs of a series: points that were measured together.
 */
#ifndef DETECTORS_RUNS_H
#define DETECTORS_RUNS_H

#include "detectors/segments.h"

struct runs {
	size_t *starts;   /* numbers of existing values, ascending; starts[count] is their end */
	uint64_t *hashes; /* of each run's first point that has one; 0: none */
	size_t count;     /* runs that have values */
};

/* Takes from `scratch`. */
struct runs runs_of(
	const struct samples *samples, const struct segments *segments, struct scratch *scratch);

/* Merges consecutive runs with equal hashes. */
void runs_pool(struct runs *runs);

/* Writes the mean of each run's values. */
void runs_means(const struct runs *runs, const struct segments *segments, double *means);

#endif
