#include "sources/files/table.h"

#include <string.h>

void table_begin(struct row_table *table, struct strings header)
{
	struct arena *arena = table->query->arena;
	const char **names = arena_array(arena, header.count, sizeof *names);

	table->names.dict.arena = arena;
	table->first = arena_array(arena, header.count, sizeof *table->first);
	table->second = arena_array(arena, header.count, sizeof *table->second);
	for (size_t i = 0; i < header.count; i++) {
		const char *name = header.items[i];
		size_t known = table->names.count;
		size_t number = name_index_add(&table->names, name, strlen(name));

		*(table->names.count > known ? &table->first[number] : &table->second[number]) = i;
		names[i] = table->names.items[number];
	}
	table->header = (struct strings){names, header.count};
}

bool table_find(struct row_table *table, const char *name, size_t *column)
{
	size_t number = name_index_find(&table->names, name, strlen(name));

	*column = number == NAME_INDEX_NONE ? TABLE_NO_COLUMN : table->first[number];
	if (number == NAME_INDEX_NONE || !table->second[number])
		return true;
	if (!table->is_query)
		return error_set(table->error, ERROR_DATA,
			"%s: column \"%.100s\" occurs more than once (columns %zu and %zu)",
			table->place, name, *column + 1, table->second[number] + 1);
	query_notice_once(table->query,
		arena_printf(table->query->arena,
			"%s: column \"%.100s\" occurs more than once; the first is taken",
			table->place, name));
	return true;
}

/* The same for a required column; `what`: its purpose. */
static bool need(struct row_table *table, const char *what, const char *name, size_t *column)
{
	if (!table_find(table, name, column))
		return false;
	return *column != TABLE_NO_COLUMN ||
	       error_set(table->error, ERROR_DATA, "%s: no column \"%.100s\" for %s%s",
		       table->place, name, what,
		       table->lone && table->header.count == 1
			       ? table->lone
			       : column_hint(table->query->arena, name, &table->header));
}

static bool plan_metrics(struct row_table *table)
{
	const struct query *query = table->query;

	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		const char *what = arena_printf(query->arena, "metric \"%.100s\"", metric->name);
		size_t column;

		if (!need(table, what, metric->column ? metric->column : metric->name, &column) ||
			!rows_add_number(&table->rows, metric, column, table->error))
			return false;
	}
	return true;
}

/* Without configured metrics: all columns that may be one and have no other use. */
static bool plan_inferred(struct row_table *table)
{
	for (size_t i = 0; i < table->header.count; i++) {
		bool used = i == table->time || !table->may_be_metric(table, i);
		struct metric *metric;
		size_t column;

		for (size_t k = 0; k < table->rows.text_count; k++)
			used |= table->rows.texts[k].from == i;
		if (used)
			continue;
		if (!table_find(table, table->header.items[i], &column))
			return false;
		if (column != i)
			continue;
		metric = arena_alloc(table->query->arena, sizeof *metric);
		*metric =
			(struct metric){.name = table->header.items[i], .direction = 1, .scale = 1};
		if (!rows_add_number(&table->rows, metric, i, table->error))
			return false;
	}
	return true;
}

bool table_plan(struct row_table *table, const char *time, const char *commit, const char *version,
	struct strings attributes)
{
	struct pairs names = attribute_names(table->query->arena, commit, version, attributes);

	if (!need(table, "the time (see time_column)", time, &table->time))
		return false;
	for (size_t i = 0; i < names.count; i++) {
		const struct pair *at = &names.items[i];
		size_t column;

		if (!need(table, attribute_option(at), at->key, &column) ||
			((column != table->time || table->is_query) &&
				!rows_add_text(&table->rows, at->value, column, table->error)))
			return false;
	}
	return table->query->metric_count ? plan_metrics(table) : plan_inferred(table);
}
