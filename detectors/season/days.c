/*
 * Properties of single days: whether one passes as a Sunday, and the amplitude of its cycle.
 */
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/scratch.h"
#include "detectors/season/internal.h"
#include "detectors/sort.h"

/* A working day passes as a Sunday if its residual from a Sunday's profile is below this share of
 * that from its own, and that above so many times the usual residual. */
static const double LIKE_SUNDAY = 0.5, UNLIKE_OWN = 2;
/* Swings: the first days have one in common; Huber's constant, in deviations, and rounds; below
 * which squared t-value there is none; how far from 1 at most; and parts of the week that its level
 * is taken from, about. */
enum { SWING_DAYS = 2, HUBER_ROUNDS = 5, MOST_SAMPLED = 2016 };
static const double HUBER = 1.345, SETTLED = 0.01, SHRINK = 9, MOST_SWING = 4;

/* Holidays */

/* The places from..to of the local day `day`; `usual` is the mean size of a residual. */
struct day {
	int64_t day;
	size_t from, to;
	double usual;
};

/* The next day from the place day->to on; false if there is none. */
static bool next_day(const struct season *season, const struct season_grid *grid, struct day *day)
{
	day->from = day->to;
	if (day->from >= grid->n)
		return false;
	day->day = season_day(grid_local(season, grid, day->from));
	while (day->to < grid->n && season_day(grid_local(season, grid, day->to)) == day->day)
		day->to++;
	return true;
}

/* The sum of the day's absolute residuals from the profile of its own weekday, or of a Sunday.
 * Writes the number of values. */
static double rest_of_day(const struct fit *fit, const double *profile, const struct day *day,
	bool sunday, size_t *count)
{
	const struct season_grid *grid = fit->grid;
	double sum = 0;

	*count = 0;
	for (size_t i = day->from; i < day->to; i++) {
		size_t slot = grid->slots[i];

		if (isnan(fit->deviations[i]))
			continue;
		slot = sunday ? SUNDAY * grid->per_day + slot % grid->per_day : slot;
		sum += fabs(fit->deviations[i] - profile[slot]);
		++*count;
	}
	return sum;
}

/* Whether a working day passed as a Sunday: its values fit a Sunday's profile and not its own, and
 * it is over. Of one that was named, it is enough that they do not fit its own profile. */
static bool passes_as_sunday(const struct season *season, const struct fit *fit,
	const double *profile, const struct day *day, bool named)
{
	size_t count;
	double own = rest_of_day(fit, profile, day, false, &count);
	double sunday = rest_of_day(fit, profile, day, true, &count);

	struct day next = *day;

	if (named)
		return 2 * count < fit->grid->per_day || sunday < own;
	if (2 * count < fit->grid->per_day || sunday >= LIKE_SUNDAY * own ||
		own <= UNLIKE_OWN * day->usual * (double)count ||
		!next_day(season, fit->grid, &next))
		return false;
	/* The day behind it must be as usual again, by a quarter of it at least: a level that stays
	 * is no holiday. */
	own = rest_of_day(fit, profile, &next, false, &count);
	return 4 * count >= fit->grid->per_day && own <= UNLIKE_OWN * day->usual * (double)count;
}

bool days_find_sundays(
	struct season *season, struct fit *fit, const double *profile, struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	const struct holidays *named = &season->clock.holidays;
	struct day all = {.to = grid->n}, day = {0};
	size_t at = 0, count = 0, values;
	double rest = rest_of_day(fit, profile, &all, false, &values);
	bool *out = scratch_take(scratch, grid->n, sizeof *out), any = false;

	season->sundays = memory_new(named->count + grid->n, sizeof *season->sundays);
	day.usual = values ? rest / (double)values : 0;
	while (next_day(season, grid, &day)) {
		bool is_named = season_is_among(named->days, named->count, day.day);
		bool found = season_weekday(day.day) < SATURDAY &&
			     passes_as_sunday(season, fit, profile, &day, is_named);

		while (at < named->count && named->days[at] < day.day)
			season->sundays[count++] = named->days[at++];
		at += is_named;
		if (found)
			season->sundays[count++] = day.day;
		any |= found;
		memset(out + day.from, found, day.to - day.from);
	}
	while (at < named->count)
		season->sundays[count++] = named->days[at++];
	season->sunday_count = count;
	fit->left_out = out;
	return any;
}

/* Swings: how far each day's cycle goes, by the week before it */

/* The robust slope of the deviations of places from..to on the profile, shrunk to 1 by its error.
 */
static double slope_of(
	const struct fit *fit, const double *profile, size_t from, size_t to, double *buffer)
{
	double slope = 1, squares = 0, spread = HUGE_VAL, before, t;

	for (int round = 0; round <= HUBER_ROUNDS; round++) {
		double xy = 0, xx = 0;
		size_t count = 0;

		squares = 0;
		for (size_t i = from; i < to; i++) {
			double x = profile[fit->grid->slots[i]], y = fit->deviations[i];
			double error = fabs(y - slope * x), weight;

			if (isnan(y))
				continue;
			weight = error > HUBER * spread ? HUBER * spread / error : 1;
			xy += weight * x * y;
			xx += weight * x * x;
			squares += x * x;
		}
		before = slope;
		slope = xx > 0 ? xy / xx : 1;
		if (round > 0 && fabs(slope - before) < SETTLED)
			break;
		for (size_t i = from; i < to; i++)
			if (!isnan(fit->deviations[i]))
				buffer[count++] = fabs(
					fit->deviations[i] - slope * profile[fit->grid->slots[i]]);
		if (count < fit->grid->per_day)
			return 1;
		spread = 1.4826 * sort_median(buffer, count);
	}
	t = (slope - 1) * sqrt(squares) / fmax(spread, 1e-12);
	slope = t * t > SHRINK ? 1 + (slope - 1) * (1 - SHRINK / (t * t)) : 1;
	return fmin(fmax(slope, 1 / MOST_SWING), MOST_SWING);
}

void days_store_swings(struct season *season, const struct fit *fit, const double *profile,
	struct scratch *scratch)
{
	const struct season_grid *grid = fit->grid;
	double *buffer = scratch_take(scratch, grid->n, sizeof *buffer);
	size_t room = (size_t)((int64_t)grid->n * grid->step / DAY) + 3, week = grid->slot_count;
	size_t least = SWING_DAYS * grid->per_day < grid->n ? SWING_DAYS * grid->per_day : grid->n;
	struct day day = {0};

	season->first_day = season_day(grid_local(season, grid, 0));
	season->swings = memory_new(room, sizeof *season->swings);
	while (next_day(season, grid, &day)) {
		size_t at = (size_t)((day.day - season->first_day) / DAY);
		size_t to = day.from > least ? day.from : least, from = to > week ? to - week : 0;
		double size = slope_of(fit, profile, from, to, buffer), sum = 0, level = 1;
		size_t stride = 1 + season->cells / MOST_SAMPLED, count = 0;

		/* The factor that makes the mean of the profile's powers 1 */
		if (season->scale == SCALE_LOG && size != 1) {
			for (size_t i = 0; i < season->cells; i += stride, count++)
				sum += pow(season->profile[i], size);
			level = (double)count / sum;
		}
		while (season->swing_count <= at)
			season->swings[season->swing_count++] = (struct swing){size, level};
	}
}
