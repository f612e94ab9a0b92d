/*
 * Sorting by qsort, and a median by selection (quickselect), O(n) on average.
 */
#include "detectors/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static double middle_of(double a, double b, double c)
{
	double low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

/* Moves values below `limit`, and with `equal` those equal to it, to the front; returns their
 * number. Without a branch for each value, which would be mispredicted half of the time. */
static size_t move_low(double *values, size_t n, double limit, bool equal)
{
	size_t low = 0;
	for (size_t i = 0; i < n; i++) {
		double value = values[i];
		values[i] = values[low];
		values[low] = value;
		low += (value < limit) | (equal & (value <= limit));
	}
	return low;
}

/* Moves the value of that rank to its place, with no larger one before it and no smaller one after.
 * Falls back to sorting after repeated bad pivots. */
static void select_rank(double *values, size_t n, size_t rank)
{
	for (int rounds = 0; n > 1; rounds++) {
		if (rounds == MOST_ROUNDS) {
			sort_sort(values, n);
			return;
		}
		double pivot = middle_of(values[0], values[n / 2], values[n - 1]);
		size_t low = move_low(values, n, pivot, false);
		if (rank < low) {
			n = low;
			continue;
		}
		if (low == 0)
			low = move_low(values, n, pivot, true);
		if (rank < low)
			return;
		values += low;
		n -= low;
		rank -= low;
	}
}

double sort_median(double *values, size_t n)
{
	size_t rank = (n - 1) / 2;
	select_rank(values, n, rank);
	if (n % 2 == 1)
		return values[rank];
	double next = values[rank + 1];
	for (size_t i = rank + 2; i < n; i++)
		next = values[i] < next ? values[i] : next;
	return 0.5 * (values[rank] + next);
}

/* Nine in ten normal values lie within so many deviations of their median. */
static const double NINE_IN_TEN = 1.645;

struct robust robust_of(const double *values, size_t n, double *room)
{
	struct robust level;
	double sum = 0;
	memcpy(room, values, n * sizeof(double));
	level.median = sort_median(room, n);
	for (size_t i = 0; i < n; i++)
		sum += room[i] = fabs(values[i] - level.median);
	level.spread = 1.4826 * sort_median(room, n);
	level.tied = level.spread == 0;
	/* Where most values are equal, so that their MAD is 0, deviations that one in ten has are
	 * no outliers, such as the ones among the zeros of a count. */
	if (level.tied && sum > 0 && isfinite(sum)) {
		sort_sort(room, n);
		double shared = room[(size_t)ceil(0.9 * (double)n) - 1];
		level.spread = shared > 0 ? shared / NINE_IN_TEN : 0.5 * sum / (double)n;
	}
	return level;
}

void robust_clip(const double *values, size_t n, struct robust level, double *clipped)
{
	double least = level.median - ROBUST_REACH * level.spread;
	double most = level.median + ROBUST_REACH * level.spread;
	for (size_t i = 0; i < n; i++)
		clipped[i] = values[i] < least ? least : values[i] > most ? most : values[i];
}
