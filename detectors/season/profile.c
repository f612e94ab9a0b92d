/*
 * Profiles: several shapes compete, each judged by how well it predicts points from the *other*
 * points of their cells. A profile with few cells estimates each one from more points; one with
 * many cells can represent more.
 */
#include <math.h>
#include <string.h>

#include "detectors/scratch.h"
#include "detectors/season/internal.h"
#include "detectors/sort.h"

/*
 * A cycle is accepted if the share of the spread that remains is below a limit, which is lower for
 * few periods and few points, since those may look alike by chance: chosen so that fewer than one
 * in 200 series without a cycle (autocorrelated ones included) is found to have one. And the limit
 * for a cycle that the user has asked for.
 */
static const double DAY_LIMIT = 0.93, DAY_LESS = 0.8, WEEK_LIMIT = 0.88, WEEK_LESS = 0.8;
static const double POINTS_LESS = 2.5, REQUESTED_LIMIT = 0.99;
/*
 * WEEK_LIMIT is strict because weeks of autocorrelated noise look alike. If the residuals of a
 * weekly cycle are nearly independent, the limit is INDEPENDENT_LIMIT: full for sums of days that
 * vary DAYS_FREE times as much as those of independent points, and neighbours that correlate by
 * LAG_FREE; it falls to WEEK_LIMIT at DAYS_BOUND or LAG_BOUND.
 */
static const double INDEPENDENT_LIMIT = 0.93;
static const double DAYS_FREE = 1.5, DAYS_BOUND = 3, LAG_FREE = 0.3, LAG_BOUND = 0.55;
/* The spread that a shape must stay below, relative to the best shape so far. */
static const double RICHER = 0.98;
/* The size of a deviation counts as at most this many times the median size. */
static const double MOST_DEVIATIONS = 6;

/* The shape of a profile: which slots of the week share a cell. */
struct season_shape {
	uint32_t *cells; /* of each slot */
	size_t count;    /* of cells */
	size_t smooth;   /* cells that are averaged, odd */
	size_t ring;     /* smoothing is cyclic within groups of so many cells */
};

/* The median of a cell, and for each of its points that of the others. */
static void fill_cell(struct fit *fit, const double *y, size_t cell)
{
	uint32_t from = fit->starts[cell], to = fit->starts[cell + 1], count = 0;
	struct ranked *ranked = fit->ranked;

	for (uint32_t i = from; i < to; i++)
		ranked[count++] = (struct ranked){y[fit->order[i]], fit->order[i]};
	fit->profile[cell] = (double)NAN;
	if (count == 0)
		return;
	grid_sort(ranked, count);
	fit->profile[cell] = 0.5 * (ranked[(count - 1) / 2].value + ranked[count / 2].value);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t low = (count - 2) / 2, high = (count - 1) / 2;

		fit->others[ranked[i].at] = 0;
		if (count > 1)
			fit->others[ranked[i].at] = 0.5 * (ranked[low + (low >= i)].value +
								  ranked[high + (high >= i)].value);
	}
}

/* Cells without points take the value of the cell before them in the ring; 0 if all are empty. */
static void fill_gaps(struct fit *fit, const struct season_shape *shape)
{
	for (size_t ring = 0; ring < shape->count; ring += shape->ring) {
		double *profile = fit->profile + ring, last = (double)NAN;

		for (size_t i = 0; i < 2 * shape->ring; i++) {
			double *value = profile + i % shape->ring;

			if (isnan(*value))
				*value = last;
			last = *value;
		}
		for (size_t i = 0; i < shape->ring; i++)
			profile[i] = isnan(profile[i]) ? 0 : profile[i];
	}
}

/* Medians of y by cell. */
static void fit_profile(struct fit *fit, const struct season_shape *shape, const double *y)
{
	const struct season_grid *grid = fit->grid;

	memset(fit->starts, 0, (shape->count + 2) * sizeof *fit->starts);
	for (size_t i = 0; i < grid->n; i++)
		if (!isnan(y[i]))
			fit->starts[shape->cells[grid->slots[i]] + 2]++;
	for (size_t i = 2; i < shape->count + 2; i++)
		fit->starts[i] += fit->starts[i - 1];
	for (size_t i = 0; i < grid->n; i++)
		if (!isnan(y[i]))
			fit->order[fit->starts[shape->cells[grid->slots[i]] + 1]++] = (uint32_t)i;
	for (size_t cell = 0; cell < shape->count; cell++)
		fill_cell(fit, y, cell);
	fill_gaps(fit, shape);
	for (size_t i = 0, half = shape->smooth / 2; i < shape->count; i++) {
		size_t ring = i - i % shape->ring;
		double sum = 0;

		for (size_t j = 0; j < shape->smooth; j++)
			sum += fit->profile[ring +
					    (i - ring + shape->ring + j - half) % shape->ring];
		fit->smooth[i] = sum / (double)shape->smooth;
	}
}

