/*
 * Builds trees from libyaml's events. libyaml's own document tree is not used: it allows alias
 * cycles and duplicate keys and has no limits. Here depth, number of values and the expansion of
 * aliases are limited while the tree is built. An alias shares its node, so memory is linear in the
 * file; the count with all aliases expanded is limited, since that is what a walk over the tree
 * visits.
 */
#include "conf/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/utf8.h"
#include "conf/reference.h"

/*
 * Maps while they are read: each key once, and the effect of `<<`.
 *
 * A map that is being built.
 */

struct yaml_map {
	struct yaml_entry *entries;
	size_t count;
	struct dict keys; /* -> entry */
};

/* An empty map in the arena, with room for so many entries. */
static struct yaml_map yaml_map_new(struct arena *arena, size_t room)
{
	return (struct yaml_map){.entries = arena_array(arena, room, sizeof(struct yaml_entry)),
		.keys = {.arena = arena}};
}

/* Adds an entry; a duplicate key, or one that is not a scalar, is reported and left out. */
static void yaml_map_add(struct yaml_map *map, struct yaml_entry entry, struct problems *problems)
{
	if (entry.key->kind != YAML_SCALAR) {
		problems_add(problems, false, entry.key, "a key must be a scalar");
		return;
	}
	const void **place = dict_place(&map->keys, entry.key->text);
	const struct yaml_entry *first = *place;
	if (first) {
		problems_add(problems, false, entry.key,
			"duplicate key \"%.80s\": first defined at line %d", entry.key->text,
			first->key->line);
		return;
	}
	*place = &map->entries[map->count];
	map->entries[map->count++] = entry;
}

/* Adds the entries; an existing key keeps its place and takes the new value. */
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

/*
 * `own` merged with the value of its `<<` key, a map or a list of maps. As in other programs merged
 * keys come first; the map's own override merged ones, and earlier maps of a list later ones.
 */
static struct yaml_map yaml_map_merge(
	const struct yaml_map *own, const struct yaml_node *value, struct problems *problems)
{
	const struct yaml_node *const *items;
	size_t count = yaml_items(&value, &items), room = own->count;
	for (size_t i = 0; i < count; i++)
		room += items[i]->kind == YAML_MAP ? items[i]->count : 0;
	struct yaml_map map = yaml_map_new(own->keys.arena, room);
	for (size_t i = count; i-- > 0;) {
		if (items[i]->kind == YAML_MAP)
			overlay(&map, items[i]->entries, items[i]->count);
		else if (!yaml_is_null(items[i]))
			problems_add(problems, false, items[i],
				"\"<<\": expected a map or a list of maps");
	}
	overlay(&map, own->entries, own->count);
	return map;
}

enum { DEPTH_MAX = 100, VALUES_MAX = 5000000 };

struct anchor {
	const struct yaml_node *node; /* NULL while it is being read */
	size_t values;
};

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	struct problems *problems;
	const char *file, *text;
	size_t length;
	bool guarded;  /* references_guard has changed the text */
	size_t values; /* nodes so far, with aliases expanded */
	struct dict anchors;
	const struct yaml_node **stack; /* children of the open nodes */
	size_t stack_count, stack_capacity;
	yaml_mark_t last; /* start of the last scalar, alias or closing bracket */
	size_t below;     /* the line below it */
};

static const struct yaml_node *read_node(struct reader *reader, yaml_event_t *event, int depth);

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (size_t i = 0; i < map->count; i++)
		if (strcmp(map->entries[i].key->text, key) == 0)
			return map->entries[i].value;
	return NULL;
}

const struct yaml_node *yaml_empty_map(struct arena *arena, const struct yaml_node *where)
{
	struct yaml_node *map = arena_alloc(arena, sizeof *map);
	*map = (struct yaml_node){.kind = YAML_MAP,
		.file = where->file,
		.line = where->line,
		.column = where->column};
	return map;
}

size_t yaml_items(const struct yaml_node *const *node, const struct yaml_node *const **items)
{
	*items = (*node)->kind == YAML_LIST ? (*node)->items : node;
	return (*node)->kind == YAML_LIST ? (*node)->count : 1;
}

bool yaml_is_null(const struct yaml_node *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	if (node->kind != YAML_SCALAR || node->quoted)
		return false;
	for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
		if (strcmp(node->text, nulls[i]) == 0)
			return true;
	return false;
}

static bool fail(const struct reader *reader, yaml_mark_t mark, const char *text)
{
	problems_add_file(reader->problems, false, reader->file, (int)mark.line + 1,
		(int)mark.column + 1, "%s", text);
	return false;
}

/* The byte at a mark. Marks count characters, so it is found from the start of the line. */
static char byte_at(const struct reader *reader, yaml_mark_t mark)
{
	const char *c = reader->text, *end = reader->text + reader->length;
	for (size_t line = 0; line < mark.line && c; line++) {
		c = memchr(c, '\n', (size_t)(end - c));
		c = c ? c + 1 : NULL;
	}
	for (size_t column = 0; c && c < end && column < mark.column; column++)
		do
			c++;
		while (c < end && ((unsigned char)*c & 0xc0) == 0x80);
	return c && c < end ? *c : '\0';
}

