/*
 * Levels and their interval are those that a step between them would be described by, so that they
 * are moderated, clipped and stretched by autocorrelation as those that people see.
 */
#include "detectors/recovery.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "detectors/describe.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

/* ASTRAY: points that the place of an excursion may be off. */
enum { ASTRAY = 5 };

/* Shares of the step: what counts as nothing, and what must be gone at least. EVIDENCE: by how many
 * standard errors an excursion must stand out, about what the announcement of a change takes. */
static const double NOTHING = 0.05, MOST = 0.5, EVIDENCE = 4, DOUBT = 0.05;
/* By what factor an excursion may be smaller than announced. */
static const double SHARE = 3;

/* The last values before `to`, and the first from `from` on, that exist: DESCRIBE_SIDE at most. */
struct sides {
	double values[2 * DESCRIBE_SIDE];
	size_t before, after;
};

static void take_before(struct sides *sides, const double *values, size_t from, size_t to)
{
	size_t count = 0;

	for (size_t i = to; i > from && count < DESCRIBE_SIDE; i--)
		if (isfinite(values[i - 1]))
			sides->values[DESCRIBE_SIDE - ++count] = values[i - 1];
	memmove(sides->values, sides->values + DESCRIBE_SIDE - count,
		count * sizeof *sides->values);
	sides->before = count;
}

static void take_after(struct sides *sides, const double *values, size_t from, size_t to)
{
	sides->after = 0;
	for (size_t i = from; i < to && sides->after < DESCRIBE_SIDE; i++)
		if (isfinite(values[i]))
			sides->values[sides->before + sides->after++] = values[i];
}

static size_t count_values(const double *values, size_t from, size_t to)
{
	size_t count = 0;

	for (size_t i = from; i < to; i++)
		count += isfinite(values[i]) != 0;
	return count;
}

/* The interval of the difference reaches the old level, or what lies beyond it. */
static bool reaches(const struct sides *sides, const struct change *between, int sign)
{
	if (!isnan(between->size_low))
		return sign > 0 ? between->size_low <= 0 : between->size_high >= 0;
	return ttest_welch(moments_of(sides->values, sides->before),
		       moments_of(sides->values + sides->before, sides->after))
		       .p > DOUBT;
}

/* Judges the later level of `sides` against the earlier one, which a step went away from. */
static void judge(const struct sides *sides, double step, struct recovery *out)
{
	struct change between;
	double left;
	int sign = step > 0 ? 1 : -1;

	describe_step(
		&between, sides->values, NULL, 0, sides->before, sides->before + sides->after, 0);
	left = (between.level_after - between.level_before) / step;
	out->verdict = RECOVERY_NONE;
	if (!(left < MOST))
		return;
	out->verdict = RECOVERY_WAIT;
	out->few = sides->after < RECOVERY_LEAST;
	if (out->few || !(left <= NOTHING || reaches(sides, &between, sign)))
		return;
	out->verdict = RECOVERY_OVER;
	out->level = between.level_after;
	out->beyond = left < -MOST;
}

/* Where the level behind a change begins and ends. */
static size_t level_begins(const struct change *change)
{
	return change->kind == CHANGE_TREND && change->place_to > change->index ? change->place_to
										: change->index;
}

static size_t level_ends(const struct change *changes, size_t count, size_t which, size_t n)
{
	return which + 1 < count ? changes[which + 1].index : n;
}

static const struct recovery lasting = {.verdict = RECOVERY_NONE, .way = SIZE_MAX};

/* The first of the later levels that is back; else the last that seems to be. */
static struct recovery find_back(const double *values, size_t n, const struct change *changes,
	size_t count, size_t next, struct sides *sides, double step)
{
	struct recovery out = lasting;

	for (size_t i = next; i < count; i++) {
		struct recovery one = {.from = level_begins(&changes[i]), .way = i};

		/* Only what goes the other way brings back anything. */
		if (!((changes[i].level_after - changes[i].level_before) * step < 0))
			continue;
		take_after(sides, values, one.from, level_ends(changes, count, i, n));
		if (sides->after == 0)
			continue;
		judge(sides, step, &one);
		if (one.verdict == RECOVERY_OVER)
			return one;
		if (one.verdict == RECOVERY_WAIT && i + 1 == count)
			out = one;
	}
	return out;
}

struct recovery recovery_by_changes(
	const double *values, size_t n, const struct change *changes, size_t count, size_t which)
{
	const struct change *change = &changes[which];
	double step = change->level_after - change->level_before;
	size_t end = change->place_from < change->index ? change->place_from : change->index;
	size_t start = which > 0 ? changes[which - 1].index : 0;
	struct sides sides;

	if (step == 0 || !isfinite(step))
		return lasting;
	if (change->kind != CHANGE_TREND || end <= start)
		end = change->index;
	take_before(&sides, values, start, end);
	if (sides.before < 2)
		return lasting;
	return find_back(values, n, changes, count, which + 1, &sides, step);
}

