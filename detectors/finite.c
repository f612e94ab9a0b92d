/*
 * Values are scaled before and after the shift, so that differences of values near the limits of
 * double neither overflow nor vanish.
 */
#include "detectors/finite.h"

#include <math.h>
#include <string.h>

size_t finite_values(const double *values, size_t n, double *existing, size_t *places)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			existing[count] = values[i];
			places[count++] = i;
		}
	return count;
}

/* The exponent that brings the largest size to [1/2, 1); 0 where all are 0. */
static int exponent_of(const double *values, size_t n)
{
	double largest[4] = {0};
	size_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++) {
			double size = fabs(values[i + lane]);
			largest[lane] = size > largest[lane] ? size : largest[lane];
		}
	for (; i < n; i++)
		largest[0] = fmax(largest[0], fabs(values[i]));
	int exponent = 0;
	frexp(fmax(fmax(largest[0], largest[1]), fmax(largest[2], largest[3])), &exponent);
	return -exponent;
}

/* Multiplies by 2^exponent, in two steps where one factor would not be a normal double. */
static void scale(double *values, size_t n, int exponent)
{
	double first = ldexp(1, exponent / 2), second = ldexp(1, exponent - exponent / 2);
	for (size_t i = 0; i < n; i++)
		values[i] = values[i] * first * second;
}

/* The median of the first values. A single outlier as the shift would cost the others precision. */
static double median_of_first(const double *values, size_t n)
{
	double first[5];
	size_t count = n < 5 ? n : 5;
	for (size_t i = 0; i < count; i++) {
		size_t j = i;
		for (; j > 0 && first[j - 1] > values[i]; j--)
			first[j] = first[j - 1];
		first[j] = values[i];
	}
	return first[count / 2];
}

struct scale finite_scale(const double *values, size_t n, double *scaled)
{
	if (n == 0)
		return (struct scale){0};
	memcpy(scaled, values, n * sizeof(double));
	int before = exponent_of(scaled, n) - 1;
	scale(scaled, n, before);
	double middle = median_of_first(scaled, n);
	for (size_t i = 0; i < n; i++)
		scaled[i] -= middle;
	int after = exponent_of(scaled, n);
	scale(scaled, n, after);
	return (struct scale){.exponent = before + after, .shift = ldexp(middle, after)};
}
