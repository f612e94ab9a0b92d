/*
 * Members of a struct change that has these levels and no interval; the first is above 0.
 */
#ifndef TESTS_LEVELS_H
#define TESTS_LEVELS_H

#include <math.h>

#define LEVELS(before, after)                                                                      \
	.mean_before = (before), .mean_after = (after), .level_before = (before),                  \
	.level_after = (after), .size = 100.0 * ((after) - (before)) / (before),                   \
	.size_low = (double)NAN, .size_high = (double)NAN

#endif
