/*
 * Fields of CSV: quoted where necessary, with an apostrophe before anything that a spreadsheet
 * would run as a formula.
 */
#include "agent/report/csv.h"

#include <string.h>

#include "agent/report/document.h"
#include "agent/report/table.h"

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

/* Where the comma is the decimal separator, spreadsheets split cells at semicolons, even quoted
 * ones. */
static void guard(const char *text, struct buf *out)
{
	for (const char *end;; text = end) {
		size_t length = strcspn(text, ";");
		struct buf part = {0};
		buf_append(&part, text, length);
		buf_text(out, part.data && is_formula(part.data) ? "'" : "");
		buf_free(&part);
		end = text + length + (text[length] == ';');
		buf_append(out, text, (size_t)(end - text));
		if (!*end)
			return;
	}
}

static void put_field(const char *text, FILE *out)
{
	if (!text[strcspn(text, ",\"")]) {
		text_print(text, out);
		return;
	}
	struct buf quoted = {0};
	for (; *text; text++) {
		if (*text == '"')
			buf_char(&quoted, '"');
		buf_char(&quoted, *text);
	}
	putc('"', out);
	text_print(quoted.data, out);
	putc('"', out);
	buf_free(&quoted);
}

/* A field of RFC 4180: quoted if necessary, always on one line. NULL is an empty field. Unless
 * `formulas`, text that a spreadsheet would take for a formula, and that is no number, gets an
 * apostrophe in front. */
static void put_text(const char *text, bool formulas, FILE *out)
{
	struct buf guarded = {0};
	if (!text || !*text)
		return;
	if (!formulas)
		guard(text, &guarded);
	put_field(formulas ? text : guarded.data, out);
	buf_free(&guarded);
}

void csv_put_header(const char *first, const char *const *columns, bool formulas, FILE *out)
{
	struct arena *arena = arena_new();

	put_text(first, formulas, out);
	for (size_t i = 0; columns[i]; i++) {
		fputs(first || i > 0 ? "," : "", out);
		put_text(document_header(arena, columns[i]), formulas, out);
	}
	putc('\n', out);
	arena_free(arena);
}

/* "region=eu, zone=b" */
static void put_object(json_t *object, bool formulas, FILE *out)
{
	struct buf text = {0};
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) buf_printf(
		&text, "%s%s=%s", text.length ? ", " : "", key, json_string_value(value));
	put_text(text.data, formulas, out);
	buf_free(&text);
}

static void put_value(json_t *value, bool formulas, FILE *out)
{
	struct buf number = {0};

	if (json_is_integer(value)) {
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	} else if (json_is_real(value)) {
		buf_json_number(&number, json_real_value(value));
		text_flush(&number, out);
	} else if (json_is_boolean(value)) {
		fputs(json_is_true(value) ? "yes" : "no", out);
	} else if (json_is_object(value)) {
		put_object(value, formulas, out);
	} else {
		put_text(json_string_value(value), formulas, out);
	}
}

void csv_put_row(
	const char *first, const json_t *row, const char *const *columns, bool formulas, FILE *out)
{
	put_text(first, formulas, out);
	for (size_t i = 0; columns[i]; i++) {
		fputs(first || i > 0 ? "," : "", out);
		put_value(document_value(row, columns[i]), formulas, out);
	}
	putc('\n', out);
}

void csv_put_text(
	const char *first, const char *row, const char *const *columns, bool formulas, FILE *out)
{
	json_t *object = json_loads(row, 0, NULL);

	csv_put_row(first, object, columns, formulas, out);
	json_decref(object);
}
