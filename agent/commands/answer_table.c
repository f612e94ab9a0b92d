#include "agent/commands/answer_table.h"

#include <string.h>

#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/report/csv.h"
#include "agent/report/table.h"

static const json_t *value_at(const json_t *object, const char *key)
{
	for (const char *point; (point = strchr(key, '.')); key = point + 1)
		object = json_object_getn(object, key, (size_t)(point - key));
	return json_object_get(object, key);
}

static const char *text_of(
	const struct cli *cli, const json_t *item, const struct answer_column *of)
{
	const struct answer_cell cell = {cli->arena, value_at(item, of->key)};
	const char *text = json_string_value(cell.value);

	if (of->text)
		return of->text(&cell);
	if (json_is_number(cell.value))
		return arena_printf(cli->arena, "%.0f", json_number_value(cell.value));
	return text && *text ? text : NULL;
}

static void print_table(
	const struct cli *cli, const json_t *items, const struct answer_column *columns)
{
	size_t count = 0, rows = json_array_size(items);
	struct table_column *shown;
	const char **cells;

	while (columns[count].key)
		count++;
	shown = arena_array(cli->arena, count, sizeof *shown);
	cells = arena_array(cli->arena, count * rows, sizeof *cells);
	for (size_t c = 0; c < count; c++) {
		shown[c] = (struct table_column){.header = columns[c].header,
			.number = columns[c].number,
			.optional = columns[c].optional};
		for (size_t i = 0; i < rows; i++)
			cells[i * count + c] = text_of(cli, json_array_get(items, i), &columns[c]);
	}
	table_print(shown, count, cells, rows, cli->out);
}

static void put_value(struct buf *out, json_t *value, bool lines);

static void put_object(struct buf *out, json_t *object, bool lines)
{
	const char *key, *before = "";
	json_t *value;

	buf_char(out, '{');
	json_object_foreach(object, key, value)
	{
		buf_text(out, before);
		buf_json_text(out, key);
		buf_text(out, ": ");
		put_value(out, value, lines);
		before = ", ";
	}
	buf_char(out, '}');
}

static void put_array(struct buf *out, const json_t *array, bool lines)
{
	buf_char(out, '[');
	for (size_t i = 0; i < json_array_size(array); i++) {
		(lines ? json_line : json_next)(out);
		put_value(out, json_array_get(array, i), false);
	}
	buf_char(out, ']');
}

/* `lines`: an item of a list each. */
static void put_value(struct buf *out, json_t *value, bool lines)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT: put_object(out, value, lines); break;
	case JSON_ARRAY: put_array(out, value, lines); break;
	case JSON_STRING: buf_json_text(out, json_string_value(value)); break;
	case JSON_INTEGER:
		buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		break;
	case JSON_REAL: buf_json_number(out, json_real_value(value)); break;
	case JSON_TRUE: buf_text(out, "true"); break;
	case JSON_FALSE: buf_text(out, "false"); break;
	case JSON_NULL: buf_text(out, "null"); break;
	}
}

void answer_put(struct buf *out, json_t *value)
{
	put_value(out, value, false);
}

void answer_print(const struct cli *cli, json_t *answer)
{
	struct buf text = {0};

	put_value(&text, answer, true);
	buf_char(&text, '\n');
	text_flush(&text, cli->out);
}

const char *answer_time(const struct answer_cell *cell)
{
	const char *time = json_string_value(cell->value);
	char text[WHEN_TEXT];
	int64_t ms;

	return time && when_parse_stamp(time, strlen(time), &ms)
		       ? arena_strdup(cell->arena, when_format(ms, text))
		       : NULL;
}

static void print_csv(
	const struct cli *cli, const json_t *items, const struct answer_column *columns)
{
	const char **keys = NULL;
	size_t count = 0;

	do {
		keys = arena_grow(cli->arena, keys, count, sizeof *keys);
		keys[count] = columns[count].key;
	} while (keys[count++]);
	csv_put_header(NULL, keys, false, cli->out);
	for (size_t i = 0; i < json_array_size(items); i++) {
		struct buf row = {0};

		answer_put(&row, json_array_get(items, i));
		csv_put_row(NULL, row.data, keys, false, cli->out);
		buf_free(&row);
	}
}

void answer_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const struct answer_column *columns, enum cli_output output)
{
	switch (output) {
	case OUTPUT_TEXT: print_table(cli, items, columns); break;
	case OUTPUT_JSON: answer_print(cli, answer); break;
	case OUTPUT_CSV: print_csv(cli, items, columns); break;
	}
}
