/*
 * Series as detectors work on them: without missing values, and brought to a common size.
 */
#ifndef DETECTORS_FINITE_H
#define DETECTORS_FINITE_H

#include <stddef.h>

/*
 * Copies the finite values to `existing` and their places in the series to `places`, both with room
 * for n. Infinite values count as missing. Returns how many there are.
 */
size_t finite_values(const double *values, size_t n, double *existing, size_t *places);

/* How scaled values come from those given: scaled = 2^exponent value - shift. */
struct scale {
	int exponent;
	double shift;
};

/*
 * Writes the values scaled and shifted, so that they lie within [-1, 1] and, but for constants, the
 * largest is at least 1/2 in size; constants are all 0. The shift is the median of the first
 * values. Differences of values of any size survive: nothing overflows, and nothing is rounded but
 * by the shift.
 */
struct scale finite_scale(const double *values, size_t n, double *scaled);

#endif
