/*
 * Profiles are medians of deviations from a moving median as long as the cycle, so that steps,
 * trends, outages and holidays count for little. Several shapes of a profile compete, from one that
 * all days share to one with a place for each part of the week; each is judged by the deviations of
 * points from what the *other* points of their cells say. Fewer cells know more of each, more cells
 * tell more apart: which is better is the series' to say.
 */
#include "detectors/season.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/scratch.h"
#include "detectors/sort.h"

#define DAY INT64_C(86400000)
#define WEEK (7 * DAY)
#define MONDAY (4 * DAY) /* the first Monday of 1970 */

/* DAYS, WEEKS: how many of them the points must span. A grid may have this many times the points
 * that there are. */
enum {
	LEAST_A_DAY = 4,
	MANY_A_DAY = 12,
	DAYS = 3,
	WEEKS = 2,
	WHOLE_WEEKS = 3,
	SPARSE = 3,
	MOST_CELLS = 7 * 86400
};
/* Of a longer series so many of its newest points are looked at: ten weeks of minutes. */
enum { MOST_POINTS = 100000 };

enum { FEW = 40 };

/* Points that an outage of a service may have. */
enum { LONGEST_EXCURSION = 12 };

/*
 * What may remain of the spread for a cycle to be accepted: the few periods of a short series may
 * look alike by chance. Chosen so that of series without a cycle (autocorrelated ones included)
 * less than one in 200 is believed to have one. And what may remain where the user has asked for
 * it.
 */
static const double DAY_PAYS = 0.93, A_DAY = 0.8, WEEK_PAYS = 0.88, A_WEEK = 0.8, ASKED_FOR = 0.99;
/*
 * That is so strict because weeks of noise that depends on itself look alike. Where what a weekly
 * cycle leaves hardly does, less will do: as long as its means of days vary FREE times as much as
 * those of independent points, and neighbours correlate by FREE_LAG; from BOUND on nothing of that
 * counts.
 */
static const double FREE_PAYS = 0.93, A_POINT = 2.5;
static const double FREE = 1.5, BOUND = 3, FREE_LAG = 0.3, BOUND_LAG = 0.55;
/* How much of the remaining spread a richer shape has to save against a plainer one. */
static const double RICHER = 0.98;
/*
 * Of a cycle's likeness after its period: what another distance may not exceed it by, what one of
 * its own may not have, what lies between them at most, and how many standard errors it takes to be
 * sure of any of that.
 */
static const double BETTER = 0.1, RIVAL = 0.8, VALLEY = 0.5, SURE = 3.5;
/* Hours around the period in which each distance is looked at, else those of whole hours. Pairs of
 * points that are compared at a distance. */
enum { NEAR = 14, PAIRS = 4096 };
/* What makes the deviation of Poisson counts 1/2 at any level, under the square root. */
static const double ANSCOMBE = 0.375;
/* Deviations count as at most this many of the median one. */
static const double MOST_DEVIATIONS = 6;

static const char *const mode_names[] = {
	[SEASON_AUTO] = "auto",
	[SEASON_NONE] = "none",
	[SEASON_DAY] = "day",
	[SEASON_WEEK] = "week",
};

const struct field season_fields[] = {
	OPTION_STRING(struct season_options, season, NULL,
		"daily and weekly cycles that are removed before detection; auto: those that a "
		"series is seen to have (the default profile of edivisive), day and week: also "
		"weak ones. Until it is decided which there are, the agent holds what shows on "
		"weekends until Tuesday",
		.metavar = "auto|none|day|week"),
	OPTION_STRING(struct season_options, zone, NULL,
		"time zone whose days and weeks the cycles follow, as in Europe/Berlin; UTC by "
		"default",
		.metavar = "ZONE"),
	{0},
};

bool season_parse(const char *text, enum season_mode *mode, struct error *error)
{
	for (size_t i = SEASON_AUTO; i <= SEASON_WEEK; i++)
		if (strcmp(text, mode_names[i]) == 0) {
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
	int64_t start, step;
	double *z;             /* on the scale; NaN where there is no point */
	struct ranked *ranked; /* the values in order ... */
	uint32_t *ranks;       /* ... and by place in the grid; of `count` */
	size_t count;
	uint32_t *slots; /* which of `slot_count` parts of the local week it is */
	size_t per_day, slot_count;
};

/* A way to tell parts of the week apart: to each slot of the week a cell. */
struct shape {
	uint32_t *cells; /* by slot */
	size_t count;
	size_t smooth; /* cells that are averaged, odd */
	size_t ring;   /* smoothing goes round in rings of so many cells */
};

/* Deviations from a profile, and room for making them. */
struct fit {
	const struct grid *grid;
	double *deviations;       /* from the moving median */
	double *others;           /* by point: the median of the others of its cell */
	double *profile, *smooth; /* by cell */
	uint32_t *order, *starts;
	struct ranked *ranked;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->value != other->value)
		return one->value < other->value ? -1 : 1;
	return (one->at > other->at) - (one->at < other->at);
}

