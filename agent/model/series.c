/*
 * Operations on whole datasets: sorting points and keeping a range of them.
 *
 * An axis is shared by many series, so a change of the axis applies to all of them. Points are
 * sorted through an array of positions (a bottom-up merge sort, hence stable), which is then
 * applied to one column after the other.
 */
#include "agent/model/series.h"

#include <string.h>

#include "agent/base/arena.h"

const struct column *axis_column(const struct axis *axis, const char *name)
{
	for (size_t i = 0; i < axis->column_count; i++)
		if (strcmp(axis->columns[i].name, name) == 0)
			return &axis->columns[i];
	return NULL;
}

size_t times_lower_bound(const int64_t *times, size_t n, int64_t ms)
{
	size_t from = 0, to = n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (times[middle] < ms)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

size_t axis_lower_bound(const struct axis *axis, int64_t ms)
{
	return times_lower_bound(axis->times, axis->n, ms);
}

static bool is_sorted(const struct axis *axis)
{
	for (size_t i = 1; i < axis->n; i++)
		if (axis->times[i] < axis->times[i - 1])
			return false;
	return true;
}

/* Merges the sorted halves [from, middle) and [middle, to) of `in` into `out`. */
static void merge(
	const int64_t *times, const size_t *in, size_t *out, size_t from, size_t middle, size_t to)
{
	size_t left = from, right = middle;

	for (size_t i = from; i < to; i++)
		if (left < middle && (right >= to || times[in[left]] <= times[in[right]]))
			out[i] = in[left++];
		else
			out[i] = in[right++];
}

/* The positions of the points in order of time. Both arrays hold n items; one of them is
 * returned. */
static size_t *sorted_positions(const int64_t *times, size_t n, size_t *positions, size_t *other)
{
	for (size_t i = 0; i < n; i++)
		positions[i] = i;
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t from = 0; from < n; from += 2 * width) {
			size_t middle = n - from > width ? from + width : n;
			size_t to = n - from > 2 * width ? from + 2 * width : n;

			merge(times, positions, other, from, middle, to);
		}
		size_t *swap = positions;
		positions = other;
		other = swap;
	}
	return positions;
}

/* column[i] becomes what column[positions[i]] was; `room` holds n items. All columns have items of
 * eight bytes. */
static void apply(void *column, const size_t *positions, size_t n, void *room)
{
	const char *from = column;
	char *to = room;

	for (size_t i = 0; i < n; i++)
		memcpy(to + 8 * i, from + 8 * positions[i], 8);
	memcpy(column, room, 8 * n);
}

_Static_assert(sizeof(double) == 8 && sizeof(char *) == 8, "columns of eight bytes");

static void sort_axis(struct dataset *data, struct axis *axis, struct arena *scratch)
{
	size_t *one = arena_array(scratch, axis->n, sizeof *one);
	size_t *two = arena_array(scratch, axis->n, sizeof *two);
	size_t *positions = sorted_positions(axis->times, axis->n, one, two);
	void *room = positions == one ? two : one;

	apply(axis->times, positions, axis->n, room);
	for (size_t i = 0; i < axis->column_count; i++)
		apply(axis->columns[i].values, positions, axis->n, room);
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].axis == axis)
			apply(data->series[i].values, positions, axis->n, room);
}

bool dataset_sort(struct dataset *data, struct arena *scratch)
{
	bool moved = false;

	for (size_t i = 0; i < data->count; i++) {
		if (is_sorted(data->series[i].axis))
			continue;
		sort_axis(data, data->series[i].axis, scratch);
		moved = true;
	}
	return moved;
}

void dataset_keep(struct dataset *data, struct axis *axis, size_t from, size_t to)
{
	axis->times += from;
	axis->n = to - from;
	for (size_t i = 0; i < axis->column_count; i++)
		axis->columns[i].values += from;
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].axis == axis)
			data->series[i].values += from;
}
