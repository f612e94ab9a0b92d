/*
 * Levels by k-means of the runs' means, with short excursions taken back: how Firefox OS found
 * regressions in its performance tests.
 */
#ifndef DETECTORS_MODES_H
#define DETECTORS_MODES_H

#include "detectors/detector.h"

enum { MODES_MOST = 20 };

struct modes_options {
	int64_t window; /* runs that show a level to be one */
	int64_t modes;  /* levels at most */
	double apart;   /* levels are at least that far from each other, relative */
	double magnitude;
};

/*
 * Exact k-means in one dimension: the partition of n sorted values into `k` groups, 1 <= k <= n,
 * with the least sum of squares about their means, for each k up to `most` (at most MODES_MOST and
 * n). squares[k - 1] is that sum. Takes from `scratch`.
 */
struct modes_partition;
struct modes_partition *modes_partition(
	const double *sorted, size_t n, size_t most, struct scratch *scratch);
double modes_squares(const struct modes_partition *partition, size_t k);

/* Where the k groups begin: starts[0] = 0, ... */
void modes_starts(const struct modes_partition *partition, size_t k, size_t *starts);

extern const struct detector modes_detector;

#endif
