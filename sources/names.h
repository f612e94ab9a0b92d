/*
 * A set of names, each with a number: 0 for the first that came, then 1, 2 ... For columns, metrics
 * and tags as a file brings them.
 */
#ifndef SOURCES_NAMES_H
#define SOURCES_NAMES_H

#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/hash.h"

#define NAMES_NONE SIZE_MAX

/* A zeroed struct is empty. names_free ends it; the names themselves live in the arena. */
struct names {
	const char **items;
	size_t count;
	size_t *slots; /* number + 1 of the name in each slot of the hash table, 0: empty */
	size_t slot_count;
	struct hash_key key; /* of the slots: whoever writes a file chooses its names */
};

void names_free(struct names *names);

/* The number of the name, which is added if it is new. */
size_t names_add(struct names *names, struct arena *arena, const char *text, size_t length);

/* Its number, or NAMES_NONE. */
size_t names_find(const struct names *names, const char *text, size_t length);

#endif
