/*
 * All is measured in heights of the step: h = (z - moving median) / step, z being a logarithm, or a
 * square root where zeros occur. The sizes of the step and of windows as long as its duration are
 * estimated in AR(1) noise: a sudden onset counts more than gradual growth. Windows that are nearly
 * as large as the step are episodes. The constants: docs/design/algorithms.md section 5.
 */
#include "detectors/precedent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/series.h"
#include "detectors/sort.h"

enum {
	BEFORE = 100,       /* values that the level before the step is taken from */
	MOST = 1440,        /* values before the step that are looked at */
	ONE = 3,            /* to have lasted longer than single values takes more than so many */
	LEAST_HISTORY = 50, /* below which nothing is known */
	NEAR = 24,          /* values before the step that are of the same kind of day */
	LEAST_BEFORE = 20,
	NEW = 14,   /* days: no weekly cycle can be known yet */
	YOUNG = 21, /* days: a weekly cycle may not be known yet */
};

/* Widths of the moving median, which follows movements of half that length: for short ones and for
 * long ones. */
enum { NARROW = 101, WIDE = 301 };

#define DAY INT64_C(86400000)
#define LONGEST_DAY (DAY + DAY / 2) /* how long a holiday may take to be over */

/* The size of an episode, at least, as a share of the step's; its mean height, at most; and how
 * much one value may add to either. */
static const double LEAST_SHARE = 0.85, MOST_HEIGHT = 2.2, MOST_ONE = 1.25, MOST_OF_ALL = 8;
static const double MOST_CORRELATED = 0.9;
/* How far off the step's end an earlier week may be, in steps. */
static const double SAME = 0.5;
/* Steps below this share of the level are small. */
static const double SMALL = 0.04;

const char *const precedent_reasons[] = {
	[PRECEDENT_NONE] = "the series has had no similar passing movement before",
	[PRECEDENT_SMALL] = "it is below 4%, and waits until it has lasted for 150 points",
	[PRECEDENT_PASSED] =
		"the series has had passing movements of the same size and duration before",
	[PRECEDENT_SUNDAY] = "the day passes as a Sunday so far, as a holiday does",
	[PRECEDENT_BACK] = "its newest value is back at the level before",
	[PRECEDENT_WEEKLY] = "earlier days had the same level at these hours",
};

static double median_of(const double *values, size_t n, double *buffer)
{
	memcpy(buffer, values, n * sizeof *buffer);
	return sort_median(buffer, n);
}

static size_t place_in(const double *sorted, size_t n, double value)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Centred moving medians of z; those of the last places are `last`, those of the first the first
 * whole window's. */
static void moving_medians(const double *z, size_t n, size_t width, double last, double *out)
{
	double sorted[WIDE];
	size_t half = width / 2;

	for (size_t i = n > half ? n - half : 0; i < n; i++)
		out[i] = last;
	if (n < width) {
		for (size_t i = 0; i < n; i++)
			out[i] = last;
		return;
	}
	memcpy(sorted, z, width * sizeof *sorted);
	sort_sort(sorted, width);
	for (size_t i = 0; i + width <= n; i++) {
		if (i > 0) {
			size_t at = place_in(sorted, width, z[i - 1]);

			memmove(sorted + at, sorted + at + 1, (width - at - 1) * sizeof *sorted);
			at = place_in(sorted, width - 1, z[i + width - 1]);
			memmove(sorted + at + 1, sorted + at, (width - at - 1) * sizeof *sorted);
			sorted[at] = z[i + width - 1];
		}
		if (i + half < n - half)
			out[i + half] = sorted[half];
	}
	for (size_t i = 0; i < half; i++)
		out[i] = out[half];
}

/* The lag-1 autocorrelation of normal values whose neighbours have the same sign as often. */
static double correlation_of(const double *heights, size_t n)
{
	double same = 0;

	for (size_t i = 1; i < n; i++)
		same += (double)((heights[i] > 0) - (heights[i] < 0)) *
			(double)((heights[i - 1] > 0) - (heights[i - 1] < 0));
	return fmin(fmax(sin(asin(1) * same / (double)(n - 1)), 0), MOST_CORRELATED);
}

