/*
 * From series to clusters, and from clusters to the report.
 *
 * Collected series keep their values as they came; the shapes, in single precision, are computed
 * when all have been collected. Series that are measured together share their axis.
 *
 * k-means cuts a large or noisy group of series that changed alike into several clusters, so those
 * with the same change point and direction are merged. A step with fewer than EDGE points on
 * either side is not reported: a single outlier could cause it, and its position is not certain
 * yet.
 */
#include "agent/analysis/shapes.h"

#include <math.h>
#include <stdlib.h>

#include "agent/analysis/cluster.h"
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

struct entry {
	const char *test, *series, *identity, *unit;
	int direction;
	struct axis *axis; /* with the columns commit and version, and deployments */
	double *values;
	struct window window;
};

struct shapes {
	struct arena *arena;
	struct entry *entries;
	size_t count, capacity;
};

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

	shapes->arena = arena_new();
	return shapes;
}

void shapes_free(struct shapes *shapes)
{
	if (!shapes)
		return;
	arena_free(shapes->arena);
	free(shapes->entries);
	free(shapes);
}

/* An axis as attribution_of needs it. */
static struct axis *copy_axis(struct arena *arena, const struct axis *axis)
{
	static const char *const names[] = {"commit", "version"};
	struct axis *copy = arena_alloc(arena, sizeof *copy);

	*copy = (struct axis){.n = axis->n,
		.times = arena_copy(arena, axis->times, axis->n, sizeof *axis->times),
		.columns = arena_array(arena, sizeof names / sizeof *names, sizeof *copy->columns)};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct column *column = axis_column(axis, names[i]);
		const char **texts;

		if (!column)
			continue;
		texts = arena_array(arena, axis->n, sizeof *texts);
		for (size_t k = 0; k < axis->n; k++)
			texts[k] = arena_strdup(arena, column->values[k]);
		copy->columns[copy->column_count++] = (struct column){names[i], texts};
	}
	if (axis->deployments) {
		struct deployments *all = arena_copy(arena, axis->deployments, 1, sizeof *all);
		struct deployment *items = arena_copy(arena, all->items, all->count, sizeof *items);

		for (size_t i = 0; i < all->count; i++) {
			items[i].commit = arena_strdup(arena, items[i].commit);
			items[i].version = arena_strdup(arena, items[i].version);
		}
		all->items = items;
		copy->deployments = all;
	}
	return copy;
}

void shapes_add(struct shapes *shapes, const char *test, const struct dataset *data)
{
	struct arena *arena = shapes->arena;
	struct axis *axis = NULL;

	test = arena_strdup(arena, test);
	shapes->entries = memory_grow(shapes->entries, &shapes->capacity,
		shapes->count + data->count, sizeof *shapes->entries);
	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i];

		if (i == 0 || series->axis != series[-1].axis)
			axis = copy_axis(arena, series->axis);
		shapes->entries[shapes->count++] = (struct entry){.test = test,
			.series = arena_strdup(arena, series->name),
			.identity = arena_strdup(arena, series->identity),
			.unit = series->metric ? arena_strdup(arena, series->metric->unit) : NULL,
			.direction = series_direction(series),
			.axis = axis,
			.values =
				arena_copy(arena, series->values, axis->n, sizeof *series->values),
			.window = series->window};
	}
}

void shapes_join(struct shapes *shapes, struct shapes *others)
{
	shapes->entries = memory_grow(shapes->entries, &shapes->capacity,
		shapes->count + others->count, sizeof *shapes->entries);
	for (size_t i = 0; i < others->count; i++)
		shapes->entries[shapes->count++] = others->entries[i];
	arena_join(shapes->arena, others->arena);
	free(others->entries);
	free(others);
}

/* The series that take part, as rows. */
struct rows {
	const struct entry **entries; /* by row */
	struct grid grid;
	float *rows;
	size_t count, stride;
	struct labels *labels;
};

static struct grid_times times_of(const struct entry *entry)
{
	return (struct grid_times){entry->axis->times, entry->axis->n};
}

static void fill_rows(struct rows *rows, const struct shapes *shapes)
{
	size_t n = rows->grid.n, *counts = memory_new(n, sizeof *counts);
	double *values = memory_new(n, sizeof *values);

	for (size_t i = 0; i < shapes->count && n > 1; i++) {
		const struct entry *entry = &shapes->entries[i];
		const struct grid_times times = times_of(entry);
		size_t cover = 0;

		grid_place(&rows->grid, &times, entry->values, values, counts);
		for (size_t k = 0; k < n; k++)
			cover += isnan(values[k]) ? 0 : 1;
		if ((double)cover < LEAST_COVER * (double)n ||
			!cluster_shape(
				values, n, rows->rows + rows->count * rows->stride, rows->stride))
			continue;
		labels_add(rows->labels, entry->test, entry->identity, false);
		rows->entries[rows->count++] = entry;
	}
	free(counts);
	free(values);
}