/* Cells have a handful of points. */
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

static enum season_scale scale_of(const double *values, size_t n)
{
	bool positive = true, counts = true;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]))
			continue;
		positive &= values[i] > 0;
		counts &= values[i] >= 0 && values[i] == floor(values[i]);
	}
	return positive ? SCALE_LOG : counts ? SCALE_ROOT : SCALE_RAW;
}

static double to_scale(enum season_scale scale, double value)
{
	switch (scale) {
	case SCALE_LOG: return log(value);
	case SCALE_ROOT: return sqrt(value + ANSCOMBE);
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

/* The usual distance of points, a whole part of the day where it nearly is one; 0 if there is none
 * that most keep. */
static int64_t cadence_of(const double *values, const int64_t *times, size_t n, double *room)
{
	size_t count = 0, regular = 0;
	const int64_t *before = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(values[i]))
			continue;
		if (before && times[i] > *before)
			room[count++] = (double)(times[i] - *before);
		before = times + i;
	}
	if (count < 2)
		return 0;
	double *sorted = room + count, step;
	memcpy(sorted, room, count * sizeof *room);
	step = sort_median(sorted, count);
	double parts = round((double)DAY / step);
	if (parts >= 1 && fabs(parts * step - (double)DAY) < 0.02 * (double)DAY)
		step = (double)DAY / parts;
	for (size_t i = 0; i < count; i++)
		regular += fabs(room[i] / step - fmax(1, round(room[i] / step))) < 0.25;
	return step >= 1000 && (double)regular >= 0.8 * (double)count ? (int64_t)step : 0;
}

static int64_t local_time(const struct season *season, int64_t time)
{
	const struct season_clock *clock = &season->clock;

	return clock->local ? clock->local(clock->zone, time) : time;
}

/* `rate`: slots a millisecond. */
static size_t slot_of(const struct season *season, int64_t time, size_t count, double rate)
{
	int64_t phase = modulo(local_time(season, time) - MONDAY - season->origin, WEEK);
	size_t slot = (size_t)((double)phase * rate + 0.5);

	return slot < count ? slot : 0;
}

/* Needs the step. False if too many of the grid's places have no point. */
static bool lay_grid(const struct season *season, const double *values, const int64_t *times,
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
	if (count > (int64_t)(SPARSE * points) || count > UINT32_MAX)
		return false;
	grid->n = (size_t)count;
	grid->z = scratch_take(scratch, grid->n, sizeof *grid->z);
	for (size_t i = 0; i < grid->n; i++)
		grid->z[i] = (double)NAN;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]))
			grid->z[(times[i] - grid->start + grid->step / 2) / grid->step] =
				to_scale(season->scale, values[i]);
	return true;
}

