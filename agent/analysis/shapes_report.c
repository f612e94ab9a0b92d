/*
 * From collected series to clusters, and from clusters to the report.
 *
 * k-means cuts a large or noisy group of series that changed alike into several clusters, so those
 * with the same change point and direction are merged. A step with fewer than EDGE points on
 * either side is not reported: a single outlier could cause it, and its position is not certain
 * yet.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/cluster.h"
#include "agent/analysis/distance.h"
#include "agent/analysis/shapes_collection.h"
#include "agent/model/labels.h"
#include "detectors/describe.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

enum {
	MOST_SHARED = 5,
	EDGE = 3,    /* fewest points on either side */
	SAME = 1,    /* points between change points that count as the same */
	SPACING = 5, /* points on either side from which the spacing is computed */
};

/* A series takes part if it has a value for at least this share of the axis. */
#define LEAST_COVER 0.5

/* The series that take part, as rows. */
struct field_of {
	const struct shapes *shapes;
	struct grid grid;
	size_t *entries; /* by row */
	float *rows;
	size_t count, stride;
	struct labels *labels;
};

static const struct entry *entry_of(const struct field_of *field, size_t row)
{
	return &field->shapes->entries[field->entries[row]];
}

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

/* The moments of the existing values at times [from, to). `room` is scratch space for all of
 * them. */
static struct moments moments_in(const struct shapes *shapes, const struct entry *entry,
	int64_t from, int64_t to, double *room)
{
	const struct grid_times *axis = &shapes->axes[entry->axis].grid;
	size_t count = 0;

	for (size_t i = 0; i < axis->n; i++)
		if (axis->times[i] >= from && axis->times[i] < to && isfinite(entry->values[i]))
			room[count++] = entry->values[i];
	return moments_of(room, count);
}

static size_t index_at(const struct grid_times *axis, int64_t time)
{
	size_t at = 0;

	while (at < axis->n && axis->times[at] < time)
		at++;
	return at;
}

/* The levels of one series. The place is the cluster's, which is more certain than the series'
 * own. */
static struct change change_of(
	const struct field_of *field, const struct entry *entry, int64_t time)
{
	const struct grid_times *axis = &field->shapes->axes[entry->axis].grid;
	double *room = memory_new(axis->n, sizeof *room);
	struct moments before = moments_in(field->shapes, entry, INT64_MIN, time, room);
	struct moments after = moments_in(field->shapes, entry, time, INT64_MAX, room + before.n);
	struct change change = {.pvalue = ttest_welch(before, after).p,
		.mean_before = before.mean,
		.mean_after = after.mean,
		.stddev_before = moments_stddev(before, 0),
		.stddev_after = moments_stddev(after, 0),
		.count_before = before.n,
		.count_after = after.n,
		.magnitude = describe_magnitude(before.mean, after.mean),
		.level_before = before.mean,
		.level_after = after.mean,
		.size = (double)NAN,
		.size_low = (double)NAN,
		.size_high = (double)NAN};

	if (before.n > 0 && after.n > 0)
		describe_step(&change, room, NULL, 0, before.n, before.n + after.n, 0);
	change.index = index_at(axis, time);
	change.place_from = change.place_to = change.index;
	change.cause_from = change.cause_to = change.index;
	free(room);
	return change;
}

/* The change of one series taken alone, with its interval of places. */
static struct change placed_change(
	const struct field_of *field, const struct entry *entry, int64_t time)
{
	const struct grid_times *axis = &field->shapes->axes[entry->axis].grid;
	double *room = memory_new(axis->n, sizeof *room);
	size_t *places = memory_new(axis->n, sizeof *places), count = 0, cut = 0;
	struct change change = {0};

	for (size_t i = 0; i < axis->n; i++) {
		if (!isfinite(entry->values[i]))
			continue;
		cut += axis->times[i] < time;
		places[count] = i;
		room[count++] = entry->values[i];
	}
	change.index = change.place_from = change.place_to = index_at(axis, time);
	if (cut > 0 && cut < count)
		describe_step(&change, room, places, 0, cut, count, 0);
	free(places);
	free(room);
	return change;
}

