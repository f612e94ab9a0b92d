/* Cells are foreign text: the table and text_print see to it. */
#include "agent/report/document.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"
#include "agent/model/json_put.h"
#include "agent/report/table.h"

/* The column without its mark. */
static const char *unmarked(const char *column)
{
	return column + strspn(column, "@%");
}

const char *document_header(struct arena *arena, const char *column)
{
	const char *equals, *point;

	column = unmarked(column);
	equals = strchr(column, '=');
	point = strchr(column, '.');
	if (equals == column)
		return point ? point + 1 : column + 1;
	return equals ? arena_strndup(arena, column, (size_t)(equals - column)) : column;
}

/* A key may have points itself; of a list, it is the number of an item. */
static json_t *value_at(const json_t *part, const char *path)
{
	json_t *value = json_object_get(part, path);
	size_t length = strcspn(path, ".");

	if (value || !part)
		return value;
	value = json_is_array(part) ? json_array_get(part, strtoul(path, NULL, 10))
				    : json_object_getn(part, path, length);
	return path[length] ? value_at(value, path + length + 1) : value;
}

json_t *document_value(const json_t *row, const char *column)
{
	const char *equals = strchr(column, '=');

	return value_at(row, equals ? equals + 1 : unmarked(column));
}

static const char *joined(struct arena *arena, json_t *value)
{
	struct buf text = {0};
	const char *key;
	json_t *member;

	for (size_t i = 0; i < json_array_size(value); i++)
		buf_printf(
			&text, "%s%s", i ? ", " : "", json_string_value(json_array_get(value, i)));
	json_object_foreach(value, key, member) buf_printf(
		&text, "%s%s=%s", text.length ? ", " : "", key, json_string_value(member));
	return buf_keep(&text, arena);
}

static const char *string_text(struct arena *arena, const char *text, bool time)
{
	char scratch[TABLE_SCRATCH], when[WHEN_TEXT];
	int64_t ms;

	if (time && when_parse_stamp(text, strlen(text), &ms))
		return arena_strdup(arena, when_format(ms, when));
	return arena_strdup(arena, table_commit(text, scratch));
}

/* NULL: it is blank. */
static const char *text_of(struct arena *arena, const json_t *row, const char *column)
{
	json_t *value = document_value(row, column);
	char number[NUMBER_TEXT];
	const char *text = json_is_true(value)                     ? "yes"
			   : *column == '%' && json_is_null(value) ? "new"
								   : "";

	if (json_is_integer(value))
		return arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (json_is_string(value)) {
		text = string_text(arena, json_string_value(value), *column == '@');
	} else if (json_is_real(value)) {
		number_display(json_real_value(value), number);
		text = arena_strdup(arena, number);
	} else if (json_is_array(value) || json_is_object(value)) {
		text = joined(arena, value);
	}
	return *text ? text : NULL;
}

/* Cells, row by row; a column without text in any is not shown. */
struct grid {
	const char **cells;
	size_t width, rows, *at;
	size_t *shown; /* of a column of the table, that of the cells */
};

static bool next_row(const void *context, bool first)
{
	const struct grid *grid = context;

	*grid->at = first ? 0 : *grid->at + 1;
	return *grid->at < grid->rows;
}

static const char *grid_cell(const void *context, size_t column, char scratch[TABLE_SCRATCH])
{
	const struct grid *grid = context;

	(void)scratch;
	return grid->cells[*grid->at * grid->width + grid->shown[column]];
}

/* Fills in a row, and the headers of the columns that it has text in. */
static void fill(struct arena *arena, const json_t *item, const char *const *columns,
	const char **cells, struct table_column *found)
{
	for (size_t c = 0; columns[c]; c++) {
		const json_t *value = document_value(item, columns[c]);

		cells[c] = text_of(arena, item, columns[c]);
		if (!cells[c])
			continue;
		if (!found[c].header)
			found[c] = (struct table_column){
				.header = document_header(arena, columns[c]), .number = true};
		if (!json_is_number(value) && !json_is_null(value))
			found[c].number = false;
	}
}

void document_table_of(struct arena *arena, const struct document_items *items,
	const char *const *columns, FILE *out)
{
	size_t at = 0, count = 0;
	struct grid grid = {.rows = items->count, .at = &at};
	struct table table = {.next = next_row, .cell = grid_cell, .context = &grid};

	while (columns[grid.width])
		grid.width++;
	grid.cells = arena_array(arena, grid.width * grid.rows, sizeof *grid.cells);
	grid.shown = arena_array(arena, grid.width, sizeof *grid.shown);
	table.columns = arena_array(arena, grid.width, sizeof *table.columns);
	for (size_t i = 0; i < grid.rows; i++) {
		json_t *item = items->make(items->context, i);

		fill(arena, item, columns, grid.cells + i * grid.width, table.columns);
		json_decref(item);
	}
	for (size_t c = 0; c < grid.width; c++) {
		if (grid.rows == 0)
			table.columns[c].header = document_header(arena, columns[c]);
		if (!table.columns[c].header)
			continue;
		grid.shown[count] = c;
		table.columns[count++] = table.columns[c];
	}
	table.column_count = count;
	table_measure(&table);
	table_print_header(&table, out);
	for (bool row = next_row(&grid, true); row; row = next_row(&grid, false))
		table_print_row(&table, out);
}

static json_t *item_of(const void *context, size_t i)
{
	return json_incref(json_array_get(context, i));
}

void document_table(struct arena *arena, const json_t *items, const char *const *columns, FILE *out)
{
	document_table_of(arena, &(struct document_items){json_array_size(items), item_of, items},
		columns, out);
}

static void print_lines(
	struct arena *arena, const json_t *object, const char *const *columns, FILE *out)
{
	size_t widest = 0;

	for (const char *const *column = columns; *column; column++)
		if (text_of(arena, object, *column)) {
			size_t width = text_width(document_header(arena, *column));

			widest = width > widest ? width : widest;
		}
	for (; *columns; columns++) {
		const char *text = text_of(arena, object, *columns);
		const char *header = document_header(arena, *columns);

		if (!text)
			continue;
		fprintf(out, "%s:%*s ", header, (int)(widest - text_width(header)), "");
		text_print(text, out);
		putc('\n', out);
	}
}

void document_print(struct arena *arena, const json_t *document,
	const struct document_section *sections, FILE *out)
{
	const char *before = "";

	for (; sections->columns; sections++) {
		const json_t *part = sections->path ? value_at(document, sections->path) : document;
		bool list = json_is_array(part);

		if (list ? json_array_size(part) == 0 : !text_of(arena, part, *sections->columns))
			continue;
		fputs(before, out);
		before = "\n";
		if (sections->title)
			fprintf(out, "%s:\n", sections->title);
		(list ? document_table : print_lines)(arena, part, sections->columns, out);
	}
}

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
		document_put(out, value, lines);
		before = ", ";
	}
	buf_char(out, '}');
}

static void put_array(struct buf *out, const json_t *array, bool lines)
{
	buf_char(out, '[');
	for (size_t i = 0; i < json_array_size(array); i++) {
		(lines ? json_line : json_next)(out);
		document_put(out, json_array_get(array, i), false);
	}
	buf_char(out, ']');
}

void document_put(struct buf *out, json_t *value, bool lines)
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