static bool lay_slots(struct season *season, struct grid *grid, struct scratch *scratch)
{
	grid->per_day = (size_t)((DAY + grid->step / 2) / grid->step);
	if (grid->per_day == 0)
		return false;
	grid->slot_count = 7 * grid->per_day;
	if (grid->slot_count > MOST_CELLS)
		return false;
	double rate = (double)grid->slot_count / (double)WEEK;
	season->origin =
		modulo(local_time(season, grid->start) - MONDAY, WEEK / (int64_t)grid->slot_count);
	grid->slots = scratch_take(scratch, grid->n, sizeof *grid->slots);
	for (size_t i = 0; i < grid->n; i++)
		grid->slots[i] = (uint32_t)slot_of(
			season, grid->start + (int64_t)i * grid->step, grid->slot_count, rate);
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

/* What z deviates from the median of the `width` steps around; at the ends, from that of the first
 * or last whole window. */
static void deviate(const struct grid *grid, size_t width, struct scratch *scratch, double *out)
{
	const struct ranked *ranked = grid->ranked;
	const uint32_t *ranks = grid->ranks;
	size_t n = grid->n, count = grid->count, top = 1, held = 0, half;

	width = width < n ? width : n;
	half = width / 2;
	uint32_t *tree = scratch_take(scratch, count + 1, sizeof *tree);
	memset(tree, 0, (count + 1) * sizeof *tree);
	while (2 * top <= count)
		top *= 2;
	for (size_t i = 0; i < n; i++) {
		if (!isnan(grid->z[i])) {
			tree_add(tree, count, ranks[i], 1);
			held++;
		}
		if (i >= width && !isnan(grid->z[i - width])) {
			tree_add(tree, count, ranks[i - width], (uint32_t)-1);
			held--;
		}
		if (i + 1 < width)
			continue;
		double median = (double)NAN;
		if (held > 0)
			median = 0.5 * (ranked[tree_find(tree, count, top, (held - 1) / 2)].value +
					       ranked[tree_find(tree, count, top, held / 2)].value);
		size_t from = i + 1 == width ? 0 : i + 1 - width + half;
		size_t to = i + 1 == n ? n : i + 1 - width + half + 1;
		for (size_t j = from; j < to; j++)
			out[j] = grid->z[j] - median;
	}
}

/* Profiles */

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

/* Cells that have no points get what their neighbours in the ring have. */
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

/* What is left of y where each point is predicted by the others. */
static double left_of(const struct fit *fit, const struct shape *shape, const double *y, size_t i)
{
	size_t cell = shape->cells[fit->grid->slots[i]];

	return y[i] -
	       (fit->smooth[cell] + (fit->others[i] - fit->profile[cell]) / (double)shape->smooth);
}

/* The spread of deviations: their mean size, each counted as at most `most`. */
static double spread_left(
	const struct fit *fit, const struct shape *shape, const double *y, double most)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < fit->grid->n; i++)
		if (!isnan(y[i])) {
			double size = fabs(shape ? left_of(fit, shape, y, i) : y[i]);

			sum += size < most ? size : most;
			count++;
		}
	return count ? sum / (double)count : 0;
}

static double most_deviation(const double *y, size_t n, double *room)
{
	size_t count = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(y[i]))
			sum += room[count++] = fabs(y[i]);
	if (count == 0)
		return 0;
	return MOST_DEVIATIONS * fmax(1.4826 * sort_median(room, count), 0.5 * sum / (double)count);
}

/* The shapes that compete */

static size_t odd(size_t cells)
{
	return cells | 1;
}

/* All days alike. */
static struct shape day_shape(const struct grid *grid, size_t smooth, uint32_t *room)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		room[i] = (uint32_t)(i % grid->per_day);
	return (struct shape){room, grid->per_day, smooth, grid->per_day};
}

/* Kinds of days, each with a profile of its own. */
static struct shape kinds_shape(
	const struct grid *grid, const uint8_t kinds[7], size_t smooth, uint32_t *room)
{
	size_t most = 0;

	for (size_t i = 0; i < grid->slot_count; i++) {
		size_t kind = kinds[i / grid->per_day];

		most = kind > most ? kind : most;
		room[i] = (uint32_t)(kind * grid->per_day + i % grid->per_day);
	}
	return (struct shape){room, (most + 1) * grid->per_day, smooth, grid->per_day};
}

/* A level for each day of the week. */
static struct shape levels_shape(const struct grid *grid, uint32_t *room)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		room[i] = (uint32_t)(i / grid->per_day);
	return (struct shape){room, 7, 1, 7};
}

