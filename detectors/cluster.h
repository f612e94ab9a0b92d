/*
 * Series as shapes, and the step in a shape: what Skia Perf looks for in clusters of traces.
 *
 * https://perf.skia.org: a trace is normalised, so that only its shape counts, and a cluster is
 * interesting if its centroid looks like a step.
 */
#ifndef DETECTORS_CLUSTER_H
#define DETECTORS_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

/* Standard deviations up to it are noise of a constant; the least error a fit is given. */
#define CLUSTER_LEAST 0.001

/*
 * Writes the shape of n values: gaps take the value that follows, or else the last one; then the
 * mean is taken off and the rest divided by the population's standard deviation if that exceeds
 * CLUSTER_LEAST of the values' size. What is left of the row's `stride` floats becomes 0. False:
 * not a single value exists.
 */
bool cluster_shape(const double *values, size_t n, float *row, size_t stride);

struct step_fit {
	size_t index;         /* first point behind the step */
	double before, after; /* levels */
	double error;         /* sqrt(sum of squares) / n */
	double regression;    /* (before - after) / max(error, CLUSTER_LEAST): negative means up */
	double line_error;    /* that of a straight line: a shape with less is a slope, no step */
};

/* The step that leaves the least error, n >= 2; the first on ties. */
struct step_fit cluster_fit(const float *shape, size_t n);

#endif
