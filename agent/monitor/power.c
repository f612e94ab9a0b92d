/*
 * Of the records of a run only those of one series are kept, and updates are applied here as the
 * store would apply them.
 *
 * A replay begins with the history up to some points before the place. That history is old:
 * changes in it were announced when they came, so that their ends are announced as ends. Then
 * points arrive one by one. Those before the place are not counted, but a change reaching back to
 * them is news, as in the agent. Other series of the test are left out: they only count where
 * their number matters for the false discovery rate (fdr), and one of them is read if this series
 * is judged by it.
 *
 * Sizes are tried from the largest down, until one is not announced. At most 2 x 11 replays of 27
 * points.
 */
#include "agent/monitor/power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/match.h"
#include "agent/monitor/series_cache.h"
#include "detectors/confirm.h"
#include "detectors/online_eval.h"
#include "detectors/scratch.h"

const double power_sizes[POWER_SIZES] = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50};

/* How many points a level is taken from; a level nearer to 0 than so many typical deviations is
 * near 0. */
enum { LEVEL_POINTS = 50, NEAR_CHANGE = 25, POINTS_BEFORE = 3 };
static const double NEAR_ZERO = 2;

/* One replay. */
struct course {
	const struct power_request *ask;
	struct arena *arena;
	struct series_cache *cache;
	struct dataset seen; /* the series, and the one that it is judged by */
	struct dataset
		all;      /* for fdr: the number of series counts; the first are those in `seen` */
	struct axis *own; /* the series' own axis, which grows */
	struct change_record *known; /* in order of id */
	size_t known_count, known_room;
	int64_t last_id;
};

static bool is_same(const struct series *one, const struct series *other)
{
	return other && strcmp(one->identity, other->identity) == 0;
}

static bool begin_course(struct course *course, const struct power_request *ask,
	const double *values, struct error *error)
{
	const struct series *series = ask->series, *other; /* by which it is judged */
	const struct control_rule *rule;
	struct series *items;
	struct axis *own;
	size_t n = 0;

	*course = (struct course){.ask = ask, .arena = arena_new(), .cache = series_cache_make()};
	series_cache_restore(course->cache, NULL, 0);
	if (!analysis_other(course->arena, ask->test, ask->data, ask->companions, series,
		    analysis_configured(ask->test, series->metric), &rule, &other, error))
		return false;
	if (rule && rule->test != ask->test)
		other = NULL;
	items = arena_array(course->arena, ask->data->count + 2, sizeof *items);
	course->own = own = arena_alloc(course->arena, sizeof *own);
	*own = *series->axis;
	own->times += ask->front;
	own->n -= ask->front;
	own->columns = arena_array(course->arena, own->column_count, sizeof *own->columns);
	for (size_t i = 0; i < own->column_count; i++)
		own->columns[i] = (struct column){series->axis->columns[i].name,
			series->axis->columns[i].values + ask->front};
	items[n] = *series;
	items[n].axis = course->own;
	items[n++].values = arena_array(course->arena, course->own->n, sizeof *values);
	memcpy(items[0].values, values + ask->front, course->own->n * sizeof *values);
	if (other && other->axis == series->axis) {
		items[n] = *other;
		items[n].axis = course->own;
		items[n++].values = other->values + ask->front;
	} else if (other) {
		items[n++] = *other;
	}
	course->seen = (struct dataset){items, n};
	for (size_t i = 0; i < ask->data->count; i++)
		if (!is_same(&ask->data->series[i], series) &&
			!is_same(&ask->data->series[i], other))
			items[n++] = ask->data->series[i];
	course->all = (struct dataset){items, n};
	return true;
}

static struct change_record *known_by_id(struct course *course, int64_t id)
{
	for (size_t i = 0; i < course->known_count; i++)
		if (course->known[i].item.id == id)
			return &course->known[i];
	return NULL;
}

static void keep(struct course *course, const struct change_record *record)
{
	struct change_record *known =
		record->confirmed ? known_by_id(course, record->item.id) : NULL;
	int64_t first_seen = known ? known->first_seen : record->first_seen;

	if (!known) {
		course->known = memory_grow(course->known, &course->known_room,
			course->known_count + 1, sizeof *course->known);
		known = &course->known[course->known_count++];
	}
	*known = *record;
	known->first_seen = first_seen;
	if (!record->confirmed)
		known->item.id = ++course->last_id;
	known->confirmed = false;
}

static void follow(struct course *course, const struct change_record_update *update)
{
	struct change_record *known = known_by_id(course, update->id);

	if (!known)
		return;
	if (update->item) {
		int64_t id = known->item.id;

		known->item = *update->item;
		known->item.id = id;
	}
	if (update->state == CHANGE_WITHDRAWN && known->news == NOTIFY_PENDING)
		known->news = NOTIFY_HELD;
	known->state = update->state;
	known->item.over = update->over;
	known->item.time = update->time;
	if (update->runs > 0)
		known->runs = update->runs;
	if (update->reason)
		known->reason = update->reason;
	known->held_until = update->held_until;
}

