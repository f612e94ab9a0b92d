/*
 * The grammar is a state that says what may come next, and one bit a level that says what is being
 * closed. Bytes come from a block that is filled again at its end; plain stretches of strings are
 * copied whole.
 */
#include "sources/files/jsonread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/utf8.h"

enum state {
	STATE_VALUE,       /* a value */
	STATE_FIRST_VALUE, /* a value or ] */
	STATE_FIRST_KEY,   /* a key or } */
	STATE_AFTER,       /* a comma, or the end of what is open */
};

enum { NO_BYTE = -1, FAILED_BYTE = -2 };

struct json_reader *json_reader_new(struct input *input)
{
	struct json_reader *reader = memory_new(1, sizeof *reader);

	reader->input = input;
	reader->line = 1;
	reader->state = STATE_VALUE;
	return reader;
}

void json_reader_free(struct json_reader *reader)
{
	if (!reader)
		return;
	buf_free(&reader->text);
	free(reader);
}

bool json_fail(const struct json_reader *reader, struct error *error, const char *format, ...)
{
	va_list arguments;
	struct buf text = {0};

	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	error_set(error, ERROR_DATA, "%s:%zu: %s", reader->input->name, reader->line, text.data);
	buf_free(&text);
	return false;
}

static int unexpected(
	const struct json_reader *reader, int byte, const char *wanted, struct error *error)
{
	if (byte == NO_BYTE)
		json_fail(reader, error, "the file ends where %s should be", wanted);
	else if (byte > ' ' && byte < 127)
		json_fail(reader, error, "'%c' where %s should be", byte, wanted);
	else if (byte >= 0)
		json_fail(reader, error, "byte 0x%02x where %s should be", (unsigned)byte, wanted);
	return FAILED_BYTE;
}

/* The byte at hand, or NO_BYTE at the end. */
static int peek(struct json_reader *reader, struct error *error)
{
	if (reader->at == reader->length) {
		reader->at = 0;
		if (!input_read(reader->input, reader->block, sizeof reader->block, &reader->length,
			    error)) {
			reader->length = 0;
			return FAILED_BYTE;
		}
		if (reader->length == 0)
			return NO_BYTE;
	}
	return (unsigned char)reader->block[reader->at];
}

static int take(struct json_reader *reader, struct error *error)
{
	int byte = peek(reader, error);

	if (byte >= 0)
		reader->at++;
	return byte;
}

/* The first byte that is no blank, left at hand. */
static int peek_token(struct json_reader *reader, struct error *error)
{
	for (;;) {
		int byte = peek(reader, error);

		if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')
			return byte;
		reader->line += byte == '\n';
		reader->at++;
	}
}

static bool check_length(const struct json_reader *reader, struct error *error)
{
	if (reader->text.length <= JSONREAD_TEXT_MAX)
		return true;
	return json_fail(reader, error, "a text of more than %d MB", JSONREAD_TEXT_MAX >> 20);
}

static bool take_unit(struct json_reader *reader, uint32_t *unit, struct error *error)
{
	*unit = 0;
	for (int i = 0; i < 4; i++) {
		int byte = take(reader, error);
		int lower = byte | 0x20;

		if (byte >= '0' && byte <= '9')
			*unit = *unit << 4 | (uint32_t)(byte - '0');
		else if (byte > 0 && lower >= 'a' && lower <= 'f')
			*unit = *unit << 4 | (uint32_t)(lower - 'a' + 10);
		else
			return unexpected(reader, byte, "a hexadecimal digit", error) == 0;
	}
	return true;
}

/* \uXXXX, of which two make one character beyond the first 65536. */
static bool take_unicode(struct json_reader *reader, struct error *error)
{
	uint32_t point, low;
	char text[4];

	if (!take_unit(reader, &point, error))
		return false;
	if (point == 0)
		return json_fail(reader, error, "a NUL character in a string");
	if (point >= 0xD800 && point < 0xDC00) {
		if (peek(reader, error) != '\\')
			return json_fail(reader, error, "half a surrogate pair in a string");
		reader->at++;
		if (take(reader, error) != 'u' || !take_unit(reader, &low, error) || low < 0xDC00 ||
			low > 0xDFFF)
			return json_fail(reader, error, "half a surrogate pair in a string");
		point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
	} else if (point >= 0xDC00 && point < 0xE000) {
		return json_fail(reader, error, "half a surrogate pair in a string");
	}
	buf_append(&reader->text, text, utf8_write(point, text));
	return true;
}

