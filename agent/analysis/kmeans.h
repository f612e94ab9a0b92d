/*
 * k-means over many rows of single precision: which series have the same shape.
 *
 * Lloyd's iteration with Hamerly's bounds ("Making k-means even faster", 2010), seeded by greedy
 * k-means++ (Arthur and Vassilvitskii 2007) on a sample: docs/design/algorithms.md section 8.
 *
 * The same rows, k and seed give the same clusters on any machine and with any number of threads:
 * work is divided by the number of rows alone, and the parts' sums are added in order. Running out
 * of memory aborts; there are no other errors.
 */
#ifndef AGENT_ANALYSIS_KMEANS_H
#define AGENT_ANALYSIS_KMEANS_H

#include <stdint.h>

#include "detectors/parallel.h"

/* n rows of kmeans_stride(width) finite floats each, the padding 0. */
struct matrix {
	const float *rows;
	size_t n, stride;
};

static inline const float *matrix_row(const struct matrix *matrix, size_t row)
{
	return matrix->rows + row * matrix->stride;
}

struct kmeans_options {
	size_t k; /* clusters, at least 1; limited to the number of rows */
	uint64_t seed;
	double settled; /* stops when the summed distance moves by less than this; 0: 1 */
	const struct parallel *parallel; /* NULL: one thread */
};

struct kmeans {
	size_t k, iterations;
	float *centroids;   /* k rows of the matrix' stride */
	uint32_t *clusters; /* of each row */
	float *distances;   /* of each row to its centroid */
	double error;       /* their sum */
};

/* Memory: O(n) and, for each of up to 16 parts, k rows of doubles. Free with kmeans_free. */
struct kmeans *kmeans_new(const struct matrix *matrix, const struct kmeans_options *options);
void kmeans_free(struct kmeans *result);

/* The padded width of a row, in floats. */
size_t kmeans_stride(size_t width);

/* min(40 n / 30000 + 10, n), the number of clusters that Skia Perf looks for. */
size_t kmeans_default_k(size_t n);

#endif
