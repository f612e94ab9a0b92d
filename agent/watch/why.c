/*
 * The series is looked at as the agent does after a start: from its anchor, with its cycles and
 * what another series explains removed. What came of it there is what the state says, where there
 * is one; else the points from the place on are let come once more.
 */
#include "agent/watch/why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/when.h"
#include "agent/news/announce.h"
#include "agent/news/memory.h"
#include "agent/news/record_json.h"
#include "agent/select.h"
#include "detectors/confirm.h"
#include "detectors/scratch.h"

enum { NAMES_SHOWN = 5 };

const char *const why_names[WHY_ENDS] = {
	[WHY_TOLD] = "told",
	[WHY_WAITS] = "group",
	[WHY_DELIVERY] = "delivery",
	[WHY_MAX_AGE] = "max_age",
	[WHY_SILENT] = "silent",
	[WHY_CONFIRMATION] = "confirmation",
	[WHY_FDR] = "fdr",
	[WHY_HOLD] = "hold",
	[WHY_WITHDRAWN] = "withdrawn",
	[WHY_RECOVERED] = "recovered",
	[WHY_WOULD_TELL] = "would_tell",
	[WHY_TOO_OLD] = "too_old",
	[WHY_DETECTOR] = "detector",
	[WHY_NOTHING] = "nothing",
};

const char *const why_sentences[WHY_ENDS] = {
	[WHY_TOLD] = "it was told",
	[WHY_WAITS] = "it is to be told, and waits for its group (group_wait) or its cluster",
	[WHY_DELIVERY] = "its message is in the outbox, and has not arrived yet",
	[WHY_MAX_AGE] = "recorded, and not told: it was older than max_age when it was first seen",
	[WHY_SILENT] = "recorded, and not told: it was over before its hold was, or it came to "
		       "light in points that the agent had seen already",
	[WHY_CONFIRMATION] = "a candidate: the rule of `confirm` does not hold for it yet",
	[WHY_FDR] = "a candidate: it is not among those that `fdr` lets all series have together",
	[WHY_HOLD] = "a candidate: it is held until a cycle can be told from a change",
	[WHY_WITHDRAWN] = "withdrawn: it was found, and is not any more",
	[WHY_RECOVERED] = "the level of before was back before it was told",
	[WHY_WOULD_TELL] = "a change that stands: an agent that sees its points come tells it",
	[WHY_TOO_OLD] = "a change that stands, and is older than max_age: an agent that starts now "
			"records it and does not tell it",
	[WHY_DETECTOR] = "no change: the detector has dropped what is there",
	[WHY_NOTHING] = "no change: there is no place near it that looks like one",
};

static bool is_named(const struct series *series, const char *name)
{
	return strcmp(series->name, name) == 0 || strcmp(series->identity, name) == 0;
}

static bool is_of(const struct series *series, const char *metric)
{
	return series->metric && strcmp(series->metric->name, metric) == 0;
}

const struct series *why_series(
	const struct test *test, const struct dataset *data, const char *name, struct error *error)
{
	const struct series *one = NULL;
	char names[NAMES_SHOWN * 120] = "";
	size_t count = 0, length = 0;

	for (size_t i = 0; i < data->count; i++)
		if (is_named(&data->series[i], name))
			return &data->series[i];
	for (size_t i = 0; i < data->count; i++)
		if (is_of(&data->series[i], name)) {
			one = &data->series[i];
			count++;
		}
	if (count == 1)
		return one;
	for (size_t i = 0, shown = 0; i < data->count && shown < NAMES_SHOWN; i++)
		if (count == 0 || is_of(&data->series[i], name))
			length += (size_t)snprintf(names + length, sizeof names - length,
				"%s%.100s", shown++ ? ", " : "", data->series[i].name);
	if (data->count == 0)
		error_set(error, ERROR_DATA, "test \"%s\" has no series now", test->name);
	else if (count == 0)
		error_set(error, ERROR_USAGE,
			"test \"%s\" has no metric \"%.100s\"; it has %zu: %s%s", test->name, name,
			data->count, names, data->count > NAMES_SHOWN ? ", ..." : "");
	else
		error_set(error, ERROR_USAGE,
			"metric \"%.100s\" of test \"%s\" has %zu series; name one: %s%s", name,
			test->name, count, names, count > NAMES_SHOWN ? ", ..." : "");
	return NULL;
}

