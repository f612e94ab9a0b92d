#include "agent/commands/answer_table.h"

#include <string.h>

#include "agent/base/when.h"

struct rows {
	struct arena *arena;
	const json_t *items;
	const struct answer_column *columns;
	size_t *at;
};

static bool next_row(const void *context, bool first)
{
	const struct rows *rows = context;

	*rows->at = first ? 0 : *rows->at + 1;
	return *rows->at < json_array_size(rows->items);
}

static const char *cell(const void *context, size_t column, char scratch[TABLE_SCRATCH])
{
	const struct rows *rows = context;
	const struct answer_column *about = &rows->columns[column];
	const json_t *item = json_array_get(rows->items, *rows->at);
	const json_t *value = json_object_get(item, about->key);

	if (about->text)
		return about->text(rows->arena, item, value, scratch);
	if (!json_is_number(value))
		return json_string_value(value);
	snprintf(scratch, TABLE_SCRATCH, "%.0f", json_number_value(value));
	return scratch;
}

static bool has_text(const json_t *items, const char *key)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		if (json_is_string(json_object_get(json_array_get(items, i), key)))
			return true;
	return false;
}

void answer_table_print(
	const struct cli *cli, const json_t *items, const struct answer_column *columns)
{
	size_t at = 0, shown = 0;
	const struct rows rows = {cli->arena, items, columns, &at};
	struct table_column room[ANSWER_COLUMNS_MOST];
	struct table table = {.columns = room, .next = next_row, .cell = cell, .context = &rows};

	for (; columns[shown].key; shown++)
		room[shown] = (struct table_column){
			.header = columns[shown].header, .number = columns[shown].number};
	while (shown > 0 && columns[shown - 1].optional && !has_text(items, columns[shown - 1].key))
		shown--;
	table.column_count = shown;
	table_measure(&table);
	table_print_header(&table, cli->out);
	for (bool row = next_row(&rows, true); row; row = next_row(&rows, false))
		table_print_row(&table, cli->out);
}

const char *answer_table_time(
	struct arena *arena, const json_t *item, const json_t *value, char scratch[TABLE_SCRATCH])
{
	const char *time = json_string_value(value);
	char text[WHEN_TEXT];
	int64_t ms;

	(void)item;
	(void)scratch;
	return time && when_parse_stamp(time, strlen(time), &ms)
		       ? arena_strdup(arena, when_format(ms, text))
		       : NULL;
}
