/*
 * A row is first scanned for its cells without changing the data. If the block turns out to hold
 * only a part of the row, that part moves to the front, the block is refilled (and doubled if it is
 * full) and the row is scanned again. Quotes are removed last, in place. Cells are never copied.
 */
#include "sources/files/delimited.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/utf8.h"

enum { FIRST_BLOCK = 16 << 10, BLOCK = 256 << 10 };

struct delimited {
	struct input *input;
	char *data; /* bytes [at, length) have been read but not consumed */
	size_t at, length, capacity;
	bool ended, started;
	size_t line;
	char delimiter, quote;
	bool special[256]; /* bytes that end a plain cell */
	struct cell *cells;
	bool *quoted;
	size_t count, cell_capacity;
};

enum scan { SCAN_ROW, SCAN_MORE, SCAN_TOO_MANY, SCAN_NUL };

struct delimited *delimited_new(struct input *input, char delimiter, char quote)
{
	struct delimited *reader = memory_new(1, sizeof *reader);

	reader->input = input;
	reader->delimiter = delimiter;
	reader->quote = quote;
	reader->line = 1;
	reader->special[(unsigned char)delimiter] = true;
	reader->special['\n'] = reader->special['\r'] = reader->special['\0'] = true;
	return reader;
}

void delimited_free(struct delimited *reader)
{
	if (!reader)
		return;
	free(reader->data);
	free(reader->cells);
	free(reader->quoted);
	free(reader);
}

static bool fail(const struct delimited *reader, struct error *error, const char *what)
{
	return error_set(error, ERROR_DATA, "%s:%zu: %s", reader->input->name, reader->line, what);
}

/* Moves the unconsumed bytes to the front, grows the block if needed, and fills it. */
static bool refill(struct delimited *reader, struct error *error)
{
	size_t left = reader->length - reader->at, got;

	if (left == DELIMITED_ROW_MAX)
		return fail(reader, error, "a row larger than 64 MB (is a quote not closed?)");
	if (left)
		memmove(reader->data, reader->data + reader->at, left);
	if (left == reader->capacity || reader->capacity < BLOCK) {
		reader->capacity = reader->capacity ? reader->capacity * 2 : FIRST_BLOCK;
		reader->data = memory_resize(reader->data, reader->capacity, 1);
	}
	reader->at = 0;
	reader->length = left;
	if (!input_read(reader->input, reader->data + left, reader->capacity - left, &got, error))
		return false;
	reader->length += got;
	reader->ended = got < reader->capacity - left;
	return true;
}

static bool add_cell(struct delimited *reader, char *text, size_t length, bool quoted)
{
	if (reader->count == DELIMITED_COLUMNS_MAX)
		return false;
	if (reader->count == reader->cell_capacity) {
		size_t capacity = reader->cell_capacity;
		reader->cells = memory_grow(
			reader->cells, &capacity, reader->count + 1, sizeof *reader->cells);
		reader->quoted = memory_grow(reader->quoted, &reader->cell_capacity,
			reader->count + 1, sizeof *reader->quoted);
	}
	reader->cells[reader->count] = (struct cell){text, length};
	reader->quoted[reader->count++] = quoted;
	return true;
}

/* The position after the closing quote of the cell at `at`; NULL if the block ends too early to
 * tell. */
static char *scan_quoted(const struct delimited *reader, char *at, char *end)
{
	at++;
	for (;;) {
		at = memchr(at, reader->quote, (size_t)(end - at));
		if (!at || (at + 1 == end && !reader->ended))
			return NULL;
		if (at + 1 == end || at[1] != reader->quote)
			return at + 1;
		at += 2;
	}
}

/* Finds the cells of the row at reader->at and the start of the next row. */
static enum scan scan_row(struct delimited *reader, size_t *next)
{
	char *at = reader->data + reader->at, *end = reader->data + reader->length;