/* The commit's first point, else the first at that time or after it. */
static bool find_place(
	const struct why_ask *ask, struct why *why, size_t *place, struct error *error)
{
	const struct axis *axis = why->series->axis;
	struct series copy = *why->series;
	struct mark mark = {"commit", ask->at}, known;
	int64_t time;

	why->chosen = WHY_ASKED;
	if (!mark_resolve(&mark, why->test->name, &(struct dataset){&copy, 1}, &known, error))
		return false;
	if (mark_find(&known, axis, false, place))
		return true;
	if (!when_parse(ask->at, ask->now, &time, error))
		return error_set(error, ERROR_USAGE,
			"\"%.100s\" is neither a commit of the series' points nor a time", ask->at);
	*place = axis_lower_bound(axis, time);
	if (time < axis->times[0]) {
		why->chosen = WHY_BEFORE;
	} else if (*place == axis->n) {
		why->chosen = WHY_AFTER;
		*place = axis->n - 1;
	}
	return true;
}

static bool is_here(const struct why *why, const struct record *record)
{
	return strcmp(record->series, why->series->identity) == 0;
}

/* The index of the last change that is known of the series, or 0. */
static size_t last_change(const struct why_ask *ask, const struct why *why)
{
	const struct axis *axis = why->series->axis;
	int64_t last = WHEN_ALWAYS;

	for (size_t i = 0; i < ask->record_count; i++) {
		const struct record *record = &ask->records[i];

		if (is_here(why, record) && record->state != CHANGE_WITHDRAWN &&
			record->item.time > last && record->item.time >= axis->times[0] &&
			record->item.time <= axis->times[axis->n - 1])
			last = record->item.time;
	}
	if (last != WHEN_ALWAYS)
		return axis_lower_bound(axis, last);
	return why->findings.count > 0 ? why->findings.changes[why->findings.count - 1].index : 0;
}

static size_t distance(size_t a, size_t b)
{
	return a > b ? a - b : b - a;
}

static size_t front_of(const struct why_ask *ask, const struct why *why)
{
	const struct axis *axis = why->series->axis;

	for (size_t i = 0; i < ask->mark_count; i++)
		if (strcmp(ask->marks[i].series, why->series->identity) == 0) {
			size_t front = axis_lower_bound(axis, ask->marks[i].anchor);

			return front < axis->n ? front : 0;
		}
	return 0;
}

void why_query(const struct why_ask *ask, struct task *task)
{
	const struct test *test = task->test;
	int64_t range = source_range(source_find(test->source->name), test->options);
	struct memory *memory = memory_make();
	int64_t since;

	memory_restore(memory, ask->marks, ask->mark_count);
	since = memory_begin(memory, task->query.now, range);
	if (range > 0)
		task->query.since = since;
	if (test->evaluation_delay > 0)
		task->query.until = task->query.now - test->evaluation_delay;
	memory_free(memory);
}

/* Looks at the series as the agent does, with an eye on what is tried. */
static bool look(struct arena *arena, const struct dataset *data,
	const struct companions *companions, struct scratch *scratch, struct why *why,
	struct tried_list *tried, struct error *error)
{
	const struct series *series = why->series, *other;
	const struct control_rule *rule;
	struct sampling sampling;
	bool good;

	if (!sampling_read(arena, why->test, series->axis, &sampling, error) ||
		!analysis_other(
			why->test, data, companions, series, why->detection, &rule, &other, error))
		return false;
	why->findings = analysis_adjust(arena, series, why->detection, rule, other, scratch);
	scratch_trace(scratch, tried);
	good = analysis_detect(arena, &sampling, why->detection, why->front, series->axis->n,
		scratch, &why->findings, error);
	scratch_trace(scratch, NULL);
	return good;
}

