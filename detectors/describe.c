/*
 * Levels are means of values clipped to three robust deviations around their side's median. Their
 * variances are pulled towards the pooled one, as in the test of the default profile, and grow with
 * the lag-1 autocorrelation of the residuals. The set of places is that of a likelihood ratio:
 * narrow if the step is large against the noise, wide if it is small.
 */
#include "detectors/describe.h"

#include <math.h>
#include <string.h>

#include "detectors/sort.h"
#include "detectors/stats.h"

static const double OUTLIER = 3.5, MOST_CORRELATED = 0.9;
/* The constant c of the set of places: -2 ln(1 - sqrt(level)). */
static const double PLACE_95 = 7.352, PLACE_99 = 10.587;

/* By how much the constant falls for each deviation of the step's height, and what remains. */
static const double PER_DEVIATION = 0.9, LEAST_CONSTANT = 0.5;

double describe_magnitude(double before, double after)
{
	double up = before == 0 ? 0 : fabs(after / before - 1);
	double down = after == 0 ? 0 : fabs(before / after - 1);
	return up > down ? up : down;
}

struct sides {
	const double *values;
	size_t n, cut;
	struct moments before, after;
	double within;    /* sum of squares around the two means */
	double inflation; /* of the variance of means, by autocorrelation */
};

/* Where most values of a side are equal, values like those of the other side are no outliers, such
 * as the few ones among the zeros before a test fails often. */
static struct robust widened(struct robust side, struct robust other)
{
	if (side.tied)
		side.spread = fmax(side.spread,
			fmax(other.spread, fabs(other.median - side.median) / ROBUST_REACH));
	return side;
}

static struct sides sides_of(const double *values, size_t n, size_t cut)
{
	struct sides sides = {
		.values = values,
		.n = n,
		.cut = cut,
		.before = moments_of(values, cut),
		.after = moments_of(values + cut, n - cut),
		.inflation = 1,
	};
	sides.within = sides.before.squares + sides.after.squares;
	if (sides.within <= 0)
		return sides;
	double total = (double)n;
	double r =
		(moments_lagged(values, sides.before) + moments_lagged(values + cut, sides.after)) /
		sides.within;
	r += (2 + 3 * fmax(r, 0)) / total - 0.25 / sqrt(total);
	r = fmin(fmax(r, 0), MOST_CORRELATED);
	sides.inflation = (1 + r) / (1 - r);
	return sides;
}

/* The sum of squares that a split at `at` explains, the level included; `sum` is that of the values
 * before it. */
static double explained_at(double sum, double total, size_t at, size_t n)
{
	double rest = total - sum;
	return sum * sum / (double)at + rest * rest / (double)(n - at);
}

/* Writes the first and the last place whose split explains nearly as much as the best one. */
static void place_of(const struct sides *sides, double constant, size_t *from, size_t *to)
{
	const double *values = sides->values;
	size_t n = sides->n;
	double middle = values[0], total = 0, sum = 0, best = 0;
	*from = *to = sides->cut;
	for (size_t i = 0; i < n; i++)
		total += values[i] - middle;
	for (size_t at = 1; at < n; at++) {
		sum += values[at - 1] - middle;
		best = fmax(best, explained_at(sum, total, at, n));
	}
	double variance = n > 2 ? sides->within / (double)(n - 2) : 0;
	double height = fabs(sides->after.mean - sides->before.mean);
	/* Yao's constant is for a path in continuous time; one from point to point overshoots less,
	 * the less the higher the step is (Siegmund). */
	if (variance > 0)
		constant = fmax(LEAST_CONSTANT,
			constant - PER_DEVIATION * height / sqrt(variance * sides->inflation));
	double least = best - constant * variance * sides->inflation - 1e-9 * fabs(best);
	sum = 0;
	for (size_t at = 1; at < n; at++) {
		sum += values[at - 1] - middle;
		if (explained_at(sum, total, at, n) < least)
			continue;
		*from = at < *from ? at : *from;
		*to = at > *to ? at : *to;
	}
}

static double variance_of_mean(const struct sides *sides, struct moments side)
{
	double pooled = sides->within / (double)(sides->n - 2);
	return moments_moderated(side, pooled) / (double)side.n * sides->inflation;
}

/* The t of a two-sided 95% interval, to three digits: Cornish and Fisher's expansion. */
static double t_95(double df)
{
	double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z;
	return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) +
	       (3 * z5 * z * z + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
}

/* Whether the 95% interval of a level includes 0. */
static bool near_zero(double level, double variance, double t)
{
	return t * sqrt(fmax(0, variance)) >= fabs(level);
}

/* The interval is symmetric in the logarithm of the ratio; in the difference if the levels are not
 * of one sign, or one may as well be 0: there is no ratio then, or one without bounds. */
