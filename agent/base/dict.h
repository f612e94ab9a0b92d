/*
 * The hash table: a map from names to pointers, and an index that numbers names.
 *
 * A handful of names is searched linearly; more are hashed, so that files with 100,000 tests
 * load in linear time. Names come from outside, so the hash has a secret key. Names cannot be
 * removed. Names are borrowed, larger tables live in the arena. A zeroed struct with its arena
 * set is empty.
 */
#ifndef AGENT_BASE_DICT_H
#define AGENT_BASE_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/hash.h"

enum { DICT_SMALL = 8 };

struct dict_slot {
	const char *name; /* NULL: free */
	const void *value;
};

struct dict {
	struct arena *arena;
	struct dict_slot *slots; /* NULL while the names fit into `small` */
	struct hash_key secret;
	size_t capacity, count;
	struct dict_slot small[DICT_SMALL];
};

/* Where the name's value is stored, for the caller to set; NULL in a new entry. Valid until the
 * next name is added. */
const void **dict_place(struct dict *dict, const char *name);

/* The name's value, or NULL. */
const void *dict_get(const struct dict *dict, const char *name);

#define NAME_INDEX_NONE SIZE_MAX

/* Names in the order of adding, each with a number: 0, 1, 2 ... A zeroed struct with
 * `.dict.arena` set is empty; the names are copied to that arena. */
struct name_index {
	struct dict dict;
	const char **items;
	size_t count;
};

/* The number of the name, whose `length` bytes contain no NUL; adds a new name. */
size_t name_index_add(struct name_index *index, const char *name, size_t length);

/* Its number, or NAME_INDEX_NONE. */
size_t name_index_find(const struct name_index *index, const char *name, size_t length);

#endif
