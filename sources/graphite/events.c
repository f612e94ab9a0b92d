/*
 * Graphite rounds the time of a point down to its resolution, so the time of an event is rounded
 * here, too.
 */
#include "sources/graphite/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/model/attribution.h"
#include "sources/graphite/list.h"
#include "sources/graphite/python_literal.h"

enum { EVENTS_MAX = 1000000, TEXT_MAX = 1000 };

static const int64_t second = 1000, latest = 100000000000;

const char *const graphite_attributes[GRAPHITE_ATTRIBUTES] = {"run", "branch", "version", "commit"};

/* Their keys within an event. */
static const char *const event_keys[GRAPHITE_ATTRIBUTES] = {
	"run_id", "branch", "version", "commit"};

/* Hunter's publishers write "null" and "" for unknown values. */
static const char *known_value(const char *value)
{
	return value && *value && strcasecmp(value, "null") != 0 ? value : NULL;
}

static void read_data(
	struct arena *arena, const char *text, size_t length, struct graphite_event *event)
{
	struct pairs pairs = {0};
	struct arena *scratch = arena_new();
	if (!python_literal_read_dict(scratch, text, length, &pairs))
		pairs.count = 0;
	for (size_t i = 0; i < pairs.count; i++) {
		const char *key = pairs.items[i].key, *value = known_value(pairs.items[i].value);
		for (int k = 0; k < GRAPHITE_ATTRIBUTES; k++)
			if (strcmp(key, event_keys[k]) == 0 ||
				strcmp(key, graphite_attributes[k]) == 0)
				event->values[k] = value ? arena_strndup(arena, value,
								   utf8_cut(value, TEXT_MAX))
							 : NULL;
	}
	arena_free(scratch);
}

struct reading {
	struct arena *arena;
	struct graphite_events *out;
	bool too_many;
};

static bool read_event(void *context, const json_t *item)
{
	struct reading *reading = context;
	struct graphite_events *out = reading->out;
	const json_t *when = json_object_get(item, "when"), *data = json_object_get(item, "data");
	struct graphite_event event = {.order = out->count};
	double seconds = json_number_value(when);
	reading->too_many = out->count + out->ignored == EVENTS_MAX;
	if (reading->too_many || !json_is_number(when) || !(fabs(seconds) <= (double)latest))
		return false;
	event.when = (int64_t)(floor(seconds) * (double)second);
	if (json_is_string(data)) {
		read_data(
			reading->arena, json_string_value(data), json_string_length(data), &event);
	} else if (json_is_object(data)) { /* sent by servers that keep the posted form */
		char *text = json_dumps(data, JSON_COMPACT);
		read_data(reading->arena, text ? text : "", text ? strlen(text) : 0, &event);
		free(text);
	}
	bool known = false;
	for (int k = 0; k < GRAPHITE_ATTRIBUTES; k++)
		known |= event.values[k] != NULL;
	if (!known) {
		out->ignored++;
		return true;
	}
	out->items = arena_grow(reading->arena, out->items, out->count, sizeof *out->items);
	out->items[out->count++] = event;
	return true;
}

static int compare_events(const void *a, const void *b)
{
	const struct graphite_event *one = a, *two = b;
	int order = order_times(&one->when, &two->when);
	return order ? order : order_sizes(&one->order, &two->order);
}

/* Further runs of the same commit are not deployments. */
static bool repeats(const struct graphite_event *event, const struct deployment *before)
{
	return event->values[GRAPHITE_RUN] &&
	       order_same(event->values[GRAPHITE_COMMIT], before->commit) &&
	       order_same(event->values[GRAPHITE_VERSION], before->version);
}

static const struct deployments *deployments_of(
	const struct graphite_events *events, struct arena *arena)
{
	struct deployments *deployments = arena_alloc(arena, sizeof *deployments);
	struct deployment *items = arena_array(arena, events->count, sizeof *items);
	for (size_t i = 0; i < events->count; i++) {
		const struct graphite_event *event = &events->items[i];
		size_t count = deployments->count;
		if ((!event->values[GRAPHITE_COMMIT] && !event->values[GRAPHITE_VERSION]) ||
			(count > 0 && repeats(event, &items[count - 1])))
			continue;
		items[deployments->count++] = (struct deployment){.after = event->when,
			.time = event->when,
			.commit = event->values[GRAPHITE_COMMIT],
			.version = event->values[GRAPHITE_VERSION]};
	}
	deployments->items = items;
	return deployments;
}

bool graphite_events_read(struct arena *arena, const char *text, size_t length,
	struct graphite_events *out, struct error *error)
{
	struct reading reading = {arena, out, false};
	*out = (struct graphite_events){0};
	if (graphite_list_read(
		    text, length, "events", "event", read_event, &reading, &out->unusable, error)) {
		if (out->count > 0)
			qsort(out->items, out->count, sizeof *out->items, compare_events);
		out->deployments = deployments_of(out, arena);
		return true;
	}
	if (reading.too_many)
		error_set(error, ERROR_DATA, "more than %d events: shorten range or --since",
			EVENTS_MAX);
	return false;
}

/* The last event in [begin, end), or NULL. */
static const struct graphite_event *last_within(
	const struct graphite_events *events, int64_t begin, int64_t end)
{
	size_t low = order_lower_bound(
		&end, events->items, events->count, sizeof *events->items, order_times);
	return low > 0 && events->items[low - 1].when >= begin ? &events->items[low - 1] : NULL;
}

/* Finds the last event of each point: in its bucket (`bucket`), or any before the end of the
 * bucket. */
static void find_events(const struct graphite_events *events, const struct axis *axis,
	int64_t width, bool bucket, const struct graphite_event **last)
{
	for (size_t i = 0; i < axis->n; i++) {
		int64_t end = axis->times[i] + width;
		if (i + 1 < axis->n && axis->times[i + 1] < end)
			end = axis->times[i + 1];
		last[i] = last_within(events, bucket ? axis->times[i] : INT64_MIN, end);
	}
}

/* Adds the column if any point has that attribute. */
static void add_column(struct axis *axis, const struct graphite_event *const *events, int attribute,
	struct arena *arena)
{
	const char **values = NULL;
	for (size_t i = 0; i < axis->n; i++) {
		if (!events[i] || !events[i]->values[attribute])
			continue;
		if (!values)
			values = arena_array(arena, axis->n, sizeof *values);
		values[i] = events[i]->values[attribute];
	}
	if (values)
		axis->columns[axis->column_count++] =
			(struct column){graphite_attributes[attribute], values};
}

void graphite_events_match(
	const struct graphite_events *events, struct axis *axis, int64_t width, struct arena *arena)
{
	const struct graphite_event **own = memory_new(axis->n, sizeof *own);
	const struct graphite_event **last = memory_new(axis->n, sizeof *last);
	find_events(events, axis, width, true, own);
	find_events(events, axis, width, events->per_run, last);
	if (!events->per_run)
		axis->deployments = events->deployments;
	axis->columns = arena_array(arena, GRAPHITE_ATTRIBUTES, sizeof *axis->columns);
	axis->column_count = 0;
	for (int k = 0; k < GRAPHITE_ATTRIBUTES; k++)
		add_column(axis, k == GRAPHITE_RUN ? own : last, k, arena);
	free(own);
	free(last);
}