static bool take_escape(struct json_reader *reader, struct error *error)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	int byte = take(reader, error);
	const char *name = byte > 0 ? strchr(names, byte) : NULL;

	if (byte == 'u')
		return take_unicode(reader, error);
	if (!name)
		return unexpected(reader, byte, "an escape", error) == 0;
	buf_char(&reader->text, meant[name - names]);
	return true;
}

static bool is_utf8(const char *text, size_t length)
{
	for (size_t i = 0, step; i < length; i += step)
		if ((step = utf8_length(text + i, length - i)) == 0)
			return false;
	return true;
}

/* After the opening quote. */
static bool take_string(struct json_reader *reader, struct error *error)
{
	for (;;) {
		int byte = peek(reader, error);
		size_t from = reader->at;

		if (byte < ' ')
			return unexpected(reader, byte, "the rest of a string", error) == 0;
		while (reader->at < reader->length && reader->block[reader->at] != '"' &&
			reader->block[reader->at] != '\\' &&
			(unsigned char)reader->block[reader->at] >= ' ')
			reader->at++;
		buf_append(&reader->text, reader->block + from, reader->at - from);
		if (!check_length(reader, error))
			return false;
		if (reader->at > from)
			continue;
		reader->at++;
		if (byte == '"')
			break;
		if (!take_escape(reader, error))
			return false;
	}
	if (is_utf8(reader->text.data ? reader->text.data : "", reader->text.length))
		return true;
	return json_fail(reader, error, "a string is not valid UTF-8");
}

static bool take_digits(struct json_reader *reader, struct error *error)
{
	int byte = peek(reader, error);

	if (byte < '0' || byte > '9')
		return unexpected(reader, byte, "a digit", error) == 0;
	for (; byte >= '0' && byte <= '9'; byte = peek(reader, error)) {
		buf_char(&reader->text, (char)byte);
		reader->at++;
	}
	return byte != FAILED_BYTE && check_length(reader, error);
}

static bool take_letters(struct json_reader *reader, const char *word, struct error *error)
{
	for (const char *at = word; *at; at++) {
		int byte = take(reader, error);

		if (byte != *at)
			return unexpected(reader, byte, word, error) == 0;
		buf_char(&reader->text, (char)byte);
	}
	return true;
}

static bool take_number(struct json_reader *reader, struct error *error)
{
	int byte = peek(reader, error);

	if (byte == '-') {
		buf_char(&reader->text, '-');
		reader->at++;
		byte = peek(reader, error);
		if (byte == 'I')
			return take_letters(reader, "Infinity", error);
	}
	if (byte == '0') {
		buf_char(&reader->text, '0');
		reader->at++;
	} else if (!take_digits(reader, error)) {
		return false;
	}
	byte = peek(reader, error);
	if (byte == '.') {
		buf_char(&reader->text, '.');
		reader->at++;
		if (!take_digits(reader, error))
			return false;
		byte = peek(reader, error);
	}
	if (byte != 'e' && byte != 'E')
		return byte != FAILED_BYTE;
	buf_char(&reader->text, 'e');
	reader->at++;
	byte = peek(reader, error);
	if (byte == '-' || byte == '+') {
		buf_char(&reader->text, (char)byte);
		reader->at++;
	}
	return take_digits(reader, error);
}

static enum token open_container(struct json_reader *reader, bool object, struct error *error)
{
	if (reader->depth == JSONREAD_DEPTH) {
		json_fail(reader, error, "nested more than %d deep", JSONREAD_DEPTH);
		return TOKEN_FAILED;
	}
	reader->at++;
	reader->objects[reader->depth++] = object;
	reader->state = object ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
	return object ? TOKEN_OBJECT : TOKEN_ARRAY;
}

