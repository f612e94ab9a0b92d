/*
 * Seasons as their users see them: options, the fit of a series, and its values without the cycles.
 *
 * The series is laid on a grid of equal steps (grid.c), its deviations from a moving median as long
 * as the cycle are formed, and several shapes of a profile compete (profile.c). A cycle is accepted
 * if its length is a period of the series. Days that pass as Sundays, and how far each
 * day swings, are found with it (days.c). The algorithm, its constants and its cost:
 * docs/design/algorithms.md section 3, whose letters are used here: z, d, D (per_day), W
 * (slot_count).
 *
 * All memory but the profile that is returned comes from the scratch.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "detectors/scratch.h"
#include "detectors/season/internal.h"
#include "detectors/sort.h"

#define NEAR_MIDNIGHT (DAY / 8)

/* Periods that the points must span: for a daily cycle; for a weekly one. */
enum { LEAST_DAYS = 3, LEAST_WEEKS = 2 };
/* Of a longer series only so many of its newest points are used: ten weeks of minutes. */
enum { MOST_POINTS = 100000 };
/* Points that an outage of a service may have. */
enum { LONGEST_EXCURSION = 12 };
/* Levels on the root scale are raised to means over a cycle at most so far. */
static const double MOST_RAISED = 10;

const char *const season_mode_names[] = {
	[SEASON_AUTO] = "auto",
	[SEASON_NONE] = "none",
	[SEASON_DAY] = "day",
	[SEASON_WEEK] = "week",
};

const char *const series_kind_names[] = {
	[KIND_AUTO] = "auto",
	[KIND_SERVICE] = "service",
	[KIND_BENCHMARK] = "benchmark",
};

const struct field season_fields[] = {
	OPTION_STRING(struct season_options, kind, NULL,
		"what the series measure. A service's level moves for many reasons that pass, so "
		"the agent waits with a change until it has lasted longer than what came and went "
		"before; a benchmark's changes are announced as soon as they are confirmed. auto: "
		"services have regular points, at least every two hours, and few of them bring "
		"another commit",
		.metavar = "auto|service|benchmark"),
	OPTION_STRING(struct season_options, season, NULL,
		"daily and weekly cycles to remove before detection; auto: only clear ones (the "
		"default profile of edivisive); day and week: also weak ones. Until the cycles are "
		"known, the agent holds changes that it cannot compare with days of the same kind",
		.metavar = "auto|none|day|week"),
	OPTION_STRING(struct season_options, zone, NULL,
		"time zone of the cycles, such as Europe/Berlin; default: UTC", .metavar = "ZONE"),
	OPTION_LIST(struct season_options, holidays,
		"holidays in that zone, or a file with one date per line; treated as Sundays where "
		"the series shows it",
		.metavar = "DATES"),
	{0},
};

bool season_parse_kind(const char *text, enum series_kind *kind, struct error *error)
{
	for (size_t i = 0; i <= KIND_BENCHMARK; i++)
		if (strcmp(text, series_kind_names[i]) == 0) {
			*kind = (enum series_kind)i;
			return true;
		}
	return error_set(
		error, ERROR_USAGE, "kind: \"%.80s\" is none of auto, service, benchmark", text);
}

bool season_parse(const char *text, enum season_mode *mode, struct error *error)
{
	for (size_t i = SEASON_AUTO; i <= SEASON_WEEK; i++)
		if (strcmp(text, season_mode_names[i]) == 0) {
			*mode = (enum season_mode)i;
			return true;
		}
	return error_set(
		error, ERROR_USAGE, "season: \"%.80s\" is none of auto, none, day, week", text);
}

/* The share of the squared deviations that a profile removes; sizes count as at most `most`. */
static double explained_by(const struct fit *fit, const double *values, double most)
{
	const struct season_grid *grid = fit->grid;
	double before = 0, after = 0;

	for (size_t i = 0; i < grid->n; i++) {
		double all = fabs(fit->deviations[i]);
		double rest = fabs(fit->deviations[i] - values[grid->slots[i]]);

		if (isnan(all))
			continue;
		before += fmin(all, most) * fmin(all, most);
		after += fmin(rest, most) * fmin(rest, most);
	}
	return before > 0 ? fmax(0, 1 - after / before) : 0;
}

