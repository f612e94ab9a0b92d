/*
 * Fits and removes daily and weekly cycles. The algorithm, its constants and its cost:
 * docs/design/algorithms.md section 3, whose letters are used here: z, d, D (per_day), W
 * (slot_count).
 *
 * The series is laid on a grid of equal steps (struct grid), its deviations from a moving median as
 * long as the cycle are formed, and several shapes of a profile (struct shape) compete. Each is
 * judged by how well it predicts points from the *other* points of their cells. A profile with few
 * cells estimates each one from more points; one with many cells can represent more.
 *
 * All memory but the profile that is returned comes from the scratch.
 */
#include "detectors/season.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/scratch.h"
#include "detectors/sort.h"

#define DAY INT64_C(86400000)
#define WEEK (7 * DAY)
#define NEAR_MIDNIGHT (DAY / 8)
#define MONDAY (4 * DAY) /* the first Monday of 1970 */

/* Points a day that a daily cycle needs, and from which profiles are smoothed and two weeks are
 * enough for a weekly cycle. */
enum { LEAST_PER_DAY = 4, MANY_PER_DAY = 12 };
/* Periods that the points must span: for a daily cycle; for a weekly one; for a weekly one with few
 * points a day, or a profile with a cell for each part of the week. */
enum { LEAST_DAYS = 3, LEAST_WEEKS = 2, WHOLE_WEEKS = 3 };
/* The grid may have so many times the places that there are points; parts of the week at most. */
enum { MOST_SPARSE = 3, MOST_CELLS = 7 * 86400 };
/* Of a longer series only so many of its newest points are used: ten weeks of minutes. */
enum { MOST_POINTS = 100000 };

enum { SATURDAY = 5, SUNDAY = 6 };

/* Up to so many items insertion sort is faster than qsort. */
enum { FEW = 40 };

/* Points that an outage of a service may have. */
enum { LONGEST_EXCURSION = 12 };

/*
 * A cycle is accepted if the share of the spread that remains is below a limit, which is lower for
 * few periods and few points, since those may look alike by chance: chosen so that fewer than one
 * in 200 series without a cycle (autocorrelated ones included) is found to have one. And the limit
 * for a cycle that the user has asked for.
 */
static const double DAY_LIMIT = 0.93, DAY_LESS = 0.8, WEEK_LIMIT = 0.88, WEEK_LESS = 0.8;
static const double POINTS_LESS = 2.5, REQUESTED_LIMIT = 0.99;
/*
 * WEEK_LIMIT is strict because weeks of autocorrelated noise look alike. If what a weekly cycle
 * leaves is nearly independent, the limit is INDEPENDENT_LIMIT: full for sums of days that vary
 * DAYS_FREE times as much as those of independent points, and neighbours that correlate by
 * LAG_FREE; it falls to WEEK_LIMIT at DAYS_BOUND or LAG_BOUND.
 */
static const double INDEPENDENT_LIMIT = 0.93;
static const double DAYS_FREE = 1.5, DAYS_BOUND = 3, LAG_FREE = 0.3, LAG_BOUND = 0.55;
/* The spread that a shape must stay below, relative to the best shape so far. */
static const double RICHER = 0.98;
/*
 * The check of the period, relative to the likeness at it: by how much another distance may exceed
 * it; from what likeness a distance is a rival; how low the likeness between the two must be for
 * that; and how many standard errors each of these differences must have.
 */
static const double BETTER = 0.1, RIVAL = 0.8, VALLEY = 0.5, SURE = 3.5;
/* Hours around the period in which each distance is checked, not only whole hours; and pairs of
 * points that are compared at one distance, at most. */
enum { NEAR_HOURS = 14, MOST_PAIRS = 4096 };
/* Added under the square root: makes the deviation of Poisson counts 1/2 at any level. */
static const double ANSCOMBE = 0.375; /* of counts; other values have none */
/* Levels on the root scale are raised to means over a cycle at most so far. */
static const double MOST_RAISED = 10;
/* A working day passes as a Sunday if what a Sunday's profile leaves of it is below this share of
 * what its own leaves, and that above so many times what is usual. */
