/*
 * Whether days or a week are a period of a series: how alike points are that lie so far apart,
 * compared with other distances.
 */
#include <math.h>
#include <string.h>

#include "detectors/scratch.h"
#include "detectors/season/internal.h"
#include "detectors/sort.h"

/*
 * Relative to the likeness at the period: by how much another distance may exceed it; from what
 * likeness a distance is a rival; how low the likeness between the two must be for that; and how
 * many standard errors each of these differences must have.
 */
static const double BETTER = 0.1, RIVAL = 0.8, VALLEY = 0.5, SURE = 3.5;
/* Hours around the period in which each distance is checked, not only whole hours; and pairs of
 * points that are compared at one distance, at most. */
enum { NEAR_HOURS = 14, MOST_PAIRS = 4096 };

/* How alike points are that lie some distance apart, compared with other distances. */
struct likeness {
	const double *y;
	size_t n;
	double most;              /* a difference counts as at most this */
	double usual;             /* the median, over the distances, of the mean differences */
	double error;             /* standard error of the least mean difference */
	size_t low, high, hour;   /* distances, in places: every `hour` from low to high ... */
	const double *difference; /* ... with its mean difference */
};

/* The deviations without a profile (by slot; NULL: none), in local time: where clocks change there
 * is a gap, or later points replace earlier ones. */
static const double *in_local_time(
	const struct fit *fit, const double *values, struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	ptrdiff_t week = (ptrdiff_t)grid->slot_count, at = 0;
	double *out = scratch_take(scratch, grid->n, sizeof *out);

	for (size_t i = 0; i < grid->n; i++)
		out[i] = (double)NAN;
	for (size_t i = 0; i < grid->n; i++) {
		ptrdiff_t by =
			i > 0 ? (ptrdiff_t)grid->slots[i] - (ptrdiff_t)grid->slots[i - 1] : 0;

		at += by >= week / 2 ? by - week : by < -(week / 2) ? by + week : by;
		if (at >= 0 && at < (ptrdiff_t)grid->n && !isnan(fit->deviations[i]))
			out[at] = fit->deviations[i] - (values ? values[grid->slots[i]] : 0);
	}
	return out;
}

/* The mean difference of points that far apart. */
static double difference_at(const struct likeness *like, size_t distance)
{
	size_t pairs = like->n - distance, stride = 1 + pairs / MOST_PAIRS, count = 0;
	double sum = 0;

	for (size_t i = distance; i < like->n; i += stride) {
		double size = fabs(like->y[i] - like->y[i - distance]);

		if (isnan(size))
			continue;
		sum += size < like->most ? size : like->most;
		count++;
	}
	return count > 0 ? sum / (double)count : like->usual;
}

/* How much smaller the mean difference is at that distance than usual. */
static double likeness_at(const struct likeness *like, size_t distance)
{
	size_t beyond = distance - like->low;

	if (distance >= like->low && distance <= like->high && beyond % like->hour == 0)
		return like->usual - like->difference[beyond / like->hour];
	return like->usual - difference_at(like, distance);
}

/* Places an hour, at least 1. */
static size_t hour_of(const struct season_grid *grid)
{
	return grid->per_day > 24 ? grid->per_day / 24 : 1;
}

/* Computes the mean differences of the distances from `low` to `high`, hour by hour. */
static struct likeness likeness_new(const struct season_grid *grid, const double *y, double most,
	size_t low, size_t high, struct scratch *scratch)
{
	struct likeness like = {.y = y, .n = grid->n, .most = most, .low = low, .high = high};
	size_t count = 0, pairs = like.n - (low + high) / 2;

	like.hour = hour_of(grid);
	double *all = scratch_take(scratch, (high - low) / like.hour + 1, sizeof *all);
	double *sorted = scratch_take(scratch, (high - low) / like.hour + 1, sizeof *all);
	double least = HUGE_VAL;
	for (size_t distance = low; distance <= high; distance += like.hour) {
		all[count] = difference_at(&like, distance);
		least = fmin(least, all[count++]);
	}
	memcpy(sorted, all, count * sizeof *all);
	like.difference = all;
	like.usual = sort_median(sorted, count);
	like.error = least / sqrt((double)(pairs < MOST_PAIRS ? pairs : MOST_PAIRS));
	return like;
}

/* Whether points are clearly more alike at another distance from `low` to `high` than at `period`.
 */
static bool has_better(const struct likeness *like, const struct season_grid *grid, size_t period,
	size_t low, size_t high)
{
	double own = likeness_at(like, period);
	double bound = own + fmax(BETTER * own, SURE * like->error);

	for (size_t distance = low; distance <= high; distance += hour_of(grid))
		if (likeness_at(like, distance) > bound)
			return true;
	return false;
}

/* Whether another distance is nearly as alike as the period and separate from it: going away from
 * the period in steps of `by`, likeness falls and rises again. */
static bool has_rival(
	const struct likeness *like, size_t period, ptrdiff_t by, size_t low, size_t high)
{
	double own = likeness_at(like, period), least = own;

	for (size_t distance = period; distance >= low && distance <= high;
		distance += (size_t)by) {
		double here = likeness_at(like, distance);

		least = fmin(least, here);
		if (here >= RIVAL * own && least <= VALLEY * own &&
			here - least > SURE * like->error)
			return true;
	}
	return false;
}

bool period_is_week(struct fit *fit, uint32_t *cells, double most, struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	double *days = scratch_take(scratch, grid->slot_count, sizeof *days);
	struct season_shape day = fit_day_shape(grid, 1, cells);
	size_t week = grid->slot_count, hour = hour_of(grid),
	       near = NEAR_HOURS * grid->per_day / 24;
	size_t reach = week / 2 / hour * hour;
	size_t low = week - reach, high = week + reach;

	fit_profile(fit, &day, fit->deviations);
	for (size_t i = 0; i < grid->slot_count; i++)
		days[i] = fit->smooth[day.cells[i]];
	while (high > week && high + week / 2 > grid->n)
		high -= hour;
	struct likeness like =
		likeness_new(grid, in_local_time(fit, days, scratch), most, low, high, scratch);
	if (has_better(&like, grid, week, low, high))
		return false;
	while (high > week && high + week > grid->n)
		high -= hour;
	return !has_rival(&like, week, (ptrdiff_t)hour, low, high) &&
	       !has_rival(&like, week, -(ptrdiff_t)hour, low, high) &&
	       (hour == 1 || (!has_rival(&like, week, 1, low, week + near) &&
				     !has_rival(&like, week, -1, week - near, high)));
}

bool period_is_day(const struct fit *fit, double most, struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	size_t days = grid->n / grid->per_day / 2, hour = hour_of(grid);
	size_t period = grid->per_day * (days < 7 ? days : 7);
	size_t reach = grid->per_day / 2 / hour * hour;
	struct likeness like = likeness_new(grid, in_local_time(fit, NULL, scratch), most,
		period - reach, period + reach, scratch);

	return !has_better(&like, grid, period, period - reach, period + reach);
}
