/*
 * Union-find in two sweeps, by time and by commit; each compares neighbours only. The root of a
 * tree is its earliest record.
 */
#include "agent/notify/group.h"

#include <stdlib.h>
#include <string.h>

#include "notifiers/text.h"

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int compare_place(const void *a, const void *b)
{
	const struct change_record *left = *(const struct change_record *const *)a;
	const struct change_record *right = *(const struct change_record *const *)b;
	int order;

	if (left->item.time != right->item.time)
		return left->item.time < right->item.time ? -1 : 1;
	order = strcmp(left->item.test, right->item.test);
	if (order == 0)
		order = announcement_compare_weight(&left->item, &right->item);
	if (order == 0)
		order = strcmp(left->item.metric, right->item.metric);
	if (order == 0)
		order = strcmp(left->series, right->series);
	if (order == 0)
		order = (left->item.id > right->item.id) - (left->item.id < right->item.id);
	return order;
}

/* A record's index in time order, with its commit. */
struct mark {
	const char *commit;
	size_t index;
};

static int compare_marks(const void *a, const void *b)
{
	const struct mark *left = a, *right = b;
	int order = compare_text(left->commit, right->commit);

	return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

static size_t root(size_t *parents, size_t index)
{
	while (parents[index] != index) {
		parents[index] = parents[parents[index]];
		index = parents[index];
	}
	return index;
}

static void join(size_t *parents, size_t a, size_t b)
{
	a = root(parents, a);
	b = root(parents, b);
	if (a < b)
		parents[b] = a;
	else
		parents[a] = b;
}

/* Compares with the first record of the group, so that a chain of neighbours does not grow into a
 * month. */
static bool near(const struct change_record *first, const struct change_record *other)
{
	return change_near(first->item.time, first->spacing, other->item.time, other->spacing);
}

static void join_times(const struct change_record *const *items, size_t count, size_t *parents)
{
	size_t first = 0;

	for (size_t i = 1; i < count; i++)
		if (near(items[first], items[i]))
			join(parents, first, i);
		else
			first = i;
}

static void join_commits(struct arena *arena, const struct change_record *const *items,
	size_t count, size_t *parents)
{
	struct mark *marks = arena_array(arena, count, sizeof *marks);

	for (size_t i = 0; i < count; i++)
		marks[i] = (struct mark){items[i]->item.commit_after, i};
	qsort(marks, count, sizeof *marks, compare_marks);
	for (size_t i = 1; i < count; i++)
		if (marks[i].commit && *marks[i].commit &&
			compare_text(marks[i].commit, marks[i - 1].commit) == 0)
			join(parents, marks[i - 1].index, marks[i].index);
}

static size_t collect(struct arena *arena, const struct change_record **items, size_t count,
	size_t *parents, struct group_of **groups)
{
	struct group_of *out = arena_array(arena, count, sizeof *out);
	size_t *numbers = arena_array(arena, count, sizeof *numbers);
	size_t group_count = 0;

	for (size_t i = 0; i < count; i++) {
		size_t first = root(parents, i);

		if (first == i)
			numbers[i] = group_count++;
		out[numbers[first]].count++;
	}
	for (size_t i = 0; i < group_count; i++) {
		out[i].items = arena_array(arena, out[i].count, sizeof *out[i].items);
		out[i].count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct group_of *group = &out[numbers[root(parents, i)]];

		group->items[group->count++] = items[i];
	}
	*groups = out;
	return group_count;
}

void group_sort(const struct change_record **records, size_t count)
{
	qsort(records, count, sizeof *records, compare_place);
}

size_t group_records(struct arena *arena, const struct change_record *const *records, size_t count,
	struct group_of **groups)
{
	const struct change_record **items = arena_array(arena, count, sizeof *items);
	size_t *parents = arena_array(arena, count, sizeof *parents), group_count;

	for (size_t i = 0; i < count; i++) {
		items[i] = records[i];
		parents[i] = i;
	}
	group_sort(items, count);
	join_times(items, count, parents);
	join_commits(arena, items, count, parents);
	group_count = collect(arena, items, count, parents, groups);
	if (group_count <= GROUPS_MOST)
		return group_count;
	*groups = arena_alloc(arena, sizeof **groups);
	**groups = (struct group_of){.items = items, .count = count};
	return 1;
}
