/*
 * The hash table: a map from names to pointers, and an index that numbers names.
 *
 * A handful of names is searched one by one; more are hashed, so that files with 100,000 tests load
 * in linear time. Names come from outside, so the hash has a secret key of its own. Nothing is
 * taken out. Names are borrowed, larger tables live in the arena. A zeroed struct with its arena
 * set is empty.
 */
#ifndef CORE_DICT_H
#define CORE_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"

enum { DICT_SMALL = 8 };

struct dict_slot {
	const char *name; /* NULL: free */
	const void *value;
};

struct dict {
	struct arena *arena;
	struct dict_slot *slots; /* NULL as long as the names fit into `small` */
	struct hash_key secret;
	size_t capacity, count;
	struct dict_slot small[DICT_SMALL];
};

/* The name's value to be set; NULL in a place just made. Good until the next name is added. */
const void **dict_place(struct dict *dict, const char *name);

/* The name's value, or NULL. */
const void *dict_get(const struct dict *dict, const char *name);

#define NAME_INDEX_NONE SIZE_MAX

/* Names in the order in which they came, each with a number: 0, 1, 2 ... A zeroed struct with
 * `.dict.arena` set is empty; the names are copies in that arena. */
struct name_index {
	struct dict dict;
	const char **items;
	size_t count;
};

/* The number of the name, `length` bytes none of which is NUL, which is added if it is new. */
size_t name_index_add(struct name_index *index, const char *name, size_t length);

/* Its number, or NAME_INDEX_NONE. */
size_t name_index_find(const struct name_index *index, const char *name, size_t length);

#endif