/* The least-squares size of a step at the first of m values in AR(1) noise, from the first one's
 * innovation and the sum of all: at r = 0 the mean. */
static double size_of(double first, double sum, size_t m, double r)
{
	return (r * first + (1 - r) * sum) / (1 + (double)(m - 1) * (1 - r) * (1 - r));
}

/* Whether a window of m of the heights has at least that size. */
static bool has_episode(const double *heights, const double *innovations, size_t n, size_t m,
	double r, double least)
{
	double sum = 0, whole = 0;

	for (size_t i = 0; i < n; i++) {
		sum += innovations[i];
		whole += fmin(heights[i], MOST_OF_ALL);
		if (i + 1 < m)
			continue;
		size_t first = i + 1 - m;
		if (size_of(innovations[first], sum, m, r) >= least &&
			whole <= MOST_HEIGHT * (double)m)
			return true;
		sum -= innovations[first];
		whole -= fmin(heights[first], MOST_OF_ALL);
	}
	return false;
}

/* Whether the first n heights of a step have an episode of `width` that compares with the m behind
 * them; `innovations` has room for all. A step that does not show waits. */
static bool is_like_before(
	const double *heights, size_t n, size_t m, size_t width, double *innovations)
{
	double r = correlation_of(heights, n), before = 0, sum = 0;

	for (size_t i = 0; i < n + m; i++) {
		double height = fmin(heights[i], MOST_ONE);

		innovations[i] = height - r * before;
		sum += i < n ? 0 : innovations[i];
		before = height;
	}
	double size = size_of(innovations[n], sum, m, r);
	return !(size > 0) || has_episode(heights, innovations, n, width, r, LEAST_SHARE * size);
}

/* Moving medians of the k values of z before a step whose level before, from `low` on, is `level`.
 * They do not follow a step at `low`; `buffer` has room for k. */
static void follow(const double *z, size_t low, size_t k, size_t width, double level,
	double *buffer, double *out)
{
	size_t before = low < BEFORE ? low : BEFORE;

	if (k - low >= BEFORE || low == 0) {
		moving_medians(z, k, width, level, out);
		return;
	}
	moving_medians(z, low, width, median_of(z + low - before, before, buffer), out);
	for (size_t i = low; i < k; i++)
		out[i] = level;
}

/* Whether what passed before `place`, and lasted for `width` values, is like the m values behind
 * it; its level before begins at `low`. */
static bool has_passed(const double *values, size_t low, size_t place, size_t m, size_t width)
{
	size_t first = place > MOST ? place - MOST : 0, k = place - first;
	double *z, *heights, *buffer, level, step, least = HUGE_VAL;
	bool passed = false;

	if (k < LEAST_HISTORY || m > k / 2)
		return false;
	low -= first;
	z = memory_new(3 * (k + m), sizeof *z);
	heights = z + k + m;
	buffer = heights + k + m;
	values += first;
	for (size_t i = 0; i < k + m; i++)
		least = fmin(least, values[i]);
	for (size_t i = 0; i < k + m; i++) /* on the scale on which heights are compared */
		z[i] = least > 0    ? log(values[i])
		       : least >= 0 ? sqrt(values[i] + 0.375)
				    : values[i];
	level = median_of(z + low, k - low, buffer);
	step = median_of(z + k, m, buffer) - level;
	for (size_t median = m < PRECEDENT_SHORT ? NARROW : WIDE;
		fabs(step) > 1e-9 && !passed && median <= WIDE; median += WIDE - NARROW) {
		follow(z, low, k, median, level, buffer, heights);
		for (size_t i = 0; i < k + m; i++)
			heights[i] = fmax((z[i] - (i < k ? heights[i] : level)) / step, -1);
		passed = is_like_before(heights, k, m, width, buffer);
	}
	free(z);
	return passed;
}

