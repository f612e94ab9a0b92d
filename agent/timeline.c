/*
 * Series that were measured together share an axis. The points of others are merged on the way,
 * always the earliest that are left.
 */
#include "agent/timeline.h"

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

struct dataset dataset_view(struct arena *arena, const struct dataset *data)
{
	size_t count;
	struct axis **axes = dataset_axes(data, arena, &count);
	struct axis *copies = arena_array(arena, count, sizeof *copies);
	for (size_t a = 0; a < count; a++) {
		copies[a] = *axes[a];
		copies[a].columns =
			arena_array(arena, axes[a]->column_count, sizeof *copies[a].columns);
		for (size_t c = 0; c < axes[a]->column_count; c++)
			copies[a].columns[c] = axes[a]->columns[c];
	}
	struct dataset view = {arena_array(arena, data->count, sizeof *view.series), data->count};
	for (size_t s = 0; s < data->count; s++) {
		size_t a = 0;
		while (axes[a] != data->series[s].axis)
			a++;
		view.series[s] = data->series[s];
		view.series[s].axis = &copies[a];
	}
	return view;
}

struct timeline timeline_of(struct arena *arena, const struct dataset *data)
{
	struct timeline timeline;
	timeline.axes = dataset_axes(data, arena, &timeline.axis_count);
	return timeline;
}

size_t timeline_axis(const struct timeline *timeline, const struct series *series)
{
	size_t a = 0;
	while (timeline->axes[a] != series->axis)
		a++;
	return a;
}

/* The axis' point on a row, or SIZE_MAX. */
static size_t point_at(const struct axis *axis, const struct moment *moment)
{
	size_t first = axis_lower_bound(axis, moment->time);
	if (moment->ordinal >= axis->n - first ||
		axis->times[first + moment->ordinal] != moment->time)
		return SIZE_MAX;
	return first + moment->ordinal;
}

static struct moment moment_of(const struct axis *axis, size_t point)
{
	int64_t time = axis->times[point];
	return (struct moment){time, point - axis_lower_bound(axis, time)};
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

struct hits hits_of(const struct analysis *analysis, struct arena *arena)
{
	size_t count = 0;
	for (size_t s = 0; s < analysis->data->count; s++)
		count += analysis->findings[s].count;
	struct hit *items = arena_array(arena, count, sizeof *items);
	count = 0;
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		for (size_t i = 0; i < found->count; i++)
			items[count++] = (struct hit){
				moment_of(found->series->axis, found->changes[i].index), s,
				&found->changes[i]};
	}
	qsort(items, count, sizeof *items, compare_hits);
	return (struct hits){items, count};
}

const char *timeline_attribute(
	const struct timeline *timeline, const struct moment *moment, const char *name)
{
	for (size_t a = 0; a < timeline->axis_count; a++) {
		const struct column *column = axis_column(timeline->axes[a], name);
		size_t point = column ? point_at(timeline->axes[a], moment) : SIZE_MAX;
		if (point != SIZE_MAX && column->values[point])
			return column->values[point];
	}
	return NULL;
}

struct cursor cursor_of(struct arena *arena, const struct timeline *timeline)
{
	return (struct cursor){.timeline = timeline,
		.next = arena_array(arena, timeline->axis_count, sizeof(size_t)),
		.point = arena_array(arena, timeline->axis_count, sizeof(size_t))};
}

void cursor_rewind(struct cursor *cursor)
{
	memset(cursor->next, 0, cursor->timeline->axis_count * sizeof *cursor->next);
}

bool cursor_next(struct cursor *cursor)
{
	const struct timeline *timeline = cursor->timeline;
	struct moment before = cursor->moment;
	bool found = false, first = true;
	for (size_t a = 0; a < timeline->axis_count; a++) {
		const struct axis *axis = timeline->axes[a];
		size_t next = cursor->next[a];
		first = first && next == 0;
		if (next < axis->n && (!found || axis->times[next] < cursor->moment.time)) {
			cursor->moment.time = axis->times[next];
			found = true;
		}
	}
	bool again = !first && before.time == cursor->moment.time;
	cursor->moment.ordinal = again ? before.ordinal + 1 : 0;
	for (size_t a = 0; found && a < timeline->axis_count; a++) {
		const struct axis *axis = timeline->axes[a];
		size_t next = cursor->next[a];
		bool on = next < axis->n && axis->times[next] == cursor->moment.time;
		cursor->point[a] = on ? cursor->next[a]++ : SIZE_MAX;
	}
	return found;
}

double cursor_value(const struct cursor *cursor, const struct series *series, size_t axis)
{
	size_t point = cursor->point[axis];
	return point == SIZE_MAX ? (double)NAN : series->values[point];
}

const char *cursor_attribute(const struct cursor *cursor, const char *name)
{
	const struct timeline *timeline = cursor->timeline;
	for (size_t a = 0; a < timeline->axis_count; a++) {
		size_t point = cursor->point[a];
		const struct column *column =
			point == SIZE_MAX ? NULL : axis_column(timeline->axes[a], name);
		if (column && column->values[point])
			return column->values[point];
	}
	return NULL;
}

static bool is_set(const struct timeline *timeline, const char *name)
{
	for (size_t a = 0; a < timeline->axis_count; a++) {
		const struct column *column = axis_column(timeline->axes[a], name);
		for (size_t i = 0; column && i < timeline->axes[a]->n; i++)
			if (column->values[i])
				return true;
	}
	return false;
}

static bool is_listed(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

struct strings timeline_attributes(
	struct arena *arena, const struct timeline *timeline, struct strings wanted, bool all)
{
	if (wanted.count > 0)
		return wanted;
	size_t room = 0, count = 0;
	for (size_t a = 0; a < timeline->axis_count; a++)
		room += timeline->axes[a]->column_count;
	const char **names = arena_array(arena, room, sizeof *names);
	for (size_t a = 0; a < timeline->axis_count; a++)
		for (size_t c = 0; c < timeline->axes[a]->column_count; c++) {
			const char *name = timeline->axes[a]->columns[c].name;
			if (!is_listed(names, count, name) && (all || is_set(timeline, name)))
				names[count++] = name;
		}
	return (struct strings){names, count};
}
