/*
 * `combine`: a detection made of several. In YAML a map,
 *
 *     combine: {2: [edivisive, {detector: kernel, penalty: 2}, modes], tolerance: 5}
 *
 * and as text, for flags and as a short form, "2 within 5: edivisive, kernel(penalty=2), modes".
 * Both become the options of the detector "combine". Each member starts from its detector's
 * defaults, not from the options of an enclosing detection.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/load.h"
#include "detectors/combine.h"

static const char shape[] = "\"all: edivisive, kernel(penalty=2)\"";

/* Reads "any", "all" or a number between 1 and `count`, the number of members. */
static bool read_need(const char *word, size_t count, size_t *need, struct error *error)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	if (count < 1 || count > COMBINE_MOST)
		return error_set(
			error, ERROR_USAGE, "combine: expected 1 to %d detectors", COMBINE_MOST);
	if (strcmp(word, "any") == 0)
		number = 1;
	else if (strcmp(word, "all") == 0)
		number = count;
	else if (!*word || *end || *word == '-' || *word == '+' || number < 1 || number > count)
		return error_set(error, ERROR_USAGE,
			"combine: \"%.80s\" of %zu: expected any, all or a number up to that", word,
			count);
	*need = number;
	return true;
}

static bool is_combine(const struct plugin *detector)
{
	return detector && strcmp(detector->name, DETECTION_COMBINE) == 0;
}

/* A copy without surrounding blanks. */
static char *trimmed(struct arena *arena, const char *text, size_t length)
{
	while (length > 0 && *text == ' ')
		text++, length--;
	while (length > 0 && text[length - 1] == ' ')
		length--;
	return arena_strndup(arena, text, length);
}

/* Reads one member of the text form: a name, with options in brackets. */
static bool read_text_member(const struct schema *schema, const char *text, struct arena *arena,
	struct combine_member *member, struct error *error)
{
	static const struct field options = {.name = "combine", .type = FIELD_LIST};
	const struct detection none = {0};
	struct strings pairs = {0};
	size_t length = strcspn(text, "("), end = strlen(text);
	char *inside = arena_strdup(arena, text[length] ? text + length + 1 : "");
	if (text[length] && text[end - 1] != ')')
		return error_set(error, ERROR_USAGE, "combine: \"%.80s\" lacks a )", text);
	if (*inside)
		inside[strlen(inside) - 1] = '\0';
	if (!field_parse(&options, &pairs, inside, arena, error))
		return false;
	struct setting *settings = arena_array(arena, pairs.count + 1, sizeof *settings);
	settings[0] = (struct setting){"detector", trimmed(arena, text, length)};
	for (size_t i = 0; i < pairs.count; i++) {
		const char *pair = pairs.items[i], *equals = strchr(pair, '=');
		if (!equals)
			return error_set(error, ERROR_USAGE,
				"combine: \"%.80s\": expected OPTION=VALUE", pair);
		settings[i + 1].name = trimmed(arena, pair, (size_t)(equals - pair));
		settings[i + 1].value = trimmed(arena, equals + 1, strlen(equals + 1));
	}
	struct detection detection;
	if (!detection_overlay(schema, &none, settings, pairs.count + 1, arena, &detection, error))
		return error_prefix(error, "combine: ");
	if (is_combine(detection.detector))
		return error_set(error, ERROR_USAGE, "combine: cannot be nested");
	*member = (struct combine_member){detection.detector->name, detection.options};
	return true;
}

/* Reads "WORD within N" and leaves WORD. */
static bool read_head(const struct field *tolerance, const char *text, size_t length,
	struct arena *arena, void *options, char **word, struct error *error)
{
	static const char separator[] = " within ";
	*word = trimmed(arena, text, length);
	char *within = strstr(*word, separator);
	if (!within)
		return true;
	const char *number = within + strlen(separator);
	if (!field_parse(tolerance, options, trimmed(arena, number, strlen(number)), arena, error))
		return error_prefix(error, "combine: ");
	*word = trimmed(arena, *word, (size_t)(within - *word));
	return true;
}

bool combine_parse(const struct schema *schema, const struct plugin *detector, const char *text,
	struct arena *arena, void *options, struct error *error)
{
	static const struct field list = {.name = "combine", .type = FIELD_LIST};
	struct combine_options *out = options;
	struct strings items = {0};
	const char *colon = strchr(text, ':');
	if (!colon)
		return error_set(error, ERROR_USAGE, "combine: \"%.80s\": expected the form %s",
			text, shape);
	char *word;
	if (!read_head(field_find(detector->fields, "tolerance"), text, (size_t)(colon - text),
		    arena, options, &word, error) ||
		!field_parse(&list, &items, colon + 1, arena, error) ||
		!read_need(word, items.count, &out->need, error))
		return false;
	struct combine_member *members = arena_array(arena, items.count, sizeof *members);
	for (size_t i = 0; i < items.count; i++)
		if (!read_text_member(schema, items.items[i], arena, &members[i], error))
			return false;
	out->members = members;
	out->count = items.count;
	return true;
}

