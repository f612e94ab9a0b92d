/*
 * Open addressing, at most half full. Nothing is ever removed.
 */
#include "conf/dict.h"

#include <string.h>

static struct dict_slot *probe(
	struct hash_key key, struct dict_slot *slots, size_t capacity, const char *name)
{
	size_t i = (size_t)hash_keyed(key, name, strlen(name)) & (capacity - 1);
	while (slots[i].name && strcmp(slots[i].name, name) != 0)
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

/* Where the name is among the small ones; their count if it is not. */
static size_t find_small(const struct dict *dict, const char *name)
{
	size_t i = 0;
	while (i < dict->count && strcmp(dict->small[i].name, name) != 0)
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
		dict->key = hash_key_new();
	for (size_t i = 0; i < old_count; i++)
		if (old[i].name)
			*probe(dict->key, slots, capacity, old[i].name) = old[i];
	dict->slots = slots;
	dict->capacity = capacity;
}

static struct dict_slot *place_hashed(struct dict *dict, const char *name)
{
	struct dict_slot *slot = probe(dict->key, dict->slots, dict->capacity, name);
	if (slot->name || 2 * (dict->count + 1) <= dict->capacity)
		return slot;
	grow(dict);
	return probe(dict->key, dict->slots, dict->capacity, name);
}

const void **dict_place(struct dict *dict, const char *name)
{
	size_t i = dict->slots ? DICT_SMALL : find_small(dict, name);
	if (!dict->slots && i == DICT_SMALL)
		grow(dict);
	struct dict_slot *slot = dict->slots ? place_hashed(dict, name) : &dict->small[i];
	if (!slot->name) {
		slot->name = name;
		dict->count++;
	}
	return &slot->value;
}

const void *dict_get(const struct dict *dict, const char *name)
{
	if (dict->slots)
		return probe(dict->key, dict->slots, dict->capacity, name)->value;
	size_t i = find_small(dict, name);
	return i < dict->count ? dict->small[i].value : NULL;
}