static const double LIKE_SUNDAY = 0.5, UNLIKE_OWN = 2;
/* Swings: the first days have one in common; Huber's constant, in deviations, and rounds; below
 * which squared t-value there is none; how far from 1 at most; and parts of the week that its level
 * is taken from, about. */
enum { SWING_DAYS = 2, HUBER_ROUNDS = 5, MOST_SAMPLED = 2016 };
static const double HUBER = 1.345, SETTLED = 0.01, SHRINK = 9, MOST_SWING = 4;
/* The size of a deviation counts as at most this many times the median size. */
static const double MOST_DEVIATIONS = 6;

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

struct ranked {
	double value;
	uint32_t at;
};

/* The series on a grid of equal steps. */
struct grid {
	size_t n;
	int64_t start, step;   /* ms */
	double *z;             /* values on the scale; NaN where there is no point */
	struct ranked *ranked; /* the `count` values that exist, sorted */
	uint32_t *ranks;       /* of each place: its value's index in `ranked` */
	size_t count;
	uint32_t *slots; /* of each place: which of `slot_count` parts of the local week */
	size_t per_day, slot_count;
};

/* The shape of a profile: which slots of the week share a cell. */
struct shape {
	uint32_t *cells; /* of each slot */
	size_t count;    /* of cells */
	size_t smooth;   /* cells that are averaged, odd */
	size_t ring;     /* smoothing is cyclic within groups of so many cells */
};

/* Deviations and the profile that is fitted to them, with buffers for fitting. */
struct fit {
	const struct grid *grid;
	double *deviations;       /* of each place from the moving median */
	bool *left_out;           /* of each place: on a holiday; or NULL */
	double *others;           /* of each place: the median of the other places of its cell */
	double *profile, *smooth; /* of each cell: the median, and that after smoothing */
	uint32_t *order, *starts; /* places sorted by cell; where each cell begins in `order` */
	struct ranked *ranked;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->value != other->value)
		return one->value < other->value ? -1 : 1;
	return (one->at > other->at) - (one->at < other->at);
}

/* Most cells have few points. */
static void sort_ranked(struct ranked *items, size_t count)
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

static int64_t modulo(int64_t value, int64_t divisor)
{
	int64_t rest = value % divisor;

	return rest < 0 ? rest + divisor : rest;
}

/* The scales */

/* Values that are never negative stay so without the cycle. */
static enum season_scale scale_of(const double *values, size_t n, double *offset)
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

static double to_scale(const struct season *season, double value)
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

/* The grid */

/* The median distance of points in ms, or the whole fraction of a day near it; 0 if too many points
 * do not keep it. `buffer` has room for 2 n values. */
static int64_t cadence_of(const double *values, const int64_t *times, size_t n, double *buffer)
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

/* Days */

int64_t season_local(const struct season_clock *clock, int64_t ms)
{
	return clock->local ? clock->local(clock->zone, ms) : ms;
}

int64_t season_day(int64_t local)
{
	return local - modulo(local, DAY);
}

static bool is_among(const int64_t *days, size_t count, int64_t day)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (days[middle] < day)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && days[low] == day;
}

/* From Monday, 0, to Sunday, 6. */
static int64_t weekday_of(int64_t day)
{
	return modulo(day - MONDAY, WEEK) / DAY;
}

bool season_is_holiday(const struct season_clock *clock, int64_t day)
{
	return is_among(clock->holidays.days, clock->holidays.count, day);
}

bool season_is_off(const struct season_clock *clock, int64_t day)
{
	return weekday_of(day) >= SATURDAY || season_is_holiday(clock, day);
}

