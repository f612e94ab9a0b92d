/*
 * YAML documents as trees with line and column numbers.
 *
 * libyaml parses; this module rejects input that libyaml accepts (files over the size limit, depth,
 * alias bombs and cycles, duplicate keys, invalid UTF-8, tabs), applies `<<` merge keys and returns
 * nodes that live in an arena. Problems are collected: reading continues to the end of the file
 * where possible.
 */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include <stddef.h>

#include "agent/base/arena.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node;

struct yaml_entry {
	const struct yaml_node *key, *value;
};

struct yaml_node {
	enum yaml_kind kind;
	const char *file;
	int line, column; /* from 1 */
	bool quoted;      /* a quoted or block scalar: never null, number or bool */
	const char *text; /* scalar: NUL-terminated */
	size_t count;
	const struct yaml_node *const *items; /* list */
	bool flow;                            /* a list in brackets */
	/* Of a list, from 0: the closing bracket, or the line below the last item. */
	size_t end_line, end_column;
	const struct yaml_entry *entries; /* map: in the file's order, without duplicates */
};

/* All problems of a configuration: errors and warnings as "file:line:col: text", in the order
 * found. */
struct problems {
	struct arena *arena;
	struct config_problem {
		bool warning;
		const char *text;
	} * items;
	size_t count, errors; /* items kept (at most 1,000 and a last line); errors in total */
	size_t dropped;       /* problems not kept */
};

void problems_add(struct problems *problems, bool warning, const struct yaml_node *where,
	const char *format, ...) PRINTF_LIKE(4, 5);
void problems_add_file(struct problems *problems, bool warning, const char *file, int line,
	int column, const char *format, ...) PRINTF_LIKE(6, 7);

/* Adds "... and 12 more problems" if some were not kept. */
void problems_finish(struct problems *problems);

/* The root of the file's only document, or NULL (empty file, or a problem was added). The caller
 * limits `length`. */
const struct yaml_node *yaml_parse(struct arena *arena, const char *file, const char *text,
	size_t length, struct problems *problems);

/* A map without entries, at the place of another node. */
const struct yaml_node *yaml_empty_map(struct arena *arena, const struct yaml_node *where);

/* The value of a map's key, or NULL; NULL for NULL and for a node that is not a map. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* The items of a list, or the node itself as the only one; returns their number. */
size_t yaml_items(const struct yaml_node *const *node, const struct yaml_node *const **items);

/* An unquoted null, ~ or empty scalar. */
bool yaml_is_null(const struct yaml_node *node);

#endif