/* The spread of y, or of its residuals from a shape: the mean size, each counted as at most `most`.
 * The others predict a point: in the smoothed profile the median of its own cell is replaced by
 * that of the cell's other points. */
static double spread_of(
	const struct fit *fit, const struct season_shape *shape, const double *y, double most)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < fit->grid->n; i++)
		if (!isnan(y[i])) {
			size_t cell = shape ? shape->cells[fit->grid->slots[i]] : 0;
			double size =
				fabs(shape ? y[i] - (fit->smooth[cell] +
							    (fit->others[i] - fit->profile[cell]) /
								    (double)shape->smooth)
					   : y[i]);

			sum += size < most ? size : most;
			count++;
		}
	return count ? sum / (double)count : 0;
}

double fit_most(const double *y, size_t n, double *buffer)
{
	size_t count = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(y[i]))
			sum += buffer[count++] = fabs(y[i]);
	if (count == 0)
		return 0;
	return MOST_DEVIATIONS *
	       fmax(1.4826 * sort_median(buffer, count), 0.5 * sum / (double)count);
}

/* The shapes that compete */

/* The next odd number from `cells` on. */
static size_t odd(size_t cells)
{
	return cells | 1;
}

/* One profile for all days; `cells` has room for each slot. */
static struct season_shape fit_day_shape(
	const struct season_grid *grid, size_t smooth, uint32_t *cells)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		cells[i] = (uint32_t)(i % grid->per_day);
	return (struct season_shape){cells, grid->per_day, smooth, grid->per_day};
}

/* A profile for each kind of day. */
static struct season_shape kinds_shape(
	const struct season_grid *grid, const uint8_t kinds[7], size_t smooth, uint32_t *cells)
{
	size_t most = 0;

	for (size_t i = 0; i < grid->slot_count; i++) {
		size_t kind = kinds[i / grid->per_day];

		most = kind > most ? kind : most;
		cells[i] = (uint32_t)(kind * grid->per_day + i % grid->per_day);
	}
	return (struct season_shape){cells, (most + 1) * grid->per_day, smooth, grid->per_day};
}

/* The best shape so far, as a value for each slot of the week. */
struct best {
	double spread;
	double *values; /* by slot */
};

/* Fits a shape to y, the deviations without the profile `base`, and keeps it if its spread is below
 * `by` times the best one. */
static void try_shape(struct best *best, struct fit *fit, const struct season_shape *shape,
	const double *y, const double *base, double most, double by)
{
	if (shape->smooth > shape->ring)
		return;
	fit_profile(fit, shape, y);
	double spread = spread_of(fit, shape, y, most);
	if (!(spread < by * best->spread))
		return;
	best->spread = spread;
	for (size_t i = 0; i < fit->grid->slot_count; i++)
		best->values[i] = (base ? base[i] : 0) + fit->smooth[shape->cells[i]];
}

struct fit fit_new(const struct season_grid *grid, struct scratch *scratch)
{
	return (struct fit){
		.grid = grid,
		.deviations = scratch_take(scratch, grid->n, sizeof(double)),
		.others = scratch_take(scratch, grid->n, sizeof(double)),
		.profile = scratch_take(scratch, grid->slot_count, sizeof(double)),
		.smooth = scratch_take(scratch, grid->slot_count, sizeof(double)),
		.order = scratch_take(scratch, grid->n, sizeof(uint32_t)),
		.starts = scratch_take(scratch, grid->slot_count + 2, sizeof(uint32_t)),
		.ranked = scratch_take(scratch, grid->n, sizeof(struct ranked)),
	};
}

/*
 * Whether days or a week are a period of a series: how alike points are that lie so far apart,
 * compared with other distances.
 *
 * The limits, relative to the likeness at the period: by how much another distance may exceed it;
 * from what likeness a distance is a rival; how low the likeness between the two must be for that;
 * and how many standard errors each of these differences must have.
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

static bool period_is_week(struct fit *fit, uint32_t *cells, double most, struct scratch *scratch)
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

static bool period_is_day(const struct fit *fit, double most, struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	size_t days = grid->n / grid->per_day / 2, hour = hour_of(grid);
	size_t period = grid->per_day * (days < 7 ? days : 7);
	size_t reach = grid->per_day / 2 / hour * hour;
	struct likeness like = likeness_new(grid, in_local_time(fit, NULL, scratch), most,
		period - reach, period + reach, scratch);

	return !has_better(&like, grid, period, period - reach, period + reach);
}

bool fit_day(struct fit *fit, bool lenient, struct scratch *scratch, double *values)
{
	const struct season_grid *grid = fit->grid;
	double days = (double)grid->n / (double)grid->per_day;
	double limit = fmin(DAY_LIMIT - DAY_LESS / days, 1 - POINTS_LESS / sqrt((double)grid->n));
	uint32_t *cells = scratch_take(scratch, grid->slot_count, sizeof *cells);
	double *sizes = scratch_take(scratch, grid->n, sizeof *sizes);

	grid_deviate(grid, grid->per_day, scratch, fit->deviations);
	double most = fit_most(fit->deviations, grid->n, sizes);
	double all = spread_of(fit, NULL, fit->deviations, most);
	limit = lenient ? REQUESTED_LIMIT : limit;
	struct best best = {.spread = limit * all, .values = values};
	struct season_shape plain = fit_day_shape(grid, 1, cells);
	try_shape(&best, fit, &plain, fit->deviations, NULL, most, 1);
	if (grid->per_day >= MANY_PER_DAY) {
		struct season_shape smooth = fit_day_shape(
			grid, grid->per_day <= 48 ? 3 : odd(grid->per_day / 48), cells);
		try_shape(&best, fit, &smooth, fit->deviations, NULL, most, 1);
	}
	return best.spread < limit * all && (lenient || period_is_day(fit, most, scratch));
}

/* How far from independent the deviations without a profile, limited to `most`, are: from 0, nearly
 * so, to 1. */