/* The common suspects of the members. */
static struct attribution find_suspects(const struct field_of *field, const size_t *rows,
	size_t count, int64_t time, struct arena *arena)
{
	struct attribution *members = memory_new(count, sizeof *members), common;
	struct arena *scratch = arena_new();

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = entry_of(field, rows[i]);
		struct axis *axis = &field->shapes->axes[entry->axis].axis;
		const struct series series = {
			.axis = axis, .values = entry->values, .window = entry->window};
		struct change change;

		members[i] = (struct attribution){.last = {.time = INT64_MIN}};
		if (axis->n == 0 || (axis->column_count == 0 && !axis->deployments))
			continue;
		change = placed_change(field, entry, time);
		members[i] = attribution_of(scratch, &series, &change);
	}
	common = attribution_common(scratch, members, count);
	common = attribution_copy(arena, &common);
	arena_free(scratch);
	free(members);
	return common;
}

static double median_ratio(
	const struct field_of *field, const size_t *rows, size_t count, int64_t time)
{
	double *ratios = memory_new(count, sizeof *ratios), median;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		struct change change = change_of(field, entry_of(field, rows[i]), time);
		double ratio = change.mean_after / change.mean_before;

		if (change.count_before > 0 && change.count_after > 0 && isfinite(ratio))
			ratios[found++] = ratio;
	}
	sort_sort(ratios, found);
	median = found > 0 ? ratios[found / 2] : (double)NAN;
	free(ratios);
	return median;
}

/* The attribute at the change and at the point before it, from the first row that has it. */
static void find_attribute(const struct field_of *field, const size_t *rows, size_t count,
	size_t attribute, const struct shape *shape, const char **before, const char **after)
{
	for (size_t i = 0; i < count && !*after; i++) {
		const struct times *times = &field->shapes->axes[entry_of(field, rows[i])->axis];
		const char **texts = times->attributes[attribute];
		size_t at = index_at(&times->grid, shape->time);

		if (!texts || at == times->grid.n)
			continue;
		*after = texts[at];
		*before = at > 0 ? texts[at - 1] : NULL;
	}
}

static int shared_direction(const struct field_of *field, const size_t *rows, size_t count)
{
	int direction = entry_of(field, rows[0])->direction;

	for (size_t i = 1; i < count; i++)
		if (entry_of(field, rows[i])->direction != direction)
			return 0;
	return direction;
}

static int64_t spacing_at(const struct grid *grid, size_t index)
{
	size_t first = index > SPACING ? index - SPACING : 0;
	size_t last = index + SPACING < grid->n ? index + SPACING : grid->n - 1;

	return (grid->times[last] - grid->times[first]) / (int64_t)(last - first);
}

static const float *centroid_of(
	const struct field_of *field, const size_t *rows, size_t count, struct arena *arena)
{
	size_t n = field->grid.n;
	float *centroid = arena_array(arena, n, sizeof *centroid);

	for (size_t point = 0; point < n; point++) {
		double sum = 0;

		for (size_t i = 0; i < count; i++)
			sum += (double)field->rows[rows[i] * field->stride + point];
		centroid[point] = (float)(sum / (double)count);
	}
	return centroid;
}