/* The slot of a local time; `rate` is the number of slots a millisecond. */
static size_t slot_of(const struct season *season, int64_t local, size_t count, double rate)
{
	int64_t phase = modulo(local - MONDAY - season->origin, WEEK);
	size_t slot = (size_t)((double)phase * rate + 0.5);

	return slot < count ? slot : 0;
}

/* Fills a grid whose step is set. False if too many of its places have no point. */
static bool fill_grid(const struct season *season, const double *values, const int64_t *times,
	size_t n, struct scratch *scratch, struct grid *grid)
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
				to_scale(season, values[i]);
	return true;
}

/* The local time of a place. */
static int64_t local_of(const struct season *season, const struct grid *grid, size_t i)
{
	return season_local(&season->clock, grid->start + (int64_t)i * grid->step);
}

/* Assigns the places to slots; false for a cadence of more than two days, or less than a second. */
static bool fill_slots(struct season *season, struct grid *grid, struct scratch *scratch)
{
	grid->per_day = (size_t)((DAY + grid->step / 2) / grid->step);
	if (grid->per_day == 0)
		return false;
	grid->slot_count = 7 * grid->per_day;
	if (grid->slot_count > MOST_CELLS)
		return false;
	double rate = (double)grid->slot_count / (double)WEEK;
	season->origin = modulo(season_local(&season->clock, grid->start) - MONDAY,
		WEEK / (int64_t)grid->slot_count);
	grid->slots = scratch_take(scratch, grid->n, sizeof *grid->slots);
	for (size_t i = 0; i < grid->n; i++)
		grid->slots[i] = (uint32_t)slot_of(
			season, local_of(season, grid, i), grid->slot_count, rate);
	return true;
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

static void rank_values(struct grid *grid, struct scratch *scratch)
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

/* Deviations of z from the centred moving median of `width` places; at the ends, from that of the
 * first or last whole window. O(n log n). */
static void deviate(const struct grid *grid, size_t width, struct scratch *scratch, double *out)
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

/* Profiles */

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
	sort_ranked(ranked, count);
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
static void fill_gaps(struct fit *fit, const struct shape *shape)
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

static void smooth_profile(struct fit *fit, const struct shape *shape)
{
	size_t half = shape->smooth / 2;

	for (size_t i = 0; i < shape->count; i++) {
		size_t ring = i - i % shape->ring;
		double sum = 0;

		for (size_t j = 0; j < shape->smooth; j++)
			sum += fit->profile[ring +
					    (i - ring + shape->ring + j - half) % shape->ring];
		fit->smooth[i] = sum / (double)shape->smooth;
	}
}

/* Medians of y by cell. */
static void fill_profile(struct fit *fit, const struct shape *shape, const double *y)
{
	const struct grid *grid = fit->grid;

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
	smooth_profile(fit, shape);
}

/* The residual of a point that the others predict: in the smoothed profile the median of its own
 * cell is replaced by that of the cell's other points. */
static double residual_of(
	const struct fit *fit, const struct shape *shape, const double *y, size_t i)
{
	size_t cell = shape->cells[fit->grid->slots[i]];

	return y[i] -
	       (fit->smooth[cell] + (fit->others[i] - fit->profile[cell]) / (double)shape->smooth);
}

/* The spread of y, or of its residuals from a shape: the mean size, each counted as at most
 * `most`. */
static double spread_of(
	const struct fit *fit, const struct shape *shape, const double *y, double most)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < fit->grid->n; i++)
		if (!isnan(y[i])) {
			double size = fabs(shape ? residual_of(fit, shape, y, i) : y[i]);

			sum += size < most ? size : most;
			count++;
		}
	return count ? sum / (double)count : 0;
}

/* The limit up to which sizes of deviations count; `buffer` has room for n values. */
static double most_deviation(const double *y, size_t n, double *buffer)
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

/* One profile for all days. */
static struct shape day_shape(const struct grid *grid, size_t smooth, uint32_t *cells)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		cells[i] = (uint32_t)(i % grid->per_day);
	return (struct shape){cells, grid->per_day, smooth, grid->per_day};
}