/* The change of one series, with its own interval of places; the index is the cluster's, which is
 * more certain than the series' own. */
static struct change change_of(const struct entry *entry, int64_t time)
{
	const struct axis *axis = entry->axis;
	double *values = memory_new(axis->n, sizeof *values);
	size_t *places = memory_new(axis->n, sizeof *places), cut = 0, count = 0;
	size_t index = axis_lower_bound(axis, time);

	for (size_t i = 0; i < axis->n; i++) {
		if (!isfinite(entry->values[i]))
			continue;
		cut += axis->times[i] < time;
		places[count] = i;
		values[count++] = entry->values[i];
	}
	struct moments before = moments_of(values, cut);
	struct moments after = moments_of(values + cut, count - cut);
	struct change change = {.index = index,
		.pvalue = ttest_welch(before, after).p,
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
		.size_high = (double)NAN,
		.place_from = index,
		.place_to = index};

	if (before.n > 0 && after.n > 0)
		describe_step(&change, values, places, 0, cut, count, 0);
	free(values);
	free(places);
	return change;
}

/* The common suspects of the members. */
static struct attribution find_suspects(const struct entry *const *members,
	const struct change *changes, size_t count, struct arena *arena)
{
	struct attribution *suspects = memory_new(count, sizeof *suspects), common;
	struct arena *scratch = arena_new();

	for (size_t i = 0; i < count; i++) {
		const struct axis *axis = members[i]->axis;
		const struct series series = {.axis = members[i]->axis,
			.values = members[i]->values,
			.window = members[i]->window};

		suspects[i] = (struct attribution){.last = {.time = INT64_MIN}};
		if (axis->n > 0 && (axis->column_count > 0 || axis->deployments))
			suspects[i] = attribution_of(scratch, &series, &changes[i]);
	}
	common = attribution_common(scratch, suspects, count);
	common = attribution_copy(arena, &common);
	arena_free(scratch);
	free(suspects);
	return common;
}

static double median_ratio(const struct change *changes, size_t count)
{
	double *ratios = memory_new(count, sizeof *ratios), median;
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		double ratio = changes[i].mean_after / changes[i].mean_before;

		if (changes[i].count_before > 0 && changes[i].count_after > 0 && isfinite(ratio))
			ratios[found++] = ratio;
	}
	sort_sort(ratios, found);
	median = found > 0 ? ratios[found / 2] : (double)NAN;
	free(ratios);
	return median;
}

/* The attribute at the change and at the point before it, from the first member that has it. */
static void find_attribute(const struct entry *const *members, size_t count, const char *name,
	int64_t time, const char **before, const char **after)
{
	for (size_t i = 0; i < count && !*after; i++) {
		const struct axis *axis = members[i]->axis;
		const struct column *column = axis_column(axis, name);
		size_t at = axis_lower_bound(axis, time);

		if (!column || at == axis->n)
			continue;
		*after = column->values[at];
		*before = at > 0 ? column->values[at - 1] : NULL;
	}
}

static struct shape describe(const struct rows *rows, const struct step_fit *fit,
	const size_t *numbers, size_t count, struct arena *arena)
{
	const struct grid *grid = &rows->grid;
	const struct entry **entries = arena_array(arena, count, sizeof(const struct entry *));
	struct shape_member *members = arena_array(arena, count, sizeof *members);
	struct change *changes = memory_new(count, sizeof *changes);
	float *centroid = arena_array(arena, grid->n, sizeof *centroid);
	size_t first = fit->index > SPACING ? fit->index - SPACING : 0;
	size_t last = fit->index + SPACING < grid->n ? fit->index + SPACING : grid->n - 1;
	struct shape shape = {.time = grid->times[fit->index],
		.spacing = (grid->times[last] - grid->times[first]) / (int64_t)(last - first),
		.sign = fit->after > fit->before ? 1 : -1,
		.regression = fit->regression,
		.members = members,
		.count = count,
		.centroid = centroid};

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = entries[i] = rows->entries[numbers[i]];

		members[i] = (struct shape_member){entry->test, entry->series, entry->identity};
		changes[i] = change_of(entry, shape.time);
		shape.direction =
			i == 0 || entry->direction == shape.direction ? entry->direction : 0;
	}
	for (size_t point = 0; point < grid->n; point++) {
		double sum = 0;

		for (size_t i = 0; i < count; i++)
			sum += (double)rows->rows[numbers[i] * rows->stride + point];
		centroid[point] = (float)(sum / (double)count);
	}
	shape.unit = entries[0]->unit;
	shape.ratio = median_ratio(changes, count);
	shape.suspects = find_suspects(entries, changes, count, arena);
	shape.change = changes[0];
	shape.change.place_from = shape.change.place_to = shape.change.index;
	shape.change.cause_from = shape.change.cause_to = shape.change.index;
	free(changes);
	find_attribute(
		entries, count, "commit", shape.time, &shape.commit_before, &shape.commit_after);
	find_attribute(
		entries, count, "version", shape.time, &shape.version_before, &shape.version_after);
	shape.labels =
		labels_shared(rows->labels, arena, numbers, count, MOST_SHARED, &shape.label_count);
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

