/*
 * Series that were measured together share an axis. The points of several axes are merged on the
 * fly, always taking the earliest that are left; the first axis with such a point begins the row,
 * and each point without conflicting attributes joins it. A row thus depends on the previous rows
 * of the same time, and the row of a change is found by going through these.
 */
#include "agent/analysis/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct axis **dataset_axes(const struct dataset *data, struct arena *arena, size_t *count)
{
	struct axis **axes = arena_array(arena, data->count, sizeof *axes);
	*count = 0;
	for (size_t s = 0; s < data->count; s++) {
		struct axis *axis = data->series[s].axis;
		size_t i = *count;
		while (i > 0 && axes[i - 1] != axis)
			i--;
		if (i == 0)
			axes[(*count)++] = axis;
	}
	return axes;
}

static size_t name_index(const struct strings *names, const char *name)
{
	size_t i = 0;
	while (i < names->count && strcmp(names->items[i], name) != 0)
		i++;
	return i;
}

static struct strings names_of(struct arena *arena, const struct timeline *timeline)
{
	size_t room = 0;
	for (size_t a = 0; a < timeline->axis_count; a++)
		room += timeline->axes[a]->column_count;
	const char **items = arena_array(arena, room, sizeof *items);
	struct strings names = {items, 0};
	for (size_t a = 0; a < timeline->axis_count; a++)
		for (size_t c = 0; c < timeline->axes[a]->column_count; c++) {
			const char *name = timeline->axes[a]->columns[c].name;
			if (name_index(&names, name) == names.count)
				items[names.count++] = name;
		}
	return names;
}

struct timeline timeline_of(struct arena *arena, const struct dataset *data)
{
	struct timeline timeline;
	timeline.axes = dataset_axes(data, arena, &timeline.axis_count);
	timeline.names = names_of(arena, &timeline);
	size_t width = timeline.names.count;
	timeline.columns =
		arena_array(arena, timeline.axis_count * width, sizeof *timeline.columns);
	for (size_t a = 0; a < timeline.axis_count; a++)
		for (size_t k = 0; k < width; k++)
			timeline.columns[a * width + k] =
				axis_column(timeline.axes[a], timeline.names.items[k]);
	return timeline;
}

size_t timeline_axis(const struct timeline *timeline, const struct series *series)
{
	size_t a = 0;
	while (timeline->axes[a] != series->axis)
		a++;
	return a;
}

int moment_compare(const struct moment *a, const struct moment *b)
{
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static int compare_hits(const void *left, const void *right)
{
	const struct hit *a = left, *b = right;
	int order = moment_compare(&a->moment, &b->moment);
	return order ? order : (a->series > b->series) - (a->series < b->series);
}

/* Finds the rows of hits, of which only the time is known and by which they are sorted. */
static void place(struct hit *hits, size_t count, const struct analysis *analysis,
	const struct timeline *timeline, struct arena *arena)
{
	struct cursor cursor = cursor_of(arena, timeline);
	size_t *axes = arena_array(arena, analysis->data->count, sizeof *axes);
	for (size_t i = 0; i < count; i++)
		axes[hits[i].series] =
			timeline_axis(timeline, analysis->findings[hits[i].series].series);
	for (size_t from = 0, to; from < count; from = to) {
		int64_t time = hits[from].moment.time;
		for (to = from; to < count && hits[to].moment.time == time;)
			to++;
		/* to just before the first row of that time */
		cursor.started = false;
		for (size_t a = 0; a < timeline->axis_count; a++)
			cursor.next[a] = axis_lower_bound(timeline->axes[a], time);
		for (size_t left = to - from; left > 0 && cursor_next(&cursor);)
			for (size_t i = from; i < to; i++)
				if (cursor.point[axes[hits[i].series]] == hits[i].change->index) {
					hits[i].moment = cursor.moment;
					left--;
				}
	}
}

struct hits hits_of(
	const struct analysis *analysis, const struct timeline *timeline, struct arena *arena)
{
	size_t count = 0;
	for (size_t s = 0; s < analysis->data->count; s++)
		count += analysis->findings[s].count;
	struct hit *items = arena_array(arena, count, sizeof *items);
	count = 0;
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		for (size_t i = 0; i < found->count; i++) {
			const struct change *change = &found->changes[i];
			int64_t time = found->series->axis->times[change->index];
			items[count++] = (struct hit){{time, 0}, s, change};
		}
	}
	qsort(items, count, sizeof *items, compare_hits);
	place(items, count, analysis, timeline, arena);
	qsort(items, count, sizeof *items, compare_hits);
	return (struct hits){items, count};
}

