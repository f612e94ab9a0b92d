/*
 * Values in order of size. No value may be NaN.
 */
#ifndef DETECTORS_ORDER_H
#define DETECTORS_ORDER_H

#include <stddef.h>

void sort_sort(double *values, size_t n);

/* Of n >= 1 values, which come into another order by it. */
double sort_median(double *values, size_t n);

#endif
