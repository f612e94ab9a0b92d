/*
 * The grid of a season's fit: the scale of its values, the calendar of its places, and deviations
 * from moving medians.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model/series.h"
#include "detectors/scratch.h"
#include "detectors/season/internal.h"
#include "detectors/sort.h"

#define MONDAY (4 * DAY) /* the first Monday of 1970 */

/* The grid may have so many times the places that there are points; parts of the week at most. */
enum { MOST_SPARSE = 3, MOST_CELLS = 7 * 86400 };
/* Up to so many items insertion sort is faster than qsort. */
enum { FEW = 40 };
/* Added under the square root: makes the deviation of Poisson counts 1/2 at any level. */
static const double ANSCOMBE = 0.375; /* of counts; other values have none */

enum season_scale season_scale_of(const double *values, size_t n, double *offset)
{
	bool positive = true, counts = true, negative = false;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]))
			continue;
		positive &= values[i] > 0;
		counts &= values[i] == floor(values[i]);
		negative |= values[i] < 0;
	}
	*offset = counts ? ANSCOMBE : 0;
	return positive ? SCALE_LOG : negative ? SCALE_RAW : SCALE_ROOT;
}

double season_to_scale(const struct season *season, double value)
{
	switch (season->scale) {
	case SCALE_LOG: return log(value);
	case SCALE_ROOT: return sqrt(value + season->offset);
	case SCALE_RAW: break;
	}
	return value;
}

bool season_takes(const struct season *season, const double *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((season->scale == SCALE_LOG && values[i] <= 0) ||
			(season->scale == SCALE_ROOT && values[i] < 0))
			return false;
	return true;
}

int64_t season_modulo(int64_t value, int64_t divisor)
{
	int64_t rest = value % divisor;

	return rest < 0 ? rest + divisor : rest;
}

int64_t season_local(const struct season_clock *clock, int64_t ms)
{
	return clock->local ? clock->local(clock->zone, ms) : ms;
}

int64_t season_day(int64_t local)
{
	return local - season_modulo(local, DAY);
}

bool season_is_among(const int64_t *days, size_t count, int64_t day)
{
	size_t at = times_lower_bound(days, count, day);

	return at < count && days[at] == day;
}

int64_t season_weekday(int64_t day)
{
	return season_modulo(day - MONDAY, WEEK) / DAY;
}

bool season_is_holiday(const struct season_clock *clock, int64_t day)
{
	return season_is_among(clock->holidays.days, clock->holidays.count, day);
}

bool season_is_off(const struct season_clock *clock, int64_t day)
{
	return season_weekday(day) >= SATURDAY || season_is_holiday(clock, day);
}

size_t season_slot(const struct season *season, int64_t local, size_t count, double rate)
{
	int64_t phase = season_modulo(local - MONDAY - season->origin, WEEK);
	size_t slot = (size_t)((double)phase * rate + 0.5);

	return slot < count ? slot : 0;
}

int64_t grid_cadence(const double *values, const int64_t *times, size_t n, double *buffer)
{
	size_t count = 0, regular = 0;
	const int64_t *before = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]))
			continue;
		if (before && times[i] > *before)
			buffer[count++] = (double)(times[i] - *before);
		before = times + i;
	}
	if (count < 2)
		return 0;
	double *sorted = buffer + count, step;
	memcpy(sorted, buffer, count * sizeof *buffer);
	step = sort_median(sorted, count);
	double parts = round((double)DAY / step);
	if (parts >= 1 && fabs(parts * step - (double)DAY) < 0.02 * (double)DAY)
		step = (double)DAY / parts;
	for (size_t i = 0; i < count; i++)
		regular += fabs(buffer[i] / step - fmax(1, round(buffer[i] / step))) < 0.25;
	return step >= 1000 && (double)regular >= 0.8 * (double)count ? (int64_t)step : 0;
}

bool grid_fill(const struct season *season, const double *values, const int64_t *times, size_t n,
	struct scratch *scratch, struct season_grid *grid)
{
	int64_t last = 0;
	size_t points = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			grid->start = points++ == 0 ? times[i] : grid->start;
			last = times[i];
		}
	int64_t count = (last - grid->start + grid->step / 2) / grid->step + 1;
	if (count > (int64_t)(MOST_SPARSE * points) || count > UINT32_MAX)
		return false;
	grid->n = (size_t)count;
	grid->z = scratch_take(scratch, grid->n, sizeof *grid->z);
	for (size_t i = 0; i < grid->n; i++)
		grid->z[i] = (double)NAN;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]))
			grid->z[(times[i] - grid->start + grid->step / 2) / grid->step] =
				season_to_scale(season, values[i]);
	return true;
}