/*
 * Makes the levels of values without the cycle means over a whole cycle of the values as measured,
 * which people can check. On the scale the profile's mean is 0; that is so of a difference, but
 * elsewhere a typical value is below the mean.
 */
static void raise_levels(struct season *season, const struct season_grid *grid, double *buffer)
{
	size_t count = 0, cells = season->cells;
	double sum = 0;

	for (size_t i = 0; i < cells && season->scale == SCALE_LOG; i++)
		sum += season->profile[i] = exp(season->profile[i]);
	for (size_t i = 0; i < cells && season->scale == SCALE_LOG; i++)
		season->profile[i] *= (double)cells / sum;
	season->factor = 1;
	if (season->scale != SCALE_ROOT)
		return;
	for (size_t i = 0; i < cells; i++)
		sum += season->profile[i] * season->profile[i];
	for (size_t i = 0; i < grid->n; i++)
		if (isfinite(grid->z[i]))
			buffer[count++] = grid->z[i] - season->profile[grid->slots[i]];
	double usual = count > 0 ? sort_median(buffer, count) : 0;
	double level = usual * usual - season->offset;
	if (level > 0)
		season->factor = fmin(MOST_RAISED, 1 + sum / (double)cells / level);
}

/* Stores the profile in the season, as divisors or as offsets. */
static void store_profile(
	struct season *season, const struct fit *fit, const double *values, double *buffer)
{
	const struct season_grid *grid = fit->grid;
	double sum = 0, most = fit_most(fit->deviations, grid->n, buffer);

	season->profile = memory_new(grid->slot_count, sizeof *season->profile);
	season->cells = grid->slot_count;
	season->explained = explained_by(fit, values, most);
	for (size_t i = 0; i < grid->slot_count; i++)
		sum += values[i];
	for (size_t i = 0; i < grid->slot_count; i++)
		season->profile[i] = values[i] - sum / (double)grid->slot_count;
	raise_levels(season, grid, buffer);
}

/* Fits a weekly cycle, and once more without the days that pass as Sundays. */
static void fit_weeks(struct season *season, struct fit *fit, bool lenient, struct scratch *scratch,
	double *profile)
{
	bool daily = season->cycles & SEASON_DAILY;
	size_t size = fit->grid->slot_count;
	double *days = scratch_take(scratch, size, sizeof *days);

	memcpy(days, profile, size * sizeof *days);
	if (!fit_week(fit, lenient, daily, scratch, profile))
		return;
	season->cycles |= SEASON_WEEKLY;
	if (days_find_sundays(season, fit, profile, scratch) &&
		fit_week(fit, true, daily, scratch, days))
		memcpy(profile, days, size * sizeof *days);
}

struct season season_fit(enum season_mode mode, struct season_clock clock, unsigned known,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch)
{
	struct season season = {.clock = clock};
	size_t skipped = n > MOST_POINTS ? n - MOST_POINTS : 0;
	struct season_grid grid = {0};
	bool fits = mode != SEASON_NONE && mode != SEASON_UNSET;

	season.scale = season_scale_of(values, n, &season.offset);
	scratch_reset(scratch);
	if (!times)
		return season;
	if (n < SEASON_LEAST) {
		/* The cycles that it may have */
		double *buffer = scratch_take(scratch, 2 * n, sizeof *buffer);
		int64_t step = n < 3 ? 1 : grid_cadence(values, times, n, buffer);

		if (fits && step > 0)
			season.undecided = (step <= DAY / LEAST_PER_DAY ? SEASON_DAILY : 0) |
					   (mode != SEASON_DAY ? SEASON_WEEKLY : 0);
		return season;
	}
	values += skipped;
	times += skipped;
	n -= skipped;
	grid.step = grid_cadence(values, times, n, scratch_take(scratch, 2 * n, sizeof(double)));
	if (grid.step == 0)
		return season;
	season.step = grid.step;
	season.excursion = grid.step <= DAY / LEAST_PER_DAY ? LONGEST_EXCURSION : 0;
	if (!fits || !grid_fill(&season, values, times, n, scratch, &grid) ||
		!grid_fill_slots(&season, &grid, scratch))
		return season;
	grid_rank(&grid, scratch);
	struct fit fit = fit_new(&grid, scratch);
	double *profile = scratch_take(scratch, grid.slot_count, sizeof *profile);
	if (grid.per_day >= LEAST_PER_DAY) {
		if (grid.n < LEAST_DAYS * grid.per_day)
			season.undecided |= SEASON_DAILY;
		else if (fit_day(&fit, mode != SEASON_AUTO || (known & SEASON_DAILY), scratch,
				 profile))
			season.cycles |= SEASON_DAILY;
	}
	if (mode != SEASON_DAY) {
		/* With few points a day more weeks are needed. */
		size_t weeks = grid.per_day >= MANY_PER_DAY ? LEAST_WEEKS : WHOLE_WEEKS;

		if (grid.n < weeks * grid.slot_count)
			season.undecided |= SEASON_WEEKLY;
		else
			fit_weeks(&season, &fit, mode == SEASON_WEEK || (known & SEASON_WEEKLY),
				scratch, profile);
	}
	if (season.cycles) {
		store_profile(
			&season, &fit, profile, scratch_take(scratch, grid.n, sizeof(double)));
		if (season.cycles & SEASON_DAILY)
			days_store_swings(&season, &fit, profile, scratch);
	}
	return season;
}

