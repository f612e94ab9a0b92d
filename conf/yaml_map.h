/*
 * Maps while they are read: each key once, and what `<<` brings. Private to conf/yaml.c.
 */
#ifndef CONF_YAML_MAP_H
#define CONF_YAML_MAP_H

#include "agent/core/dict.h"
#include "conf/yaml.h"

struct yaml_map {
	struct yaml_entry *entries;
	size_t count;
	struct dict keys; /* -> entry */
};

/* An empty map with room for so many entries; it lives in the arena. */
struct yaml_map yaml_map_new(struct arena *arena, size_t room);

/* Adds an entry; a key that is no scalar, or is there already, is reported and left out. */
void yaml_map_add(struct yaml_map *map, struct yaml_entry entry, struct problems *problems);

/*
 * `own` with the value of its `<<` key, a map or a list of maps. Merged keys come first, as in
 * other programs' order; the map's own win over merged ones, and earlier maps of a list over later
 * ones.
 */
struct yaml_map yaml_map_merge(
	const struct yaml_map *own, const struct yaml_node *value, struct problems *problems);

#endif
