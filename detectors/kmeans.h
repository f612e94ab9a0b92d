/*
 * k-means over many rows of single precision: which series have the same shape.
 *
 * Lloyd's iteration with Hamerly's bounds ("Making k-means even faster", 2010), seeded by greedy
 * k-means++ (Arthur and Vassilvitskii 2007) on a sample. The same rows, k and seed give the same
 * clusters, on any machine and with any number of threads: work is cut into parts that depend on
 * the number of rows alone, and what parts add up is added in their order.
 */
#ifndef DETECTORS_KMEANS_H
#define DETECTORS_KMEANS_H

#include <stdint.h>

#include "detectors/parallel.h"

/* `n` rows of distance_stride(width) floats, the padding being 0. Finite. */
struct matrix {
	const float *rows;
	size_t n, stride;
};

static inline const float *matrix_row(const struct matrix *matrix, size_t row)
{
	return matrix->rows + row * matrix->stride;
}

struct kmeans_options {
	size_t k; /* at least 1; no more than there are rows are made */
	uint64_t seed;
	size_t iterations;               /* at most; 0: 100 */
	double settled;                  /* ends when the summed distance moves by less; 0: 1 */
	const struct parallel *parallel; /* or NULL */
};

struct kmeans {
	size_t k, iterations;
	float *centroids;   /* k rows of the matrix' stride */
	uint32_t *clusters; /* of each row */
	float *distances;   /* of each row to its centroid */
	double error;       /* their sum */
};

struct kmeans *kmeans_new(const struct matrix *matrix, const struct kmeans_options *options);
void kmeans_free(struct kmeans *result);

/* clamp(40 n / 30000 + 10, 1, n), the number of clusters that Skia Perf looks for. */
size_t kmeans_default_k(size_t n);

#endif