static struct shape week_shape(const struct grid *grid, size_t smooth, uint32_t *room)
{
	for (size_t i = 0; i < grid->slot_count; i++)
		room[i] = (uint32_t)i;
	return (struct shape){room, grid->slot_count, smooth, grid->slot_count};
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

/* Tries a shape on y, which is what is left of the deviations once `base` is removed. */
static void try_shape(struct best *best, struct fit *fit, const struct shape *shape,
	const double *y, const double *base, double most, double by)
{
	if (shape->smooth > shape->ring)
		return;
	fill_profile(fit, shape, y);
	double spread = spread_left(fit, shape, y, most);
	if (spread < by * best->spread)
		take(best, fit, shape, base, spread);
}

/* Likeness */

/* How much more alike points are at some distance than at most others. */
struct likeness {
	const double *y;
	size_t n;
	double most;  /* a difference counts as at most so much */
	double usual; /* the mean difference at most distances */
	double error; /* the standard error of the mean at the distance where it is least */
	size_t low, high, hour;   /* the distances whose ... */
	const double *difference; /* ... mean differences are known: each hour from low to high */
};

/* What the values by slot (NULL: none) leave of the deviations, in the order of local time: where
 * clocks are turned it has a gap, or points fall together. */
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

/* The mean difference of points at that distance. */
static double difference_at(const struct likeness *like, size_t distance)
{
	size_t pairs = like->n - distance, stride = 1 + pairs / PAIRS, count = 0;
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

static double likeness_at(const struct likeness *like, size_t distance)
{
	size_t beyond = distance - like->low;

	if (distance >= like->low && distance <= like->high && beyond % like->hour == 0)
		return like->usual - like->difference[beyond / like->hour];
	return like->usual - difference_at(like, distance);
}

static size_t hour_of(const struct grid *grid)
{
	return grid->per_day > 24 ? grid->per_day / 24 : 1;
}

/* Distances from `low` to `high` in whole hours. */
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
	like.error = least / sqrt((double)(pairs < PAIRS ? pairs : PAIRS));
	return like;
}

/* Whether points are more alike at some distance from `low` to `high` than after `period`. */
static bool is_beaten(const struct likeness *like, const struct grid *grid, size_t period,
	size_t low, size_t high)
{
	double own = likeness_at(like, period);
	double bound = own + fmax(BETTER * own, SURE * like->error);

	for (size_t distance = low; distance <= high; distance += hour_of(grid))
		if (likeness_at(like, distance) > bound)
			return true;
	return false;
}

/* Whether they are about as alike at a distance of its own: going away from the period by `by`,
 * they were less alike before. */
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
 * Whether what its days do not share repeats itself after a week because that is its period, and
 * not some part of it, or one that has a multiple near by.
 */
static bool is_of_a_week(struct fit *fit, uint32_t *room, double most, struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	double *days = scratch_take(scratch, grid->slot_count, sizeof *days);
	struct shape day = day_shape(grid, 1, room);
	size_t week = grid->slot_count, hour = hour_of(grid), near = NEAR * grid->per_day / 24;
	size_t reach = week / 2 / hour * hour;
	size_t low = week - reach, high = week + reach;

	fill_profile(fit, &day, fit->deviations);
	for (size_t i = 0; i < grid->slot_count; i++)
		days[i] = fit->smooth[day.cells[i]];
	while (high > week && high + week / 2 > grid->n)
		high -= hour;
	struct likeness like =
		likeness_new(grid, in_local_time(fit, days, scratch), most, low, high, scratch);
	if (is_beaten(&like, grid, week, low, high))
		return false;
	while (high > week && high + week > grid->n)
		high -= hour;
	return !has_rival(&like, week, (ptrdiff_t)hour, low, high) &&
	       !has_rival(&like, week, -(ptrdiff_t)hour, low, high) &&
	       (hour == 1 || (!has_rival(&like, week, 1, low, week + near) &&
				     !has_rival(&like, week, -1, week - near, high)));
}

/* The same of days; what repeats itself several times a day is of a day, too. */
static bool is_of_a_day(const struct fit *fit, double most, struct scratch *scratch)
{
	const struct grid *grid = fit->grid;
	size_t days = grid->n / grid->per_day / 2, hour = hour_of(grid);
	size_t period = grid->per_day * (days < 7 ? days : 7);
	size_t reach = grid->per_day / 2 / hour * hour;
	struct likeness like = likeness_new(grid, in_local_time(fit, NULL, scratch), most,
		period - reach, period + reach, scratch);

	return !is_beaten(&like, grid, period, period - reach, period + reach);
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

/* Replaces *values (by slot; NULL: nothing yet) if a daily cycle pays. `sure`: if it does at all.
 */
static bool fit_day(struct fit *fit, bool sure, struct scratch *scratch, double *values)
{
	const struct grid *grid = fit->grid;
	double days = (double)grid->n / (double)grid->per_day;
	double pays = fmin(DAY_PAYS - A_DAY / days, 1 - A_POINT / sqrt((double)grid->n));
	uint32_t *room = scratch_take(scratch, grid->slot_count, sizeof *room);
	double *sizes = scratch_take(scratch, grid->n, sizeof *sizes);

	deviate(grid, grid->per_day, scratch, fit->deviations);
	double most = most_deviation(fit->deviations, grid->n, sizes);
	double all = spread_left(fit, NULL, fit->deviations, most);
	pays = sure ? ASKED_FOR : pays;
	struct best best = {.spread = pays * all, .values = values};
	struct shape plain = day_shape(grid, 1, room);
	try_shape(&best, fit, &plain, fit->deviations, NULL, most, 1);
	if (grid->per_day >= MANY_A_DAY) {
		struct shape smooth =
			day_shape(grid, grid->per_day <= 48 ? 3 : odd(grid->per_day / 48), room);
		try_shape(&best, fit, &smooth, fit->deviations, NULL, most, 1);
	}
	return best.spread < pays * all && (sure || is_of_a_day(fit, most, scratch));
}

/* What the values by slot leave of a point, 0 where there is none. */
static double rest_of(const struct fit *fit, const double *values, double most, size_t i)
{
	double rest = fit->deviations[i] - values[fit->grid->slots[i]];

	return isnan(rest) ? 0 : fmin(fmax(rest, -most), most);
}

/* How far what is left is from independent: 0 is near enough, 1 is far. */
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
	double far = fmax((lag - FREE_LAG) / (BOUND_LAG - FREE_LAG),
		(days / squares - FREE) / (BOUND - FREE));
	return fmin(fmax(far, 0), 1);
}

/* What may remain for a weekly cycle that leaves so much dependence, fewer points knowing less. */
static double week_pays(const struct grid *grid, double dependence)
{
	double weeks = (double)grid->n / (double)grid->slot_count;
	double few = A_POINT / sqrt((double)grid->n);
	double free = fmin(FREE_PAYS, 1 - few);
	double strict = fmin(1 - 2 * few, WEEK_PAYS - A_WEEK / weeks);

	return free + dependence * (strict - free);
}

/* The same for a weekly one on top of the daily one, if there is one. */
static bool fit_week(
	struct fit *fit, bool sure, bool daily, struct scratch *scratch, double *values)
{
	static const uint8_t two[7] = {0, 0, 0, 0, 0, 1, 1}, three[7] = {0, 0, 0, 0, 0, 1, 2};
	const struct grid *grid = fit->grid;
	size_t n = grid->n, hour = grid->per_day / 24;
	uint32_t *room = scratch_take(scratch, grid->slot_count, sizeof *room);
	double *sizes = scratch_take(scratch, n, sizeof *sizes);
	double *rest = scratch_take(scratch, n, sizeof *rest);
	double *found = scratch_take(scratch, grid->slot_count, sizeof *found);