int64_t grid_local(const struct season *season, const struct season_grid *grid, size_t i)
{
	return season_local(&season->clock, grid->start + (int64_t)i * grid->step);
}

bool grid_fill_slots(struct season *season, struct season_grid *grid, struct scratch *scratch)
{
	grid->per_day = (size_t)((DAY + grid->step / 2) / grid->step);
	if (grid->per_day == 0)
		return false;
	grid->slot_count = 7 * grid->per_day;
	if (grid->slot_count > MOST_CELLS)
		return false;
	double rate = (double)grid->slot_count / (double)WEEK;
	season->origin = season_modulo(season_local(&season->clock, grid->start) - MONDAY,
		WEEK / (int64_t)grid->slot_count);
	grid->slots = scratch_take(scratch, grid->n, sizeof *grid->slots);
	for (size_t i = 0; i < grid->n; i++)
		grid->slots[i] = (uint32_t)season_slot(
			season, grid_local(season, grid, i), grid->slot_count, rate);
	return true;
}

static int by_value(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->value != other->value)
		return one->value < other->value ? -1 : 1;
	return (one->at > other->at) - (one->at < other->at);
}

void grid_sort(struct ranked *items, size_t count)
{
	if (count > FEW) {
		qsort(items, count, sizeof *items, by_value);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct ranked item = items[i];
		size_t j = i;

		for (; j > 0 &&
			(item.value < items[j - 1].value ||
				(item.value == items[j - 1].value && item.at < items[j - 1].at));
			j--)
			items[j] = items[j - 1];
		items[j] = item;
	}
}

/* Moving medians: the ranks of the values in the window, counted in a Fenwick tree */

static void tree_add(uint32_t *tree, size_t n, size_t rank, uint32_t by)
{
	for (size_t i = rank + 1; i <= n; i += i & -i)
		tree[i] += by;
}

/* The rank of the value number `k` (from 0) in the window; `top` is the largest power of 2 <= n. */
static size_t tree_find(const uint32_t *tree, size_t n, size_t top, size_t k)
{
	size_t at = 0;

	for (size_t step = top; step > 0; step /= 2)
		if (at + step <= n && tree[at + step] <= k) {
			at += step;
			k -= tree[at];
		}
	return at;
}

void grid_rank(struct season_grid *grid, struct scratch *scratch)
{
	grid->ranked = scratch_take(scratch, grid->n, sizeof *grid->ranked);
	grid->ranks = scratch_take(scratch, grid->n, sizeof *grid->ranks);
	for (size_t i = 0; i < grid->n; i++)
		if (!isnan(grid->z[i]))
			grid->ranked[grid->count++] = (struct ranked){grid->z[i], (uint32_t)i};
	qsort(grid->ranked, grid->count, sizeof *grid->ranked, by_value);
	for (size_t i = 0; i < grid->count; i++)
		grid->ranks[grid->ranked[i].at] = (uint32_t)i;
}

void grid_deviate(
	const struct season_grid *grid, size_t width, struct scratch *scratch, double *out)
{
	const struct ranked *ranked = grid->ranked;
	const uint32_t *ranks = grid->ranks;
	size_t n = grid->n, count = grid->count, top = 1, inside = 0, half;

	width = width < n ? width : n;
	half = width / 2;
	uint32_t *tree = scratch_take(scratch, count + 1, sizeof *tree);
	memset(tree, 0, (count + 1) * sizeof *tree);
	while (2 * top <= count)
		top *= 2;
	for (size_t i = 0; i < n; i++) {
		if (!isnan(grid->z[i])) {
			tree_add(tree, count, ranks[i], 1);
			inside++;
		}
		if (i >= width && !isnan(grid->z[i - width])) {
			tree_add(tree, count, ranks[i - width], (uint32_t)-1);
			inside--;
		}
		if (i + 1 < width)
			continue;
		double median = (double)NAN;
		if (inside > 0)
			median = 0.5 *
				 (ranked[tree_find(tree, count, top, (inside - 1) / 2)].value +
					 ranked[tree_find(tree, count, top, inside / 2)].value);
		size_t from = i + 1 == width ? 0 : i + 1 - width + half;
		size_t to = i + 1 == n ? n : i + 1 - width + half + 1;
		for (size_t j = from; j < to; j++)
			out[j] = grid->z[j] - median;
	}
}
