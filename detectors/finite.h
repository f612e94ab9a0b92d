/*
 * Prepares series for detectors: removes missing values, and scales the rest.
 */
#ifndef DETECTORS_FINITE_H
#define DETECTORS_FINITE_H

#include <stddef.h>

/*
 * Copies the finite values to `existing` and their indices to `places`, both with room for n.
 * Infinite values count as missing. Returns how many there are.
 */
size_t finite_values(const double *values, size_t n, double *existing, size_t *places);

/* How values were scaled: scaled = 2^exponent value - shift. */
struct scale {
	int exponent;
	double shift;
};

/*
 * Writes the values scaled and shifted: all lie within [-1, 1], and the largest is at least 1/2 in
 * size, unless all are equal, which gives zeros. The shift is the median of the first five values.
 * Nothing overflows, and only the shift rounds.
 */
struct scale finite_scale(const double *values, size_t n, double *scaled);

#endif