/* A profile for each kind of day. */
static struct shape kinds_shape(
	const struct grid *grid, const uint8_t kinds[7], size_t smooth, uint32_t *cells)
{
	size_t most = 0;

	for (size_t i = 0; i < grid->slot_count; i++) {
		size_t kind = kinds[i / grid->per_day];

		most = kind > most ? kind : most;
		cells[i] = (uint32_t)(kind * grid->per_day + i % grid->per_day);
	}
	return (struct shape){cells, (most + 1) * grid->per_day, smooth, grid->per_day};
}

/* One value for each day of the week. */
static struct shape levels_shape(const struct grid *grid, uint32_t *cells)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		cells[i] = (uint32_t)(i / grid->per_day);
	return (struct shape){cells, 7, 1, 7};
}

/* A value for each slot of the week. */
static struct shape week_shape(const struct grid *grid, size_t smooth, uint32_t *cells)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		cells[i] = (uint32_t)i;
	return (struct shape){cells, grid->slot_count, smooth, grid->slot_count};
}

/* The best shape so far, as a value for each slot of the week. */
struct best {
	double spread;
	double *values; /* by slot */
};

static void take(struct best *best, const struct fit *fit, const struct shape *shape,
	const double *base, double spread)
{
	best->spread = spread;
	for (size_t i = 0; i < fit->grid->slot_count; i++)
		best->values[i] = (base ? base[i] : 0) + fit->smooth[shape->cells[i]];
}

/* Fits a shape to y, the deviations without the profile `base`, and keeps it if its spread is below
 * `by` times the best one. */
static void try_shape(struct best *best, struct fit *fit, const struct shape *shape,
	const double *y, const double *base, double most, double by)
{
	if (shape->smooth > shape->ring)
		return;
	fill_profile(fit, shape, y);
	double spread = spread_of(fit, shape, y, most);
	if (spread < by * best->spread)
		take(best, fit, shape, base, spread);
}

/* Likeness */

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
	const struct grid *grid = fit->grid;
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
static size_t hour_of(const struct grid *grid)
{
	return grid->per_day > 24 ? grid->per_day / 24 : 1;
}