static struct shape describe(const struct field_of *field, const struct step_fit *fit,
	const size_t *rows, size_t count, struct arena *arena)
{
	const struct entry *best = entry_of(field, rows[0]);
	struct shape_member *members = arena_array(arena, count, sizeof *members);
	struct shape shape = {.time = field->grid.times[fit->index],
		.spacing = spacing_at(&field->grid, fit->index),
		.sign = fit->after > fit->before ? 1 : -1,
		.regression = fit->regression,
		.unit = best->unit,
		.direction = shared_direction(field, rows, count),
		.members = members,
		.count = count};

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = entry_of(field, rows[i]);

		members[i] = (struct shape_member){entry->test, entry->series, entry->identity};
	}
	shape.change = change_of(field, best, shape.time);
	shape.ratio = median_ratio(field, rows, count, shape.time);
	shape.suspects = find_suspects(field, rows, count, shape.time, arena);
	find_attribute(field, rows, count, ATTRIBUTE_COMMIT, &shape, &shape.commit_before,
		&shape.commit_after);
	find_attribute(field, rows, count, ATTRIBUTE_VERSION, &shape, &shape.version_before,
		&shape.version_after);
	shape.labels =
		labels_shared(field->labels, arena, rows, count, MOST_SHARED, &shape.label_count);
	shape.centroid = centroid_of(field, rows, count, arena);
	return shape;
}

/* A row and its distance to the centroid, for sorting. */
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

/* Writes the rows of a cluster, nearest first, and returns how many. */
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

/* A cluster whose centroid is a step. */
struct step {
	struct step_fit fit;
	size_t cluster;
	bool taken; /* merged into a shape */
};

static int compare_steps(const void *a, const void *b)
{
	const struct step *left = a, *right = b;
	double x = fabs(left->fit.regression), y = fabs(right->fit.regression);

	if (x != y)
		return x > y ? -1 : 1;
	return (left->cluster > right->cluster) - (left->cluster < right->cluster);
}

static bool is_step(const struct step_fit *fit, size_t n, double interesting)
{
	return fit->index >= EDGE && fit->index + EDGE <= n &&
	       fabs(fit->regression) >= interesting && fit->error < fit->line_error;
}

/* The clusters that are steps, largest regression first. */
static size_t find_steps(const struct field_of *field, const struct kmeans *found,
	double interesting, struct step *steps)
{
	size_t n = field->grid.n, count = 0;

	for (size_t cluster = 0; cluster < found->k; cluster++) {
		struct step_fit fit = cluster_fit(found->centroids + cluster * field->stride, n);

		if (is_step(&fit, n, interesting))
			steps[count++] = (struct step){.fit = fit, .cluster = cluster};
	}
	qsort(steps, count, sizeof *steps, compare_steps);
	return count;
}

static bool same_step(const struct step_fit *a, const struct step_fit *b)
{
	size_t apart = a->index > b->index ? a->index - b->index : b->index - a->index;

	return apart <= SAME && (a->regression > 0) == (b->regression > 0);
}

static void report(const struct field_of *field, const struct kmeans *found,
	const struct shape_options *options, struct arena *arena, struct shape_report *out)
{
	struct shape *shapes = arena_array(arena, found->k, sizeof *shapes);
	struct step *steps = memory_new(found->k, sizeof *steps);
	struct place *places = memory_new(field->count, sizeof *places);
	size_t *rows = memory_new(field->count, sizeof *rows);
	size_t step_count = find_steps(field, found, options->interesting, steps);

	for (size_t i = 0; i < step_count; i++) {
		size_t count = 0;

		for (size_t j = i; j < step_count && !steps[i].taken; j++) {
			if (steps[j].taken || !same_step(&steps[i].fit, &steps[j].fit))
				continue;
			count += rows_of(
				found, field->count, steps[j].cluster, places, rows + count);
			steps[j].taken = j > i;
		}
		if (count > 0 && count >= (size_t)options->least)
			shapes[out->count++] = describe(field, &steps[i].fit, rows, count, arena);
	}
	free(steps);
	free(places);
	free(rows);
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
		.times = field.grid.times,
		.reach = field.grid.n < EDGE ? INT64_MIN : field.grid.times[field.grid.n - EDGE],
		.k = found->k,
		.iterations = found->iterations,
		.error = found->error};
	report(&field, found, options, arena, out);
	kmeans_free(found);
	labels_free(field.labels);
	free(field.rows);
	free(field.entries);
}
