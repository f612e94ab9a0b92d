/*
 * Median and MAD by selection.
 */
#include "detectors/robust.h"

#include <math.h>
#include <string.h>

#include "detectors/sort.h"

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
