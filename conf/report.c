/*
 * Reports problems of the configuration.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/label.h"
#include "agent/base/url_template.h"
#include "conf/load.h"

enum { SUGGESTIONS = 20, MANY_NAMES = 200, TOLD_MAX = 10000 };

/* `test "x": metric "p99": ` */
static void subject_text(const struct error_context *subject, struct buf *out)
{
	if (!subject || (!subject->kind && !subject->part))
		return;
	buf_text(out, subject->kind ? subject->kind : "");
	if (subject->name)
		buf_printf(out, " \"%.200s\"", subject->name);
	if (subject->metric)
		buf_printf(out, ": metric \"%.200s\"", subject->metric);
	if (subject->part)
		buf_printf(out, "%s%s", subject->kind ? ": " : "", subject->part);
	buf_text(out, ": ");
}

static bool told_before(struct loader *loader, const struct yaml_node *where, const char *text)
{
	if (loader->told.count >= TOLD_MAX)
		return false;
	char *key = arena_printf(
		loader->arena, "%s:%d:%d:%s", where->file, where->line, where->column, text);
	const void **place = dict_place(&loader->told, key);
	bool before = *place != NULL;
	*place = where;
	return before;
}

void loader_report(struct loader *loader, bool warning, const struct yaml_node *where,
	const struct error_context *subject, const char *format, ...)
{
	struct buf text = {0}, prefix = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	if (!loader->exhausted && !told_before(loader, where, text.data)) {
		subject_text(subject, &prefix);
		problems_add(loader->problems, warning, where, "%s%s",
			prefix.data ? prefix.data : "", text.data);
	}
	buf_free(&text);
	buf_free(&prefix);
}

void loader_check_name(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *name)
{
	size_t n = 0;
	while ((unsigned char)name[n] >= 0x20 && name[n] != 0x7f)
		n++;
	if (n == 0 || name[n])
		loader_report(loader, false, where, subject,
			"a name must not be empty or contain control characters");
}

bool loader_is_null(struct loader *loader, const struct yaml_node *node,
	const struct error_context *subject, const char *name)
{
	bool null = yaml_is_null(node);
	if (null)
		loader_report(loader, true, node, subject, "%s%sit has no value and is ignored",
			name ? name : "", name ? ": " : "");
	return null;
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

void loader_complain(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct error *error)
{
	loader_report(loader, error->kind == ERROR_DATA, place_of(map, error->text), subject, "%s",
		error->text);
}

void loader_check_links(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const struct url_templates *links)
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
			loader_complain(loader, map, subject, &error);
	}
}

void loader_check_environment(struct loader *loader, const struct yaml_node *map,
	const struct error_context *subject, const char *name)
{
	const struct yaml_node *value = yaml_get(map, "environment");

	if (value && name && *name && !label_is_name(name, strlen(name)))
		loader_report(loader, false, value, subject,
			"environment: \"%.80s\" expected the name of a label, tag or attribute, or "
			"a part of a path like \"path[2]\"",
			name);
}

static void note_first(struct loader *loader, const char **note, const struct yaml_node *where,
	const struct error_context *subject, const char *text)
{
	if (*note)
		return;
	struct buf prefix = {0};
	subject_text(subject, &prefix);
	*note = arena_printf(loader->arena, "%s:%d:%d: %s%s", where->file, where->line,
		where->column, prefix.data ? prefix.data : "", text);
	buf_free(&prefix);
}

void loader_note_blocker(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *text)
{
	note_first(loader, &loader->config->missing, where, subject, text);
}

void loader_unreadable(struct loader *loader, const struct yaml_node *where,
	const struct error_context *subject, const char *text)
{
	note_first(loader, &loader->config->unreadable, where, subject, text);
}

void loader_missing(
	struct loader *loader, const struct error_context *subject, const struct unset *unset)
{
	if (loader->config->missing)
		return;
	loader_note_blocker(loader, unset->where, subject,
		arena_printf(loader->arena, "${%s} is not set", unset->variable));
}

bool loader_spend(struct loader *loader, size_t values, const struct yaml_node *where)
{
	loader->spent += values;
	if (loader->spent <= LOADER_BUDGET)
		return true;
	loader_report(loader, false, where, NULL,
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
