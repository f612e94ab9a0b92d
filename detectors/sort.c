/*
 * Sorting by qsort, and a median by selection (quickselect), O(n) on average.
 */
#include "detectors/sort.h"

#include <stdlib.h>

enum { MOST_ROUNDS = 60 };

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;
	return (one > other) - (one < other);
}

void sort_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(double), by_size);
}

/* Moves the value of that rank to its place, with no larger one before it and no smaller one after.
 * Falls back to sorting after repeated bad pivots. */
static void select_rank(double *values, ptrdiff_t n, ptrdiff_t rank)
{
	ptrdiff_t from = 0, to = n;
	for (int rounds = 0; to - from > 1; rounds++) {
		if (rounds == MOST_ROUNDS) {
			sort_sort(values + from, (size_t)(to - from));
			return;
		}
		double pivot = values[(from + to) / 2];
		ptrdiff_t low = from, high = to - 1;
		while (low <= high) {
			while (values[low] < pivot)
				low++;
			while (values[high] > pivot)
				high--;
			if (low > high)
				break;
			double kept = values[low];
			values[low++] = values[high];
			values[high--] = kept;
		}
		if (rank <= high)
			to = high + 1;
		else if (rank >= low)
			from = low;
		else
			return;
	}
}

double sort_median(double *values, size_t n)
{
	size_t rank = (n - 1) / 2;
	select_rank(values, (ptrdiff_t)n, (ptrdiff_t)rank);
	if (n % 2 == 1)
		return values[rank];
	double next = values[rank + 1];
	for (size_t i = rank + 2; i < n; i++)
		next = values[i] < next ? values[i] : next;
	return 0.5 * (values[rank] + next);
}
