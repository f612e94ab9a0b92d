/*
 * Collected series keep their numbers as they came; the shapes, in single precision, are made when
 * all are there. Series that are measured together share their times, and so do those whose times
 * are the same as those of the series before.
 */
#include "agent/shapes/shapes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shapes/grid.h"
#include "agent/shapes/labels.h"
#include "detectors/cluster.h"
#include "detectors/distance.h"

enum { MOST_SHARED = 5 };

/* A series takes part if it has a value for at least this share of the axis. */
#define LEAST_COVER 0.5

const struct field shape_fields[] = {
	{.name = "k",
		.type = FIELD_INT,
		.offset = offsetof(struct shape_options, k),
		.initial = "0",
		.max = 10000,
		.letter = 'k',
		.metavar = "N",
		.help = "clusters to make, 0: 10 and one more for 750 series"},
	{.name = "seed",
		.type = FIELD_INT,
		.offset = offsetof(struct shape_options, seed),
		.initial = "1",
		.max = (double)(INT64_C(1) << 53),
		.help = "of the clusters; the same seed gives the same ones"},
	{.name = "interesting",
		.type = FIELD_DOUBLE,
		.offset = offsetof(struct shape_options, interesting),
		.initial = "50",
		.max = 1e9,
		.metavar = "R",
		.help = "a cluster is told if its regression, step / error, is at least this"},
	{.name = "least",
		.type = FIELD_INT,
		.offset = offsetof(struct shape_options, least),
		.initial = "2",
		.min = 1,
		.max = 1e9,
		.metavar = "N",
		.help = "and if it has at least so many series"},
	{0},
};

struct entry {
	const char *test, *series, *identity;
	size_t axis;
	double *values;
};

/* Times with the commits of their points, if they have any. */
struct times {
	struct grid_times grid;
	const char **commits; /* or NULL */
};

struct shapes {
	struct arena *arena;
	struct entry *entries;
	size_t count, capacity;
	struct times *axes;
	size_t axis_count, axis_capacity;
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

static bool same_commits(const struct times *known, const struct column *column)
{
	if (!known->commits || !column)
		return !known->commits && !column;
	for (size_t i = 0; i < known->grid.n; i++) {
		const char *a = known->commits[i], *b = column->values[i];

		if (a != b && (!a || !b || strcmp(a, b) != 0))
			return false;
	}
	return true;
}

/* The axis' number; a new one unless it is like the last. */
static size_t axis_number(struct shapes *shapes, const struct axis *axis)
{
	const struct column *column = axis_column(axis, "commit");
	struct times *last = shapes->axis_count ? &shapes->axes[shapes->axis_count - 1] : NULL;
	int64_t *times;
	const char **commits = NULL;

	if (last && last->grid.n == axis->n &&
		memcmp(last->grid.times, axis->times, axis->n * sizeof *times) == 0 &&
		same_commits(last, column))
		return shapes->axis_count - 1;
	if (shapes->axis_count == shapes->axis_capacity) {
		shapes->axis_capacity = shapes->axis_capacity ? 2 * shapes->axis_capacity : 64;
		shapes->axes =
			memory_resize(shapes->axes, shapes->axis_capacity, sizeof *shapes->axes);
	}
	times = arena_array(shapes->arena, axis->n, sizeof *times);
	memcpy(times, axis->times, axis->n * sizeof *times);
	if (column) {
		commits = arena_array(shapes->arena, axis->n, sizeof *commits);
		for (size_t i = 0; i < axis->n; i++)
			commits[i] = arena_strdup(shapes->arena, column->values[i]);
	}
	shapes->axes[shapes->axis_count] = (struct times){{times, axis->n}, commits};
	return shapes->axis_count++;
}

void shapes_add(struct shapes *shapes, const char *test, const struct dataset *data)
{
	const char *name = arena_strdup(shapes->arena, test);

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];
		struct entry *entry;