	deviate(grid, grid->slot_count, scratch, fit->deviations);
	for (size_t i = 0; i < n; i++)
		rest[i] = fit->deviations[i] - (daily ? values[grid->slots[i]] : 0);
	double most = most_deviation(rest, n, sizes), all = spread_left(fit, NULL, rest, most);
	struct best best = {.spread = ASKED_FOR * all, .values = found};
	struct shape shape = levels_shape(grid, room);
	try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, 1);
	for (size_t smooth = 1; smooth <= 5 && grid->per_day > 1; smooth += 2) {
		size_t cells = hour > 1 ? odd(smooth * hour) : smooth;
		shape = kinds_shape(grid, two, cells, room);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		shape = kinds_shape(grid, three, cells, room);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		if (n < WHOLE_WEEKS * grid->slot_count)
			continue;
		shape = week_shape(grid, cells, room);
		try_shape(&best, fit, &shape, fit->deviations, NULL, most, RICHER);
		try_shape(&best, fit, &shape, rest, daily ? values : NULL, most, RICHER);
	}
	if (!(best.spread < ASKED_FOR * all))
		return false;
	if (!sure && best.spread >= week_pays(grid, dependence_left(fit, found, most)) * all)
		return false;
	if (!sure && !is_of_a_week(fit, room, most, scratch))
		return false;
	memcpy(values, found, grid->slot_count * sizeof *values);
	return true;
}

/* Few points a week tell little of it. */
static size_t weeks_needed(const struct grid *grid)
{
	return grid->per_day >= MANY_A_DAY ? WEEKS : WHOLE_WEEKS;
}

/* Which of them the mode asks for and the cadence allows. */
static unsigned cycles_asked(enum season_mode mode, const struct grid *grid)
{
	unsigned cycles = 0;

	if (grid->per_day >= LEAST_A_DAY)
		cycles |= SEASON_DAILY;
	if (mode != SEASON_DAY)
		cycles |= SEASON_WEEKLY;
	return cycles;
}

