/*
 * Collected series keep their values as they came; the shapes, in single precision, are computed
 * when all have been collected. Series that are measured together share their times, and so do
 * those whose times equal those of the series before.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/shapes_collection.h"

const struct field shape_fields[] = {
	OPTION_INT(struct shape_options, k, "0", 0, 10000,
		"number of clusters; 0: 10, plus one per 750 series", .letter = 'k',
		.metavar = "N"),
	OPTION_INT(struct shape_options, seed, "1", 0, (double)(INT64_C(1) << 53),
		"random seed; the same seed gives the same clusters"),
	OPTION_DOUBLE(struct shape_options, interesting, "50", 0, 1e9,
		"minimum regression (step / error) of a reported cluster", .metavar = "R"),
	OPTION_INT(struct shape_options, least, "2", 1, 1e9,
		"minimum number of series of a reported cluster", .metavar = "N"),
	{0},
};

struct shapes *shapes_new(void)
{
	struct shapes *shapes = memory_new(1, sizeof *shapes);

	*shapes = (struct shapes){.arena = arena_new()};
	return shapes;
}

void shapes_free(struct shapes *shapes)
{
	if (!shapes)
		return;
	arena_free(shapes->arena);
	free(shapes->entries);
	free(shapes->axes);
	free(shapes);
}

static bool same_texts(const char *const *known, const struct column *column, size_t n)
{
	if (!known || !column)
		return !known && !column;
	for (size_t i = 0; i < n; i++) {
		const char *a = known[i], *b = column->values[i];

		if (a != b && (!a || !b || strcmp(a, b) != 0))
			return false;
	}
	return true;
}

static bool same_deployments(const struct deployments *a, const struct deployments *b)
{
	if (!a || !b)
		return a == b;
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (a->items[i].after != b->items[i].after ||
			a->items[i].time != b->items[i].time ||
			!deployment_same(&a->items[i], &b->items[i]))
			return false;
	return a->count == b->count;
}

static bool same_axis(const struct times *known, const struct axis *axis,
	const struct column *const columns[ATTRIBUTES])
{
	if (known->grid.n != axis->n ||
		memcmp(known->grid.times, axis->times, axis->n * sizeof *axis->times) != 0 ||
		!same_deployments(known->axis.deployments, axis->deployments))
		return false;
	for (size_t i = 0; i < ATTRIBUTES; i++)
		if (!same_texts(known->attributes[i], columns[i], axis->n))
			return false;
	return true;
}

static const char **copy_texts(struct arena *arena, const struct column *column, size_t n)
{
	const char **texts;

	if (!column)
		return NULL;
	texts = arena_array(arena, n, sizeof *texts);
	for (size_t i = 0; i < n; i++)
		texts[i] = arena_strdup(arena, column->values[i]);
	return texts;
}

static const struct deployments *copy_deployments(
	struct arena *arena, const struct deployments *deployments)
{
	struct deployments *copy;
	struct deployment *items;

	if (!deployments)
		return NULL;
	copy = arena_alloc(arena, sizeof *copy);
	items = arena_array(arena, deployments->count, sizeof *items);
	for (size_t i = 0; i < deployments->count; i++) {
		items[i] = deployments->items[i];
		items[i].commit = arena_strdup(arena, items[i].commit);
		items[i].version = arena_strdup(arena, items[i].version);
	}
	*copy = (struct deployments){items, deployments->count};
	return copy;
}

/* An axis as attribution_of needs it. */
static struct axis axis_of(
	struct arena *arena, const struct times *times, int64_t *stamps, const struct axis *axis)
{
	static const char *const names[ATTRIBUTES] = {"commit", "version"};
	struct axis copy = {.n = axis->n,
		.times = stamps,
		.columns = arena_array(arena, ATTRIBUTES, sizeof *copy.columns),
		.deployments = copy_deployments(arena, axis->deployments)};

	for (size_t i = 0; i < ATTRIBUTES; i++)
		if (times->attributes[i])
			copy.columns[copy.column_count++] =
				(struct column){names[i], times->attributes[i]};
	return copy;
}

/* The number of the axis; a new one unless it equals the last. */
static size_t axis_number(struct shapes *shapes, const struct axis *axis)
{
	const struct column *columns[ATTRIBUTES] = {
		axis_column(axis, "commit"), axis_column(axis, "version")};
	struct times *times;
	int64_t *copy;

	if (shapes->axis_count > 0 &&
		same_axis(&shapes->axes[shapes->axis_count - 1], axis, columns))
		return shapes->axis_count - 1;
	shapes->axes = memory_grow(
		shapes->axes, &shapes->axis_capacity, shapes->axis_count + 1, sizeof *shapes->axes);
	times = &shapes->axes[shapes->axis_count];
	copy = arena_array(shapes->arena, axis->n, sizeof *copy);
	memcpy(copy, axis->times, axis->n * sizeof *copy);
	times->grid = (struct grid_times){copy, axis->n};
	for (size_t i = 0; i < ATTRIBUTES; i++)
		times->attributes[i] = copy_texts(shapes->arena, columns[i], axis->n);
	times->axis = axis_of(shapes->arena, times, copy, axis);
	return shapes->axis_count++;
}

static void add_series(struct shapes *shapes, const char *test, const struct series *series)
{
	struct arena *arena = shapes->arena;
	size_t n = series->axis->n;
	struct entry entry = {.test = test,
		.series = arena_strdup(arena, series->name),
		.identity = arena_strdup(arena, series->identity),
		.unit = series->metric ? arena_strdup(arena, series->metric->unit) : NULL,
		.direction = series_direction(series),
		.axis = axis_number(shapes, series->axis),
		.values = arena_array(arena, n, sizeof *entry.values),
		.window = series->window};

	memcpy(entry.values, series->values, n * sizeof *entry.values);
	shapes->entries[shapes->count++] = entry;
}

void shapes_add(struct shapes *shapes, const char *test, const struct dataset *data)
{
	const char *name = arena_strdup(shapes->arena, test);

	shapes->entries = memory_grow(shapes->entries, &shapes->capacity,
		shapes->count + data->count, sizeof *shapes->entries);
	for (size_t i = 0; i < data->count; i++)
		add_series(shapes, name, &data->series[i]);
}

void shapes_join(struct shapes *shapes, struct shapes *others)
{
	shapes->entries = memory_grow(shapes->entries, &shapes->capacity,
		shapes->count + others->count, sizeof *shapes->entries);
	shapes->axes = memory_grow(shapes->axes, &shapes->axis_capacity,
		shapes->axis_count + others->axis_count, sizeof *shapes->axes);
	for (size_t i = 0; i < others->count; i++) {
		shapes->entries[shapes->count] = others->entries[i];
		shapes->entries[shapes->count++].axis += shapes->axis_count;
	}
	for (size_t i = 0; i < others->axis_count; i++)
		shapes->axes[shapes->axis_count++] = others->axes[i];
	arena_join(shapes->arena, others->arena);
	free(others->entries);
	free(others->axes);
	free(others);
}
