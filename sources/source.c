/*
 * The registry of sources, and their notices.
 */
#include "sources/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "sources/files/files.h"
#include "sources/graphite/graphite.h"
#include "sources/postgres/postgres.h"
#include "sources/prometheus/prometheus.h"

enum { NOTICES_MAX = 100, MORE_TEXT = 64, HINT_TEXT = 200, LEFT_OUT_SHOWN = 200 };

const struct plugin *const sources[] = {&csv_source.plugin, &json_source.plugin,
	&histostat_source.plugin, &graphite_source.plugin, &prometheus_source.plugin,
	&postgres_source.plugin, NULL};

const struct source *source_find(const char *name)
{
	return (const struct source *)plugin_find(sources, name);
}

static int64_t duration_of(const struct source *source, const char *name, const void *options)
{
	const struct field *field = field_find(source->plugin.fields, name);
	int64_t duration = 0;

	if (field && field->type == FIELD_DURATION)
		memcpy(&duration, (const char *)options + field->offset, sizeof duration);
	return duration;
}

int64_t source_range(const struct source *source, const void *options)
{
	return duration_of(source, "range", options);
}

int64_t source_step(const struct source *source, const void *options)
{
	return duration_of(source, "step", options);
}

static void add_name(struct pair *names, size_t *count, const char *place, const char *name)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(names[i].key, place) == 0 || strcmp(names[i].value, name) == 0)
			return;
	names[(*count)++] = (struct pair){place, name};
}

struct pairs attribute_names(
	struct arena *arena, const char *commit, const char *version, struct strings others)
{
	struct pair *names = arena_array(arena, others.count + 2, sizeof *names);
	size_t count = 0;

	if (commit)
		add_name(names, &count, commit, "commit");
	if (version)
		add_name(names, &count, version, "version");
	for (size_t i = 0; i < others.count; i++)
		add_name(names, &count, others.items[i], others.items[i]);
	return (struct pairs){names, count};
}

const char *attribute_option(const struct pair *attribute)
{
	if (strcmp(attribute->key, attribute->value) == 0)
		return "an attribute";
	return strcmp(attribute->value, "commit") == 0 ? "the commit (see commit_column)"
						       : "the version (see version_column)";
}

const char *column_hint(struct arena *arena, const char *word, const struct strings *columns)
{
	const char *near = field_suggest(word, columns->items, columns->count);
	const char *list = "";
	size_t shown = 0;

	for (size_t i = 0; i < columns->count && !near; i++)
		if (strcasecmp(columns->items[i], word) == 0)
			near = columns->items[i]; /* PostgreSQL makes names lower case */
	if (near)
		return arena_printf(arena, " (did you mean \"%.100s\"?)", near);
	for (; shown < columns->count && strlen(list) < HINT_TEXT; shown++)
		list = arena_printf(
			arena, "%s%s%.60s", list, *list ? ", " : "", columns->items[shown]);
	if (!*list)
		return "";
	return arena_printf(
		arena, " (there are: %s%s)", list, shown < columns->count ? ", ..." : "");
}

void query_reads(struct query *query, struct source_readings *out, struct source_reading reading)
{
	out->items = arena_grow(query->arena, out->items, out->count, sizeof *out->items);
	out->items[out->count++] = reading;
}

void query_set_windows(struct query *query)
{
	for (size_t i = 0; i < query->data.count && query->window >= 0; i++)
		query->data.series[i].window.back = query->window;
}

void query_notice(struct query *query, const char *format, ...)
{
	va_list arguments;

	if (query->notices.count < NOTICES_MAX) {
		va_start(arguments, format);
		strings_add(&query->notices, query->arena,
			arena_vprintf(query->arena, format, arguments));
		va_end(arguments);
		return;
	}
	/* A server may cause any number: the last text is overwritten, nothing is allocated. */
	if (!query->notices_more) {
		query->notices_more = arena_alloc(query->arena, MORE_TEXT);
		query->notices.count--;
		strings_add(&query->notices, query->arena, query->notices_more);
		query->notices_dropped++;
	}
	snprintf(query->notices_more, MORE_TEXT, "%zu more notices were left out",
		++query->notices_dropped);
}

void query_notice_once(struct query *query, const char *text)
{
	for (size_t i = 0; i < query->notices.count; i++)
		if (strcmp(query->notices.items[i], text) == 0)
			return;
	query_notice(query, "%s", text);
}

void query_leave_out(
	struct query *query, const char *what, const char *text, size_t length, const char *why)
{
	bool all = length <= LEFT_OUT_SHOWN;
	char shown[LEFT_OUT_SHOWN + 1];
	memcpy(shown, text, all ? length : LEFT_OUT_SHOWN);
	shown[all ? length : LEFT_OUT_SHOWN] = '\0';
	if (!all)
		shown[utf8_cut(shown, LEFT_OUT_SHOWN - 3)] = '\0';
	utf8_blank(shown, '?');
	query->incomplete = true;
	query_notice_once(query, arena_printf(query->arena, "%s left out: %s: %s%s", what, why,
					 shown, all ? "" : "..."));
}