/* The share of the squared deviations that the values by slot take away, none counted beyond
 * `most`. */
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

static void keep(struct season *season, const struct fit *fit, const double *values, double *room)
{
	const struct grid *grid = fit->grid;
	double sum = 0, most = most_deviation(fit->deviations, grid->n, room);

	season->profile = scratch_resize(NULL, grid->slot_count, sizeof *season->profile);
	season->cells = grid->slot_count;
	season->explained = explained_by(fit, values, most);
	for (size_t i = 0; i < grid->slot_count; i++)
		sum += values[i];
	for (size_t i = 0; i < grid->slot_count; i++)
		season->profile[i] = values[i] - sum / (double)grid->slot_count;
	for (size_t i = 0; i < grid->slot_count && season->scale == SCALE_LOG; i++)
		season->profile[i] = exp(season->profile[i]);
}

/* What there may be in so few points that nothing is fitted. */
static unsigned early(enum season_mode mode, int64_t step)
{
	if (mode == SEASON_NONE || mode == SEASON_UNSET || step == 0)
		return 0;
	return (step <= DAY / LEAST_A_DAY ? SEASON_DAILY : 0) |
	       (mode != SEASON_DAY ? SEASON_WEEKLY : 0);
}

struct season season_fit(enum season_mode mode, struct season_clock clock, unsigned known,
	const double *values, const int64_t *times, size_t n, struct scratch *scratch)
{
	struct season season = {.clock = clock, .scale = scale_of(values, n)};
	size_t left_out = n > MOST_POINTS ? n - MOST_POINTS : 0;
	struct grid grid = {0};

	scratch_reset(scratch);
	if (!times)
		return season;
	if (n < SEASON_LEAST) {
		double *room = scratch_take(scratch, 2 * n, sizeof *room);

		season.undecided = early(mode, n < 3 ? 1 : cadence_of(values, times, n, room));
		return season;
	}
	values += left_out;
	times += left_out;
	n -= left_out;
	grid.step = cadence_of(values, times, n, scratch_take(scratch, 2 * n, sizeof(double)));
	if (grid.step == 0)
		return season;
	season.excursion = grid.step <= DAY / LEAST_A_DAY ? LONGEST_EXCURSION : 0;
	if (mode == SEASON_NONE || mode == SEASON_UNSET ||
		!lay_grid(&season, values, times, n, scratch, &grid) ||
		!lay_slots(&season, &grid, scratch))
		return season;
	rank_values(&grid, scratch);
	struct fit fit = fit_new(&grid, scratch);
	double *profile = scratch_take(scratch, grid.slot_count, sizeof *profile);
	unsigned asked = cycles_asked(mode, &grid);
	if (asked & SEASON_DAILY) {
		if (grid.n < DAYS * grid.per_day)
			season.undecided |= SEASON_DAILY;
		else if (fit_day(&fit, mode != SEASON_AUTO || (known & SEASON_DAILY), scratch,
				 profile))
			season.cycles |= SEASON_DAILY;
	}
	if (asked & SEASON_WEEKLY) {
		if (grid.n < weeks_needed(&grid) * grid.slot_count)
			season.undecided |= SEASON_WEEKLY;
		else if (fit_week(&fit, mode == SEASON_WEEK || (known & SEASON_WEEKLY),
				 season.cycles & SEASON_DAILY, scratch, profile))
			season.cycles |= SEASON_WEEKLY;
	}
	if (season.cycles)
		keep(&season, &fit, profile, scratch_take(scratch, grid.n, sizeof(double)));
	return season;
}

void season_free(struct season *season)
{
	free(season->profile);
	*season = (struct season){0};
}

static double without(const struct season *season, double value, size_t cell)
{
	switch (season->scale) {
	case SCALE_LOG: return value / season->profile[cell];
	case SCALE_ROOT: {
		double z = sqrt(value + ANSCOMBE) - season->profile[cell];
		return z > 0 ? fmax(z * z - ANSCOMBE, 0) : 0;
	}
	case SCALE_RAW: break;
	}
	return value - season->profile[cell];
}

void season_remove(const struct season *season, const int64_t *times, const double *values,
	size_t n, double *out)
{
	double rate = (double)season->cells / (double)WEEK;

	for (size_t i = 0; i < n; i++)
		out[i] = season->cycles && isfinite(values[i])
				 ? without(season, values[i],
					   slot_of(season, times[i], season->cells, rate))
				 : values[i];
}
