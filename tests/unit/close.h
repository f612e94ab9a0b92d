/*
 * Comparison of doubles for cmocka, whose own assert_float_equal goes through float.
 */
#ifndef TESTS_UNIT_CLOSE_H
#define TESTS_UNIT_CLOSE_H

#include <math.h>
#include <stdbool.h>

/* Whether the two agree to `relative` of the larger; infinities and NaN agree with themselves only.
 */
static inline bool is_close(double a, double b, double relative)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= relative * fmax(fabs(a), fabs(b));
}

#define assert_close(a, b, relative)                                                               \
	do {                                                                                       \
		double close_a = (a), close_b = (b);                                               \
		if (!is_close(close_a, close_b, (relative)))                                       \
			fail_msg("%.17g and %.17g differ by more than %g", close_a, close_b,       \
				(double)(relative));                                               \
	} while (0)

#endif
