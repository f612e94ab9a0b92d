/*
 * Operations on whole datasets: sorting points and keeping a range of them.
 *
 * An axis is shared by many series, so a change of the axis applies to all of them. Points are
 * sorted through an array of their places, which is then applied to one column after the other.
 */
#include "agent/model/series.h"

#include <stdlib.h>
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

/* A point and where it was. */
struct place {
	int64_t time;
	size_t at;
};

/* column[i] becomes what it was at places[i]; `room` holds n items. All columns have items of eight
 * bytes. */
static void apply(void *column, const struct place *places, size_t n, void *room)
{
	const char *from = column;
	char *to = room;

	for (size_t i = 0; i < n; i++)
		memcpy(to + 8 * i, from + 8 * places[i].at, 8);
	memcpy(column, room, 8 * n);
}

_Static_assert(sizeof(double) == 8 && sizeof(char *) == 8, "columns of eight bytes");

static int compare_places(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return (left->at > right->at) - (left->at < right->at);
}

static void sort_axis(struct dataset *data, struct axis *axis, struct arena *scratch)
{
	struct place *places = arena_array(scratch, axis->n, sizeof *places);
	void *room = arena_array(scratch, axis->n, 8);

	for (size_t i = 0; i < axis->n; i++)
		places[i] = (struct place){axis->times[i], i};
	qsort(places, axis->n, sizeof *places, compare_places);
	apply(axis->times, places, axis->n, room);
	for (size_t i = 0; i < axis->column_count; i++)
		apply(axis->columns[i].values, places, axis->n, room);
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].axis == axis)
			apply(data->series[i].values, places, axis->n, room);
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
