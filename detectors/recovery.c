/*
 * Two levels and the interval of their difference are described as a step between them would be
 * (detectors/describe.h), so that the decision agrees with the sizes that people see.
 */
#include "detectors/recovery.h"

#include <math.h>
#include <string.h>

#include "detectors/describe.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

/* Points by which the place of an excursion may be off. */
enum { PLACE_REACH = 5 };

/* Shares of the step: a remainder up to NOTHING counts as none, and it must be less than MOST_LEFT.
 * After a step to fifty times the level, NOTHING is more than that: it must be less than MOST_LEFT
 * of the old level, too. */
static const double NOTHING = 0.05, MOST_LEFT = 0.5;
/* Welch's p above which two levels may be equal. */
static const double EQUAL_P = 0.05;
/* Standard errors by which an excursion must stand out, about as for the announcement of a change;
 * and the factor by which it may be smaller than announced. */
static const double EVIDENCE = 4, MOST_SMALLER = 3;

/* The nearest existing values before and after something, at most DESCRIBE_SIDE on each side. */
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

/* Compares the later level of `sides` with the earlier one, from which the step went away. */
static void judge(const struct sides *sides, double step, struct recovery *out)
{
	struct change between;
	double before, rest, left;
	int sign = step > 0 ? 1 : -1;
	bool nothing; /* remains of the step, relative and absolute */
	bool reaches;

	describe_step(
		&between, sides->values, NULL, 0, sides->before, sides->before + sides->after, 0);
	before = between.level_before;
	rest = between.level_after - before;
	left = rest / step;
	nothing = left <= NOTHING && (before == 0 || fabs(rest) < MOST_LEFT * fabs(before));
	out->verdict = RECOVERY_NONE;
	if (!(left < MOST_LEFT))
		return;
	out->verdict = RECOVERY_WAIT;
	out->beyond = left < -MOST_LEFT;
	out->few = sides->after < RECOVERY_LEAST;
	/* Whether the interval of the difference includes the old level or lies beyond it */
	if (!isnan(between.size_low))
		reaches = sign > 0 ? between.size_low <= 0 : between.size_high >= 0;
	else
		reaches = ttest_welch(moments_of(sides->values, sides->before),
				  moments_of(sides->values + sides->before, sides->after))
				  .p > EQUAL_P;
	if (out->few || !(nothing || reaches))
		return;
	out->verdict = RECOVERY_OVER;
	out->level = between.level_after;
}

static const struct recovery lasting = {.verdict = RECOVERY_NONE, .way = SIZE_MAX};

/* Finds the first later level that is back; otherwise the last one, if it seems to be. `sides`
 * holds the values before the change. */
static struct recovery find_back(const double *values, size_t n, const struct change *changes,
	size_t count, size_t next, struct sides *sides, double step)
{
	struct recovery out = lasting;

	for (size_t i = next; i < count; i++) {
		const struct change *change = &changes[i];
		bool trend = change->kind == CHANGE_TREND && change->place_to > change->index;
		struct recovery one = {.from = trend ? change->place_to : change->index, .way = i};

		/* Only a change of the other direction can bring the level back. */
		if (!((change->level_after - change->level_before) * step < 0))
			continue;
		take_after(sides, values, one.from, i + 1 < count ? changes[i + 1].index : n);
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

	/* Its level must have lasted until the first change found. */
	if (count == 0 || step == 0 || !isfinite(step) ||
		fabs(changes[0].level_before - after) > MOST_LEFT * fabs(step))
		return lasting;
	/* The values before are gone; their level stands for them. */
	sides.before = RECOVERY_LEAST;
	for (size_t i = 0; i < sides.before; i++)
		sides.values[i] = before;
	return find_back(values, n, changes, count, 0, &sides, step);
}

/* A stretch of values that lies off the level around it. */
struct excursion {
	size_t from, to;
	double explained; /* sum of squares around the level before that its mean explains */
};

/* The stretch that begins near the place, reaches it, and explains the most. */
static struct excursion search(
	const double *values, size_t place, size_t end, double level, int sign)
{
	size_t first = place > PLACE_REACH ? place - PLACE_REACH : 0, last = place + PLACE_REACH;
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

/* The level before the place: a median, which the first values of an excursion do not move. False
 * if there are too few values. */
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

struct recovery recovery_of_excursion(const double *values, size_t n, const struct change *changes,
	size_t count, const struct told_step *told)
{
	size_t place = told->place, first = place > PLACE_REACH ? place - PLACE_REACH : 0;
	size_t start = 0, end = n, next = n, width = 0;
	int sign = told->step > 0 ? 1 : -1;
	struct recovery out = lasting;
	struct sides sides;
	double level, step;

	/* From the last change before the place to the next one behind it */
	for (size_t i = 0; i < count; i++) {
		if (changes[i].index < first)
			start = changes[i].index;
		if (changes[i].index > place + PLACE_REACH && changes[i].index < end)
			end = changes[i].index;
	}
	if (place >= n || !level_before(values, start, first, &sides, &level))
		return out;
	struct excursion found = search(values, place, end, level, sign);
	if (found.explained == 0)
		return out;
	/* The level behind it ends at the next change, other than one at the excursion's end. */
	for (size_t i = 0; i < count; i++)
		if (changes[i].index > found.to && changes[i].index < next)
			next = changes[i].index;
	take_before(&sides, values, start, found.from);
	take_after(&sides, values, found.to, next);
	if (sides.after == 0)
		return out;
	for (size_t i = found.from; i < found.to; i++)
		width += isfinite(values[i]) != 0;
	step = sign * sqrt(found.explained / (double)width);
	/* It may be smaller than announced, since the step may have been estimated from other
	 * values then. */
	if (found.explained < EVIDENCE * EVIDENCE * pow(spread_of(&sides), 2) ||
		fabs(told->step) > MOST_SMALLER * fabs(step) || 2 * width < told->followed)
		return out;
	/* If the next values still lie where it does, it was cut at its maximum length. */
	size_t few = sides.after < RECOVERY_LEAST ? sides.after : RECOVERY_LEAST;
	if ((moments_of(sides.values + sides.before, few).mean - level) / step >= MOST_LEFT)
		return out;
	out.from = found.to;
	judge(&sides, step, &out);
	return out;
}
