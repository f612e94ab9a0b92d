/*
 * Reports problems of the configuration.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/label.h"
#include "agent/base/url_template.h"
#include "conf/load.h"

enum { SUGGESTIONS = 20, MANY_NAMES = 200, REPORTED_MAX = 10000 };

/* `test "x": metric "p99": ` */
static void scope_text(const struct scope *scope, struct buf *out)
{
	if (!scope->kind && !scope->part)
		return;
	buf_text(out, scope->kind ? scope->kind : "");
	if (scope->name)
		buf_printf(out, " \"%.200s\"", scope->name);
	if (scope->metric)
		buf_printf(out, ": metric \"%.200s\"", scope->metric);
	if (scope->part)
		buf_printf(out, "%s%s", scope->kind ? ": " : "", scope->part);
	buf_text(out, ": ");
}

static bool was_reported(struct loader *loader, const struct yaml_node *where, const char *text)
{
	if (loader->reported.count >= REPORTED_MAX)
		return false;
	char *key = arena_printf(
		loader->arena, "%s:%d:%d:%s", where->file, where->line, where->column, text);
	const void **place = dict_place(&loader->reported, key);
	bool before = *place != NULL;
	*place = where;
	return before;
}

PRINTF_LIKE(4, 0)
static void report(bool warning, const struct yaml_node *where, const struct scope *scope,
	const char *format, va_list arguments)
{
	struct loader *loader = scope->loader;
	struct buf text = {0}, prefix = {0};

	buf_vprintf(&text, format, arguments);
	if (!loader->exhausted && !was_reported(loader, where, text.data)) {
		scope_text(scope, &prefix);
		problems_add(loader->problems, warning, where, "%s%s",
			prefix.data ? prefix.data : "", text.data);
	}
	buf_free(&text);
	buf_free(&prefix);
}

void loader_error(const struct yaml_node *where, const struct scope *scope, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(false, where, scope, format, arguments);
	va_end(arguments);
}

void loader_warn(const struct yaml_node *where, const struct scope *scope, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(true, where, scope, format, arguments);
	va_end(arguments);
}

void loader_check_name(const struct yaml_node *where, const struct scope *scope, const char *name)
{
	size_t n = 0;
	while ((unsigned char)name[n] >= 0x20 && name[n] != 0x7f)
		n++;
	if (n == 0 || name[n])
		loader_error(
			where, scope, "a name must not be empty or contain control characters");
}

bool loader_is_null(const struct yaml_node *node, const struct scope *scope, const char *name)
{
	bool null = yaml_is_null(node);
	if (null)
		loader_warn(node, scope, "%s%sit has no value and is ignored", name ? name : "",
			name ? ": " : "");
	return null;
}

bool loader_is_kind(const struct yaml_node *node, enum yaml_kind kind, const struct scope *scope,
	const char *expected)
{
	if (node->kind != kind)
		loader_error(node, scope, "expected %s", expected);
	return node->kind == kind;
}

/* The node of the key that the text names, as spelt in the map, or the map. */
static const struct yaml_node *place_of(const struct yaml_node *map, const char *text)
{
	size_t length = strcspn(text, ":");
	for (size_t i = 0; text[length] && i < map->count; i++) {
		const struct yaml_node *key = map->entries[i].key;
		size_t same = 0;
		while (same < length && (key->text[same] == text[same] ||
						(key->text[same] == '-' && text[same] == '_')))
			same++;
		if (same == length && !key->text[same])
			return key;
	}
	return map;
}

void loader_complain(
	const struct yaml_node *map, const struct scope *scope, const struct error *error)
{
	(error->kind == ERROR_DATA ? loader_warn : loader_error)(
		place_of(map, error->text), scope, "%s", error->text);
}

void loader_check_links(
	const struct yaml_node *map, const struct scope *scope, const struct url_templates *links)
{
	const struct {
		const char *key, *value;
		bool (*check)(const char *option, const char *template, struct error *error);
	} templates[] = {
		{"commit_url", links->commit_url, url_template_check},
		{"compare_url", links->compare_url, url_template_check},
		{"dashboard", links->dashboard, url_template_check},
		{"runbook", links->runbook, url_template_check},
		{"owner", links->owner, url_template_check_text},
	};
	for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
		const char *key = templates[i].key, *value = templates[i].value;
		struct error error;
		if (yaml_get(map, key) && value && !templates[i].check(key, value, &error))
			loader_complain(map, scope, &error);
	}
}

void loader_check_environment(
	const struct yaml_node *map, const struct scope *scope, const char *name)
{
	const struct yaml_node *value = yaml_get(map, "environment");

	if (value && name && *name && !label_is_name(name, strlen(name)))
		loader_error(value, scope,
			"environment: \"%.80s\" expected the name of a label, tag or attribute, or "
			"a part of a path like \"path[2]\"",
			name);
}

static void note_first(const char **note, const struct yaml_node *where, const struct scope *scope,
	const char *text)
{
	if (*note)
		return;
	struct buf prefix = {0};
	scope_text(scope, &prefix);
	*note = arena_printf(scope->loader->arena, "%s:%d:%d: %s%s", where->file, where->line,
		where->column, prefix.data ? prefix.data : "", text);
	buf_free(&prefix);
}

void loader_note_blocker(const struct yaml_node *where, const struct scope *scope, const char *text)
{
	note_first(&scope->loader->config->missing, where, scope, text);
}

void loader_unreadable(const struct yaml_node *where, const struct scope *scope, const char *text)
{
	note_first(&scope->loader->config->unreadable, where, scope, text);
}

void loader_unset(const struct yaml_node *where, const struct scope *scope, const char *variable)
{
	if (!scope->unset)
		loader_error(where, scope, "${%s} is not set", variable);
	else if (!scope->unset->variable)
		*scope->unset = (struct unset){variable, where};
}

void loader_missing(const struct scope *scope, const struct unset *unset)
{
	if (scope->loader->config->missing)
		return;
	loader_note_blocker(unset->where, scope,
		arena_printf(scope->loader->arena, "${%s} is not set", unset->variable));
}

bool loader_spend(struct loader *loader, size_t values, const struct yaml_node *where)
{
	loader->spent += values;
	if (loader->spent <= LOADER_BUDGET)
		return true;
	loader_error(where, &loader->root,
		"too large: more than 20,000,000 values once templates and groups are expanded");
	loader->exhausted = true;
	return false;
}

const char *loader_hint(
	struct loader *loader, const char *word, const char *const *names, size_t count)
{
	if (loader->problems->dropped > 0)
		return "";
	if (count > MANY_NAMES && loader->suggestions++ >= SUGGESTIONS)
		return "";
	const char *near = field_suggest(word, names, count);
	return near ? arena_printf(loader->arena, " (did you mean \"%.80s\"?)", near) : "";
}

const char *loader_hint_in(
	struct loader *loader, const char *word, const void *items, size_t count, size_t size)
{
	const char **names;

	if (loader->problems->dropped > 0 ||
		(count > MANY_NAMES && loader->suggestions >= SUGGESTIONS))
		return "";
	names = arena_array(loader->arena, count, sizeof *names);
	for (size_t i = 0; i < count; i++)
		names[i] = *(const char *const *)(const void *)((const char *)items + i * size);
	return loader_hint(loader, word, names, count);
}
