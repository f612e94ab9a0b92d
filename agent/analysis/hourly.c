/*
 * How long the memory is follows from how far hours' means move in a quarter of a day, against how
 * far points do: if points are independent, the ratio of the variances, times the points of an
 * hour, is about 1, and after a week below MEMORY_MOST in 99 of 100 series.
 */
#include "agent/analysis/hourly.h"

#include <math.h>

#include "agent/analysis/analysis.h"
#include "detectors/sort.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

enum {
	LEAST_PER_HOUR = 3,
	LEAST_ABRUPT = 3,
};

/* The ratio above which a series is judged by the hour. */
static const double MEMORY_MOST = 1.75;
/* How far beyond the record, from its median, a value is abrupt. */
static const double BEYOND = 1.5;
/* How long values must have been abrupt, how long they may be until only hours count, and how much
 * of the record counts. */
#define ABRUPT_LEAST (20 * MINUTE)
#define ABRUPT_MOST (4 * HOUR)
#define RECORD_LEAST DAY
#define RECORD_MOST (7 * DAY)

static int64_t hour_of(int64_t time)
{
	int64_t into = time % HOUR;

	return time - (into < 0 ? into + HOUR : into);
}

/* The existing points of a series; `z` are values, or logarithms if all are positive. */
struct points_of {
	size_t n;
	int64_t *times;
	double *z;
};

static struct points_of points_of(struct arena *arena, const struct series *series, size_t from)
{
	size_t room = series->axis->n - from;
	struct points_of out = {.times = arena_array(arena, room, sizeof *out.times),
		.z = arena_array(arena, room, sizeof *out.z)};
	bool positive = true;

	for (size_t i = from; i < series->axis->n; i++) {
		if (!isfinite(series->values[i]))
			continue;
		positive &= series->values[i] > 0;
		out.times[out.n] = series->axis->times[i];
		out.z[out.n++] = series->values[i];
	}
	for (size_t i = 0; positive && i < out.n; i++)
		out.z[i] = log(out.z[i]);
	return out;
}

/* The value at that time, NaN if there is none; `at` is where the last search ended. */
static double value_at(const struct points_of *points, int64_t time, int64_t step, size_t *at)
{
	while (*at < points->n && points->times[*at] < time - step / 2)
		++*at;
	return *at < points->n && points->times[*at] <= time + step / 2 ? points->z[*at]
									: (double)NAN;
}

/* How far a quarter of a day typically departs from the day before; daily cycles and single steps
 * do not count. NaN if there is none. */
static double difference_of(struct arena *arena, const struct points_of *points, int64_t step)
{
	double *apart = arena_array(arena, points->n, sizeof *apart), mean = 0, median;
	size_t count = 0, at[3] = {0};

	for (size_t i = 0; i < points->n; i++) {
		int64_t time = points->times[i];
		double moved = points->z[i] - value_at(points, time - DAY / 4, step, &at[0]) -
			       value_at(points, time - DAY, step, &at[1]) +
			       value_at(points, time - DAY - DAY / 4, step, &at[2]);

		if (!isfinite(moved))
			continue;
		apart[count] = fabs(moved);
		mean += apart[count++];
	}
	if (count == 0)
		return (double)NAN;
	median = sort_median(apart, count);
	return median > 0 ? median : mean / (double)count;
}

static double memory_of(struct arena *arena, const struct points_of *points, int64_t step)
{
	struct points_of hours = {.times = arena_array(arena, points->n, sizeof *hours.times),
		.z = arena_array(arena, points->n, sizeof *hours.z)};
	double ratio;

	for (size_t i = 0; i < points->n;) {
		int64_t hour = hour_of(points->times[i]);
		size_t first = i;
		double sum = 0;

		while (i < points->n && points->times[i] < hour + HOUR)
			sum += points->z[i++];
		if (2 * step * (int64_t)(i - first) < HOUR)
			continue;
		hours.times[hours.n] = hour;
		hours.z[hours.n++] = sum / (double)(i - first);
	}
	ratio = difference_of(arena, &hours, HOUR) / difference_of(arena, points, step);
	return ratio * ratio * (double)HOUR / (double)step;
}

void pace_settle(struct pace *pace, const struct detection *detection, const struct series *series,
	int64_t since, struct scratch *scratch)
{
	const struct axis *axis = series->axis;
	int64_t hour =
		hour_of(since + HOUR - 1); /* an anchor becomes that of the first whole one */
	int64_t age = axis->n > 0 ? axis->times[axis->n - 1] - hour : 0;
	int days = age >= 7 * DAY ? 7 : age >= 2 * DAY ? 2 : 0;
	size_t from = axis_lower_bound(axis, hour), end;
	int64_t step;
	struct findings findings;
	struct arena *arena;
	struct season season;
	struct points_of points;
	struct axis first;
	struct series part = *series;

	if (pace->settled && pace->since == hour && pace->days == days)
		return;
	*pace = (struct pace){.settled = true, .since = hour, .days = days};
	end = axis_lower_bound(axis, hour + days * DAY);
	if (end < from + SEASON_LEAST)
		return;
	season = season_fit(SEASON_NONE, (struct season_clock){0}, 0, series->values + from,
		axis->times + from, end - from, scratch);
	step = season.step;
	season_free(&season);
	/* The series must wait as services do, and by default. */
	findings = (struct findings){.series = series, .season = {.step = step}};
	if (step == 0 || step > HOUR / LEAST_PER_HOUR || !analysis_is_own(detection) ||
		!analysis_is_service(detection, &findings))
		return;
	arena = arena_new();
	first = *axis;
	first.n = end;
	part.axis = &first;
	points = points_of(arena, &part, from);
	pace->memory = memory_of(arena, &points, step);
	pace->step = pace->memory > MEMORY_MOST ? step : 0;
	arena_free(arena);
}

