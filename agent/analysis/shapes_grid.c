/* The one axis of times on which series of several tests are compared. */
#include "agent/analysis/shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/order.h"

enum { MOST_POINTS = 8192, SPREAD = 2 };

/* The distinct times of all axes, sorted, in memory from malloc; an axis that adds nothing costs
 * one walk along it. NULL, and the range in `ends`, if there are more than `most`. */
static int64_t *union_of(
	const struct grid_times *axes, size_t count, size_t most, size_t *n, int64_t ends[2])
{
	int64_t *all = memory_new(most + 1, sizeof *all),
		*merged = memory_new(most + 1, sizeof *all);
	bool few = true;

	*n = 0;
	ends[0] = INT64_MAX;
	ends[1] = INT64_MIN;
	for (size_t axis = 0; axis < count; axis++) {
		size_t i = 0, j = 0, length = 0;

		if (axes[axis].n == 0 || (axis > 0 && axes[axis].times == axes[axis - 1].times))
			continue;
		if (axes[axis].times[0] < ends[0])
			ends[0] = axes[axis].times[0];
		if (axes[axis].times[axes[axis].n - 1] > ends[1])
			ends[1] = axes[axis].times[axes[axis].n - 1];
		while (few && (i < *n || j < axes[axis].n)) {
			int64_t time =
				i < *n && (j == axes[axis].n || all[i] <= axes[axis].times[j])
					? all[i++]
					: axes[axis].times[j++];

			if (length > 0 && merged[length - 1] == time)
				continue;
			few = length < most;
			if (few)
				merged[length++] = time;
		}
		if (few) {
			int64_t *kept = all;

			all = merged;
			merged = kept;
			*n = length;
		}
	}
	free(merged);
	if (few)
		return all;
	free(all);
	return NULL;
}

struct grid grid_make(struct arena *arena, const struct grid_times *axes, size_t count)
{
	struct grid grid = {0};
	size_t *lengths = memory_new(count, sizeof *lengths), bins, most, n;
	int64_t ends[2], *times;

	for (size_t i = 0; i < count; i++)
		lengths[i] = axes[i].n;
	qsort(lengths, count, sizeof *lengths, order_sizes);
	bins = count > 0 ? lengths[count / 2] : 0; /* the median */
	free(lengths);
	bins = bins > MOST_POINTS ? MOST_POINTS : bins;
	most = SPREAD * bins + 1 > MOST_POINTS ? MOST_POINTS : SPREAD * bins + 1;
	if (bins == 0)
		return grid;
	times = union_of(axes, count, most, &n, ends);
	grid.n = times ? n : bins;
	grid.times = arena_array(arena, grid.n, sizeof *grid.times);
	for (size_t i = 0; i < grid.n; i++)
		grid.times[i] = times ? times[i]
				      : ends[0] + (int64_t)((double)(ends[1] - ends[0]) *
							    ((double)i / (double)grid.n));
	free(times);
	return grid;
}

void grid_place(const struct grid *grid, const struct grid_times *axis, const double *values,
	double *out, size_t *counts)
{
	size_t at = 0;

	memset(counts, 0, grid->n * sizeof *counts);
	for (size_t i = 0; i < grid->n; i++)
		out[i] = (double)NAN;
	for (size_t i = 0; i < axis->n; i++) {
		if (!isfinite(values[i]))
			continue;
		/* the last point of the grid that is not after the time */
		while (at + 1 < grid->n && grid->times[at + 1] <= axis->times[i])
			at++;
		out[at] = counts[at] == 0
				  ? values[i]
				  : out[at] + (values[i] - out[at]) / (double)(counts[at] + 1);
		counts[at]++;
	}
}