const char *change_attribute(
	const struct series *series, const struct change *change, const char *name)
{
	const struct column *column = axis_column(series->axis, name);
	return column ? column->values[change->index] : NULL;
}

const char *change_attribute_before(
	const struct series *series, const struct change *change, const char *name)
{
	const struct column *column = axis_column(series->axis, name);
	for (size_t at = change->index; column && at > 0; at--)
		if (column->values[at - 1] && isfinite(series->values[at - 1]))
			return column->values[at - 1];
	return NULL;
}

struct cursor cursor_of(struct arena *arena, const struct timeline *timeline)
{
	return (struct cursor){.timeline = timeline,
		.next = arena_array(arena, timeline->axis_count, sizeof(size_t)),
		.point = arena_array(arena, timeline->axis_count, sizeof(size_t)),
		.attributes = arena_array(arena, timeline->names.count, sizeof(const char *))};
}

void cursor_rewind(struct cursor *cursor)
{
	cursor->started = false;
	memset(cursor->next, 0, cursor->timeline->axis_count * sizeof *cursor->next);
}

/* Puts the point on the row, unless an attribute conflicts. */
static bool join(struct cursor *cursor, size_t axis, size_t point)
{
	size_t width = cursor->timeline->names.count;
	const struct column *const *columns = cursor->timeline->columns + axis * width;
	for (size_t k = 0; k < width; k++) {
		const char *value = columns[k] ? columns[k]->values[point] : NULL;
		if (value && cursor->attributes[k] && strcmp(value, cursor->attributes[k]) != 0)
			return false;
	}
	for (size_t k = 0; k < width; k++)
		if (columns[k] && !cursor->attributes[k])
			cursor->attributes[k] = columns[k]->values[point];
	return true;
}

bool cursor_next(struct cursor *cursor)
{
	const struct timeline *timeline = cursor->timeline;
	int64_t time = INT64_MAX; /* the earliest that is left */
	bool found = false;
	for (size_t a = 0; a < timeline->axis_count; a++) {
		const struct axis *axis = timeline->axes[a];
		size_t next = cursor->next[a];
		found = found || next < axis->n;
		time = next < axis->n && axis->times[next] < time ? axis->times[next] : time;
	}
	if (!found)
		return false;
	bool again = cursor->started && time == cursor->moment.time;
	cursor->moment = (struct moment){time, again ? cursor->moment.ordinal + 1 : 0};
	cursor->started = true;
	for (size_t k = 0; k < timeline->names.count; k++)
		cursor->attributes[k] = NULL;
	for (size_t a = 0; a < timeline->axis_count; a++) {
		const struct axis *axis = timeline->axes[a];
		size_t next = cursor->next[a];
		bool on = next < axis->n && axis->times[next] == time && join(cursor, a, next);
		cursor->point[a] = on ? cursor->next[a]++ : SIZE_MAX;
	}
	return true;
}

double cursor_value(const struct cursor *cursor, const struct series *series, size_t axis)
{
	size_t point = cursor->point[axis];
	return point == SIZE_MAX ? (double)NAN : series->values[point];
}

const char *cursor_attribute(const struct cursor *cursor, const char *name)
{
	const struct strings *names = &cursor->timeline->names;
	size_t k = name_index(names, name);
	return k < names->count ? cursor->attributes[k] : NULL;
}

struct strings timeline_attributes(
	struct arena *arena, const struct timeline *timeline, struct strings wanted, bool all)
{
	if (wanted.count > 0)
		return wanted;
	const char **items = arena_array(arena, timeline->names.count, sizeof *items);
	size_t count = 0;
	for (size_t k = 0; k < timeline->names.count; k++) {
		bool set = all;
		for (size_t a = 0; a < timeline->axis_count && !set; a++) {
			const struct column *column =
				timeline->columns[a * timeline->names.count + k];
			for (size_t i = 0; column && i < timeline->axes[a]->n && !set; i++)
				set = column->values[i] != NULL;
		}
		if (set)
			items[count++] = timeline->names.items[k];
	}
	return (struct strings){items, count};
}
