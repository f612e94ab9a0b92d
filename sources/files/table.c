#include "sources/files/table.h"

#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"

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

static bool fail_cell(const struct row_table *table, const struct cell *cells, size_t row,
	size_t column, const char *wanted)
{
	const struct cell *cell = &cells[column];

	return error_set(table->error, ERROR_DATA,
		table->is_query ? "%s: row %zu, column \"%.100s\": \"%.*s\" is not %s"
				: "%s:%zu: column \"%.100s\": \"%.*s\" is not %s",
		table->file, row, table->header.items[column],
		cell->length < 60 ? (int)cell->length : 60, cell->text, wanted);
}

bool table_take(struct row_table *table, const struct cell *cells, size_t row)
{
	const struct query *query = table->query;
	struct rows *rows = &table->rows;
	const struct cell *cell = &cells[table->time];
	enum table_state any = TABLE_NUMBERS, *state;
	int64_t time;

	if (!when_parse_stamp(cell->text, cell->length, &time))
		return fail_cell(table, cells, row, table->time, "a date");
	if (time < query->since || time >= query->until)
		return true;
	if (!rows_append(rows, time, table->error))
		return !table->is_query && error_prefix(table->error, "%s:%zu: ", table->file, row);
	for (size_t i = 0; i < rows->number_count; i++) {
		struct number_column *column = &rows->numbers[i];
		double value;

		cell = &cells[column->from];
		state = table->states ? &table->states[i] : &any;
		if (*state == TABLE_TEXT || number_missing(cell->text, cell->length))
			continue;
		if (number_parse(cell->text, cell->length, &value))
			column->values[rows->n - 1] = value;
		else if (*state == TABLE_NUMBERS)
			return fail_cell(table, cells, row, column->from,
				table->is_query ? "a number (the query can cast it)" : "a number");
		else
			*state = TABLE_TEXT;
		if (*state == TABLE_UNKNOWN)
			*state = TABLE_NUMBERS;
	}
	for (size_t i = 0; i < rows->text_count; i++) {
		cell = &cells[rows->texts[i].from];
		if (cell->length > 0)
			rows->texts[i].values[rows->n - 1] =
				rows_text(rows, query->arena, cell->text, cell->length);
	}
	return rows->text_bytes <= ROWS_TEXT_MAX ||
	       error_set(table->error, ERROR_DATA, "%s: the attributes exceed 256 MB in total",
		       table->file);
}