/* Runs the agent's detection and matching on the points so far; in the first run everything
 * is old. */
static bool run_course(struct course *course, bool first, struct error *error)
{
	const struct power_request *ask = course->ask;
	struct analysis analysis, whole;
	struct realignment **realignments, **all_realignments;
	struct store_record *request;
	int64_t now = course->own->times[course->own->n - 1];
	struct news_clock clock = {.now = now,
		.oldest = first                        ? WHEN_NEVER
			  : ask->max_age == WHEN_NEVER ? WHEN_ALWAYS
						       : now - ask->max_age};

	series_cache_begin(course->cache, now, 0);
	if (!series_cache_detect(course->cache, course->arena, ask->test, &course->seen,
		    ask->companions, ask->scratch, &analysis, &realignments, error))
		return false;
	whole = (struct analysis){ask->test, &course->all,
		arena_array(course->arena, course->all.count, sizeof *whole.findings)};
	all_realignments = arena_array(course->arena, course->all.count, sizeof *all_realignments);
	for (size_t i = 0; i < course->all.count; i++)
		whole.findings[i].series = &course->all.series[i];
	whole.findings[0] = analysis.findings[0];
	all_realignments[0] = realignments[0];
	request = store_record_new(NULL, NULL);
	news_find(&whole, all_realignments, course->known, course->known_count, &clock, request);
	for (size_t i = 0; i < request->update_count; i++)
		follow(course, &request->updates[i]);
	for (size_t i = 0; i < request->records.count; i++)
		keep(course, &request->records.items[i]);
	for (size_t i = 0; first && i < course->known_count; i++)
		if (course->known[i].state == CHANGE_CONFIRMED)
			course->known[i].news = NOTIFY_QUEUED;
	arena_join(course->arena, request->call.arena);
	request->call.arena = arena_new();
	store_call_free(&request->call);
	series_cache_recorded(course->cache, true);
	return true;
}

/* The record of the change nearest to the place. */
static const struct change_record *near(
	const struct course *course, size_t place, int sign, int64_t old_id)
{
	const struct change_record *best = NULL;
	size_t least = CHANGE_TOLERANCE + 1;

	for (size_t i = 0; i < course->known_count; i++) {
		const struct change_record *record = &course->known[i];
		size_t at = axis_lower_bound(course->own, record->item.time);
		size_t far = at > place ? at - place : place - at;

		if (record->item.id <= old_id || (sign != 0 && record->sign != sign) ||
			far >= least)
			continue;
		least = far;
		best = record;
	}
	return best;
}

static void note(struct arrival *out, const struct change_record *record)
{
	bool gone =
		!record || record->state == CHANGE_WITHDRAWN || record->state == CHANGE_RECOVERED;

	if (out->found > 0 && gone && out->lost == 0)
		out->lost = out->seen;
	if (gone)
		return;
	out->lost = 0;
	if (out->found == 0) {
		out->found = out->seen;
		out->pvalue = record->item.change.pvalue;
	}
	out->waits = record->state == CHANGE_CANDIDATE;
	out->reason = record->reason;
	out->held_until = record->held_until;
	out->back = record->covered;
	if (out->told == 0 && record->state != CHANGE_CANDIDATE && record->news == NOTIFY_PENDING) {
		out->told = out->seen;
		out->pvalue = record->item.change.pvalue;
	}
}

bool power_arrive(const struct power_request *ask, const double *values, size_t place,
	size_t points, int sign, struct arrival *out, struct error *error)
{
	struct course course;
	size_t n = ask->series->axis->n, at = place - ask->front;
	bool good;
	int64_t old;

	*out = (struct arrival){.pvalue = (double)NAN};
	if (place < ask->front + ONLINE_FIRST)
		return true;
	good = begin_course(&course, ask, values, error);
	if (good) {
		course.own->n = at >= ONLINE_FIRST + POINTS_BEFORE ? at - POINTS_BEFORE : at;
		good = run_course(&course, true, error);
	}
	old = course.last_id;
	while (good && course.own->n < at)
		if (!isnan(values[ask->front + course.own->n++]))
			good = run_course(&course, false, error);
	for (size_t end = place; good && end < n && out->seen < points; end++) {
		course.own->n = at + (end - place) + 1;
		if (isnan(values[end]))
			continue;
		out->cut = ask->limit > 0 && scratch_done(ask->scratch) > ask->limit;
		if (out->cut)
			break;
		out->seen++;
		good = run_course(&course, false, error);
		if (good)
			note(out, near(&course, at, sign, old));
		if (sign != 0 && out->back && out->told == 0)
			out->told = out->seen; /* the change that it ends is announced as over */
		if (sign != 0 && out->told > 0)
			break;
	}
	out->reason = ask->arena ? arena_strdup(ask->arena, out->reason) : NULL;
	series_cache_free(course.cache);
	arena_free(course.arena);
	free(course.known);
	return good;
}

/* The level before the place, to which the percentage of a step relates; *added: whether the base
 * differs from the level. */
