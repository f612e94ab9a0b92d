/*
 * Levels by k-means of the runs' means, with short excursions removed: how Firefox OS found
 * regressions in its performance tests. docs/design/algorithms.md section 6.4.
 */
#ifndef DETECTORS_MODES_H
#define DETECTORS_MODES_H

#include "detectors/detector.h"

enum { MODES_MOST = 20 };

struct modes_options {
	int64_t window; /* runs that establish a level */
	int64_t modes;  /* levels at most */
	double apart;   /* least distance of two levels, relative */
	double magnitude;
};

/*
 * Exact k-means in one dimension: the partitions of n sorted values into k groups with the least
 * sum of squares around their means, for each k up to `most`, which is at most MODES_MOST and n.
 * O(most n log n) time, O(most n) memory of the scratch.
 */
struct modes_partition;
struct modes_partition *modes_partition(
	const double *sorted, size_t n, size_t most, struct scratch *scratch);

/* The sum of squares of the partition into k groups. */
double modes_squares(const struct modes_partition *partition, size_t k);

/* Writes where its k groups begin; starts[0] = 0. */
void modes_starts(const struct modes_partition *partition, size_t k, size_t *starts);

extern const struct detector modes_detector;

#endif
