/*
 * Reads YAML maps into option structs by their field tables.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "conf/load.h"

static void *member(const struct field *field, void *options)
{
	return (char *)options + field->offset;
}

bool is_listed(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

const char *field_text(const struct field *field, const void *options)
{
	return *(const char *const *)(const void *)((const char *)options + field->offset);
}

bool field_is_file(const struct field *field)
{
	size_t length = strlen(field->name);
	return field->type == FIELD_STRING && length > 5 &&
	       strcmp(field->name + length - 5, "_file") == 0;
}

const struct field *field_secret(const struct field *fields, const struct field *file)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strlen(file->name) - 5, file->name);
	const struct field *secret = field_is_file(file) ? field_find(fields, name) : NULL;
	return secret && secret->type == FIELD_SECRET ? secret : NULL;
}

static const struct field *find_field(
	const struct reading *reading, const char *name, void **options)
{
	for (size_t i = 0; i < READING_TABLES; i++) {
		const struct field *field = field_find(reading->tables[i].fields, name);
		*options = reading->tables[i].options;
		if (field)
			return field;
	}
	return NULL;
}

/* A hint for an unknown key, from all keys that are valid in its place. */
static const char *key_hint(struct loader *loader, const char *word, const struct reading *reading)
{
	const char *names[200];
	size_t count = 0;
	for (size_t i = 0; i < READING_TABLES; i++) {
		const struct field *field = reading->tables[i].fields;
		for (; field && field->name && count < 150; field++)
			if (!(field->flags & FIELD_HIDDEN))
				names[count++] = field->name;
	}
	for (const char *const *key = reading->other_keys; key && *key && count < 200; key++)
		names[count++] = *key;
	return loader_hint(loader, word, names, count);
}

static void read_list(struct loader *loader, const struct field *field,
	const struct yaml_node *value, const struct reading *reading, struct strings *out,
	const char **missing)
{
	bool dollar = reading->dollar || field->flags & FIELD_ENV;
	const struct yaml_node *const *items;
	size_t count = yaml_items(&value, &items);
	if (!loader_spend(loader, count, value))
		return;
	const char **texts = arena_array(loader->arena, count, sizeof *texts);
	struct dict seen = {.arena = loader->arena};
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		bool word = items[i]->kind == YAML_SCALAR;
		if (!word || yaml_is_null(items[i])) {
			loader_error(items[i], &reading->scope,
				word ? "%s: an entry has no value" : "%s: expected a list of words",
				field->name);
			return;
		}
		const char *lacks = NULL;
		loader->in_command = (field->flags & FIELD_COMMAND) != 0;
		const char *text = loader_expand(loader, items[i], dollar, &lacks);
		loader->in_command = false;
		if (lacks) {
			*missing = *missing ? *missing : lacks;
			continue;
		}
		const void **place = dict_place(&seen, text);
		if (!*place || field->flags & FIELD_COMMAND)
			texts[kept++] = text;
		*place = text;
	}
	*out = (struct strings){texts, kept};
}

static void read_pairs(struct loader *loader, const struct field *field,
	const struct yaml_node *value, const struct reading *reading, struct pairs *out,
	const char **missing)
{
	bool dollar = reading->dollar || field->flags & FIELD_ENV;
	if (value->kind != YAML_MAP) {
		loader_error(value, &reading->scope, "%s: expected a map from names to values",
			field->name);
		return;
	}
	if (!loader_spend(loader, value->count, value))
		return;
	struct pair *pairs = arena_array(loader->arena, value->count, sizeof *pairs);
	size_t count = 0;
	for (size_t i = 0; i < value->count; i++) {
		const struct yaml_entry *entry = &value->entries[i];
		if (entry->value->kind != YAML_SCALAR) {
			loader_error(entry->value, &reading->scope, "%s: \"%.80s\" takes one value",
				field->name, entry->key->text);
			return;
		}
		if (yaml_is_null(entry->value))
			loader_warn(entry->key, &reading->scope,
				"%s: \"%.80s\" has no value and is ignored", field->name,
				entry->key->text);
		else
			pairs[count++] = (struct pair){entry->key->text,
				loader_expand(loader, entry->value, dollar, missing)};
	}
	*out = (struct pairs){pairs, count};
}

/* A value from the environment may be a secret, so messages show the reference instead. */
static void hide(struct error *error, const char *value, const char *reference)
{
	char shown[100], text[ERROR_TEXT];
	snprintf(shown, sizeof shown, "\"%.80s\"", value);
	const char *at = strstr(error->text, shown);
	if (!at || !*value)
		return;
	snprintf(text, sizeof text, "%.*s\"%.80s\"%s", (int)(at - error->text), error->text,
		reference, at + strlen(shown));
	snprintf(error->text, sizeof error->text, "%s", text);
}

/* Options that name a file on this machine: `file`, `state`, `password_file`. */
static bool is_path(const struct field *field)
{
	return field->type == FIELD_STRING &&
	       (strcmp(field->name, "file") == 0 || strcmp(field->name, "state") == 0 ||
		       (field->flags & FIELD_FOLDER) || field_is_file(field));
}

