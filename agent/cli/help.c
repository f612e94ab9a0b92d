/* Two columns: the flag, then its description, wrapped to the width of a terminal. */
#include "agent/cli/help.h"

#include <ctype.h>
#include <curl/curl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <string.h>
#include <yaml.h>

#include "sources/postgres/postgres.h"

enum { INDENT = 2, COLUMN = 30, WIDTH = 96 };

static const char *metavar(const struct field *field)
{
	if (field->metavar)
		return field->metavar;
	switch (field->type) {
	case FIELD_BOOL: return NULL;
	case FIELD_INT: return "N";
	case FIELD_DOUBLE: return "X";
	case FIELD_DURATION: return "DURATION";
	case FIELD_BYTES: return "SIZE";
	case FIELD_LIST: return "A,B";
	case FIELD_STRING:
	case FIELD_SECRET:
	case FIELD_CHOICE:
	case FIELD_MAP: break;
	}
	return "TEXT";
}

void help_flag(struct buf *out, const struct field *field)
{
	if (field->letter)
		buf_printf(out, "-%c, ", field->letter);
	buf_text(out, "--");
	for (const char *c = field->name; *c; c++)
		buf_char(out, *c == '_' ? '-' : *c);
	if (field->type == FIELD_CHOICE && !field->metavar) {
		for (size_t i = 0; field->choices[i]; i++)
			buf_printf(out, "%c%s", i ? '|' : ' ', field->choices[i]);
	} else if (metavar(field)) {
		buf_printf(out, " %s", metavar(field));
	}
}

/* Appends text wrapped between `column` and WIDTH; the cursor is at `at`. */
static void fold(struct buf *out, const char *text, size_t column, size_t at)
{
	while (*text) {
		size_t length = strcspn(text, " ");
		if (at > column && at + 1 + length > WIDTH) {
			buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			buf_char(out, ' ');
			at++;
		}
		buf_append(out, text, length);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	buf_char(out, '\n');
}

static void two_columns(struct buf *out, const char *left, const char *right)
{
	size_t start = out->length;
	buf_printf(out, "%*s%s", INDENT, "", left);
	size_t at = out->length - start;
	if (at + 2 > COLUMN) {
		buf_char(out, '\n');
		at = 0;
	}
	buf_printf(out, "%*s", (int)(COLUMN - at), "");
	fold(out, right, COLUMN, COLUMN);
}

static void put_fields(struct buf *out, const struct field *fields)
{
	struct buf flag = {0}, text = {0};
	for (const struct field *field = fields; field->name; field++) {
		if (field->flags & FIELD_HIDDEN)
			continue;
		buf_clear(&flag);
		buf_clear(&text);
		help_flag(&flag, field);
		buf_text(&text, field->help);
		if (field->initial && field->type != FIELD_BOOL)
			buf_printf(&text, " (default %s)", field->initial);
		two_columns(out, flag.data, text.data);
	}
	buf_free(&flag);
	buf_free(&text);
}

/* Paragraphs are separated by empty lines; lines that begin with a blank are examples and are
 * not wrapped. */
static void put_details(struct buf *out, const char *details)
{
	struct buf paragraph = {0};
	for (const char *line = details; *line;) {
		size_t length = strcspn(line, "\n");
		bool example = *line == ' ' || length == 0;
		if (example && paragraph.length > 0) {
			fold(out, paragraph.data, 0, 0);
			buf_clear(&paragraph);
		}
		if (example)
			buf_printf(out, "%.*s\n", (int)length, line);
		else
			buf_printf(&paragraph, "%s%.*s", paragraph.length ? " " : "", (int)length,
				line);
		line += length + (line[length] == '\n');
	}
	if (paragraph.length > 0)
		fold(out, paragraph.data, 0, 0);
	buf_free(&paragraph);
}

void help_command(struct buf *out, const struct command *command)
{
	buf_printf(out, "Usage: hunter-c %s [OPTION...]%s%s\n", command->name,
		command->arguments ? " " : "", command->arguments ? command->arguments : "");
	buf_printf(out, "%c%s.\n\n", toupper((unsigned char)command->summary[0]),
		command->summary + 1);
	if (command->details) {
		put_details(out, command->details);
		buf_char(out, '\n');
	}
	if (command->parts && command->parts->fields) {
		buf_text(out, "Options:\n");
		for (const struct option_part *part = command->parts; part->fields; part++)
			put_fields(out, part->fields);
		buf_char(out, '\n');
	}
	buf_text(out, "Common options:\n");
	put_fields(out, common_fields);
}

void help_overview(struct buf *out, const struct command *const *commands)
{
	buf_text(out, "Usage: hunter-c COMMAND [OPTION...] [ARGUMENT...]\n"
		      "Finds change points in performance series and notifies people.\n"
		      "\n"
		      "Commands:\n");
	for (const struct command *const *command = commands; *command; command++)
		two_columns(out, (*command)->name, (*command)->summary);
	buf_text(out, "\nCommon options:\n");
	put_fields(out, common_fields);
	buf_text(out,
		"\n`hunter-c COMMAND --help` explains a command. Exit codes: 0 nothing found,\n"
		"1 regressions found, 2 wrong usage or configuration, 3 some data unavailable,\n"
		"4 state file or port unavailable; where several apply, 2 over 1 over 3.\n");
}

void help_version(struct buf *out)
{
	char libpq[POSTGRES_LIBRARY_TEXT];
	buf_printf(out, "hunter-c %s\n", HUNTER_VERSION);
	buf_printf(out,
		"libcurl %s, libyaml %s, jansson %s, libmicrohttpd %s, SQLite %s, libpq %s\n",
		curl_version_info(CURLVERSION_NOW)->version, yaml_get_version_string(),
		jansson_version_str(), MHD_get_version(), sqlite3_libversion(),
		postgres_library(libpq));
}
