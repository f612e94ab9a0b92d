/*
 * Sorting and medians. No value may be NaN.
 */
#ifndef DETECTORS_SORT_H
#define DETECTORS_SORT_H

#include <stddef.h>

void sort_sort(double *values, size_t n);

/* The median of n >= 1 values; reorders them. */
double sort_median(double *values, size_t n);

#endif