/* Secrets, certificates and keys are relative to the configuration file that names them; data files
 * to the working directory, as in Hunter. */
static bool is_beside(const struct field *field, const char *text)
{
	static const char *const names[] = {"sslrootcert", "sslcert", "sslkey", "web_config", NULL};
	if (field->type != FIELD_STRING || !*text)
		return false;
	return field_is_file(field) || (field->flags & FIELD_FOLDER) ||
	       (is_listed(names, field->name) && strcmp(text, "system") != 0); /* libpq's value */
}

const char *loader_beside(struct loader *loader, const struct yaml_node *value, const char *text)
{
	const char *slash = strrchr(value->file, '/');
	return slash && *text != '/' ? arena_printf(loader->arena, "%.*s/%s",
					       (int)(slash - value->file), value->file, text)
				     : text;
}

static void read_scalar(struct loader *loader, const struct field *field,
	const struct yaml_node *value, const struct reading *reading, void *options,
	const char **missing)
{
	struct error error;
	bool dollar = reading->dollar || field->flags & FIELD_ENV;
	if (value->kind != YAML_SCALAR) {
		loader_error(value, &reading->scope, "%s: expected one value, not a %s",
			field->name, value->kind == YAML_MAP ? "map" : "list");
		return;
	}
	loader->in_command = (field->flags & FIELD_COMMAND) != 0;
	const char *text = loader_expand(loader, value, dollar, missing);
	loader->in_command = false;
	bool expanded = text != value->text;
	if (is_path(field))
		text = loader_path(loader, text, missing);
	if (*missing)
		return;
	if (is_beside(field, text))
		text = loader_beside(loader, value, text);
	if (!*value->text && field->flags & FIELD_REQUIRED) {
		loader_error(value, &reading->scope, "%s: it is empty", field->name);
		return;
	}
	if (field_parse(field, options, text, loader->arena, &error)) {
		if (expanded && field->type == FIELD_STRING)
			loader_written(loader, field_text(field, options), value);
		return;
	}
	if (text != value->text)
		hide(&error, text, value->text);
	loader_error(value, &reading->scope, "%s", error.text);
}

static void read_value(struct loader *loader, const struct field *field,
	const struct yaml_node *value, const struct reading *reading, void *options)
{
	const char *missing = NULL;
	if (field->type == FIELD_LIST)
		read_list(loader, field, value, reading, member(field, options), &missing);
	else if (field->type == FIELD_MAP)
		read_pairs(loader, field, value, reading, member(field, options), &missing);
	else
		read_scalar(loader, field, value, reading, options, &missing);
	if (missing)
		loader_unset(value, &reading->scope, missing);
}

static void report_unknown(
	struct loader *loader, const struct yaml_node *key, const struct reading *reading)
{
	if (is_listed(reading->other_keys, key->text))
		return;
	if (is_listed(reading->harmless_keys, key->text)) {
		if (reading->own && yaml_get(reading->own, key->text))
			loader_warn(key, &reading->scope,
				"\"%.80s\" has no effect on a test of type %s", key->text,
				reading->type);
		return;
	}
	(reading->lenient ? loader_warn : loader_error)(key, &reading->scope,
		"unknown key \"%.80s\"%s", key->text, key_hint(loader, key->text, reading));
}

static void check_required(
	const struct yaml_node *where, const struct reading *reading, const struct dict *given)
{
	for (size_t i = 0; i < READING_TABLES; i++)
		for (const struct field *field = reading->tables[i].fields; field && field->name;
			field++)
			if (field->flags & FIELD_REQUIRED && !dict_get(given, field->name))
				loader_error(
					where, &reading->scope, "\"%s\" is missing", field->name);
}

void options_read(
	const struct yaml_node *map, const struct yaml_node *where, const struct reading *reading)
{
	struct loader *loader = reading->scope.loader;
	struct dict given = {.arena = loader->arena};
	if (map && !loader_spend(loader, map->count, map))
		return;
	for (size_t i = 0; map && i < map->count; i++) {
		const struct yaml_node *key = map->entries[i].key;
		const struct yaml_node *value = map->entries[i].value;
		void *options;
		const struct field *field = find_field(reading, key->text, &options);
		if (!field) {
			report_unknown(loader, key, reading);
			continue;
		}
		bool several = field->type == FIELD_LIST || field->type == FIELD_MAP;
		if (several ? loader_is_null(value, &reading->scope, field->name)
			    : yaml_is_null(value))
			continue;
		const void **place = dict_place(&given, field->name);
		const struct yaml_node *before = *place;
		*place = key;
		if (before)
			loader_error(key, &reading->scope, "\"%.80s\" repeats \"%.80s\"", key->text,
				before->text);
		else
			read_value(loader, field, value, reading, options);
	}
	check_required(where, reading, &given);
}

bool options_read_all(const struct yaml_node *map, const struct reading *reading)
{
	struct unset unset = {0};
	struct reading all = *reading;
	all.scope.unset = &unset;
	options_read(map, map, &all);
	all.scope.unset = NULL;
	if (unset.variable)
		loader_unset(unset.where, &all.scope, unset.variable);
	return !unset.variable;
}
