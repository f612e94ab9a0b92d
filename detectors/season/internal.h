/*
 * The parts of a season's fit: docs/design/algorithms.md section 3. Places are those of the grid,
 * slots the equal parts of the local week. All memory comes from the scratch.
 */
#ifndef DETECTORS_SEASON_INTERNAL_H
#define DETECTORS_SEASON_INTERNAL_H

#include "detectors/season.h"

#define DAY INT64_C(86400000)
#define WEEK (7 * DAY)

enum { SATURDAY = 5, SUNDAY = 6 };

/* Points a day that a daily cycle needs, and from which profiles are smoothed and two weeks are
 * enough for a weekly cycle. */
enum { LEAST_PER_DAY = 4, MANY_PER_DAY = 12 };
/* Weeks that the points must span for a weekly cycle with few points a day, or for a profile with a
 * cell for each part of the week. */
enum { WHOLE_WEEKS = 3 };

struct ranked {
	double value;
	uint32_t at;
};

/* The series on a grid of equal steps. */
struct season_grid {
	size_t n;
	int64_t start, step;   /* ms */
	double *z;             /* values on the scale; NaN where there is no point */
	struct ranked *ranked; /* the `count` values that exist, sorted */
	uint32_t *ranks;       /* of each place: its value's index in `ranked` */
	size_t count;
	uint32_t *slots; /* of each place: which of `slot_count` parts of the local week */
	size_t per_day, slot_count;
};

/* Deviations and the profile that is fitted to them, with buffers for fitting. */
struct fit {
	const struct season_grid *grid;
	double *deviations;       /* of each place from the moving median */
	bool *left_out;           /* of each place: on a holiday; or NULL */
	double *others;           /* of each place: the median of the other places of its cell */
	double *profile, *smooth; /* of each cell: the median, and that after smoothing */
	uint32_t *order, *starts; /* places sorted by cell; where each cell begins in `order` */
	struct ranked *ranked;
};

/* grid.c */

/* Values that are never negative stay so without the cycle. */
enum season_scale season_scale_of(const double *values, size_t n, double *offset);
double season_to_scale(const struct season *season, double value);

int64_t season_modulo(int64_t value, int64_t divisor); /* 0 to divisor - 1 */
bool season_is_among(const int64_t *days, size_t count, int64_t day);
int64_t season_weekday(int64_t day); /* from Monday, 0, to Sunday, 6 */

/* The slot of a local time; `rate` is the number of slots a millisecond. */
size_t season_slot(const struct season *season, int64_t local, size_t count, double rate);

/* The median distance of points in ms, or the whole fraction of a day near it; 0 if too many points
 * do not keep it. `buffer` has room for 2 n values. */
int64_t grid_cadence(const double *values, const int64_t *times, size_t n, double *buffer);

/* Fills a grid whose step is set. False if too many of its places have no point. */
bool grid_fill(const struct season *season, const double *values, const int64_t *times, size_t n,
	struct scratch *scratch, struct season_grid *grid);

/* Assigns the places to slots; false for a cadence of more than two days, or less than a second. */
bool grid_fill_slots(struct season *season, struct season_grid *grid, struct scratch *scratch);

/* The local time of a place. */
int64_t grid_local(const struct season *season, const struct season_grid *grid, size_t i);

/* By value, then place. */
void grid_sort(struct ranked *items, size_t count);

/* Fills `ranked` and `ranks`. */
void grid_rank(struct season_grid *grid, struct scratch *scratch);

/* Deviations of z from the centred moving median of `width` places; at the ends, from that of the
 * first or last whole window. O(n log n). */
void grid_deviate(
	const struct season_grid *grid, size_t width, struct scratch *scratch, double *out);

/* profile.c */

struct fit fit_new(const struct season_grid *grid, struct scratch *scratch);

/* The limit up to which sizes of deviations count; `buffer` has room for n values. */
double fit_most(const double *y, size_t n, double *buffer);

/* Fits a daily cycle; true if it is accepted, and then writes its value for each slot. `lenient`:
 * if it reduces the spread at all. */
bool fit_day(struct fit *fit, bool lenient, struct scratch *scratch, double *values);

/* The same for a weekly cycle; `daily`: `values` holds an accepted daily one, to which the weekly
 * one is added or which it replaces. */
bool fit_week(struct fit *fit, bool lenient, bool daily, struct scratch *scratch, double *values);

/* days.c */

/* Lists the days that pass as Sundays; true if there are any among the places, which are then left
 * out of the fit. */
bool days_find_sundays(
	struct season *season, struct fit *fit, const double *profile, struct scratch *scratch);

/* How far the profile swings on each day, by the week before it. */
void days_store_swings(struct season *season, const struct fit *fit, const double *profile,
	struct scratch *scratch);

#endif
