/*
 * docs/design/algorithms.md section 8, steps 1 and 8.
 */
#include "agent/analysis/cluster.h"

#include <float.h>
#include <math.h>

static double largest(const double *values, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && fabs(values[i]) > most)
			most = fabs(values[i]);
	return most;
}

/* Writes the values with gaps filled, divided by `unit` so that no square overflows. False if there
 * are none. */
static bool fill(const double *values, size_t n, double unit, float *row)
{
	double last = (double)NAN;

	for (size_t i = n; i-- > 0;) {
		if (isfinite(values[i]))
			last = values[i];
		row[i] = (float)(last / unit);
	}
	for (size_t i = 0; i < n; i++) { /* `last` is the first value */
		if (isfinite(values[i]))
			last = values[i];
		if (isnan(row[i]))
			row[i] = (float)(last / unit);
	}
	return n > 0 && isfinite(last);
}

bool cluster_shape(const double *values, size_t n, float *row, size_t stride)
{
	double unit = largest(values, n), mean = 0, squares = 0, scale;

	for (size_t i = n; i < stride; i++)
		row[i] = 0;
	if (!fill(values, n, unit > 0 ? unit : 1, row))
		return false;
	for (size_t i = 0; i < n; i++)
		mean += (double)row[i];
	mean /= (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)row[i] - mean) * ((double)row[i] - mean);
	scale = sqrt(squares / (double)n);
	if (scale <= CLUSTER_LEAST)
		scale = 1;
	for (size_t i = 0; i < n; i++)
		row[i] = (float)(((double)row[i] - mean) / scale);
	return true;
}

/* sqrt(sum of squares) / n about the straight line that fits best. */
static double line_error(const float *shape, size_t n, double total, double squares)
{
	double middle = (double)(n - 1) / 2, across = 0, width = 0, left;

	for (size_t i = 0; i < n; i++) {
		double at = (double)i - middle;

		across += at * (double)shape[i];
		width += at * at;
	}
	left = squares - total * total / (double)n - (width > 0 ? across * across / width : 0);
	return sqrt(left > 0 ? left : 0) / (double)n;
}

struct step_fit cluster_fit(const float *shape, size_t n)
{
	struct step_fit best = {.error = DBL_MAX};
	double total = 0, squares = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		total += (double)shape[i];
		squares += (double)shape[i] * (double)shape[i];
	}
	for (size_t split = 1; split < n; split++) {
		double a = (double)split, b = (double)(n - split), error;

		left += (double)shape[split - 1];
		error = squares - left * left / a - (total - left) * (total - left) / b;
		error = sqrt(error > 0 ? error : 0) / (double)n;
		if (error < best.error * (1 - 1e-9))
			best = (struct step_fit){.index = split,
				.before = left / a,
				.after = (total - left) / b,
				.error = error};
	}
	best.regression = (best.before - best.after) /
			  (best.error > CLUSTER_LEAST ? best.error : CLUSTER_LEAST);
	best.line_error = line_error(shape, n, total, squares);
	return best;
}
