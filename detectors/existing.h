/*
 * Series as detectors work on them: without missing values, and brought to a common size.
 */
#ifndef DETECTORS_EXISTING_H
#define DETECTORS_EXISTING_H

#include <stddef.h>

/*
 * Copies the finite values to `existing` and their places in the series to `places`, both with room
 * for n. Infinite values count as missing. Returns how many there are.
 */
size_t existing_values(const double *values, size_t n, double *existing, size_t *places);

/*
 * Writes values shifted to begin with 0 and scaled by a power of two to lie within [-1, 1], the
 * largest at least 1/2 in size (constants: all 0). Exact but for the rounding of the shift, for
 * values of any size. Returns the exponent e of the factor 2^e.
 */
int existing_scale(const double *values, size_t n, double *scaled);

#endif
