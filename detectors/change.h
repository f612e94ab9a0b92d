/*
 * A change point: the place in a series where one regime ends and another begins.
 */
#ifndef DETECTORS_CHANGE_H
#define DETECTORS_CHANGE_H

#include <stddef.h>

struct change {
	size_t index;  /* of the first value of the new regime, counted in the caller's series, 1 <=
			  index < n */
	double pvalue; /* 0..1, of the test between the two neighbouring segments */
	double mean_before, mean_after;
	double stddev_before, stddev_after;
	size_t count_before, count_after; /* existing points in the two segments */
	double magnitude; /* max(|after/before - 1|, |before/after - 1|); a ratio over zero counts
			     as 0 */
};

/* How much higher the new level is, in percent of the old; 0 where the old one is 0. */
static inline double change_percent(const struct change *change)
{
	if (change->mean_before == 0)
		return 0;
	return 100.0 * (change->mean_after / change->mean_before - 1.0);
}

#endif
