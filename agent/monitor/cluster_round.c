#include "agent/monitor/cluster_round.h"

#include <math.h>
#include <string.h>

#include "agent/base/utf8.h"

enum { NAME_MOST = 1000 }; /* bytes of a member's name */

static const char *copy_name(struct arena *arena, const char *name)
{
	return arena_strndup(arena, name, utf8_cut(name, NAME_MOST));
}

/* The first of so many points that are drawn as one. */
static size_t part_begin(size_t part, size_t parts, size_t n)
{
	return part * n / parts;
}

static const float *coarse(struct arena *arena, const float *centroid, size_t n, size_t parts)
{
	float *out = arena_array(arena, parts, sizeof *out);

	for (size_t part = 0; part < parts; part++) {
		size_t from = part_begin(part, parts, n), to = part_begin(part + 1, parts, n);
		double sum = 0;

		for (size_t i = from; i < to; i++)
			sum += (double)centroid[i];
		out[part] = (float)(sum / (double)(to - from));
	}
	return out;
}

static void copy_members(struct arena *arena, const struct shape *shape, struct round_shape *out)
{
	size_t count = shape->count < CLUSTER_ROUND_MEMBERS ? shape->count : CLUSTER_ROUND_MEMBERS;
	struct shape_member *members = arena_array(arena, count, sizeof *members);

	for (size_t i = 0; i < count; i++)
		members[i] = (struct shape_member){.test = copy_name(arena, shape->members[i].test),
			.series = copy_name(arena, shape->members[i].series)};
	out->members = members;
	out->member_count = count;
	out->count = shape->count;
}

static void copy_labels(struct arena *arena, const struct shape *shape, struct round_shape *out)
{
	struct label_share *labels = arena_array(arena, shape->label_count, sizeof *labels);

	for (size_t i = 0; i < shape->label_count; i++) {
		labels[i] = shape->labels[i];
		labels[i].text = copy_name(arena, shape->labels[i].text);
	}
	out->labels = labels;
	out->label_count = shape->label_count;
}

static void copy_shape(const struct cluster_shapes *shapes, const struct shape *shape, size_t n,
	struct round_shape *out)
{
	struct arena *arena = shapes->arena;

	*out = (struct round_shape){.time = shape->time,
		.sign = shape->sign,
		.direction = shape->direction,
		.regression = shape->regression,
		.size = isfinite(shape->ratio) ? 100 * (shape->ratio - 1) : (double)NAN,
		.commit_before = arena_strdup(arena, shape->commit_before),
		.commit_after = arena_strdup(arena, shape->commit_after),
		.version_before = arena_strdup(arena, shape->version_before),
		.version_after = arena_strdup(arena, shape->version_after),
		.centroid = coarse(arena, shape->centroid, n, shapes->point_count)};
	copy_members(arena, shape, out);
	copy_labels(arena, shape, out);
}

static void copy_times(struct cluster_shapes *shapes, const struct shape_report *report)
{
	size_t n = report->points;
	size_t parts = n < CLUSTER_ROUND_POINTS ? n : CLUSTER_ROUND_POINTS;
	int64_t *times = arena_array(shapes->arena, parts, sizeof *times);

	for (size_t part = 0; part < parts; part++)
		times[part] = report->times[part_begin(part, parts, n)];
	shapes->times = times;
	shapes->point_count = parts;
}

struct cluster_shapes *cluster_shapes_new(const struct shape_report *report, const int64_t *changes)
{
	struct arena *arena = arena_new();
	struct cluster_shapes *shapes = arena_alloc(arena, sizeof *shapes);
	size_t count = report->count < CLUSTER_ROUND_SHAPES ? report->count : CLUSTER_ROUND_SHAPES;

	*shapes = (struct cluster_shapes){.arena = arena,
		.round = {.series = report->series,
			.left_out = report->left_out,
			.points = report->points,
			.k = report->k,
			.found = report->count},
		.items = arena_array(arena, count, sizeof *shapes->items),
		.count = count};
	for (size_t i = 0; i < report->count; i++)
		shapes->round.fresh += changes[i] < 0;
	copy_times(shapes, report);
	for (size_t i = 0; i < count; i++) {
		copy_shape(shapes, &report->shapes[i], report->points, &shapes->items[i]);
		shapes->items[i].change = changes[i];
	}
	return shapes;
}

void cluster_shapes_free(struct cluster_shapes *shapes)
{
	if (shapes)
		arena_free(shapes->arena);
}

void cluster_shapes_recorded(struct cluster_shapes *shapes, const struct store_record *recorded)
{
	for (size_t i = 0; i < shapes->count; i++) {
		size_t at = (size_t)(-1 - shapes->items[i].change);

		if (shapes->items[i].change < 0)
			shapes->items[i].change = at < recorded->records.count
							  ? recorded->records.items[at].item.id
							  : 0;
	}
}

void cluster_rounds_add(struct cluster_rounds *rounds, const struct cluster_round *round,
	struct cluster_shapes *shapes)
{
	rounds->count += rounds->count < CLUSTER_ROUNDS;
	memmove(rounds->items + 1, rounds->items, (rounds->count - 1) * sizeof *rounds->items);
	rounds->items[0] = *round;
	if (!shapes)
		return;
	cluster_shapes_free(rounds->shapes);
	rounds->shapes = shapes;
}

void cluster_rounds_clear(struct cluster_rounds *rounds)
{
	cluster_shapes_free(rounds->shapes);
	*rounds = (struct cluster_rounds){0};
}