/* Reads a list's member: a name, or a map of `detector` and its options. */
static bool read_member(
	const struct yaml_node *node, const struct scope *scope, struct combine_member *member)
{
	const struct detection none = {0};
	struct yaml_node name = {.kind = YAML_SCALAR, .text = "detector"};
	const struct yaml_entry entry = {&name, node};
	struct yaml_node named = *node;
	const struct yaml_node *map = node;
	if (node->kind == YAML_SCALAR) {
		name.file = node->file;
		name.line = node->line;
		name.column = node->column;
		named.kind = YAML_MAP;
		named.entries = &entry;
		named.count = 1;
		map = &named;
	}
	if (map->kind != YAML_MAP || !yaml_get(map, "detector") || yaml_is_null(node)) {
		loader_error(
			node, scope, "expected the name of a detector, or a map with \"detector\"");
		return false;
	}
	for (const char *const *key = detection_belief_keys; *key; key++)
		if (yaml_get(map, *key))
			loader_error(yaml_get(map, *key), scope,
				"%s: option of the whole detection: move it next to combine", *key);
	struct detection detection = detection_layer(map, scope, &none);
	if (is_combine(detection.detector))
		loader_error(node, scope, "cannot be nested");
	if (!detection.detector || is_combine(detection.detector))
		return false;
	detection_check(map, scope, &detection);
	*member = (struct combine_member){detection.detector->name, detection.options};
	return true;
}

/* The entry with the number and the members; NULL after a report. */
static const struct yaml_entry *find_list(const struct yaml_node *map, const struct scope *scope)
{
	const struct yaml_entry *found = NULL;
	for (size_t i = 0; i < map->count; i++) {
		const struct yaml_entry *entry = &map->entries[i];
		if (entry->value->kind != YAML_LIST)
			continue;
		if (found) {
			loader_error(entry->key, scope, "\"%.80s\" repeats \"%.80s\"",
				entry->key->text, found->key->text);
			return NULL;
		}
		found = entry;
	}
	if (!found)
		loader_error(map, scope, "expected a list, under any, all or a number");
	return found;
}

static void read_members(
	const struct yaml_entry *entry, const struct scope *scope, struct combine_options *out)
{
	struct error error;
	const struct yaml_node *list = entry->value;
	if (!read_need(entry->key->text, list->count, &out->need, &error)) {
		loader_error(entry->key, scope, "%s", error.text + strlen("combine: "));
		return;
	}
	struct combine_member *members =
		arena_array(scope->loader->arena, list->count, sizeof *members);
	bool whole = true;
	for (size_t i = 0; i < list->count; i++)
		whole &= read_member(list->items[i], scope, &members[i]);
	if (!whole)
		return;
	out->members = members;
	out->count = list->count;
}

/*
 * Reads the text form within YAML. A value from the environment may be a secret and is not shown.
 */
static void read_text(const struct yaml_node *value, const struct scope *scope,
	const struct plugin *detector, void *options)
{
	struct error error;
	const char *missing = NULL;
	const char *text = loader_expand(scope->loader, value, false, &missing);
	if (missing) {
		loader_unset(value, scope, missing);
		return;
	}
	if (combine_parse(scope->loader->source->schema, detector, text, scope->loader->arena,
		    options, &error))
		return;
	if (text == value->text)
		loader_error(value, scope, "%s", error.text + strlen("combine: "));
	else
		loader_error(value, scope, "\"%.80s\": expected the form %s", value->text, shape);
}

void combine_read(const struct yaml_node *value, const struct scope *scope,
	const struct plugin *detector, void *options)
{
	struct scope part = *scope;
	part.part = "detection: combine";
	if (value->kind == YAML_SCALAR) {
		read_text(value, &part, detector, options);
		return;
	}
	if (!loader_is_kind(value, YAML_MAP, &part, "a map"))
		return;
	const struct yaml_entry *entry = find_list(value, &part);
	const char *const other_keys[] = {
		entry ? entry->key->text : "any", entry ? NULL : "all", NULL};
	struct reading reading = {
		.scope = part, .tables = {{detector->fields, options}}, .other_keys = other_keys};
	options_read(value, value, &reading);
	if (entry)
		read_members(entry, &part, options);
}

size_t combine_members(
	const struct schema *schema, const struct detection *detection, struct detection *out)
{
	if (!is_combine(detection->detector))
		return 0;
	const struct combine_options *options = detection->options;
	for (size_t i = 0; i < options->count; i++)
		out[i] = (struct detection){
			.detector = plugin_find(schema->detectors, options->members[i].detector),
			.options = options->members[i].options};
	return options->count;
}

size_t combine_need(const struct detection *detection)
{
	const struct combine_options *options = detection->options;
	return is_combine(detection->detector) ? options->need : 0;
}
