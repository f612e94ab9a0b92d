/*
 * Packed: each point as its time, and the bits of its value, little-endian.
 */
#include "agent/model/excerpt.h"

#include <endian.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"

/* Times in ms of either sign. */
#define MOST_TIME (INT64_C(1) << 53)

struct point {
	uint64_t time, value;
};

_Static_assert(EXCERPT_MOST * sizeof(struct point) == EXCERPT_BYTES, "an excerpt fits");

static bool is_shown(int64_t time, double value)
{
	return isfinite(value) && time >= -MOST_TIME && time <= MOST_TIME;
}

struct points {
	struct point items[EXCERPT_MOST];
	size_t n;
};

/* Distances between values must be finite, too. */
static void add(struct points *out, int64_t time, double value)
{
	struct point *point = &out->items[out->n++];

	value = fmax(-DBL_MAX / 4, fmin(DBL_MAX / 4, value));
	memcpy(&point->value, &value, sizeof value);
	point->value = htole64(point->value);
	point->time = htole64((uint64_t)time);
}

/* The lowest and the highest of each of EXCERPT_SIDE equal parts. */
static void thin(struct points *out, const int64_t *times, const double *values, size_t n)
{
	for (size_t part = 0; part < EXCERPT_SIDE; part++) {
		size_t from = part * n / EXCERPT_SIDE, to = (part + 1) * n / EXCERPT_SIDE;
		size_t low = to, high = to;

		for (size_t i = from; i < to; i++) {
			if (!is_shown(times[i], values[i]))
				continue;
			low = low == to || values[i] < values[low] ? i : low;
			high = high == to || values[i] > values[high] ? i : high;
		}
		if (low == to)
			continue;
		add(out, times[low < high ? low : high], values[low < high ? low : high]);
		if (low != high)
			add(out, times[low < high ? high : low], values[low < high ? high : low]);
	}
}

struct packed_excerpt excerpt_pack(struct arena *arena, const int64_t *times, const double *values,
	size_t n, size_t first, size_t last)
{
	size_t from = first > EXCERPT_SIDE ? first - EXCERPT_SIDE : 0;
	size_t to = last < n && n - last > EXCERPT_SIDE ? last + EXCERPT_SIDE + 1 : n;
	struct points points = {.n = 0};

	if (from < to && to - from > EXCERPT_MOST)
		thin(&points, times + from, values + from, to - from);
	else
		for (size_t i = from; i < to; i++)
			if (is_shown(times[i], values[i]))
				add(&points, times[i], values[i]);
	if (points.n == 0)
		return (struct packed_excerpt){0};
	return (struct packed_excerpt){
		arena_copy(arena, points.items, points.n, sizeof *points.items),
		points.n * sizeof *points.items};
}

bool excerpt_unpack(struct arena *arena, struct packed_excerpt packed, struct excerpt *out)
{
	size_t n = packed.length / sizeof(struct point);
	int64_t *times;
	double *values;

	*out = (struct excerpt){0};
	if (packed.length > EXCERPT_BYTES || packed.length != n * sizeof(struct point))
		return false;
	times = arena_array(arena, n, sizeof *times);
	values = arena_array(arena, n, sizeof *values);
	for (size_t i = 0; i < n; i++) {
		struct point point;

		memcpy(&point, packed.bytes + i * sizeof point, sizeof point);
		times[i] = (int64_t)le64toh(point.time);
		point.value = le64toh(point.value);
		memcpy(&values[i], &point.value, sizeof values[i]);
		if (!is_shown(times[i], values[i]) || (i > 0 && times[i] < times[i - 1]))
			return false;
	}
	*out = (struct excerpt){n, times, values};
	return true;
}