/* Reports invalid encoding by line, column and byte; libyaml gives only an offset near it. */
static bool fail_encoding(const struct reader *reader)
{
	bool control = strstr(reader->parser.problem, "control") != NULL;
	size_t end = control ? reader->parser.problem_offset : reader->length, i = 0;
	yaml_mark_t mark = {0};
	while (i < end && i < reader->length) {
		size_t n = utf8_length(reader->text + i, reader->length - i);
		if (n == 0)
			break;
		mark.column = reader->text[i] == '\n' ? 0 : mark.column + 1;
		mark.line += reader->text[i] == '\n';
		i += n;
	}
	return fail(reader, mark,
		control ? arena_printf(reader->arena, "a control character (code %d)",
				  reader->parser.problem_value)
			: arena_printf(reader->arena, "not UTF-8: byte 0x%02x",
				  i < reader->length ? (unsigned)(unsigned char)reader->text[i]
						     : 0));
}

static bool fail_syntax(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	if (parser->error == YAML_READER_ERROR)
		return fail_encoding(reader);
	if (byte_at(reader, parser->problem_mark) == '\t')
		return fail(
			reader, parser->problem_mark, "a tab character: indent YAML with spaces");
	return fail(reader, parser->problem_mark,
		parser->context
			? arena_printf(reader->arena, "not YAML: %s (%s at line %zu)",
				  parser->problem, parser->context, parser->context_mark.line + 1)
			: arena_printf(reader->arena, "not YAML: %s", parser->problem));
}

static bool next_event(struct reader *reader, yaml_event_t *event)
{
	return yaml_parser_parse(&reader->parser, event) ? true : fail_syntax(reader);
}

static bool count_values(struct reader *reader, size_t more, yaml_mark_t mark)
{
	reader->values += more;
	if (reader->values <= VALUES_MAX)
		return true;
	return fail(reader, mark, "too many values: more than 5,000,000, with aliases expanded");
}

static struct yaml_node *new_node(
	struct reader *reader, enum yaml_kind kind, const yaml_event_t *event)
{
	struct yaml_node *node = arena_alloc(reader->arena, sizeof *node);
	node->kind = kind;
	node->file = reader->file;
	node->line = (int)event->start_mark.line + 1;
	node->column = (int)event->start_mark.column + 1;
	return node;
}

/* Tags of YAML's own types are redundant; others are not supported. */
static bool check_tag(
	const struct reader *reader, const yaml_event_t *event, const yaml_char_t *tag)
{
	static const char ours[] = "tag:yaml.org,2002:";
	if (!tag || strncmp((const char *)tag, ours, sizeof ours - 1) == 0 ||
		strcmp((const char *)tag, "!") == 0)
		return true;
	return fail(reader, event->start_mark,
		arena_printf(
			reader->arena, "the tag \"%.80s\" is not supported", (const char *)tag));
}

static const struct yaml_node *read_scalar(struct reader *reader, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	if (!check_tag(reader, event, event->data.scalar.tag))
		return NULL;
	if (memchr(text, '\0', length)) {
		fail(reader, event->start_mark, "a NUL character");
		return NULL;
	}
	struct yaml_node *node = new_node(reader, YAML_SCALAR, event);
	char *copy = arena_strndup(reader->arena, text, length);
	if (reader->guarded)
		references_unguard(copy);
	node->text = copy;
	node->quoted =
		event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || event->data.scalar.tag;
	return node;
}

/* Reads children onto the stack until `end`, in brackets or not. */
static bool read_children(struct reader *reader, yaml_event_type_t end, bool flow, int depth)
{
	for (;;) {
		yaml_event_t event;
		if (!next_event(reader, &event))
			return false;
		bool last = event.type == end;
		if (last ? flow
			 : event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT) {
			yaml_mark_t stop = event.end_mark;

			reader->last = event.start_mark;
			reader->below =
				stop.line + (stop.column > 0 || stop.line == reader->last.line);
		}
		const struct yaml_node *node = last ? NULL : read_node(reader, &event, depth + 1);
		yaml_event_delete(&event);
		if (last)
			return true;
		if (!node)
			return false;
		reader->stack = memory_grow(reader->stack, &reader->stack_capacity,
			reader->stack_count + 1, sizeof *reader->stack);
		reader->stack[reader->stack_count++] = node;
	}
}

static const struct yaml_node *read_list(
	struct reader *reader, const yaml_event_t *event, int depth)
{
	size_t base = reader->stack_count;
	bool flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	if (!check_tag(reader, event, event->data.sequence_start.tag) ||
		!read_children(reader, YAML_SEQUENCE_END_EVENT, flow, depth))
		return NULL;
	struct yaml_node *node = new_node(reader, YAML_LIST, event);
	node->count = reader->stack_count - base;
	const struct yaml_node **items = arena_array(reader->arena, node->count, sizeof *items);
	for (size_t i = 0; i < node->count; i++)
		items[i] = reader->stack[base + i];
	node->items = items;
	node->flow = flow;
	node->end_line = flow ? reader->last.line : reader->below;
	node->end_column = reader->last.column;
	reader->stack_count = base;
	return node;
}

