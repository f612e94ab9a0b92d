/*
 * Series that were measured together share an axis, and then rows are its points and cost nothing.
 * Others are merged here on the union of their times.
 */
#include "agent/rows.h"

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

/* Puts the earliest points that are left on one row; false if none is left. */
static bool merge_row(const struct rows *rows, size_t *next, int64_t *time, size_t *row)
{
	bool found = false;
	for (size_t a = 0; a < rows->axis_count; a++) {
		const struct axis *axis = rows->axes[a];
		if (next[a] < axis->n && (!found || axis->times[next[a]] < *time)) {
			*time = axis->times[next[a]];
			found = true;
		}
	}
	for (size_t a = 0; found && a < rows->axis_count; a++) {
		const struct axis *axis = rows->axes[a];
		row[a] = next[a] < axis->n && axis->times[next[a]] == *time ? next[a]++ : SIZE_MAX;
	}
	return found;
}

struct rows rows_of(struct arena *arena, const struct dataset *data)
{
	struct rows rows = {0};
	rows.axes = dataset_axes(data, arena, &rows.axis_count);
	if (rows.axis_count <= 1) {
		if (rows.axis_count == 1) {
			rows.count = rows.axes[0]->n;
			rows.times = rows.axes[0]->times;
		}
		return rows;
	}
	size_t *next = arena_array(arena, rows.axis_count, sizeof *next);
	size_t *row = arena_array(arena, rows.axis_count, sizeof *row);
	int64_t time = 0;
	while (merge_row(&rows, next, &time, row))
		rows.count++;
	size_t *index = arena_array(arena, rows.count * rows.axis_count, sizeof *index);
	int64_t *times = arena_array(arena, rows.count, sizeof *times);
	memset(next, 0, rows.axis_count * sizeof *next);
	for (size_t r = 0; r < rows.count; r++)
		merge_row(&rows, next, &times[r], &index[r * rows.axis_count]);
	rows.index = index;
	rows.times = times;
	return rows;
}

size_t rows_axis(const struct rows *rows, const struct series *series)
{
	size_t a = 0;
	while (rows->axes[a] != series->axis)
		a++;
	return a;
}

static size_t point_of(const struct rows *rows, size_t row, size_t axis)
{
	return rows->index ? rows->index[row * rows->axis_count + axis] : row;
}

double row_value(const struct rows *rows, size_t row, const struct series *series, size_t axis)
{
	size_t point = point_of(rows, row, axis);
	return point == SIZE_MAX ? (double)NAN : series->values[point];
}

/* The row of a point: those of its time stand together. */
static size_t row_of(const struct rows *rows, size_t axis, size_t point)
{
	if (!rows->index)
		return point;
	int64_t time = rows->axes[axis]->times[point];
	size_t low = 0, high = rows->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (rows->times[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	while (point_of(rows, low, axis) != point)
		low++;
	return low;
}

static int compare_hits(const void *left, const void *right)
{
	const struct hit *a = left, *b = right;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return (a->series > b->series) - (a->series < b->series);
}

struct hits hits_of(struct arena *arena, const struct analysis *analysis, const struct rows *rows)
{
	size_t count = 0;
	for (size_t s = 0; s < analysis->data->count; s++)
		count += analysis->findings[s].count;
	struct hit *items = arena_array(arena, count, sizeof *items);
	count = 0;
	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		size_t axis = rows_axis(rows, found->series);
		for (size_t i = 0; i < found->count; i++)
			items[count++] = (struct hit){
				row_of(rows, axis, found->changes[i].index), s, &found->changes[i]};
	}
	qsort(items, count, sizeof *items, compare_hits);
	return (struct hits){items, count};
}

const char *row_attribute(const struct rows *rows, size_t row, const char *name)
{
	for (size_t a = 0; a < rows->axis_count; a++) {
		size_t point = point_of(rows, row, a);
		const struct column *column =
			point == SIZE_MAX ? NULL : axis_column(rows->axes[a], name);
		if (column && column->values[point])
			return column->values[point];
	}
	return NULL;
}

static bool is_set(const struct rows *rows, const char *name)
{
	for (size_t a = 0; a < rows->axis_count; a++) {
		const struct column *column = axis_column(rows->axes[a], name);
		for (size_t i = 0; column && i < rows->axes[a]->n; i++)
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

struct strings rows_attributes(
	struct arena *arena, const struct rows *rows, struct strings wanted, bool all)
{
	if (wanted.count > 0)
		return wanted;
	size_t room = 0, count = 0;
	for (size_t a = 0; a < rows->axis_count; a++)
		room += rows->axes[a]->column_count;
	const char **names = arena_array(arena, room, sizeof *names);
	for (size_t a = 0; a < rows->axis_count; a++)
		for (size_t c = 0; c < rows->axes[a]->column_count; c++) {
			const char *name = rows->axes[a]->columns[c].name;
			if (!is_listed(names, count, name) && (all || is_set(rows, name)))
				names[count++] = name;
		}
	return (struct strings){names, count};
}