struct recovery recovery_of_old(const double *values, size_t n, const struct change *changes,
	size_t count, double before, double after)
{
	double step = after - before;
	struct sides sides;

	/* Its level must have lasted to the first change: there is none between that is not known.
	 */
	if (count == 0 || step == 0 || !isfinite(step) ||
		fabs(changes[0].level_before - after) > MOST * fabs(step))
		return lasting;
	/* Of the values before only the level is known. */
	sides.before = RECOVERY_LEAST;
	for (size_t i = 0; i < sides.before; i++)
		sides.values[i] = before;
	return find_back(values, n, changes, count, 0, &sides, step);
}

/* A stretch of values that lies off what is around it. */
struct excursion {
	size_t from, to;
	double explained; /* of the squares around the level of before, its sign the direction's */
};

/* The stretch about the place, and beyond it, that explains most. */
static struct excursion search(
	const double *values, size_t place, size_t end, double level, int sign)
{
	size_t first = place > ASTRAY ? place - ASTRAY : 0, last = place + ASTRAY;
	struct excursion best = {0};

	for (size_t from = first; from <= last && from < end; from++) {
		double sum = 0;
		size_t count = 0;

		for (size_t i = from; i < end && i < from + RECOVERY_WIDEST; i++) {
			if (!isfinite(values[i]))
				continue;
			sum += values[i] - level;
			count++;
			if (i >= place && sum * sign > 0 &&
				sum * sum / (double)count > best.explained)
				best = (struct excursion){from, i + 1, sum * sum / (double)count};
		}
	}
	return best;
}

/* A robust deviation of both sides around their medians. */
static double spread_of(const struct sides *sides)
{
	size_t n = sides->before + sides->after;
	double sorted[2 * DESCRIBE_SIDE], sizes[2 * DESCRIBE_SIDE], sum = 0, spread;

	memcpy(sorted, sides->values, n * sizeof *sorted);
	double before = sort_median(sorted, sides->before);
	double after = sort_median(sorted + sides->before, sides->after);

	for (size_t i = 0; i < n; i++)
		sum += sizes[i] = fabs(sides->values[i] - (i < sides->before ? before : after));
	spread = 1.4826 * sort_median(sizes, n);
	return spread > 0 ? spread : sum / (double)n;
}

/* The nearest change before the place, and the first behind it. */
static void bounds_of(const struct change *changes, size_t count, size_t first, size_t place,
	size_t *start, size_t *end)
{
	for (size_t i = 0; i < count; i++) {
		if (changes[i].index < first)
			*start = changes[i].index;
		if (changes[i].index > place && changes[i].index < *end)
			*end = changes[i].index;
	}
}

/* The level before the place: a median, which the first values of an excursion do not move. */
static bool level_before(
	const double *values, size_t start, size_t end, struct sides *sides, double *level)
{
	double sorted[DESCRIBE_SIDE];

	take_before(sides, values, start, end);
	if (sides->before < RECOVERY_LEAST)
		return false;
	memcpy(sorted, sides->values, sides->before * sizeof *sorted);
	*level = sort_median(sorted, sides->before);
	return true;
}

/* The excursion was cut at its maximum length: the next values lie where it does. */
static bool goes_on(const struct sides *sides, double level, double step)
{
	size_t count = sides->after < RECOVERY_LEAST ? sides->after : RECOVERY_LEAST;

	return (moments_of(sides->values + sides->before, count).mean - level) / step >= MOST;
}

/* The announced change may have been estimated from values around it that are clipped to these
 * here: the step may be smaller by any share. */
static bool can_be(const struct told_step *told, double step, size_t width)
{
	return fabs(told->step) <= SHARE * fabs(step) && 2 * width >= told->followed;
}

struct recovery recovery_of_excursion(const double *values, size_t n, const struct change *changes,
	size_t count, const struct told_step *told)
{
	size_t place = told->place, first = place > ASTRAY ? place - ASTRAY : 0;
	size_t start = 0, end = n, next = n;
	int sign = told->step > 0 ? 1 : -1;
	struct recovery out = lasting;
	struct sides sides;
	double level, step;

	bounds_of(changes, count, first, place + ASTRAY, &start, &end);
	if (place >= n || !level_before(values, start, first, &sides, &level))
		return out;
	struct excursion found = search(values, place, end, level, sign);
	if (found.explained == 0)
		return out;
	/* Behind it come the values up to the next change; or, if it ended at that, from there on.
	 */
	for (size_t i = 0; i < count; i++)
		if (changes[i].index > found.to && changes[i].index < next)
			next = changes[i].index;
	take_before(&sides, values, start, found.from);
	take_after(&sides, values, found.to, next);
	if (sides.after == 0)
		return out;
	size_t width = count_values(values, found.from, found.to);
	step = sign * sqrt(found.explained / (double)width);
	if (found.explained < EVIDENCE * EVIDENCE * pow(spread_of(&sides), 2) ||
		!can_be(told, step, width) || goes_on(&sides, level, step))
		return out;
	out.from = found.to;
	judge(&sides, step, &out);
	return out;
}
