/*
 * Where k-means begins.
 */
#ifndef DETECTORS_KMEANS_SEED_H
#define DETECTORS_KMEANS_SEED_H

#include "detectors/kmeans.h"

/* Writes k centroids, rows of the matrix. `squares` are of the rows' lengths; 1 <= k <= n. */
void kmeans_seed(const struct matrix *matrix, const float *squares, size_t k,
	const struct parallel *parallel, uint64_t *random, float *centroids);

#endif
