/*
 * A map from names to pointers, for everything the configuration looks up by name.
 *
 * A handful of names is searched one by one; more are hashed, so that files with 100,000 tests load
 * in linear time. The names are borrowed, larger tables live in the arena. A zeroed struct with its
 * arena set is an empty map.
 */
#ifndef CONF_DICT_H
#define CONF_DICT_H

#include <stddef.h>

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
	struct hash_key key;     /* of the slots: labels of series are looked up here, too */
	size_t capacity, count;
	struct dict_slot small[DICT_SMALL];
};

/* The name's value to be set; NULL in a place just made. Good until the next name is added. */
const void **dict_place(struct dict *dict, const char *name);

/* The name's value, or NULL. */
const void *dict_get(const struct dict *dict, const char *name);

#endif