		if (shapes->count == shapes->capacity) {
			shapes->capacity = shapes->capacity ? 2 * shapes->capacity : 256;
			shapes->entries = memory_resize(
				shapes->entries, shapes->capacity, sizeof *shapes->entries);
		}
		entry = &shapes->entries[shapes->count++];
		*entry = (struct entry){.test = name,
			.series = arena_strdup(shapes->arena, series->name),
			.identity = arena_strdup(shapes->arena, series->identity),
			.axis = axis_number(shapes, series->axis),
			.values =
				arena_array(shapes->arena, series->axis->n, sizeof *entry->values)};
		memcpy(entry->values, series->values, series->axis->n * sizeof *entry->values);
	}
}

/* The series that take part, as rows. */
struct field_of {
	const struct shapes *shapes;
	struct grid grid;
	size_t *entries; /* of each row */
	float *rows;
	size_t count, stride;
	struct labels *labels;
};

static struct grid grid_of(const struct shapes *shapes, struct arena *arena)
{
	struct grid_times *axes = memory_new(shapes->count, sizeof *axes);
	struct grid grid;

	for (size_t i = 0; i < shapes->count; i++)
		axes[i] = shapes->axes[shapes->entries[i].axis].grid;
	grid = grid_make(arena, axes, shapes->count);
	free(axes);
	return grid;
}

static size_t cover(const double *values, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += isnan(values[i]) ? 0 : 1;
	return count;
}

static void fill_rows(struct field_of *field)
{
	const struct shapes *shapes = field->shapes;
	size_t n = field->grid.n, *counts = memory_new(n, sizeof *counts);
	double *values = memory_new(n, sizeof *values);

	for (size_t i = 0; i < shapes->count && n > 1; i++) {
		const struct entry *entry = &shapes->entries[i];

		grid_place(&field->grid, &shapes->axes[entry->axis].grid, entry->values, values,
			counts);
		if ((double)cover(values, n) < LEAST_COVER * (double)n ||
			!cluster_shape(values, n, field->rows + field->count * field->stride,
				field->stride))
			continue;
		labels_add(field->labels, entry->test, entry->identity);
		field->entries[field->count++] = i;
	}
	free(counts);
	free(values);
}

/* A row and its distance to the centroid, to be sorted. */
struct place {
	float distance;
	size_t row;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->distance != right->distance)
		return left->distance < right->distance ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static int compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The mean of the series' values in times [from, to). */
static double level(
	const struct shapes *shapes, const struct entry *entry, int64_t from, int64_t to)
{
	const struct grid_times *axis = &shapes->axes[entry->axis].grid;
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < axis->n; i++)
		if (axis->times[i] >= from && axis->times[i] < to && isfinite(entry->values[i])) {
			sum += entry->values[i];
			count++;
		}
	return count > 0 ? sum / (double)count : (double)NAN;
}

static double median_ratio(
	const struct field_of *field, const size_t *rows, size_t count, int64_t time)
{
	double *ratios = memory_new(count, sizeof *ratios), median;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &field->shapes->entries[field->entries[rows[i]]];
		double before = level(field->shapes, entry, INT64_MIN, time);
		double after = level(field->shapes, entry, time, INT64_MAX);

		if (isfinite(after / before))
			ratios[found++] = after / before;
	}
	qsort(ratios, found, sizeof *ratios, compare_numbers);
	median = found > 0 ? ratios[found / 2] : (double)NAN;
	free(ratios);
	return median;
}

static void find_commits(
	const struct field_of *field, const size_t *rows, size_t count, struct shape *shape)
{
	for (size_t i = 0; i < count && !shape->commit_after; i++) {
		const struct entry *entry = &field->shapes->entries[field->entries[rows[i]]];
		const struct times *times = &field->shapes->axes[entry->axis];
		size_t at = 0;

		while (at < times->grid.n && times->grid.times[at] < shape->time)
			at++;
		if (!times->commits || at == times->grid.n)
			continue;
		shape->commit_after = times->commits[at];
		shape->commit_before = at > 0 ? times->commits[at - 1] : NULL;
	}
}

