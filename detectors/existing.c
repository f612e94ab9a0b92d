/*
 * Scaling happens before the shift as well as after it, so that differences of values near the ends
 * of double's range neither overflow nor vanish.
 */
#include "detectors/existing.h"

#include <math.h>

size_t existing_values(const double *values, size_t n, double *existing, size_t *places)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			existing[count] = values[i];
			places[count++] = i;
		}
	return count;
}

/* The exponent that brings the largest |value - from| to [1/2, 1); 0 where all are equal to `from`.
 */
static int exponent_of(const double *values, size_t n, double from)
{
	double largest = 0;
	for (size_t i = 0; i < n; i++) {
		double size = fabs(values[i] - from);
		largest = size > largest ? size : largest;
	}
	int exponent = 0;
	frexp(largest, &exponent);
	return -exponent;
}

/* Multiplies by 2^exponent, in two steps where one factor would not be a normal double. */
static void scale(double *values, size_t n, int exponent)
{
	double first = ldexp(1, exponent / 2), second = ldexp(1, exponent - exponent / 2);
	for (size_t i = 0; i < n; i++)
		values[i] = values[i] * first * second;
}

int existing_scale(const double *values, size_t n, double *scaled)
{
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		scaled[i] = values[i];
	int before = exponent_of(scaled, n, 0) - 1;
	scale(scaled, n, before);
	double first = scaled[0];
	for (size_t i = 0; i < n; i++)
		scaled[i] -= first;
	int after = exponent_of(scaled, n, 0);
	scale(scaled, n, after);
	return before + after;
}
