/*
 * Open addressing, at most half full.
 */
#include "agent/base/dict.h"

#include <string.h>

static bool is_name(const char *known, const char *name, size_t length)
{
	return strncmp(known, name, length) == 0 && known[length] == '\0';
}

/* The slot of the name, or the free one where it belongs. */
static struct dict_slot *probe(struct dict_slot *slots, size_t capacity, struct hash_key secret,
	const char *name, size_t length)
{
	size_t i = (size_t)hash_keyed(secret, name, length) & (capacity - 1);

	while (slots[i].name && !is_name(slots[i].name, name, length))
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

/* The position of the name in `small`, or the count if it is missing. */
static size_t find_small(const struct dict *dict, const char *name, size_t length)
{
	size_t i = 0;

	while (i < dict->count && !is_name(dict->small[i].name, name, length))
		i++;
	return i;
}

static void grow(struct dict *dict)
{
	size_t capacity = dict->slots ? dict->capacity * 2 : (size_t)4 * DICT_SMALL;
	struct dict_slot *slots = arena_array(dict->arena, capacity, sizeof *slots);
	const struct dict_slot *old = dict->slots ? dict->slots : dict->small;
	size_t old_count = dict->slots ? dict->capacity : dict->count;

	if (!dict->slots)
		dict->secret = hash_key_new();
	for (size_t i = 0; i < old_count; i++)
		if (old[i].name)
			*probe(slots, capacity, dict->secret, old[i].name, strlen(old[i].name)) =
				old[i];
	dict->slots = slots;
	dict->capacity = capacity;
}

static struct dict_slot *place_hashed(struct dict *dict, const char *name, size_t length)
{
	struct dict_slot *slot = probe(dict->slots, dict->capacity, dict->secret, name, length);

	if (slot->name || 2 * (dict->count + 1) <= dict->capacity)
		return slot;
	grow(dict);
	return probe(dict->slots, dict->capacity, dict->secret, name, length);
}

const void **dict_place(struct dict *dict, const char *name)
{
	size_t length = strlen(name);
	size_t i = dict->slots ? DICT_SMALL : find_small(dict, name, length);

	if (!dict->slots && i == DICT_SMALL)
		grow(dict);
	struct dict_slot *slot = dict->slots ? place_hashed(dict, name, length) : &dict->small[i];
	if (!slot->name) {
		slot->name = name;
		dict->count++;
	}
	return &slot->value;
}

static const void *get(const struct dict *dict, const char *name, size_t length)
{
	if (dict->slots)
		return probe(dict->slots, dict->capacity, dict->secret, name, length)->value;
	size_t i = find_small(dict, name, length);
	return i < dict->count ? dict->small[i].value : NULL;
}

const void *dict_get(const struct dict *dict, const char *name)
{
	return get(dict, name, strlen(name));
}

/* The values of the dictionary are the numbers plus 1. */
size_t name_index_find(const struct name_index *index, const char *name, size_t length)
{
	return (size_t)(uintptr_t)get(&index->dict, name, length) - 1;
}

size_t name_index_add(struct name_index *index, const char *name, size_t length)
{
	struct arena *arena = index->dict.arena;
	size_t known = name_index_find(index, name, length);

	if (known != NAME_INDEX_NONE)
		return known;
	name = arena_strndup(arena, name, length);
	index->items = arena_grow(arena, index->items, index->count, sizeof *index->items);
	index->items[index->count++] = name;
	*dict_place(&index->dict, name) = (const void *)(uintptr_t)index->count;
	return index->count - 1;
}