static struct shape describe(const struct field_of *field, const struct step_fit *fit,
	const size_t *rows, size_t count, struct arena *arena)
{
	struct shape_member *members = arena_array(arena, count, sizeof *members);
	struct shape shape = {.time = field->grid.times[fit->index],
		.sign = fit->after > fit->before ? 1 : -1,
		.regression = fit->regression,
		.members = members,
		.count = count};

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &field->shapes->entries[field->entries[rows[i]]];

		members[i] = (struct shape_member){entry->test, entry->series, entry->identity};
	}
	shape.ratio = median_ratio(field, rows, count, shape.time);
	find_commits(field, rows, count, &shape);
	shape.labels =
		labels_shared(field->labels, arena, rows, count, MOST_SHARED, &shape.label_count);
	return shape;
}

/* The rows of a cluster, nearest first. */
static size_t rows_of(
	const struct kmeans *found, size_t n, size_t cluster, struct place *places, size_t *rows)
{
	size_t count = 0;

	for (size_t row = 0; row < n; row++)
		if (found->clusters[row] == cluster)
			places[count++] = (struct place){found->distances[row], row};
	qsort(places, count, sizeof *places, compare_places);
	for (size_t i = 0; i < count; i++)
		rows[i] = places[i].row;
	return count;
}

static int compare_shapes(const void *a, const void *b)
{
	const struct shape *left = a, *right = b;
	double x = fabs(left->regression), y = fabs(right->regression);

	if (x != y)
		return x > y ? -1 : 1;
	return (left->time > right->time) - (left->time < right->time);
}

static void report(const struct field_of *field, const struct kmeans *found,
	const struct shape_options *options, struct arena *arena, struct shape_report *out)
{
	struct shape *shapes = arena_array(arena, found->k, sizeof *shapes);
	struct place *places = memory_new(field->count, sizeof *places);
	size_t *rows = memory_new(field->count, sizeof *rows);

	for (size_t cluster = 0; cluster < found->k; cluster++) {
		struct step_fit fit =
			cluster_fit(found->centroids + cluster * field->stride, field->grid.n);
		size_t count;

		if (fabs(fit.regression) < options->interesting)
			continue;
		count = rows_of(found, field->count, cluster, places, rows);
		if (count >= (size_t)options->least)
			shapes[out->count++] = describe(field, &fit, rows, count, arena);
	}
	free(places);
	free(rows);
	qsort(shapes, out->count, sizeof *shapes, compare_shapes);
	out->shapes = shapes;
}

void shapes_find(const struct shapes *shapes, const struct shape_options *options,
	const struct parallel *parallel, struct arena *arena, struct shape_report *out)
{
	struct field_of field = {.shapes = shapes, .grid = grid_of(shapes, arena)};
	struct kmeans *found;

	field.stride = distance_stride(field.grid.n);
	field.rows = memory_new(shapes->count * field.stride, sizeof *field.rows);
	field.entries = memory_new(shapes->count, sizeof *field.entries);
	field.labels = labels_new(arena);
	fill_rows(&field);
	found = kmeans_new(&(struct matrix){field.rows, field.count, field.stride},
		&(struct kmeans_options){
			.k = options->k > 0 ? (size_t)options->k : kmeans_default_k(field.count),
			.seed = (uint64_t)options->seed,
			.parallel = parallel});
	*out = (struct shape_report){.series = field.count,
		.left_out = shapes->count - field.count,
		.points = field.grid.n,
		.k = found->k,
		.iterations = found->iterations,
		.error = found->error};
	report(&field, found, options, arena, out);
	kmeans_free(found);
	labels_free(field.labels);
	free(field.rows);
	free(field.entries);
}
