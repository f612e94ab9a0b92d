/*
 * The shape of a series and the step in it, as in the trace clusters of Skia Perf
 * (https://perf.skia.org): a series is normalised so that only its shape counts, and a cluster is
 * interesting if its centroid looks like a step. docs/design/algorithms.md section 8.
 */
#ifndef AGENT_ANALYSIS_CLUSTER_H
#define AGENT_ANALYSIS_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

/* A standard deviation up to this is noise of a constant series; also the least error of a fit. */
#define CLUSTER_LEAST 0.001

/*
 * Writes the shape of n values: a gap takes the value that follows, or else the last one; then the
 * mean is subtracted, and the values are divided by the population's standard deviation if that
 * exceeds CLUSTER_LEAST of their size. The rest of the row's `stride` floats becomes 0. False if no
 * value exists.
 */
bool cluster_shape(const double *values, size_t n, float *row, size_t stride);

struct step_fit {
	size_t index;         /* first point after the step */
	double before, after; /* levels */
	double error;         /* sqrt(sum of squares) / n */
	double regression;    /* (before - after) / max(error, CLUSTER_LEAST): negative means up */
	double line_error; /* of a straight line; if smaller than `error` the shape is a slope, not
			      a step */
};

/* The step with the least error, n >= 2; the first on ties. */
struct step_fit cluster_fit(const float *shape, size_t n);

#endif
