/*
 * Dot products and distances of rows of single precision, the inner loop of k-means.
 *
 * A row is `stride` floats, a multiple of DISTANCE_LANES, padded with zeros. Sums run in
 * DISTANCE_LANES lanes that are added in a fixed order, with and without vector instructions, so
 * that the result does not depend on the machine.
 */
#ifndef AGENT_ANALYSIS_DISTANCE_H
#define AGENT_ANALYSIS_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>

enum { DISTANCE_LANES = 8, DISTANCE_ROWS = 4 };

struct distance {
	/* Dot products of DISTANCE_ROWS rows with each of `count` consecutive columns. */
	void (*dots)(const float *const *rows, const float *columns, size_t count, size_t stride,
		float *const *out);
	/* The squared distance of two rows. */
	float (*square)(const float *a, const float *b, size_t stride);
};

/* The fastest implementation that this machine supports. */
const struct distance *distance_best(void);
const struct distance *distance_scalar(void);

/* The padded width of a row, in floats. */
size_t distance_stride(size_t width);

#endif
