/*
 * Sorting and medians. No value may be NaN.
 */
#ifndef DETECTORS_SORT_H
#define DETECTORS_SORT_H

#include <stdbool.h>
#include <stddef.h>

void sort_sort(double *values, size_t n);

/* The median of n >= 1 values; reorders them. */
double sort_median(double *values, size_t n);

/* The level and spread of a few values, for means that outliers do not move. */
struct robust {
	double median;
	double spread; /* 1.4826 MAD; where most values are equal, so that it is 0, from the
			  deviation that one in ten exceeds, else half the mean deviation */
	bool tied;     /* most values are equal */
};

/* Of n >= 1 finite values; `room` is a buffer for as many. */
struct robust robust_of(const double *values, size_t n, double *room);

enum { ROBUST_REACH = 3 }; /* spreads */

/* Writes the values, each at most ROBUST_REACH spreads from the median; may be done in place. */
void robust_clip(const double *values, size_t n, struct robust level, double *clipped);

#endif