static const struct yaml_node *read_map(struct reader *reader, const yaml_event_t *event, int depth)
{
	size_t base = reader->stack_count;
	bool flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	if (!check_tag(reader, event, event->data.mapping_start.tag) ||
		!read_children(reader, YAML_MAPPING_END_EVENT, flow, depth))
		return NULL;
	const struct yaml_node *merged = NULL;
	struct yaml_map map = yaml_map_new(reader->arena, (reader->stack_count - base) / 2);
	for (size_t i = base; i + 1 < reader->stack_count; i += 2) {
		struct yaml_entry entry = {reader->stack[i], reader->stack[i + 1]};
		if (!merged && entry.key->kind == YAML_SCALAR && !entry.key->quoted &&
			strcmp(entry.key->text, "<<") == 0)
			merged = entry.value;
		else
			yaml_map_add(&map, entry, reader->problems);
	}
	if (merged)
		map = yaml_map_merge(&map, merged, reader->problems);
	struct yaml_node *node = new_node(reader, YAML_MAP, event);
	node->entries = map.entries;
	node->count = map.count;
	reader->stack_count = base;
	return node;
}

static const struct yaml_node *read_alias(struct reader *reader, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	const struct anchor *anchor = dict_get(&reader->anchors, name);
	if (!anchor || !anchor->node) {
		fail(reader, event->start_mark,
			arena_printf(reader->arena,
				anchor ? "the alias \"*%.80s\" contains itself"
				       : "the alias \"*%.80s\" has no anchor",
				name));
		return NULL;
	}
	return count_values(reader, anchor->values, event->start_mark) ? anchor->node : NULL;
}

static const char *anchor_name(const yaml_event_t *event)
{
	const yaml_char_t *name = NULL;
	if (event->type == YAML_SCALAR_EVENT)
		name = event->data.scalar.anchor;
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		name = event->data.sequence_start.anchor;
	else if (event->type == YAML_MAPPING_START_EVENT)
		name = event->data.mapping_start.anchor;
	return (const char *)name;
}

static const struct yaml_node *read_node(struct reader *reader, yaml_event_t *event, int depth)
{
	if (event->type == YAML_ALIAS_EVENT)
		return read_alias(reader, event);
	if (depth > DEPTH_MAX) {
		fail(reader, event->start_mark, "nested too deeply: more than 100 levels");
		return NULL;
	}
	size_t before = reader->values;
	if (!count_values(reader, 1, event->start_mark))
		return NULL;
	struct anchor *anchor = NULL;
	if (anchor_name(event)) {
		anchor = arena_alloc(reader->arena, sizeof *anchor);
		*dict_place(&reader->anchors, arena_strdup(reader->arena, anchor_name(event))) =
			anchor;
	}
	const struct yaml_node *node = NULL;
	if (event->type == YAML_SCALAR_EVENT)
		node = read_scalar(reader, event);
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		node = read_list(reader, event, depth);
	else if (event->type == YAML_MAPPING_START_EVENT)
		node = read_map(reader, event, depth);
	if (anchor)
		*anchor = (struct anchor){node, reader->values - before};
	return node;
}

/* Stream start, document start, the root, document end, stream end. */
static const struct yaml_node *read_stream(struct reader *reader)
{
	const struct yaml_node *root = NULL;
	for (size_t documents = 0;;) {
		yaml_event_t event;
		if (!next_event(reader, &event))
			return NULL;
		yaml_event_type_t type = event.type;
		bool failed = false;
		if (type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
			fail(reader, event.start_mark,
				"a second document: only one per file is supported");
			failed = true;
		} else if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
			   type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT) {
			root = read_node(reader, &event, 1);
			failed = !root;
		}
		yaml_event_delete(&event);
		if (failed)
			return NULL;
		if (type == YAML_STREAM_END_EVENT)
			return root && yaml_is_null(root) ? NULL : root;
	}
}

const struct yaml_node *yaml_parse(struct arena *arena, const char *file, const char *text,
	size_t length, struct problems *problems)
{
	struct buf guarded = {.secret = true};
	struct reader reader = {.arena = arena,
		.problems = problems,
		.file = file,
		.text = text,
		.length = length,
		.anchors = {.arena = arena}};
	reader.guarded = references_guard(text, length, &guarded);
	if (reader.guarded) {
		reader.text = guarded.data;
		reader.length = guarded.length;
	}
	if (!yaml_parser_initialize(&reader.parser))
		abort(); /* out of memory */
	yaml_parser_set_input_string(
		&reader.parser, (const unsigned char *)reader.text, reader.length);
	const struct yaml_node *root = read_stream(&reader);
	yaml_parser_delete(&reader.parser);
	free(reader.stack);
	buf_free(&guarded);
	return root;
}
