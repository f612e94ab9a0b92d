/*
 * Union-find in two sweeps, by time and by commit; each compares neighbours only. The root of a
 * tree is its earliest record.
 */
#include "agent/decide/group.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/dict.h"
#include "agent/model/announcement.h"

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

/* Groups that are not formed by time and commit. */
struct special {
	struct arena *arena;
	struct group_of *items;
	size_t count, room;
	struct dict keys; /* -> number of the group, plus 1 */
};

static struct group_of *add_special(struct special *special, const char *key)
{
	const void **place = dict_place(&special->keys, key);
	size_t number = (size_t)(uintptr_t)*place;

	if (number == 0) {
		special->items[special->count] = (struct group_of){0};
		number = ++special->count;
		*place = (const void *)(uintptr_t)number;
	}
	return &special->items[number - 1];
}

/* NULL: it is grouped by time and commit. */
static struct group_of *special_of(struct special *special, const struct change_record *record,
	const struct strings *names, const char *key)
{
	struct group_of *group;

	if (record->summary)
		return add_special(special,
			arena_printf(special->arena, "summary %p", (const void *)record->summary));
	if (record->environment_event != 0)
		return add_special(special, arena_printf(special->arena, "environment %lld",
						    (long long)record->environment_event));
	if (names->count == 0)
		return NULL;
	group = add_special(special, key);
	if (!group->key) {
		group->key = key;
		group->names = *names;
	}
	return group;
}

static void add_record(
	struct arena *arena, struct group_of *group, const struct change_record *record)
{
	group->items = arena_grow(arena, group->items, group->count, sizeof *group->items);
	group->items[group->count++] = record;
}

/* Joins all groups by names if there are too many. */
static void join_named(struct special *special)
{
	struct group_of all = {0};
	size_t named = 0, count = 0;

	for (size_t i = 0; i < special->count; i++)
		named += special->items[i].key != NULL;
	if (named <= GROUPS_BY_NAMES_MOST)
		return;
	for (size_t i = 0; i < special->count; i++) {
		const struct group_of *group = &special->items[i];

		if (group->key)
			for (size_t j = 0; j < group->count; j++)
				add_record(special->arena, &all, group->items[j]);
		else
			special->items[count++] = *group;
	}
	special->items[count++] = all;
	special->count = count;
}

size_t group_changes(struct arena *arena, const struct change_record **records,
	const struct strings *group_by, const char *const *keys, size_t count,
	struct group_of **groups)
{
	const struct change_record **others = arena_array(arena, count, sizeof *others);
	struct special special = {.arena = arena,
		.items = arena_array(arena, count, sizeof *special.items),
		.keys = {.arena = arena}};
	struct group_of *rest = NULL, *group;
	size_t other_count = 0, rest_count;

	for (size_t i = 0; i < count; i++) {
		group = special_of(&special, records[i], &group_by[i], keys[i]);
		if (group)
			add_record(arena, group, records[i]);
		else
			others[other_count++] = records[i];
	}
	join_named(&special);
	for (size_t i = 0; i < special.count; i++)
		group_sort(special.items[i].items, special.items[i].count);
	rest_count = other_count > 0 ? group_records(arena, others, other_count, &rest) : 0;
	*groups = arena_array(arena, special.count + rest_count, sizeof **groups);
	memcpy(*groups, special.items, special.count * sizeof **groups);
	if (rest_count > 0)
		memcpy(*groups + special.count, rest, rest_count * sizeof **groups);
	return special.count + rest_count;
}
