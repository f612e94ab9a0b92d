/*
 * Cells are foreign text: the table and text_print see to it. Fields of CSV are quoted where
 * necessary, with an apostrophe before anything that a spreadsheet would run as a formula.
 */
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

/* The column's header. */
static const char *header_of(struct arena *arena, const char *column)
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

/* The column's value in a row; NULL: it has none. */
static json_t *value_of(const json_t *row, const char *column)
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

/* NULL: it is blank. */
static const char *text_of(struct arena *arena, const json_t *row, const char *column)
{
	json_t *value = value_of(row, column);
	char number[NUMBER_TEXT], scratch[TABLE_SCRATCH], when[WHEN_TEXT];
	const char *text = json_string_value(value);
	int64_t ms;

	if (json_is_integer(value))
		return arena_printf(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	if (json_is_true(value))
		return "yes";
	if (*column == '%' && json_is_null(value))
		return "new";
	if (json_is_real(value)) {
		number_display(json_real_value(value), number);
		text = number;
	} else if (json_is_array(value) || json_is_object(value)) {
		text = joined(arena, value);
	} else if (text && *column == '@' && when_parse_stamp(text, strlen(text), &ms)) {
		text = when_format(ms, when);
	}
	return text && *text ? arena_strdup(arena, table_commit(text, scratch)) : NULL;
}

void document_table_of(struct arena *arena, const struct document_items *items,
	const char *const *columns, FILE *out)
{
	struct table table = {0};
	const char **cells;
	size_t width = 0;

	while (columns[width])
		width++;
	cells = arena_array(arena, width * items->count, sizeof *cells);
	table.columns = arena_array(arena, width, sizeof *table.columns);
	table.column_count = width;
	for (size_t c = 0; c < width; c++) {
		table.columns[c].number = true;
		if (items->count == 0)
			table.columns[c].header = header_of(arena, columns[c]);
	}
	for (size_t i = 0; i < items->count; i++) {
		json_t *item = items->make(items->context, i);

		for (size_t c = 0; c < width; c++) {
			const json_t *value = value_of(item, columns[c]);
			const char *text = text_of(arena, item, columns[c]);

			cells[i * width + c] = text;
			if (text && !table.columns[c].header)
				table.columns[c].header = header_of(arena, columns[c]);
			if (text && !json_is_number(value) && !json_is_null(value))
				table.columns[c].number = false;
		}
		json_decref(item);
	}
	for (size_t i = 0; i < items->count; i++)
		table_measure(&table, cells + i * width);
	table_print_header(&table, out);
	for (size_t i = 0; i < items->count; i++)
		table_print_row(&table, cells + i * width, out);
}

static json_t *item_of(const void *context, size_t i)
{
	return json_incref(json_array_get(context, i));
}

struct document_items document_list(const json_t *list)
{
	return (struct document_items){json_array_size(list), item_of, list};
}

void document_table(struct arena *arena, const json_t *items, const char *const *columns, FILE *out)
{
	const struct document_items list = document_list(items);

	document_table_of(arena, &list, columns, out);
}

static void print_lines(
	struct arena *arena, const json_t *object, const char *const *columns, FILE *out)
{
	size_t widest = 0;

	for (const char *const *column = columns; *column; column++)
		if (text_of(arena, object, *column)) {
			size_t width = text_width(header_of(arena, *column));

			widest = width > widest ? width : widest;
		}
	for (; *columns; columns++) {
		const char *text = text_of(arena, object, *columns);
		const char *header = header_of(arena, *columns);

		if (!text)
			continue;
		text_line(out, "%s:%*s %s", header, (int)(widest - text_width(header)), "", text);
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

void document_put(struct buf *out, json_t *value, bool lines)
{
	const char *key;
	json_t *member;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		buf_char(out, '{');
		json_object_foreach(value, key, member)
		{
			json_next(out);
			buf_json_text(out, key);
			buf_text(out, ": ");
			document_put(out, member, lines);
		}
		buf_char(out, '}');
		break;
	case JSON_ARRAY:
		buf_char(out, '[');
		for (size_t i = 0; i < json_array_size(value); i++) {
			(lines ? json_line : json_next)(out);
			document_put(out, json_array_get(value, i), false);
		}
		buf_char(out, ']');
		break;
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

/* Whether a spreadsheet would take the text for a formula. Full-width signs count: spreadsheets in
 * East Asian languages accept them. Control characters are printed as blanks. */
static bool is_formula(const char *text)
{
	static const char *const signs[] = {
		"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
	const char *at = text;

	while (*at && (unsigned char)*at <= ' ')
		at++;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strncmp(at, signs[i], strlen(signs[i])) == 0)
			return !text_is_number(text);
	return false;
}

/* A field of RFC 4180, always on one line; NULL is an empty one. Where the comma is the decimal
 * separator, spreadsheets split cells at semicolons, even quoted ones. */
static void csv_text(struct arena *arena, const char *text, FILE *out)
{
	const char *quote = text && text[strcspn(text, ",\"")] ? "\"" : "";
	struct buf field = {0};

	for (const char *at = text; at && *at;) {
		const char *part = arena_strndup(arena, at, strcspn(at, ";"));

		buf_text(&field, is_formula(part) ? "'" : "");
		for (at += strlen(part); *part; part++)
			buf_printf(&field, *part == '"' ? "\"\"" : "%c", *part);
		if (*at)
			buf_char(&field, *at++);
	}
	fputs(quote, out);
	text_print(field.length > 0 ? field.data : "", out);
	fputs(quote, out);
	buf_free(&field);
}

void document_csv_header(const char *const *columns, FILE *out)
{
	struct arena *arena = arena_new();

	for (size_t i = 0; columns[i]; i++) {
		fputs(i > 0 ? "," : "", out);
		csv_text(arena, header_of(arena, columns[i]), out);
	}
	putc('\n', out);
	arena_free(arena);
}

static void csv_row(const json_t *row, const char *const *columns, FILE *out)
{
	struct arena *arena = arena_new();

	for (size_t i = 0; columns[i]; i++) {
		json_t *value = value_of(row, columns[i]);
		struct buf number = {0};

		fputs(i > 0 ? "," : "", out);
		if (json_is_number(value)) {
			document_put(&number, value, false);
			text_flush(&number, out);
		} else if (json_is_boolean(value)) {
			fputs(json_is_true(value) ? "yes" : "no", out);
		} else {
			csv_text(arena,
				json_is_object(value) ? joined(arena, value)
						      : json_string_value(value),
				out);
		}
	}
	putc('\n', out);
	arena_free(arena);
}

void document_csv_row(const char *test, const char *row, const char *const *columns, FILE *out)
{
	json_t *object = json_loads(row, 0, NULL);

	json_object_set_new(object, "test", json_string(test));
	csv_row(object, columns, out);
	json_decref(object);
}

void document_csv(const struct document_items *items, const char *const *columns, FILE *out)
{
	document_csv_header(columns, out);
	for (size_t i = 0; i < items->count; i++) {
		json_t *item = items->make(items->context, i);

		csv_row(item, columns, out);
		json_decref(item);
	}
}