/* Computes the mean differences of the distances from `low` to `high`, hour by hour. */
static struct likeness likeness_new(const struct grid *grid, const double *y, double most,
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
static bool has_better(const struct likeness *like, const struct grid *grid, size_t period,
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

/*
 * Whether a week is the period of what differs between days: not a fraction of a week, nor a period
 * with a multiple near a week. `cells` is a buffer, one for each slot.
 */
static bool is_weekly(struct fit *fit, uint32_t *cells, double most, struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	double *days = scratch_take(scratch, grid->slot_count, sizeof *days);
	struct shape day = day_shape(grid, 1, cells);
	size_t week = grid->slot_count, hour = hour_of(grid),
	       near = NEAR_HOURS * grid->per_day / 24;
	size_t reach = week / 2 / hour * hour;
	size_t low = week - reach, high = week + reach;

	fill_profile(fit, &day, fit->deviations);
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

/* Whether whole days are a period; a cycle with several periods a day has that, too. */
static bool is_daily(const struct fit *fit, double most, struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	size_t days = grid->n / grid->per_day / 2, hour = hour_of(grid);
	size_t period = grid->per_day * (days < 7 ? days : 7);
	size_t reach = grid->per_day / 2 / hour * hour;
	struct likeness like = likeness_new(grid, in_local_time(fit, NULL, scratch), most,
		period - reach, period + reach, scratch);

	return !has_better(&like, grid, period, period - reach, period + reach);
}

static struct fit fit_new(const struct grid *grid, struct scratch *scratch)
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

/* Fits a daily cycle; true if it is accepted, and then writes its value for each slot. `lenient`:
 * if it reduces the spread at all. */
static bool fit_day(struct fit *fit, bool lenient, struct scratch *scratch, double *values)
{
	const struct grid *grid = fit->grid;
	double days = (double)grid->n / (double)grid->per_day;
	double limit = fmin(DAY_LIMIT - DAY_LESS / days, 1 - POINTS_LESS / sqrt((double)grid->n));
	uint32_t *cells = scratch_take(scratch, grid->slot_count, sizeof *cells);
	double *sizes = scratch_take(scratch, grid->n, sizeof *sizes);

	deviate(grid, grid->per_day, scratch, fit->deviations);
	double most = most_deviation(fit->deviations, grid->n, sizes);
	double all = spread_of(fit, NULL, fit->deviations, most);
	limit = lenient ? REQUESTED_LIMIT : limit;
	struct best best = {.spread = limit * all, .values = values};
	struct shape plain = day_shape(grid, 1, cells);
	try_shape(&best, fit, &plain, fit->deviations, NULL, most, 1);
	if (grid->per_day >= MANY_PER_DAY) {
		struct shape smooth =
			day_shape(grid, grid->per_day <= 48 ? 3 : odd(grid->per_day / 48), cells);
		try_shape(&best, fit, &smooth, fit->deviations, NULL, most, 1);
	}
	return best.spread < limit * all && (lenient || is_daily(fit, most, scratch));
}

/* The deviation of a place without a profile by slot, limited to `most`; 0 where there is none. */
static double rest_of(const struct fit *fit, const double *values, double most, size_t i)
{
	double rest = fit->deviations[i] - values[fit->grid->slots[i]];

	return isnan(rest) ? 0 : fmin(fmax(rest, -most), most);
}

/* How far from independent the deviations without a profile are: from 0, nearly so, to 1. */
static double dependence_left(const struct fit *fit, const double *values, double most)
{
	const struct grid *grid = fit->grid;
	double squares = 0, products = 0, days = 0, day = 0, before = 0;

	for (size_t i = 0; i < grid->n; i++) {
		double rest = rest_of(fit, values, most, i);

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

/* The share of the spread that a weekly cycle may leave, given dependence_left of what it leaves.
 */
static double week_limit(const struct grid *grid, double dependence)
{
	double weeks = (double)grid->n / (double)grid->slot_count;
	double few = POINTS_LESS / sqrt((double)grid->n);
	double free = fmin(INDEPENDENT_LIMIT, 1 - few);
	double strict = fmin(1 - 2 * few, WEEK_LIMIT - WEEK_LESS / weeks);

	return free + dependence * (strict - free);
}

/* The same for a weekly cycle; `daily`: `values` holds an accepted daily one, to which the weekly
 * one is added or which it replaces. */
static bool fit_week(
	struct fit *fit, bool lenient, bool daily, struct scratch *scratch, double *values)
{
	static const uint8_t two[7] = {0, 0, 0, 0, 0, 1, 1}, three[7] = {0, 0, 0, 0, 0, 1, 2};
	const struct grid *grid = fit->grid;
	size_t n = grid->n, hour = grid->per_day / 24;
	uint32_t *cells = scratch_take(scratch, grid->slot_count, sizeof *cells);
	double *sizes = scratch_take(scratch, n, sizeof *sizes);
	double *rest = scratch_take(scratch, n, sizeof *rest);
	double *found = scratch_take(scratch, grid->slot_count, sizeof *found);

	deviate(grid, grid->slot_count, scratch, fit->deviations);
	for (size_t i = 0; fit->left_out && i < n; i++)
		fit->deviations[i] = fit->left_out[i] ? (double)NAN : fit->deviations[i];
	for (size_t i = 0; i < n; i++)
		rest[i] = fit->deviations[i] - (daily ? values[grid->slots[i]] : 0);
	double most = most_deviation(rest, n, sizes), all = spread_of(fit, NULL, rest, most);
	struct best best = {.spread = REQUESTED_LIMIT * all, .values = found};
	struct shape shape = levels_shape(grid, cells);
	try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, 1);
	for (size_t smooth = 1; smooth <= 5 && grid->per_day > 1; smooth += 2) {
		size_t width = hour > 1 ? odd(smooth * hour) : smooth;
		shape = kinds_shape(grid, two, width, cells);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		shape = kinds_shape(grid, three, width, cells);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		if (n < WHOLE_WEEKS * grid->slot_count)
			continue;
		shape = week_shape(grid, width, cells);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, RICHER);
	}
	if (!(best.spread < REQUESTED_LIMIT * all))
		return false;
	if (!lenient && best.spread >= week_limit(grid, dependence_left(fit, found, most)) * all)
		return false;
	if (!lenient && !is_weekly(fit, cells, most, scratch))
		return false;
	memcpy(values, found, grid->slot_count * sizeof *values);
	return true;
}

/* With few points a day more weeks are needed. */
static size_t weeks_needed(const struct grid *grid)
{
	return grid->per_day >= MANY_PER_DAY ? LEAST_WEEKS : WHOLE_WEEKS;
}

/* The cycles that the mode asks for and the cadence allows. */
static unsigned cycles_requested(enum season_mode mode, const struct grid *grid)
{
	unsigned cycles = 0;

	if (grid->per_day >= LEAST_PER_DAY)
		cycles |= SEASON_DAILY;
	if (mode != SEASON_DAY)
		cycles |= SEASON_WEEKLY;
	return cycles;
}

/* The share of the squared deviations that a profile removes; sizes count as at most `most`. */
static double explained_by(const struct fit *fit, const double *values, double most)
{
	const struct grid *grid = fit->grid;
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
static void raise_levels(struct season *season, const struct grid *grid, double *buffer)
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

/* Stores the profile in the season, as what values are divided by or what is subtracted. */
static void store_profile(
	struct season *season, const struct fit *fit, const double *values, double *buffer)
{
	const struct grid *grid = fit->grid;
	double sum = 0, most = most_deviation(fit->deviations, grid->n, buffer);

	season->profile = scratch_resize(NULL, grid->slot_count, sizeof *season->profile);
	season->cells = grid->slot_count;
	season->explained = explained_by(fit, values, most);
	for (size_t i = 0; i < grid->slot_count; i++)
		sum += values[i];
	for (size_t i = 0; i < grid->slot_count; i++)
		season->profile[i] = values[i] - sum / (double)grid->slot_count;
	raise_levels(season, grid, buffer);
}

/* Holidays */

/* The places from..to of the local day `day`; `usual` is the mean size of what a profile leaves. */
struct day {
	int64_t day;
	size_t from, to;
	double usual;
};

/* The next day from the place day->to on; false if there is none. */
static bool next_day(const struct season *season, const struct grid *grid, struct day *day)
{
	day->from = day->to;
	if (day->from >= grid->n)
		return false;
	day->day = season_day(local_of(season, grid, day->from));
	while (day->to < grid->n && season_day(local_of(season, grid, day->to)) == day->day)
		day->to++;
	return true;
}

/* What the profile of the day's own weekday leaves of it, or that of a Sunday: the sum of sizes.
 * Writes how many values there are. */
static double rest_of_day(const struct fit *fit, const double *profile, const struct day *day,
	bool sunday, size_t *count)
{
	const struct grid *grid = fit->grid;
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

/* Whether the day behind this one is as usual again, by a quarter of it at least: a level that
 * stays is no holiday. */
static bool is_over(const struct season *season, const struct fit *fit, const double *profile,
	const struct day *day)
{
	struct day next = *day;
	size_t count;

	if (!next_day(season, fit->grid, &next))
		return false;
	double own = rest_of_day(fit, profile, &next, false, &count);
	return 4 * count >= fit->grid->per_day && own <= UNLIKE_OWN * day->usual * (double)count;
}

/* Whether a working day passed as a Sunday: its values fit a Sunday's profile and not its own, and
 * it is over. Of one that was named, it is enough that they do not fit its own profile. */
static bool passes_as_sunday(const struct season *season, const struct fit *fit,
	const double *profile, const struct day *day, bool named)
{
	size_t count;
	double own = rest_of_day(fit, profile, day, false, &count);
	double sunday = rest_of_day(fit, profile, day, true, &count);

	if (named)
		return 2 * count < fit->grid->per_day || sunday < own;
	return 2 * count >= fit->grid->per_day && sunday < LIKE_SUNDAY * own &&
	       own > UNLIKE_OWN * day->usual * (double)count && is_over(season, fit, profile, day);
}

static double mean_rest(const struct fit *fit, const double *profile)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < fit->grid->n; i++)
		if (!isnan(fit->deviations[i])) {
			sum += fabs(fit->deviations[i] - profile[fit->grid->slots[i]]);
			count++;
		}
	return count ? sum / (double)count : 0;
}

/* Lists the days that pass as Sundays; true if there are any among the places, which are then left
 * out of the fit. */
static bool find_sundays(
	struct season *season, struct fit *fit, const double *profile, struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	const struct holidays *named = &season->clock.holidays;
	struct day day = {.usual = mean_rest(fit, profile)};
	size_t at = 0, count = 0;
	bool *out = scratch_take(scratch, grid->n, sizeof *out), any = false;

	season->sundays = scratch_resize(NULL, named->count + grid->n, sizeof *season->sundays);
	while (next_day(season, grid, &day)) {
		bool is_named = is_among(named->days, named->count, day.day);
		bool found = weekday_of(day.day) < SATURDAY &&
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

/* The factor that makes the mean of the profile's powers 1. */
static double level_of(const struct season *season, double power)
{
	size_t stride = 1 + season->cells / MOST_SAMPLED, count = 0;
	double sum = 0;

	if (season->scale != SCALE_LOG || power == 1)
		return 1;
	for (size_t i = 0; i < season->cells; i += stride, count++)
		sum += pow(season->profile[i], power);
	return (double)count / sum;
}

static void store_swings(struct season *season, const struct fit *fit, const double *profile,
	struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	double *buffer = scratch_take(scratch, grid->n, sizeof *buffer);
	size_t room = (size_t)((int64_t)grid->n * grid->step / DAY) + 3, week = grid->slot_count;
	size_t least = SWING_DAYS * grid->per_day < grid->n ? SWING_DAYS * grid->per_day : grid->n;
	struct day day = {0};

	season->first_day = season_day(local_of(season, grid, 0));
	season->swings = scratch_resize(NULL, room, sizeof *season->swings);
	while (next_day(season, grid, &day)) {
		size_t at = (size_t)((day.day - season->first_day) / DAY);
		size_t to = day.from > least ? day.from : least, from = to > week ? to - week : 0;
		double size = slope_of(fit, profile, from, to, buffer);

		while (season->swing_count <= at)
			season->swings[season->swing_count++] =
				(struct swing){size, level_of(season, size)};
	}
}

/* The cycles that a series too short to be fitted may have. */
static unsigned possible_cycles(enum season_mode mode, int64_t step)
{
	if (mode == SEASON_NONE || mode == SEASON_UNSET || step == 0)
		return 0;
	return (step <= DAY / LEAST_PER_DAY ? SEASON_DAILY : 0) |
	       (mode != SEASON_DAY ? SEASON_WEEKLY : 0);
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
	if (find_sundays(season, fit, profile, scratch) &&
		fit_week(fit, true, daily, scratch, days))
		memcpy(profile, days, size * sizeof *days);
}

struct season season_fit(enum season_mode mode, struct season_clock clock, unsigned known,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch)
{
	struct season season = {.clock = clock};
	size_t skipped = n > MOST_POINTS ? n - MOST_POINTS : 0;
	struct grid grid = {0};

	season.scale = scale_of(values, n, &season.offset);
	scratch_reset(scratch);
	if (!times)
		return season;
	if (n < SEASON_LEAST) {
		double *buffer = scratch_take(scratch, 2 * n, sizeof *buffer);

		season.undecided =
			possible_cycles(mode, n < 3 ? 1 : cadence_of(values, times, n, buffer));
		return season;
	}
	values += skipped;
	times += skipped;
	n -= skipped;
	grid.step = cadence_of(values, times, n, scratch_take(scratch, 2 * n, sizeof(double)));
	if (grid.step == 0)
		return season;
	season.step = grid.step;
	season.excursion = grid.step <= DAY / LEAST_PER_DAY ? LONGEST_EXCURSION : 0;
	if (mode == SEASON_NONE || mode == SEASON_UNSET ||
		!fill_grid(&season, values, times, n, scratch, &grid) ||
		!fill_slots(&season, &grid, scratch))
		return season;
	rank_values(&grid, scratch);
	struct fit fit = fit_new(&grid, scratch);
	double *profile = scratch_take(scratch, grid.slot_count, sizeof *profile);
	unsigned requested = cycles_requested(mode, &grid);
	if (requested & SEASON_DAILY) {
		if (grid.n < LEAST_DAYS * grid.per_day)
			season.undecided |= SEASON_DAILY;
		else if (fit_day(&fit, mode != SEASON_AUTO || (known & SEASON_DAILY), scratch,
				 profile))
			season.cycles |= SEASON_DAILY;
	}
	if (requested & SEASON_WEEKLY) {
		if (grid.n < weeks_needed(&grid) * grid.slot_count)
			season.undecided |= SEASON_WEEKLY;
		else
			fit_weeks(&season, &fit, mode == SEASON_WEEK || (known & SEASON_WEEKLY),
				scratch, profile);
	}
	if (season.cycles) {
		store_profile(
			&season, &fit, profile, scratch_take(scratch, grid.n, sizeof(double)));
		if (season.cycles & SEASON_DAILY)
			store_swings(&season, &fit, profile, scratch);
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

/* The value without the cycle. */
static double without(
	const struct season *season, double value, size_t cell, const struct swing *swing)
{
	double size = swing->size, profile = season->profile[cell];

	switch (season->scale) {
	case SCALE_LOG: return value / (size == 1 ? profile : pow(profile, size) * swing->level);
	case SCALE_ROOT: {
		double z = to_scale(season, value) - size * profile;
		return z > 0 ? season->factor * fmax(z * z - season->offset, 0) : 0;
	}
	case SCALE_RAW: break;
	}
	return value - size * profile;
}

static const struct swing *swing_of(const struct season *season, int64_t day)
{
	static const struct swing still = {1, 1};
	int64_t at = (day - season->first_day) / DAY, last = (int64_t)season->swing_count - 1;

	return last < 0 ? &still : &season->swings[at < 0 ? 0 : at > last ? last : at];
}

static void remove_from(const struct season *season, const int64_t *times, const double *values,
	size_t n, bool sundays, double *out)
{
	double rate = (double)season->cells / (double)WEEK;

	for (size_t i = 0; i < n; i++) {
		out[i] = values[i];
		if (!season->cycles || !isfinite(values[i]))
			continue;
		int64_t local = season_local(&season->clock, times[i]), day = season_day(local);
		const struct swing *swing = swing_of(season, day);

		if (sundays || is_among(season->sundays, season->sunday_count, day))
			local += (SUNDAY - weekday_of(day)) * DAY;
		out[i] = without(
			season, values[i], slot_of(season, local, season->cells, rate), swing);
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

	if (!(season->cycles & SEASON_WEEKLY) || modulo(local, DAY) > 2 * NEAR_MIDNIGHT ||
		season_is_off(&season->clock, season_day(local)))
		return false;
	remove_from(season, times, values, n, true, out);
	return true;
}
