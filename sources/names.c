/*
 * An open hash table at most half full.
 */
#include "sources/names.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64 };

void names_free(struct names *names)
{
	free(names->items);
	free(names->slots);
	*names = (struct names){0};
}

/* The slot that holds the name, or the empty one where it belongs. */
static size_t *find_slot(const struct names *names, const char *text, size_t length)
{
	for (size_t at = (size_t)hash_keyed(names->key, text, length);; at++) {
		size_t *slot = &names->slots[at & (names->slot_count - 1)];

		if (!*slot)
			return slot;
		const char *known = names->items[*slot - 1];
		if (strncmp(known, text, length) == 0 && known[length] == '\0')
			return slot;
	}
}

static void grow(struct names *names)
{
	size_t count = names->slot_count ? 2 * names->slot_count : FIRST_SLOTS;

	if (!names->slots)
		names->key = hash_key_new();
	free(names->slots);
	names->slots = memory_new(count, sizeof *names->slots);
	names->slot_count = count;
	names->items = memory_resize(names->items, count / 2, sizeof *names->items);
	for (size_t i = 0; i < names->count; i++)
		*find_slot(names, names->items[i], strlen(names->items[i])) = i + 1;
}

size_t names_add(struct names *names, struct arena *arena, const char *text, size_t length)
{
	if (names->count == names->slot_count / 2)
		grow(names);
	size_t *slot = find_slot(names, text, length);
	if (!*slot) {
		names->items[names->count++] = arena_strndup(arena, text, length);
		*slot = names->count;
	}
	return *slot - 1;
}

size_t names_find(const struct names *names, const char *text, size_t length)
{
	if (!names->count)
		return NAMES_NONE;
	size_t number = *find_slot(names, text, length);
	return number ? number - 1 : NAMES_NONE;
}