static double size_of(const double *values, size_t front, size_t place, double *level, bool *added)
{
	double near_values[LEVEL_POINTS], apart[LEVEL_POINTS], size = 0;
	size_t n = 0;

	for (size_t i = place; i > front && n < LEVEL_POINTS; i--)
		if (isfinite(values[i - 1]))
			near_values[n++] = values[i - 1];
	if (n == 0)
		return 0;
	qsort(near_values, n, sizeof *near_values, order_numbers);
	*level = near_values[n / 2];
	for (size_t i = 0; i < n; i++) {
		apart[i] = fabs(near_values[i] - *level);
		size += fabs(near_values[i]) / (double)n;
	}
	qsort(apart, n, sizeof *apart, order_numbers);
	*added =
		fabs(*level) < NEAR_ZERO * apart[n / 2] || near_values[0] * near_values[n - 1] <= 0;
	return *added ? size : fabs(*level);
}

/* Removes steps near the place from the values: everything after them moves to the level before. */
static bool even(double *values, size_t n, size_t place, const struct change *found, size_t count)
{
	bool evened = false;

	for (size_t i = 0; i < count; i++) {
		const struct change *change = &found[i];
		bool same = change->level_before * change->level_after > 0;

		if (change->kind != CHANGE_STEP || change->index + NEAR_CHANGE < place ||
			change->index > place + POWER_POINTS)
			continue;
		for (size_t k = change->index; k < n; k++)
			values[k] = same ? values[k] * (change->level_before / change->level_after)
					 : values[k] + change->level_before - change->level_after;
		evened = true;
	}
	return evened;
}

static bool try_sizes(const struct power_request *ask, const double *values, struct power *power,
	int sign, double size, struct power_side *out, struct error *error)
{
	size_t n = ask->series->axis->n;
	double *stepped = memory_new(n, sizeof *stepped);
	bool good = true;

	out->smallest = (double)NAN;
	good = power_arrive(ask, values, power->place, POWER_POINTS, sign, &out->tries[0], error);
	out->anyway = good && out->tries[0].told > 0;
	while (good && !out->anyway && out->tried < POWER_SIZES) {
		struct arrival *one = &out->tries[out->tried];
		double percent = power_sizes[POWER_SIZES - 1 - out->tried];

		memcpy(stepped, values, n * sizeof *values);
		for (size_t i = power->place; i < n; i++)
			stepped[i] +=
				sign * percent / 100 * (power->added ? size : fabs(values[i]));
		good = power_arrive(ask, stepped, power->place, POWER_POINTS, sign, one, error);
		out->tried++;
		out->cut = one->cut;
		if (!good || one->told == 0)
			break;
		out->smallest = percent;
	}
	free(stepped);
	return good;
}

bool power_measure(const struct power_request *ask, size_t place, const struct change *found,
	size_t count, struct power *out, struct error *error)
{
	const struct series *series = ask->series;
	size_t n = series->axis->n, follow = 0, last = n;
	const struct detection *detection = analysis_configured(ask->test, series->metric);
	const struct detector *detector = detector_find(detection->detector->name);
	struct power_request near_ask = *ask;
	double *values, step, level = 0;
	bool good;

	error->kind = ERROR_NONE;
	while (last > 0 &&
		follow < POWER_POINTS) /* the last place that so many existing points follow */
		follow += (size_t)!isnan(series->values[--last]);
	*out = (struct power){
		.place = place < last ? place : last, .moved = place > last && place < n};
	if (follow < POWER_POINTS || last == 0 || out->place < ask->front + ONLINE_FIRST)
		return false;
	/* A replay of a long history begins with windows aligned as in the whole. */
	if (out->place - ask->front > POWER_PAST && !detector->stream_chunk) {
		near_ask.front = out->place - POWER_PAST;
	} else if (out->place - ask->front > POWER_PAST) {
		struct stream *stream = detector->stream_new(detection->options, 0);
		size_t past = out->place - ask->front, found_count;

		if (detector_append(detector, stream, series->values + ask->front, past,
			    ask->scratch, &found_count, error))
			near_ask.front += detector->stream_chunk(stream, past - POWER_PAST);
		detector->stream_free(stream);
	}
	values = memory_new(n, sizeof *values);
	memcpy(values, series->values, n * sizeof *values);
	out->evened = even(values, n, out->place, found, count);
	step = size_of(values, near_ask.front, out->place, &level, &out->added);
	good = step > 0;
	good = good && try_sizes(&near_ask, values, out, 1, step, &out->up, error);
	good = good && try_sizes(&near_ask, values, out, -1, step, &out->down, error);
	free(values);
	return good;
}

bool power_typical(const struct power_request *ask, struct arena *arena, struct power *out,
	struct error *error)
{
	const struct series *series = ask->series;
	struct findings found;

	error->kind = ERROR_NONE;
	return series->axis->n > 0 &&
	       series_cache_examine(arena, ask->test, ask->data, ask->companions, series,
		       ask->front, ask->scratch, &found, error) &&
	       power_measure(ask, series->axis->n, found.changes, found.count, out, error);
}
