/*
 * The maps of a YAML file in the making.
 */
#include "conf/yaml_map.h"

struct yaml_map yaml_map_new(struct arena *arena, size_t room)
{
	return (struct yaml_map){.entries = arena_array(arena, room, sizeof(struct yaml_entry)),
		.keys = {.arena = arena}};
}

void yaml_map_add(struct yaml_map *map, struct yaml_entry entry, struct problems *problems)
{
	if (entry.key->kind != YAML_SCALAR) {
		problems_add(problems, false, entry.key, "a key must be a word or a text");
		return;
	}
	const void **place = dict_place(&map->keys, entry.key->text);
	const struct yaml_entry *first = *place;
	if (first) {
		problems_add(problems, false, entry.key,
			"duplicate key \"%.80s\": it is already there at line %d", entry.key->text,
			first->key->line);
		return;
	}
	*place = &map->entries[map->count];
	map->entries[map->count++] = entry;
}

/* Adds the entries; a key that is there keeps its place and takes the new value. */
static void overlay(struct yaml_map *map, const struct yaml_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const void **place = dict_place(&map->keys, entries[i].key->text);
		size_t index = map->count;
		if (*place)
			index = (size_t)((const struct yaml_entry *)*place - map->entries);
		else
			map->count++;
		map->entries[index] = entries[i];
		*place = &map->entries[index];
	}
}

static size_t merge_size(const struct yaml_node *value)
{
	if (value->kind == YAML_MAP)
		return value->count;
	size_t sum = 0;
	for (size_t i = 0; value->kind == YAML_LIST && i < value->count; i++)
		if (value->items[i]->kind == YAML_MAP)
			sum += value->items[i]->count;
	return sum;
}

struct yaml_map yaml_map_merge(
	const struct yaml_map *own, const struct yaml_node *value, struct problems *problems)
{
	struct yaml_map map = yaml_map_new(own->keys.arena, own->count + merge_size(value));
	const struct yaml_node *const *items = value->kind == YAML_LIST ? value->items : &value;
	for (size_t i = value->kind == YAML_LIST ? value->count : 1; i-- > 0;) {
		if (items[i]->kind == YAML_MAP)
			overlay(&map, items[i]->entries, items[i]->count);
		else if (!yaml_is_null(items[i]))
			problems_add(
				problems, false, items[i], "\"<<\" takes a map or a list of maps");
	}
	overlay(&map, own->entries, own->count);
	return map;
}