static double dependence_left(const struct fit *fit, const double *values, double most)
{
	const struct season_grid *grid = fit->grid;
	double squares = 0, products = 0, days = 0, day = 0, before = 0;

	for (size_t i = 0; i < grid->n; i++) {
		double rest = fit->deviations[i] - values[grid->slots[i]];

		rest = isnan(rest) ? 0 : fmin(fmax(rest, -most), most);
		squares += rest * rest;
		products += rest * before;
		before = rest;
		day += rest;
		if ((i + 1) % grid->per_day == 0) {
			days += day * day;
			day = 0;
		}
	}
	if (squares <= 0)
		return 1;
	double lag = products / squares + 1 / sqrt((double)grid->n);
	double far = fmax((lag - LAG_FREE) / (LAG_BOUND - LAG_FREE),
		(days / squares - DAYS_FREE) / (DAYS_BOUND - DAYS_FREE));
	return fmin(fmax(far, 0), 1);
}

/* The share of the spread that a weekly cycle may leave, given dependence_left of its residuals. */
static double week_limit(const struct season_grid *grid, double dependence)
{
	double weeks = (double)grid->n / (double)grid->slot_count;
	double few = POINTS_LESS / sqrt((double)grid->n);
	double free = fmin(INDEPENDENT_LIMIT, 1 - few);
	double strict = fmin(1 - 2 * few, WEEK_LIMIT - WEEK_LESS / weeks);

	return free + dependence * (strict - free);
}

bool fit_week(struct fit *fit, bool lenient, bool daily, struct scratch *scratch, double *values)
{
	static const uint8_t two[7] = {0, 0, 0, 0, 0, 1, 1}, three[7] = {0, 0, 0, 0, 0, 1, 2};
	const struct season_grid *grid = fit->grid;
	size_t n = grid->n, hour = grid->per_day / 24;
	uint32_t *cells = scratch_take(scratch, grid->slot_count, sizeof *cells);
	double *sizes = scratch_take(scratch, n, sizeof *sizes);
	double *rest = scratch_take(scratch, n, sizeof *rest);
	double *found = scratch_take(scratch, grid->slot_count, sizeof *found);

	grid_deviate(grid, grid->slot_count, scratch, fit->deviations);
	for (size_t i = 0; fit->left_out && i < n; i++)
		fit->deviations[i] = fit->left_out[i] ? (double)NAN : fit->deviations[i];
	for (size_t i = 0; i < n; i++)
		rest[i] = fit->deviations[i] - (daily ? values[grid->slots[i]] : 0);
	double most = fit_most(rest, n, sizes), all = spread_of(fit, NULL, rest, most);
	struct best best = {.spread = REQUESTED_LIMIT * all, .values = found};
	struct season_shape shape = {cells, 7, 1, 7}; /* one value for each day of the week */
	for (size_t i = 0; i < grid->slot_count; i++)
		cells[i] = (uint32_t)(i / grid->per_day);
	try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, 1);
	for (size_t smooth = 1; smooth <= 5 && grid->per_day > 1; smooth += 2) {
		size_t width = hour > 1 ? odd(smooth * hour) : smooth;
		shape = kinds_shape(grid, two, width, cells);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		shape = kinds_shape(grid, three, width, cells);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		if (n < WHOLE_WEEKS * grid->slot_count)
			continue;
		/* a value for each slot of the week */
		shape = (struct season_shape){cells, grid->slot_count, width, grid->slot_count};
		for (size_t i = 0; i < grid->slot_count; i++)
			cells[i] = (uint32_t)i;
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, RICHER);
	}
	if (!(best.spread < REQUESTED_LIMIT * all))
		return false;
	if (!lenient && best.spread >= week_limit(grid, dependence_left(fit, found, most)) * all)
		return false;
	if (!lenient && !period_is_week(fit, cells, most, scratch))
		return false;
	memcpy(values, found, grid->slot_count * sizeof *values);
	return true;
}