/* The time from which on all values lie far above, or below, everything before; INT64_MAX if they
 * do not. `sign` is the side. */
static int64_t abrupt_since(const struct points_of *points, int64_t step, double sign, double *room)
{
	size_t n = points->n, most = (size_t)(ABRUPT_MOST / step), begin = n > most ? n - most : 0;
	size_t record = (size_t)(RECORD_MOST / step), low = begin > record ? begin - record : 0;
	double median, extreme = -HUGE_VAL, least = HUGE_VAL;

	if ((int64_t)(begin - low) * step < RECORD_LEAST)
		return INT64_MAX;
	for (size_t i = low; i < begin; i++) {
		room[i - low] = sign * points->z[i];
		extreme = fmax(extreme, room[i - low]);
	}
	median = sort_median(room, begin - low);
	for (size_t i = n; i > begin; i--)
		room[i - 1 - begin] = least = fmin(least, sign * points->z[i - 1]);
	for (size_t i = begin; i + LEAST_ABRUPT <= n; i++) {
		if (room[i - begin] > median + BEYOND * (extreme - median) &&
			points->times[n - 1] + step - points->times[i] >= ABRUPT_LEAST)
			return points->times[i];
		extreme = fmax(extreme, sign * points->z[i]);
	}
	return INT64_MAX;
}

static double mean_of(const double *values, size_t n, size_t least)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			sum += values[i];
			count++;
		}
	return count >= least && count > 0 ? sum / (double)count : (double)NAN;
}

/* An axis with room for n points and the columns of another. */
static struct axis *make_axis(struct arena *arena, const struct axis *like, size_t n)
{
	struct axis *axis = arena_alloc(arena, sizeof *axis);

	*axis = *like;
	axis->n = 0;
	axis->times = arena_array(arena, n, sizeof *axis->times);
	axis->columns = arena_array(arena, like->column_count, sizeof *axis->columns);
	for (size_t i = 0; i < like->column_count; i++)
		axis->columns[i] = (struct column){like->columns[i].name,
			arena_array(arena, n, sizeof *axis->columns[i].values)};
	return axis;
}

/* Adds the point that rows [from, to) make: each attribute is the last one that is known. */
static void add_point(struct series *out, const struct series *in, size_t from, size_t to,
	int64_t time, double value)
{
	struct axis *axis = out->axis;

	for (size_t c = 0; c < axis->column_count; c++)
		for (size_t i = to; i > from && !axis->columns[c].values[axis->n]; i--)
			axis->columns[c].values[axis->n] = in->axis->columns[c].values[i - 1];
	axis->times[axis->n] = time;
	out->values[axis->n++] = value;
}

const struct series *pace_apply(
	struct arena *arena, const struct pace *pace, const struct series *series)
{
	const struct axis *axis = series->axis;
	int64_t step = pace->step, abrupt, down;
	struct points_of points;
	struct arena *room;
	struct series *out;
	double *buffer;
	size_t n = axis->n, least;

	if (step == 0 || n == 0)
		return series;
	room = arena_new();
	points = points_of(room, series, 0);
	buffer = arena_array(room, points.n, sizeof *buffer);
	abrupt = abrupt_since(&points, step, 1, buffer);
	down = abrupt_since(&points, step, -1, buffer);
	abrupt = down < abrupt ? down : abrupt;
	arena_free(room);
	least = (size_t)((HOUR + 2 * step - 1) / (2 * step));
	out = arena_alloc(arena, sizeof *out);
	*out = *series;
	out->axis = make_axis(arena, axis, n);
	out->values = arena_array(arena, n, sizeof *out->values);
	out->pooled = step;
	out->window.on += HOUR - step;
	for (size_t from = 0, to; from < n; from = to) {
		int64_t hour = hour_of(axis->times[from]), end = hour + HOUR;
		bool whole;

		for (to = from; to < n && axis->times[to] < end;)
			to++;
		whole = (from > 0 || axis->times[0] - hour < step) &&
			(to < n || axis->times[n - 1] + step + step / 4 >= end) && end <= abrupt;
		if (whole)
			add_point(out, series, from, to, hour,
				mean_of(series->values + from, to - from, least));
		for (size_t i = from; i < to; i++)
			if (axis->times[i] >= abrupt)
				add_point(out, series, i, i + 1, axis->times[i], series->values[i]);
	}
	return out;
}

const struct series *hourly_series(struct arena *arena, const struct detection *detection,
	const struct series *series, int64_t since, struct scratch *scratch)
{
	struct pace pace = {0};

	if (series->axis->n == 0)
		return series;
	pace_settle(&pace, detection, series,
		since > series->axis->times[0] ? since : series->axis->times[0], scratch);
	return pace_apply(arena, &pace, series);
}

const struct series *hourly_other(
	struct arena *arena, const struct series *series, const struct series *other)
{
	const struct axis *axis = series->axis, *from = other->axis;
	struct series *out;

	if (!series->pooled || from == axis || from->n < 2 ||
		from->times[from->n - 1] - from->times[0] > (int64_t)(from->n - 1) * HOUR / 2)
		return other;
	out = arena_alloc(arena, sizeof *out);
	*out = *other;
	out->axis = series->axis;
	out->values = arena_array(arena, axis->n, sizeof *out->values);
	for (size_t i = 0; i < axis->n; i++) {
		int64_t time = axis->times[i];
		bool hour = hour_of(time) == time &&
			    (i + 1 == axis->n || axis->times[i + 1] - time >= HOUR);
		size_t first = axis_lower_bound(from, time);
		size_t end = axis_lower_bound(from, time + (hour ? HOUR : series->pooled));

		out->values[i] = mean_of(other->values + first, end - first, 1);
	}
	return out;
}