static enum token close_container(struct json_reader *reader)
{
	reader->at++;
	reader->state = STATE_AFTER;
	return reader->objects[--reader->depth] ? TOKEN_OBJECT_END : TOKEN_ARRAY_END;
}

static enum token take_key(struct json_reader *reader, int byte, struct error *error)
{
	if (byte != '"') {
		unexpected(reader, byte, "a key in quotes", error);
		return TOKEN_FAILED;
	}
	reader->at++;
	if (!take_string(reader, error))
		return TOKEN_FAILED;
	byte = peek_token(reader, error);
	if (byte != ':') {
		unexpected(reader, byte, "a colon", error);
		return TOKEN_FAILED;
	}
	reader->at++;
	reader->state = STATE_VALUE;
	return TOKEN_KEY;
}

static enum token take_value(struct json_reader *reader, int byte, struct error *error)
{
	if (byte == '{' || byte == '[')
		return open_container(reader, byte == '{', error);
	reader->state = STATE_AFTER;
	if (byte == '"') {
		reader->at++;
		return take_string(reader, error) ? TOKEN_STRING : TOKEN_FAILED;
	}
	if (byte == '-' || (byte >= '0' && byte <= '9'))
		return take_number(reader, error) ? TOKEN_NUMBER : TOKEN_FAILED;
	if (byte == 'n')
		return take_letters(reader, "null", error) ? TOKEN_NULL : TOKEN_FAILED;
	if (byte == 't')
		return take_letters(reader, "true", error) ? TOKEN_TRUE : TOKEN_FAILED;
	if (byte == 'f')
		return take_letters(reader, "false", error) ? TOKEN_FALSE : TOKEN_FAILED;
	if (byte == 'N')
		return take_letters(reader, "NaN", error) ? TOKEN_NUMBER : TOKEN_FAILED;
	if (byte == 'I')
		return take_letters(reader, "Infinity", error) ? TOKEN_NUMBER : TOKEN_FAILED;
	unexpected(reader, byte, "a value", error);
	return TOKEN_FAILED;
}

/* After a value: a comma and what it promises, or the end of what is open. */
static enum token go_on(struct json_reader *reader, int byte, struct error *error)
{
	if (reader->depth == 0) {
		if (byte == NO_BYTE)
			return TOKEN_END;
		unexpected(reader, byte, "the end of the file", error);
		return TOKEN_FAILED;
	}
	bool object = reader->objects[reader->depth - 1];
	if (byte == (object ? '}' : ']'))
		return close_container(reader);
	if (byte != ',') {
		unexpected(reader, byte, object ? "a comma or }" : "a comma or ]", error);
		return TOKEN_FAILED;
	}
	reader->at++;
	byte = peek_token(reader, error);
	return object ? take_key(reader, byte, error) : take_value(reader, byte, error);
}

enum token json_next(struct json_reader *reader, struct error *error)
{
	int byte = peek_token(reader, error);

	if (!reader->started) {
		reader->started = true;
		if (reader->length >= 3 && memcmp(reader->block, "\xEF\xBB\xBF", 3) == 0) {
			reader->at = 3;
			byte = peek_token(reader, error);
		}
		if (byte == NO_BYTE) {
			error_set(error, ERROR_DATA, "%s: the file is empty", reader->input->name);
			return TOKEN_FAILED;
		}
	}
	if (byte == FAILED_BYTE)
		return TOKEN_FAILED;
	buf_clear(&reader->text);
	switch ((enum state)reader->state) {
	case STATE_FIRST_VALUE:
		if (byte == ']')
			return close_container(reader);
		return take_value(reader, byte, error);
	case STATE_VALUE: return take_value(reader, byte, error);
	case STATE_FIRST_KEY:
		if (byte == '}')
			return close_container(reader);
		return take_key(reader, byte, error);
	case STATE_AFTER: break;
	}
	return go_on(reader, byte, error);
}

bool json_skip(struct json_reader *reader, enum token token, struct error *error)
{
	size_t depth = reader->depth;

	if (token != TOKEN_OBJECT && token != TOKEN_ARRAY)
		return true;
	while (reader->depth >= depth)
		if (json_next(reader, error) == TOKEN_FAILED)
			return false;
	return true;
}
