/*
 * Datasets for tests: axes one day apart from 2026-01-01, with series and attributes on them.
 */
#ifndef TESTS_UNIT_DATA_H
#define TESTS_UNIT_DATA_H

#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/series.h"

#define DAY INT64_C(86400000)
#define NEW_YEAR INT64_C(1767225600000) /* 2026-01-01 */

static inline struct axis *data_axis(struct arena *arena, size_t n, int64_t start, int64_t step)
{
	struct axis *axis = arena_alloc(arena, sizeof *axis);
	axis->n = n;
	axis->times = arena_array(arena, n, sizeof *axis->times);
	for (size_t i = 0; i < n; i++)
		axis->times[i] = start + (int64_t)i * step;
	axis->columns = arena_array(arena, 4, sizeof *axis->columns);
	return axis;
}

/* `values` are the axis' n attributes, NULL where there is none. */
static inline void data_attribute(
	struct arena *arena, struct axis *axis, const char *name, const char *const *values)
{
	struct column *column = &axis->columns[axis->column_count++];
	column->name = name;
	column->values = arena_array(arena, axis->n, sizeof *column->values);
	memcpy(column->values, values, axis->n * sizeof *values);
}

/* Adds a series of the axis' n values; the dataset has room for 8. */
static inline struct series *data_series(struct arena *arena, struct dataset *data,
	struct axis *axis, const char *name, int direction, const double *values)
{
	struct metric *metric = arena_alloc(arena, sizeof *metric);
	*metric = (struct metric){.name = name, .direction = direction, .scale = 1};
	if (!data->series)
		data->series = arena_array(arena, 8, sizeof *data->series);
	struct series *series = &data->series[data->count++];
	*series = (struct series){.metric = metric, .name = name, .identity = name, .axis = axis};
	series->values = arena_array(arena, axis->n, sizeof *series->values);
	for (size_t i = 0; i < axis->n; i++)
		series->values[i] = values[i];
	return series;
}

#endif