/* The clusters that are steps, largest regression first. */
static size_t find_steps(
	const struct rows *rows, const struct kmeans *found, double interesting, struct step *steps)
{
	size_t n = rows->grid.n, count = 0;

	for (size_t cluster = 0; cluster < found->k; cluster++) {
		struct step_fit fit = cluster_fit(found->centroids + cluster * rows->stride, n);

		if (fit.index >= EDGE && fit.index + EDGE <= n &&
			fabs(fit.regression) >= interesting && fit.error < fit.line_error)
			steps[count++] = (struct step){.fit = fit, .cluster = cluster};
	}
	qsort(steps, count, sizeof *steps, compare_steps);
	return count;
}

static void report(const struct rows *rows, const struct kmeans *found,
	const struct shape_options *options, struct arena *arena, struct shape_report *out)
{
	struct shape *shapes = arena_array(arena, found->k, sizeof *shapes);
	struct step *steps = memory_new(found->k, sizeof *steps);
	struct place *places = memory_new(rows->count, sizeof *places);
	size_t *numbers = memory_new(rows->count, sizeof *numbers);
	size_t step_count = find_steps(rows, found, options->interesting, steps);

	for (size_t i = 0; i < step_count; i++) {
		size_t count = 0;

		for (size_t j = i; j < step_count && !steps[i].taken; j++) {
			size_t begin = count;

			size_t one = steps[i].fit.index, other = steps[j].fit.index;
			if (steps[j].taken || one > other + SAME || other > one + SAME ||
				(steps[i].fit.regression > 0) != (steps[j].fit.regression > 0))
				continue;
			for (size_t row = 0; row < rows->count; row++)
				if (found->clusters[row] == steps[j].cluster)
					places[count++] =
						(struct place){found->distances[row], row};
			qsort(places + begin, count - begin, sizeof *places, compare_places);
			steps[j].taken = j > i;
		}
		for (size_t k = 0; k < count; k++)
			numbers[k] = places[k].row;
		if (count > 0 && count >= (size_t)options->least)
			shapes[out->count++] = describe(rows, &steps[i].fit, numbers, count, arena);
	}
	free(steps);
	free(places);
	free(numbers);
	out->shapes = shapes;
}

void shapes_find(const struct shapes *shapes, const struct shape_options *options,
	const struct parallel *parallel, struct arena *arena, struct shape_report *out)
{
	struct grid_times *axes = memory_new(shapes->count, sizeof *axes);
	struct rows rows = {.entries = memory_new(shapes->count, sizeof(const struct entry *)),
		.labels = labels_new(arena)};
	struct kmeans *found;

	for (size_t i = 0; i < shapes->count; i++)
		axes[i] = times_of(&shapes->entries[i]);
	rows.grid = grid_make(arena, axes, shapes->count);
	rows.stride = kmeans_stride(rows.grid.n);
	rows.rows = memory_new(shapes->count * rows.stride, sizeof *rows.rows);
	fill_rows(&rows, shapes);
	found = kmeans_new(&(struct matrix){rows.rows, rows.count, rows.stride},
		&(struct kmeans_options){
			.k = options->k > 0 ? (size_t)options->k : kmeans_default_k(rows.count),
			.seed = (uint64_t)options->seed,
			.parallel = parallel});
	*out = (struct shape_report){.series = rows.count,
		.left_out = shapes->count - rows.count,
		.points = rows.grid.n,
		.times = rows.grid.times,
		.reach = rows.grid.n < EDGE ? INT64_MIN : rows.grid.times[rows.grid.n - EDGE],
		.k = found->k,
		.iterations = found->iterations,
		.error = found->error};
	report(&rows, found, options, arena, out);
	kmeans_free(found);
	labels_free(rows.labels);
	free(axes);
	free(rows.rows);
	free(rows.entries);
}
