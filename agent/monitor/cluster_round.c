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

static void copy_shape(const struct cluster_round *round, const struct shape *shape, size_t n,
	struct round_shape *out)
{
	struct arena *arena = round->arena;

	*out = (struct round_shape){.time = shape->time,
		.sign = shape->sign,
		.direction = shape->direction,
		.regression = shape->regression,
		.size = isfinite(shape->ratio) ? 100 * (shape->ratio - 1) : (double)NAN,
		.commit_before = arena_strdup(arena, shape->commit_before),
		.commit_after = arena_strdup(arena, shape->commit_after),
		.version_before = arena_strdup(arena, shape->version_before),
		.version_after = arena_strdup(arena, shape->version_after),
		.centroid = coarse(arena, shape->centroid, n, round->point_count)};
	copy_members(arena, shape, out);
	copy_labels(arena, shape, out);
}

static void copy_times(struct cluster_round *round, const struct shape_report *report)
{
	size_t n = report->points;
	size_t parts = n < CLUSTER_ROUND_POINTS ? n : CLUSTER_ROUND_POINTS;
	int64_t *times = arena_array(round->arena, parts, sizeof *times);

	for (size_t part = 0; part < parts; part++)
		times[part] = report->times[part_begin(part, parts, n)];
	round->times = times;
	round->point_count = parts;
}

struct cluster_round *cluster_round_new(const struct shape_report *report, const int64_t *changes)
{
	struct arena *arena = arena_new();
	struct cluster_round *round = arena_alloc(arena, sizeof *round);
	size_t count;

	*round = (struct cluster_round){.arena = arena};
	if (!report)
		return round;
	count = report->count < CLUSTER_ROUND_SHAPES ? report->count : CLUSTER_ROUND_SHAPES;
	round->series = report->series;
	round->left_out = report->left_out;
	round->points = report->points;
	round->k = report->k;
	round->found = report->count;
	for (size_t i = 0; i < report->count; i++)
		round->fresh += changes[i] < 0;
	copy_times(round, report);
	round->shapes = arena_array(arena, count, sizeof *round->shapes);
	round->shape_count = count;
	for (size_t i = 0; i < count; i++) {
		copy_shape(round, &report->shapes[i], report->points, &round->shapes[i]);
		round->shapes[i].change = changes[i];
	}
	return round;
}

void cluster_round_free(struct cluster_round *round)
{
	if (round)
		arena_free(round->arena);
}

void cluster_round_recorded(struct cluster_round *round, const struct store_record *recorded)
{
	for (size_t i = 0; i < round->shape_count; i++) {
		size_t at = (size_t)(-1 - round->shapes[i].change);

		if (round->shapes[i].change < 0)
			round->shapes[i].change = at < recorded->records.count
							  ? recorded->records.items[at].item.id
							  : 0;
	}
}

/* A copy without shapes. */
static struct cluster_round *brief(const struct cluster_round *round)
{
	struct arena *arena = arena_new();
	struct cluster_round *copy = arena_alloc(arena, sizeof *copy);

	*copy = *round;
	copy->arena = arena;
	copy->problem = arena_strdup(arena, round->problem);
	copy->shapes = NULL;
	copy->times = NULL;
	copy->shape_count = copy->point_count = 0;
	return copy;
}

void cluster_rounds_add(struct cluster_rounds *rounds, struct cluster_round *round)
{
	for (size_t i = 0; i < rounds->count && !round->problem; i++) {
		struct cluster_round *old = rounds->items[i];

		if (old->shape_count == 0)
			continue;
		rounds->items[i] = brief(old);
		cluster_round_free(old);
	}
	if (rounds->count == CLUSTER_ROUNDS) {
		size_t last = CLUSTER_ROUNDS - 1;

		/* The one with the shapes stays, however many have failed since. */
		if (rounds->items[last] == rounds->detailed && round->problem)
			last--;
		cluster_round_free(rounds->items[last]);
		memmove(rounds->items + last, rounds->items + last + 1,
			(CLUSTER_ROUNDS - 1 - last) * sizeof *rounds->items);
		rounds->count--;
	}
	memmove(rounds->items + 1, rounds->items, rounds->count * sizeof *rounds->items);
	rounds->items[0] = round;
	rounds->count++;
	if (!round->problem)
		rounds->detailed = round;
}

void cluster_rounds_clear(struct cluster_rounds *rounds)
{
	for (size_t i = 0; i < rounds->count; i++)
		cluster_round_free(rounds->items[i]);
	*rounds = (struct cluster_rounds){0};
}
