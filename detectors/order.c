/*
 * Plain sorting: whoever needs it does more than that with the values.
 */
#include "detectors/order.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;
	return (one > other) - (one < other);
}

void order_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(double), by_size);
}

double order_median(double *values, size_t n)
{
	order_sort(values, n);
	return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}