/* Whether the values so long before those from `place` on have the level `after`, which is that far
 * from `step` being all of it; -1: there are none. */
static int had_level(const double *values, const int64_t *times, size_t n, size_t place,
	int64_t earlier, double after, double step)
{
	size_t m = n - place, from = times_lower_bound(times, n, times[place] - earlier);
	size_t to = times_lower_bound(times, n, times[n - 1] - earlier + 1);
	double buffer[PRECEDENT_LONG], then;

	if (from == 0)
		return -1;
	if (to < from + (m + 1) / 2 || to > place || to - from > PRECEDENT_LONG)
		return 0;
	then = median_of(values + from, to - from, buffer);
	return then > 0 && fabs(log(after / then)) <= SAME * fabs(step);
}

/* Whether each of the last weeks had the level behind the step at the same hours; of a series that
 * is younger than three weeks, any day. The step is measured against the values near it, which are
 * of the same kind of day. */
static bool is_weekly(const double *values, const int64_t *times, size_t n, size_t place)
{
	size_t near = place > NEAR ? place - NEAR : 0;
	bool young = times[place] - times[0] < YOUNG * DAY;
	double buffer[PRECEDENT_LONG], before, after, step;

	if (place < LEAST_BEFORE)
		return false;
	before = median_of(values + near, place - near, buffer);
	after = median_of(values + place, n - place, buffer);
	if (!(before > 0) || !(after > 0))
		return false;
	step = log(after / before);
	for (int day = young ? 1 : 7; day <= 14; day += young ? 1 : 7) {
		int had = had_level(values, times, n, place, day * DAY, after, step);

		if (had < 0)
			return !young && day > 7;
		if ((had > 0) == young)
			return young;
	}
	return !young;
}

/* The verdict by the step's size and its newest value, and by its level as that of a Sunday. */
static enum precedent_verdict judge_size(const double *values, const int64_t *times, size_t n,
	size_t low, size_t place, const double *sunday)
{
	double buffer[PRECEDENT_LONG], before, after;

	before = median_of(values + low, place - low, buffer);
	after = median_of(values + place, n - place, buffer);
	if (fabs(after - before) < SMALL * fabs(before))
		return PRECEDENT_SMALL;
	if (fabs(values[n - 1] - before) < fabs(values[n - 1] - after))
		return PRECEDENT_BACK;
	if (sunday && times[n - 1] < times[place] + LONGEST_DAY &&
		fabs(median_of(sunday, n - place, buffer) - before) < SAME * fabs(after - before))
		return PRECEDENT_SUNDAY;
	return PRECEDENT_NONE;
}

enum precedent_verdict precedent_of(const double *values, const int64_t *times, size_t n,
	size_t begin, size_t place, const double *sunday, bool cut)
{
	enum precedent_verdict verdict;
	size_t low = place > BEFORE ? place - BEFORE : 0;

	if (begin > low && begin + LEAST_BEFORE <= place)
		low = begin;
	if (place == 0 || place >= n || n - place >= PRECEDENT_LONG)
		return PRECEDENT_NONE;
	verdict = judge_size(values, times, n, low, place, sunday);
	if (verdict != PRECEDENT_NONE)
		return verdict;
	if (is_weekly(values, times, n, place))
		return PRECEDENT_WEEKLY;
	/*
	 * What passed before must have lasted nearly as long as the step by now. Two weeks have
	 * seen too little to tell by that: until a day is over two values do.
	 */
	size_t m = n - place;
	bool young = !cut && times[place] < times[0] + NEW * DAY;
	bool early = young && times[n - 1] < times[place] + DAY;
	return has_passed(values, low, place, m,
		       m <= ONE ? 1
		       : early  ? 2
				: m - 1)
		       ? PRECEDENT_PASSED
		       : PRECEDENT_NONE;
}
