#include "agent/monitor/cluster_round.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/model/json_put.h"

enum { NAME_MOST = 1000 }; /* bytes of a member's name */

static const char *cut_name(struct arena *arena, const char *name)
{
	return arena_strndup(arena, name, utf8_cut(name, NAME_MOST));
}

/* The first of so many points that are drawn as one. */
static size_t part_begin(size_t part, size_t parts, size_t n)
{
	return part * n / parts;
}

static const char *describe(
	struct arena *arena, const struct shape *shape, size_t points, size_t parts)
{
	struct buf text = {0}, *out = &text;

	json_put(out,
		"time: %jd time, sign: %d, direction: %d, worse: %d bool, "
		"strength: %g, size: %g, commit_before: %s, commit_after: %s, "
		"version_before: %s, version_after: %s, members: %zu, first_members: [",
		shape->time, shape->sign, shape->direction, shape->sign * shape->direction < 0,
		fabs(shape->regression), 100 * (shape->ratio - 1), shape->commit_before,
		shape->commit_after, shape->version_before, shape->version_after, shape->count);
	for (size_t i = 0; i < shape->count && i < CLUSTER_ROUND_MEMBERS; i++) {
		json_put(out, "\n{test: %s, series: %s}", cut_name(arena, shape->members[i].test),
			cut_name(arena, shape->members[i].series));
	}
	buf_text(out, "], \"shared\": [");
	for (size_t i = 0; i < shape->label_count; i++) {
		json_put(out, "\n{label: %s, share: %g, overall: %g}",
			cut_name(arena, shape->labels[i].text), shape->labels[i].share,
			shape->labels[i].overall);
	}
	buf_text(out, "], \"centroid\": [");
	for (size_t part = 0; part < parts; part++) {
		size_t from = part_begin(part, parts, points);
		size_t to = part_begin(part + 1, parts, points);
		double sum = 0;

		for (size_t i = from; i < to; i++)
			sum += (double)shape->centroid[i];
		buf_printf(out, "%s%.3f", part ? "," : "", sum / (double)(to - from));
	}
	buf_char(out, ']');
	return buf_keep(out, arena);
}

struct cluster_shapes *cluster_shapes_new(const struct shape_report *report, const int64_t *changes)
{
	struct arena *arena = arena_new();
	struct cluster_shapes *shapes = arena_alloc(arena, sizeof *shapes);
	size_t count = report->count < CLUSTER_ROUND_SHAPES ? report->count : CLUSTER_ROUND_SHAPES;
	size_t n = report->points, parts = n < CLUSTER_ROUND_POINTS ? n : CLUSTER_ROUND_POINTS;
	struct buf times = {0};

	*shapes = (struct cluster_shapes){.arena = arena,
		.round = {.series = report->series,
			.left_out = report->left_out,
			.points = n,
			.k = report->k,
			.found = report->count},
		.items = arena_array(arena, count, sizeof *shapes->items),
		.count = count};
	for (size_t i = 0; i < report->count; i++)
		shapes->round.fresh += changes[i] < 0;
	for (size_t part = 0; part < parts; part++)
		buf_printf(&times, "%s%" PRId64, part ? "," : "",
			report->times[part_begin(part, parts, n)]);
	shapes->times = buf_keep(&times, arena);
	for (size_t i = 0; i < count; i++)
		shapes->items[i] = (struct round_shape){
			changes[i], describe(arena, &report->shapes[i], n, parts)};
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