bool season_is_frequent(const struct season *season)
{
	return season->step > 0 && season->step <= DAY / MANY_PER_DAY;
}

void season_free(struct season *season)
{
	free(season->profile);
	free(season->sundays);
	free(season->swings);
	*season = (struct season){0};
}

static void remove_from(const struct season *season, const int64_t *times, const double *values,
	size_t n, bool sundays, double *out)
{
	static const struct swing still = {1, 1};
	double rate = (double)season->cells / (double)WEEK;
	int64_t last = (int64_t)season->swing_count - 1;

	for (size_t i = 0; i < n; i++) {
		double value = out[i] = values[i], size, profile, z;
		if (!season->cycles || !isfinite(value))
			continue;
		int64_t local = season_local(&season->clock, times[i]), day = season_day(local);
		int64_t at = (day - season->first_day) / DAY;
		const struct swing *swing = last < 0 ? &still
						     : &season->swings[at < 0      ? 0
								       : at > last ? last
										   : at];

		if (sundays || season_is_among(season->sundays, season->sunday_count, day))
			local += (SUNDAY - season_weekday(day)) * DAY;
		profile = season->profile[season_slot(season, local, season->cells, rate)];
		size = swing->size;
		switch (season->scale) {
		case SCALE_LOG:
			out[i] = value / (size == 1 ? profile : pow(profile, size) * swing->level);
			break;
		case SCALE_ROOT:
			z = season_to_scale(season, value) - size * profile;
			out[i] = z > 0 ? season->factor * fmax(z * z - season->offset, 0) : 0;
			break;
		case SCALE_RAW: out[i] = value - size * profile; break;
		}
	}
}

void season_remove(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out)
{
	remove_from(season, times, values, n, false, out);
}

bool season_remove_sundays(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out)
{
	int64_t local = season_local(&season->clock, times[0]) + NEAR_MIDNIGHT;

	if (!(season->cycles & SEASON_WEEKLY) || season_modulo(local, DAY) > 2 * NEAR_MIDNIGHT ||
		season_is_off(&season->clock, season_day(local)))
		return false;
	remove_from(season, times, values, n, true, out);
	return true;
}

bool refit_season(struct refit *refit, enum season_mode mode, struct season_clock clock,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch)
{
	struct season season;
	size_t first = n;
	bool other;

	/* It need not be fitted again soon, if it can represent the points since the last fit, with
	 * that fit's last one. */
	if (refit->fitted && times[n - 1] < refit->at + REFIT_EVERY &&
		!(refit->few && n >= SEASON_LEAST)) {
		while (first > 0 && times[first - 1] >= refit->at)
			first--;
		if (season_takes(&refit->season, values + first, n - first))
			return false;
	}
	season = season_fit(mode, clock, refit->season.cycles, values, times, n, scratch);
	other = season.cycles || refit->season.cycles ||
		season.excursion != refit->season.excursion;
	season_free(&refit->season);
	*refit = (struct refit){
		.season = season, .fitted = true, .few = n < SEASON_LEAST, .at = times[n - 1]};
	return other;
}

void refit_free(struct refit *refit)
{
	season_free(&refit->season);
	*refit = (struct refit){0};
}
