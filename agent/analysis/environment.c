/*
 * Series are represented by two hashes: of their environment, and of their name without it. Two
 * sort orders, by environment and by key, answer all queries.
 */
#include "agent/analysis/environment.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/label.h"
#include "agent/base/order.h"
#include "detectors/sort.h"

/* How many points a counterpart may be behind and still be compared; the fewest series and percent
 * that make a rollout. */
enum { BEHIND = 2, FOLLOWERS = 4, FOLLOWING = 60 };

/* Shares of a step: below NOTHING_LEFT the rest counts as nothing (as in detectors/recovery.h),
 * above MOST_LEFT it is another level. OFF_MOST: how far one series may be off the others, in
 * robust standard deviations. */
static const double NOTHING_LEFT = 0.05, MOST_LEFT = 0.5, OFF_MOST = 4;

struct environment_index {
	const struct environment_series **by_environment, **by_key;
	size_t count;
};

uint64_t environment_hash(const char *label, const char *value)
{
	uint64_t hash = hash_add(HASH_START, label, strlen(label) + 1);

	return hash_add(hash, value, strlen(value) + 1);
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Hashes the name, leaving the value out where it occurs as a whole word. */
static uint64_t hash_name(const char *name, const char *value)
{
	uint64_t hash = HASH_START;
	size_t length = strlen(value);
	const char *from = name;

	for (const char *at = name; length > 0 && (at = strstr(at, value)); at += length)
		if ((at == name || !is_word(at[-1])) && !is_word(at[length])) {
			hash = hash_add(hash, from, (size_t)(at - from));
			hash = hash_add(hash, "", 1);
			from = at + length;
		}
	return hash_add(hash, from, strlen(from) + 1);
}

uint64_t environment_key(
	const char *test, const char *identity, const char *label, const char *value)
{
	uint64_t hash = hash_name(test, value);
	struct buf rest = {0};

	if (label_rest(identity, label, strlen(label), &rest))
		hash = hash_add(hash, rest.data, rest.length);
	else
		hash = hash_add(hash, identity, strlen(identity));
	buf_free(&rest);
	return hash;
}

/* The value that the points from there on share, or NULL. */
static const char *shared_value(
	const struct series *series, const struct column *column, size_t index)
{
	const char *value = NULL;
	size_t points = 0;

	for (; index < series->axis->n && points < ENVIRONMENT_POINTS; index++) {
		const char *at = column->values[index];

		if (isnan(series->values[index]))
			continue;
		if (!at || !*at || (value && strcmp(at, value) != 0))
			return NULL;
		value = at;
		points++;
	}
	return value;
}

bool environment_value(
	const char *label, const struct series *series, size_t index, struct buf *out)
{
	const struct column *column;
	const char *value;
	size_t points = 0;

	if (label_value(series->identity, label, strlen(label), out))
		return true;
	column = axis_column(series->axis, label);
	if (!column)
		return false;
	if (index >= series->axis->n) /* where the last points begin */
		for (index = series->axis->n; index > 0 && points < ENVIRONMENT_POINTS;)
			points += (size_t)!isnan(series->values[--index]);
	value = shared_value(series, column, index);
	if (value)
		buf_text(out, value);
	return value != NULL;
}

/* The mean distance of the points around that one. */
static int64_t spacing_at(const struct series *series, size_t index)
{
	const struct axis *axis = series->axis;
	size_t first = index, last = index, points = 0;

	for (size_t left = ENVIRONMENT_POINTS, at = index; at > 0 && left > 0;)
		if (!isnan(series->values[--at])) {
			first = at;
			left--;
			points++;
		}
	for (size_t left = ENVIRONMENT_POINTS, at = index + 1; at < axis->n && left > 0; at++)
		if (!isnan(series->values[at])) {
			last = at;
			left--;
			points++;
		}
	return points > 0 ? (axis->times[last] - axis->times[first]) / (int64_t)points : 0;
}

static void add_hits(struct arena *arena, struct environment_series *to,
	const struct findings *findings, const char *label)
{
	const struct series *series = findings->series;
	struct buf value = {0};

	to->hits = arena_array(arena, findings->count, sizeof *to->hits);
	for (size_t i = 0; i < findings->count; i++) {
		const struct change *change = &findings->changes[i];
		int sign = change_sign(change);

		buf_clear(&value);
		if (!environment_value(label, series, change->index, &value) ||
			environment_hash(label, value.data) != to->environment)
			continue;
		to->hits[to->hit_count++] =
			(struct environment_hit){.time = series->axis->times[change->index],
				.spacing = spacing_at(series, change->index),
				.sign = sign,
				.verdict = change_verdict(change, series_direction(series)),
				.size = change->size};
	}
	buf_free(&value);
}

static void add_series(struct arena *arena, struct environment_view *view, const struct test *test,
	const struct findings *findings, struct buf *value)
{
	const struct series *series = findings->series;
	const struct axis *axis = series->axis;
	struct environment_series *to = &view->series[view->count];
	size_t first = 0, last = axis->n;

	while (first < axis->n && isnan(series->values[first]))
		first++;
	while (last > first && isnan(series->values[last - 1]))
		last--;
	buf_clear(value);
	if (first == last || !environment_value(test->environment, series, axis->n, value))
		return;
	*to = (struct environment_series){.key = environment_key(test->name, series->identity,
						  test->environment, value->data),
		.environment = environment_hash(test->environment, value->data),
		.first = axis->times[first],
		.last = axis->times[last - 1]};
	if (findings->count > 0)
		add_hits(arena, to, findings, test->environment);
	view->count++;
}

struct environment_view *environment_look(struct arena *arena, const struct analysis *analysis)
{
	struct environment_view *view = arena_alloc(arena, sizeof *view);
	size_t room = analysis->data->count;
	struct buf value = {0};

	*view = (struct environment_view){.series = arena_array(arena, room, sizeof *view->series)};
	for (size_t i = 0; i < room; i++)
		add_series(arena, view, analysis->test, &analysis->findings[i], &value);
	buf_free(&value);
	return view;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_environments(const void *a, const void *b)
{
	return compare_numbers((*(const struct environment_series *const *)a)->environment,
		(*(const struct environment_series *const *)b)->environment);
}

static int compare_keys(const void *a, const void *b)
{
	return compare_numbers((*(const struct environment_series *const *)a)->key,
		(*(const struct environment_series *const *)b)->key);
}

/* A line for each series: its key and environment, the first and last point, its changes. */
const char *environment_view_put(struct arena *arena, const struct environment_view *view)
{
	struct buf text = {0}, *out = &text;

	for (size_t i = 0; i < view->count; i++) {
		const struct environment_series *series = &view->series[i];

		buf_printf(out, "%" PRIx64 " %" PRIx64 " %" PRId64 " %" PRId64, series->key,
			series->environment, series->first, series->last);
		for (size_t j = 0; j < series->hit_count; j++) {
			const struct environment_hit *hit = &series->hits[j];

			buf_printf(out, " %" PRId64 " %" PRId64 " %d %d %.17g", hit->time,
				hit->spacing, hit->sign, hit->verdict, hit->size);
		}
		buf_char(out, '\n');
	}
	return buf_keep(out, arena);
}

const struct environment_view *environment_view_read(struct arena *arena, const char *text)
{
	struct environment_view *view = arena_alloc(arena, sizeof *view);
	char *at = (char *)(uintptr_t)text;

	*view = (struct environment_view){0};
	for (; *at; at += *at != '\0') {
		struct environment_series series = {0};
		const char *from = NULL;

		series.key = strtoull(at, &at, 16);
		series.environment = strtoull(at, &at, 16);
		series.first = strtoll(at, &at, 10);
		series.last = strtoll(at, &at, 10);
		while (*at == ' ' && at != from) {
			struct environment_hit hit = {0};

			from = at;
			hit.time = strtoll(at, &at, 10);
			hit.spacing = strtoll(at, &at, 10);
			hit.sign = (int)strtol(at, &at, 10);
			hit.verdict = (int)strtol(at, &at, 10);
			hit.size = strtod(at, &at);
			series.hits = arena_grow(
				arena, series.hits, series.hit_count, sizeof *series.hits);
			series.hits[series.hit_count++] = hit;
		}
		view->series = arena_grow(arena, view->series, view->count, sizeof *view->series);
		view->series[view->count++] = series;
	}
	return view;
}

struct environment_index *environment_index_new(
	struct arena *arena, const struct environment_view *const *views, size_t count)
{
	struct environment_index *index = arena_alloc(arena, sizeof *index);
	size_t room = 0;

	for (size_t i = 0; i < count; i++)
		room += views[i] ? views[i]->count : 0;
	*index = (struct environment_index){
		.by_environment = arena_array(arena, room, sizeof *index->by_environment),
		.by_key = arena_array(arena, room, sizeof *index->by_key)};
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; views[i] && j < views[i]->count; j++) {
			index->by_environment[index->count] = &views[i]->series[j];
			index->by_key[index->count++] = &views[i]->series[j];
		}
	if (room > 0) {
		qsort(index->by_environment, room, sizeof *index->by_environment,
			compare_environments);
		qsort(index->by_key, room, sizeof *index->by_key, compare_keys);
	}
	return index;
}

/* The series of an environment; *count: how many. */
static const struct environment_series *const *series_of(
	const struct environment_index *index, uint64_t environment, size_t *count)
{
	const struct environment_series *wanted =
		&(const struct environment_series){.environment = environment};
	size_t first = order_lower_bound(
		&wanted, index->by_environment, index->count, sizeof wanted, compare_environments);

	*count = 0;
	while (first + *count < index->count &&
		index->by_environment[first + *count]->environment == environment)
		++*count;
	return index->by_environment + first;
}

static size_t first_with(const struct environment_index *index, uint64_t key)
{
	const struct environment_series *wanted = &(const struct environment_series){.key = key};

	return order_lower_bound(&wanted, index->by_key, index->count, sizeof wanted, compare_keys);
}

/* The change of the series nearest to that time, NULL if none is near. */
static const struct environment_hit *hit_near(
	const struct environment_series *series, int64_t time, int64_t spacing)
{
	const struct environment_hit *best = NULL;

	for (size_t i = 0; i < series->hit_count; i++) {
		const struct environment_hit *hit = &series->hits[i];

		if (change_near(time, spacing, hit->time, hit->spacing) &&
			(!best || llabs(hit->time - time) < llabs(best->time - time)))
			best = hit;
	}
	return best;
}

/* Counts counterparts of a key outside the environment that have points from before the time to
 * `until`, and how many of them changed near it. */
static size_t count_elsewhere(const struct environment_index *index, uint64_t key,
	const struct environment_moment *moment, int64_t until, size_t *changed)
{
	size_t count = 0;

	*changed = 0;
	for (size_t i = first_with(index, key); i < index->count && index->by_key[i]->key == key;
		i++) {
		const struct environment_series *at = index->by_key[i];

		if (at->environment == moment->environment || at->first >= moment->time ||
			at->last < until)
			continue;
		count++;
		*changed += hit_near(at, moment->time, moment->spacing) != NULL;
	}
	return count;
}

/* State of one count. */
struct collection {
	double *sizes;
	int64_t *times;
	size_t size_count;
};

static void count_series(const struct environment_index *index,
	const struct environment_series *series, const struct environment_moment *moment,
	struct environment_tally *tally, struct collection *all)
{
	const struct environment_hit *hit = hit_near(series, moment->time, moment->spacing);
	bool spans = series->first < moment->time && series->last >= moment->time;
	size_t elsewhere, changed;

	tally->total += hit || spans;
	if (!hit) {
		/* Half a point is allowed for times that are not quite regular. */
		tally->behind +=
			spans && (series->last - moment->time) / (2 * ENVIRONMENT_POINTS - 3) <
					 moment->spacing / 2;
		return;
	}
	elsewhere = count_elsewhere(
		index, series->key, moment, series->last - BEHIND * hit->spacing, &changed);
	if (2 * changed > elsewhere) {
		tally->everywhere++;
		return;
	}
	tally->compared += elsewhere > 0;
	tally->elsewhere += elsewhere;
	tally->elsewhere_changed += changed;
	all->times[tally->hit++] = hit->time;
	if (isfinite(hit->size))
		all->sizes[all->size_count++] = hit->size;
	tally->up += hit->sign > 0;
	tally->down += hit->sign < 0;
	tally->worse += hit->verdict > 0;
	tally->better += hit->verdict < 0;
}

struct environment_tally environment_count(
	const struct environment_index *index, uint64_t environment, int64_t time, int64_t spacing)
{
	const struct environment_moment moment = {environment, time, spacing};
	struct environment_tally tally = {.time = time, .size = (double)NAN};
	struct collection all;
	size_t count;
	const struct environment_series *const *list = series_of(index, environment, &count);

	all = (struct collection){.sizes = memory_new(count, sizeof *all.sizes),
		.times = memory_new(count, sizeof *all.times)};
	for (size_t i = 0; i < count; i++)
		count_series(index, list[i], &moment, &tally, &all);
	sort_sort(all.sizes, all.size_count);
	qsort(all.times, tally.hit, sizeof *all.times, order_times);
	if (all.size_count > 0)
		tally.size = all.sizes[all.size_count / 2];
	if (tally.hit > 0)
		tally.time = all.times[tally.hit / 2];
	free(all.sizes);
	free(all.times);
	return tally;
}

void environment_set(struct environment_event *event, const struct environment_tally *tally)
{
	event->hit = tally->hit;
	event->total = tally->total;
	event->up = tally->up;
	event->down = tally->down;
	event->worse = tally->worse;
	event->better = tally->better;
	event->size = tally->size;
	event->elsewhere = tally->elsewhere;
	event->elsewhere_changed = tally->elsewhere_changed;
}

bool environment_is_everywhere(const struct environment_index *index, uint64_t key,
	uint64_t environment, int64_t time, int64_t spacing)
{
	const struct environment_moment moment = {environment, time, spacing};
	size_t changed, count = count_elsewhere(index, key, &moment, time, &changed);

	return 2 * changed > count;
}

/* The series of that key in that environment, or NULL. */
static const struct environment_series *find_series(
	const struct environment_index *index, uint64_t key, uint64_t environment)
{
	for (size_t i = first_with(index, key); i < index->count && index->by_key[i]->key == key;
		i++)
		if (index->by_key[i]->environment == environment)
			return index->by_key[i];
	return NULL;
}

bool environment_has(const struct environment_index *index, uint64_t key, uint64_t environment)
{
	return find_series(index, key, environment) != NULL;
}

bool environment_follows(const struct environment_index *index,
	const struct environment_moment *first, const struct environment_moment *then)
{
	size_t count = 0, changed = 0, total;
	const struct environment_series *const *list = series_of(index, first->environment, &total);

	for (size_t i = 0; i < total; i++) {
		const struct environment_series *series = list[i], *other;
		const struct environment_hit *hit, *later;

		hit = hit_near(series, first->time, first->spacing);
		other = hit ? find_series(index, series->key, then->environment) : NULL;
		if (!other)
			continue;
		later = hit_near(other, then->time, then->spacing);
		count++;
		changed += later && later->sign == hit->sign;
	}
	return changed >= FOLLOWERS && 100 * changed >= FOLLOWING * count;
}

bool environment_is_over(const struct environment_index *index,
	const struct environment_moment *moment, int64_t until)
{
	size_t count = 0, undone = 0, total;
	const struct environment_series *const *list =
		series_of(index, moment->environment, &total);

	for (size_t i = 0; i < total; i++) {
		const struct environment_series *series = list[i];
		const struct environment_hit *hit = hit_near(series, moment->time, moment->spacing);

		bool back = false; /* in the other direction after the change, up to `until` */

		for (size_t k = 0; hit && k < series->hit_count; k++)
			back |= series->hits[k].sign == -hit->sign &&
				series->hits[k].time > hit->time && series->hits[k].time <= until;
		count += hit != NULL;
		undone += back;
	}
	return count > 0 && 100 * undone >= ENVIRONMENT_SHARE * count;
}

/* What remains of the series' step after it went back, as a share of it; false: it has not. */
static bool rest_of(const struct environment_series *series, const struct environment_moment *first,
	const struct environment_moment *then, double *rest)
{
	const struct environment_hit *step = hit_near(series, first->time, first->spacing);
	const struct environment_hit *back = hit_near(series, then->time, then->spacing);

	if (!step || !back || back->time <= step->time || back->sign != -step->sign ||
		!isfinite(step->size) || !isfinite(back->size) || step->size == 0)
		return false;
	*rest = ((1 + step->size / 100) * (1 + back->size / 100) - 1) / (step->size / 100);
	return true;
}

/* Whether the median remainder is at the previous level, and this series' is as near to it as the
 * others'. */
static bool is_back(double own, double *rests, size_t count)
{
	double middle = sort_median(rests, count), spread, error;

	for (size_t i = 0; i < count; i++)
		rests[i] = fabs(rests[i] - middle);
	spread = 1.4826 * sort_median(rests, count);
	error = 1.2533 * spread / sqrt((double)count);
	return fabs(middle) <= NOTHING_LEFT + 2 * error && fabs(own) < MOST_LEFT &&
	       fabs(own - middle) <= fmax(OFF_MOST * spread, NOTHING_LEFT);
}

bool environment_ends(const struct environment_index *index, uint64_t key,
	const struct environment_moment *first, const struct environment_moment *then, int sign)
{
	const struct environment_series *series = find_series(index, key, first->environment);
	size_t total, hit = 0, count = 0;
	const struct environment_series *const *list = series_of(index, first->environment, &total);
	double own, *rests;
	bool ends;

	if (!series || !rest_of(series, first, then, &own) ||
		hit_near(series, then->time, then->spacing)->sign != sign)
		return false;
	rests = memory_new(total, sizeof *rests);
	for (size_t i = 0; i < total; i++) {
		hit += hit_near(list[i], first->time, first->spacing) != NULL;
		count += rest_of(list[i], first, then, &rests[count]);
	}
	ends = 100 * count >= ENVIRONMENT_SHARE * hit && is_back(own, rests, count);
	free(rests);
	return ends;
}

bool environment_returns(const struct environment_index *index, uint64_t key,
	const struct environment_moment *moment, int sign)
{
	const struct environment_series *series = find_series(index, key, moment->environment);

	for (size_t i = 0; series && i < series->hit_count; i++) {
		const struct environment_hit *hit = &series->hits[i];

		if (hit->sign == -sign && hit->time < moment->time &&
			change_near(moment->time, moment->spacing, hit->time, hit->spacing))
			return true;
	}
	return false;
}