/* Of two that are near the place: which is meant. */
static bool is_better(const struct why *why, const struct tried *one, const struct tried *best)
{
	int weight = tried_weight(one->fate), least = best ? tried_weight(best->fate) : -1;

	if (weight != least || one->fate == TRIED_STANDS)
		return weight > least ||
		       (weight == least && distance(one->index, why->place) <
						   distance(best->index, why->place));
	return tried_nearer(one, best);
}

/* How far from the place the most distant of those is that are shown: of many the nearest. */
static size_t reach_of(const struct tried_list *tried, const struct why *why)
{
	size_t counts[WHY_SHOWN + 1] = {0}, sum = 0, reach = 0;

	for (size_t i = 0; i < tried->count; i++) {
		size_t far = distance(tried->items[i].index + why->front, why->place);

		if (far <= WHY_SHOWN)
			counts[far]++;
	}
	while (reach <= WHY_SHOWN && sum + counts[reach] <= WHY_MOST)
		sum += counts[reach++];
	return reach > 0 ? reach - 1 : 0;
}

static void pick_tried(struct arena *arena, const struct tried_list *tried, struct why *why)
{
	struct tried *shown = arena_array(arena, WHY_MOST, sizeof *shown);
	size_t reach = reach_of(tried, why);

	why->tried = shown;
	for (size_t i = 0; i < tried->count; i++) {
		size_t far = distance(tried->items[i].index + why->front, why->place);

		if (far > WHY_SHOWN)
			continue;
		if (far > reach || why->tried_count == WHY_MOST) {
			why->tried_more++;
			continue;
		}
		shown[why->tried_count] = tried->items[i];
		shown[why->tried_count].index += why->front;
		if (far <= WHY_NEAR && is_better(why, &shown[why->tried_count], why->culprit))
			why->culprit = &shown[why->tried_count];
		why->tried_count++;
	}
}

static void pick_change(struct arena *arena, struct why *why)
{
	const struct change *best = NULL;
	struct record *told = arena_alloc(arena, sizeof *told);
	struct announcement *item = &told->item;

	for (size_t i = 0; i < why->findings.count; i++) {
		const struct change *change = &why->findings.changes[i];

		if (distance(change->index, why->place) <= WHY_NEAR &&
			(!best || distance(change->index, why->place) <
					  distance(best->index, why->place)))
			best = change;
	}
	if (!best)
		return;
	*item = announce_change(arena, why->test->name, why->series, best);
	findings_basis(arena, &why->findings, best, item);
	told->series = why->series->identity;
	announce_links_by(arena, why->test, told);
	why->change = item;
	why->arrival_at = best->index;
}

/* The record that is nearest to what stands there, or to the place. */
static void pick_record(const struct why_ask *ask, struct why *why)
{
	const struct axis *axis = why->series->axis;
	size_t at = why->change ? why->change->change.index : why->place, least = WHY_NEAR + 1;

	for (size_t i = 0; i < ask->record_count; i++) {
		const struct record *record = &ask->records[i];
		size_t index = axis_lower_bound(axis, record->item.time);

		if (!is_here(why, record) || index == 0 || distance(index, at) >= least)
			continue;
		least = distance(index, at);
		why->record = record;
	}
}

static enum why_end end_of_record(const struct why_ask *ask, const struct why *why)
{
	const struct record *record = why->record;