	reader->count = 0;
	for (;;) {
		char *begin = at;
		bool quoted = reader->quote && at < end && *at == reader->quote;

		if (quoted && !(at = scan_quoted(reader, at, end)))
			return SCAN_MORE;
		while (at < end && !reader->special[(unsigned char)*at])
			at++;
		if (at == end && !reader->ended)
			return SCAN_MORE;
		if (!add_cell(reader, begin, (size_t)(at - begin), quoted))
			return SCAN_TOO_MANY;
		if (at == end || *at != reader->delimiter)
			break;
		at++;
	}
	if (at < end && *at == '\0')
		return SCAN_NUL;
	if (at < end && *at == '\r') {
		if (at + 1 == end && !reader->ended)
			return SCAN_MORE;
		at += at + 1 < end && at[1] == '\n';
	}
	*next = (size_t)(at - reader->data) + (at < end);
	return SCAN_ROW;
}

/* Removes the quotes of a cell in place and counts its line ends; false if it holds a NUL. */
static bool unquote(struct cell *cell, char quote, size_t *lines)
{
	char *to = cell->text;
	const char *at = cell->text + 1, *end = cell->text + cell->length;
	bool inside = true;

	for (; at < end; at++) {
		if (*at == '\0')
			return false;
		*lines += *at == '\n';
		if (inside && *at == quote) {
			if (at + 1 < end && at[1] == quote)
				at++;
			else {
				inside = false;
				continue;
			}
		}
		*to++ = *at;
	}
	cell->length = (size_t)(to - cell->text);
	return true;
}

static bool start(struct delimited *reader, struct error *error)
{
	static const char mark[] = "\xEF\xBB\xBF";

	reader->started = true;
	if (!refill(reader, error))
		return false;
	if (reader->length >= 3 && memcmp(reader->data, mark, 3) == 0)
		reader->at = 3;
	if (reader->length >= 2 && (memcmp(reader->data, "\xFF\xFE", 2) == 0 ||
					   memcmp(reader->data, "\xFE\xFF", 2) == 0))
		return fail(reader, error, "the file is in UTF-16; UTF-8 is needed");
	return true;
}

/* Names and commits go to JSON, terminals and receivers: a byte that is not UTF-8 becomes '?'. */
static void blank_invalid(char *text, size_t length)
{
	unsigned char all = 0;

	for (size_t i = 0; i < length; i++)
		all |= (unsigned char)text[i];
	for (size_t i = 0, size; all >= 0x80 && i < length; i += size ? size : 1) {
		size = utf8_length(text + i, length - i);
		if (size == 0)
			text[i] = '?';
	}
}

/* The next row, including blank ones. */
static enum delimited_step next_row(struct delimited *reader, struct error *error)
{
	enum scan scan;
	size_t next = 0, lines = 1;

	for (;;) {
		if (reader->ended && reader->at == reader->length)
			return DELIMITED_END;
		scan = scan_row(reader, &next);
		if (scan != SCAN_MORE || reader->ended)
			break;
		if (!refill(reader, error))
			return DELIMITED_FAILED;
	}
	if (scan == SCAN_ROW)
		blank_invalid(reader->data + reader->at, next - reader->at);
	for (size_t i = 0; scan == SCAN_ROW && i < reader->count; i++)
		if (reader->quoted[i] && !unquote(&reader->cells[i], reader->quote, &lines))
			scan = SCAN_NUL;
	if (scan == SCAN_ROW) {
		reader->at = next;
		reader->line += lines;
		return DELIMITED_ROW;
	}
	if (scan == SCAN_MORE)
		fail(reader, error, "this row opens a quote that is never closed");
	else if (scan == SCAN_TOO_MANY)
		fail(reader, error, "more than 16384 columns");
	else
		fail(reader, error, "a NUL byte (is this a text file?)");
	return DELIMITED_FAILED;
}

enum delimited_step delimited_next(struct delimited *reader, struct row *row, struct error *error)
{
	enum delimited_step step;

	if (!reader->started && !start(reader, error))
		return DELIMITED_FAILED;
	do {
		row->line = reader->line;
		step = next_row(reader, error);
		if (step != DELIMITED_ROW)
			return step;
	} while (reader->count == 1 && reader->cells[0].length == 0 && !reader->quoted[0]);
	row->cells = reader->cells;
	row->count = reader->count;
	return DELIMITED_ROW;
}
