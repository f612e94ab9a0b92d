/* Groups by one key for each record, then makes lists of too many groups. */
#include "agent/decide/group.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/dict.h"
#include "agent/model/announcement.h"
#include "detectors/confirm.h"

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

static int compare_first(const void *a, const void *b)
{
	const struct group_of *left = a, *right = b;

	return compare_place(&left->items[0], &right->items[0]);
}

void group_sort(const struct change_record **records, size_t count)
{
	qsort(records, count, sizeof *records, compare_place);
}

/* A message with it has no other changes than those of the same summary or event. */
static bool is_apart(const struct change_record *record)
{
	return record->summary || record->environment_event != 0;
}

static const char *key_of(
	struct arena *arena, const struct change_record *record, const char *names)
{
	if (record->summary)
		return arena_printf(arena, "summary %p", (const void *)record->summary);
	if (record->environment_event != 0)
		return arena_printf(arena, "event %lld", (long long)record->environment_event);
	return names ? names : arena_printf(arena, "i%lld", (long long)record->item.incident);
}

static void add_record(
	struct arena *arena, struct group_of *group, const struct change_record *record)
{
	group->items = arena_grow(arena, group->items, group->count, sizeof *group->items);
	group->items[group->count++] = record;
}

/* Makes a list of the groups by names, or of the incidents, if there are more. */
static size_t join(
	struct arena *arena, struct group_of *groups, size_t count, bool named, size_t most)
{
	struct group_of list = {0};
	size_t number = 0, kept = 0, old = 0;

	for (size_t i = 0; i < count; i++)
		number += !is_apart(groups[i].items[0]) && (groups[i].key != NULL) == named;
	if (number <= most)
		return count;
	for (size_t i = 0; i < count; i++) {
		if (is_apart(groups[i].items[0]) || (groups[i].key != NULL) != named) {
			groups[kept++] = groups[i];
			continue;
		}
		for (size_t j = 0; j < groups[i].count; j++) {
			add_record(arena, &list, groups[i].items[j]);
			old += groups[i].items[j]->item.change.count_after >= CONFIRM_ENOUGH;
		}
	}
	list.first_look = 2 * old > list.count;
	groups[kept++] = list;
	return kept;
}

size_t group_changes(struct arena *arena, const struct change_record *const *records,
	const struct strings *group_by, const char *const *keys, size_t count,
	struct group_of **groups)
{
	struct group_of *out = arena_array(arena, count, sizeof *out);
	struct dict known = {.arena = arena}; /* -> the group */
	size_t group_count = 0;

	for (size_t i = 0; i < count; i++) {
		const char *names = group_by[i].count > 0 ? keys[i] : NULL;
		const void **place = dict_place(&known, key_of(arena, records[i], names));
		struct group_of *group =
			*place ? (struct group_of *)(uintptr_t)*place : &out[group_count++];

		if (!*place && names && !is_apart(records[i]))
			*group = (struct group_of){.names = group_by[i], .key = names};
		*place = group;
		add_record(arena, group, records[i]);
	}
	/* Incidents without configured names to group by. */
	group_count = join(arena, out, group_count, false, GROUPS_MOST);
	group_count = join(arena, out, group_count, true, GROUPS_BY_NAMES_MOST);
	for (size_t i = 0; i < group_count; i++)
		group_sort(out[i].items, out[i].count);
	if (group_count > 0)
		qsort(out, group_count, sizeof *out, compare_first);
	*groups = out;
	return group_count;
}