	if (record_announced(record) != 0)
		return WHY_TOLD;
	if (record->state == CHANGE_WITHDRAWN)
		return WHY_WITHDRAWN;
	if (record->state == CHANGE_CANDIDATE) {
		const struct change *now =
			why->change ? &why->change->change : &record->item.change;

		if (why->arrival.held_until != 0)
			return WHY_HOLD;
		return confirm_holds(&why->detection->confirm, now, record->item.change.count_after)
			       ? WHY_FDR
			       : WHY_CONFIRMATION;
	}
	switch (record->news) {
	case NEWS_PENDING: return WHY_WAITS;
	case NEWS_QUEUED:
	case NEWS_RECOVERY: return WHY_DELIVERY;
	case NEWS_HELD: return WHY_RECOVERED;
	case NEWS_SILENT:
	case NEWS_COUNT: break;
	}
	return ask->max_age != WHEN_NEVER && record->item.time < record->first_seen - ask->max_age
		       ? WHY_MAX_AGE
		       : WHY_SILENT;
}

/* Of what the state does not know. */
static enum why_end end_of_change(const struct why_ask *ask, const struct why *why)
{
	const struct arrival *arrival = &why->arrival;

	if (arrival->found > 0 && arrival->told == 0)
		return arrival->lost > 0          ? WHY_WITHDRAWN
		       : arrival->held_until != 0 ? WHY_HOLD
		       : arrival->rule            ? WHY_FDR
						  : WHY_CONFIRMATION;
	if (ask->max_age != WHEN_NEVER && why->change->time < ask->now - ask->max_age)
		return WHY_TOO_OLD;
	return WHY_WOULD_TELL;
}

static enum why_end end_of(const struct why_ask *ask, const struct why *why)
{
	if (why->record)
		return end_of_record(ask, why);
	if (why->change)
		return end_of_change(ask, why);
	return why->culprit && why->culprit->fate != TRIED_WEAK ? WHY_DETECTOR : WHY_NOTHING;
}

static size_t count_points(const struct series *series, size_t from)
{
	size_t count = 0;

	for (size_t i = from; i < series->axis->n; i++)
		count += (size_t)!isnan(series->values[i]);
	return count;
}

/* Lets the points come once more, and measures what would have been told. */
static bool measure(const struct dataset *data, const struct companions *companions,
	const struct why_ask *ask, struct scratch *scratch, struct why *why, struct error *error)
{
	const struct power_ask power = {.test = why->test,
		.data = data,
		.companions = companions,
		.series = why->series,
		.front = why->front,
		.max_age = ask->max_age,
		.scratch = scratch,
		.limit = scratch_done(scratch) + POWER_STEPS};

	if (!power_arrive(&power, why->series->values, why->arrival_at, 2 * POWER_POINTS, 0,
		    &why->arrival, error))
		return false;
	why->has_power = power_measure(
		&power, why->place, why->findings.changes, why->findings.count, &why->power, error);
	return why->has_power || error->kind == ERROR_NONE;
}

bool why_explain(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct why_ask *ask, struct scratch *scratch,
	struct why *out, struct error *error)
{
	struct tried_list tried = {0};
	bool good;

	*out = (struct why){.test = test,
		.series = why_series(test, data, ask->metric, error),
		.has_state = ask->has_state};
	if (!out->series)
		return false;
	if (out->series->axis->n == 0)
		return error_set(
			error, ERROR_DATA, "series \"%.200s\" has no points", out->series->name);
	out->detection = analysis_configured(test, out->series->metric);
	out->front = front_of(ask, out);
	out->points = count_points(out->series, out->front);
	good = look(arena, data, companions, scratch, out, &tried, error);
	if (good && ask->at)
		good = find_place(ask, out, &out->place, error);
	else if (good) {
		out->place = last_change(ask, out);
		out->chosen = out->place > 0 ? WHY_CHANGE : WHY_NEWEST;
		if (out->chosen == WHY_NEWEST)
			out->place = out->series->axis->n - 1;
	}
	if (good) {
		tried_sort(&tried);
		pick_tried(arena, &tried, out);
		out->arrival_at = out->place;
		pick_change(arena, out);
		pick_record(ask, out);
		good = measure(data, companions, ask, scratch, out, error);
	}
	tried_free(&tried);
	if (good)
		out->end = end_of(ask, out);
	return good;
}