void describe_size(struct change *change, const struct levels *levels)
{
	double before = levels->before, after = levels->after;
	change->size = change->size_low = change->size_high = (double)NAN;
	if (before == 0)
		return;
	change->size = 100 * (after - before) / fabs(before);
	if (levels->df <= 0)
		return;
	double v1 = levels->variance_before, v2 = levels->variance_after, t = t_95(levels->df);
	if (before * after > 0 && !near_zero(before, v1, t) && !near_zero(after, v2, t)) {
		double ratio = after / before;
		double error = sqrt(fmax(0, v1 / (before * before) + v2 / (after * after) -
						    2 * levels->covariance / (before * after)));
		double low = 100 * (ratio * exp(-t * error) - 1);
		double high = 100 * (ratio * exp(t * error) - 1);
		change->size_low = before > 0 ? low : -high;
		change->size_high = before > 0 ? high : -low;
		return;
	}
	double error = 100 * t * sqrt(fmax(0, v1 + v2 - 2 * levels->covariance)) / fabs(before);
	change->size_low = fmax(change->size - error, levels->counts ? -100 : -HUGE_VAL);
	change->size_high = change->size + error;
}

static void set_size(struct change *change, const struct sides *sides)
{
	struct levels levels = {
		.before = sides->before.mean, .after = sides->after.mean, .counts = true};
	for (size_t i = 0; i < sides->n; i++)
		levels.counts = levels.counts && sides->values[i] >= 0;
	if (sides->n >= 4) {
		levels.variance_before = variance_of_mean(sides, sides->before);
		levels.variance_after = variance_of_mean(sides, sides->after);
		levels.df = fmax(2, ((double)sides->n - 2) / sides->inflation);
	}
	describe_size(change, &levels);
}

void describe_step(struct change *change, const double *values, const size_t *places, size_t start,
	size_t cut, size_t end, int unit)
{
	double near[2 * DESCRIBE_SIDE], room[DESCRIBE_SIDE];
	size_t from = cut - start > DESCRIBE_SIDE ? cut - DESCRIBE_SIDE : start;
	size_t to = end - cut > DESCRIBE_SIDE ? cut + DESCRIBE_SIDE : end;
	size_t first, last;
	memcpy(near, values + from, (to - from) * sizeof(double));
	size_t n1 = cut - from, n2 = to - cut;
	struct robust before = robust_of(near, n1, room), after = robust_of(near + n1, n2, room);
	robust_clip(near, n1, widened(before, after), near);
	robust_clip(near + n1, n2, widened(after, before), near + n1);
	struct sides sides = sides_of(near, n1 + n2, n1);
	change->kind = CHANGE_STEP;
	change->level_before = ldexp(sides.before.mean, -unit);
	change->level_after = ldexp(sides.after.mean, -unit);
	set_size(change, &sides);
	/* Values far from both levels say nothing about the place of the step: they count as the
	 * middle of the two, equally far from both. */
	double m1 = sides.before.mean, m2 = sides.after.mean;
	double reach = OUTLIER * (sides.n > 2 ? sqrt(sides.within / (double)(sides.n - 2)) : 0);
	for (size_t i = 0; i < sides.n; i++)
		if (fabs(values[from + i] - m1) > reach && fabs(values[from + i] - m2) > reach)
			near[i] = 0.5 * (m1 + m2);
	place_of(&sides, PLACE_95, &first, &last);
	change->place_from = places ? places[from + first] : from + first;
	change->place_to = places ? places[from + last] : from + last;
	place_of(&sides, PLACE_99, &first, &last);
	change->cause_from = places ? places[from + first] : from + first;
	change->cause_to = places ? places[from + last] : from + last;
}

/* A segmentation that knew the least magnitude would join levels separated by a step below it, and
 * so move, dilute or lose the steps beside it. */
size_t magnitude_filter(
	struct change *changes, size_t count, double least, struct tried_list *tried)
{
	if (count == 0 || least <= 0)
		return count;
	double last = changes[0].level_before;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &changes[i];
		double own = describe_magnitude(change->level_before, change->level_after);
		double magnitude = fmax(own, describe_magnitude(last, change->level_after));
		if (magnitude > least) {
			last = change->level_after;
			changes[kept++] = *change;
		} else if (tried) {
			tried_note(tried, &(struct tried){.index = change->index,
						  .fate = TRIED_MAGNITUDE,
						  .pvalue = change->pvalue,
						  .mean_before = change->level_before,
						  .mean_after = change->level_after,
						  .measure = "magnitude",
						  .measured = magnitude,
						  .limit = least});
		}
	}
	return kept;
}
