/*
 * A recursive-descent parser; only members of the outermost dict are kept, nested values are
 * skipped.
 */
#include "sources/graphite/python_literal.h"

#include <stdint.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

struct reader {
	struct arena *arena;
	const char *at, *end;
	struct buf text; /* text of the last value, if it has one */
	bool has_text, is_string;
	struct pair *pairs;
	size_t count;
};

static bool read_value(struct reader *reader, int depth);

static void skip_space(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

static bool accept_char(struct reader *reader, char c)
{
	bool seen = reader->at < reader->end && *reader->at == c;
	reader->at += seen;
	return seen;
}

/* Reads exactly `digits` hexadecimal digits. */
static bool read_hex(struct reader *reader, int digits, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < digits; i++) {
		int digit = reader->at < reader->end ? number_hex_digit(*reader->at) : -1;
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
		reader->at++;
	}
	return true;
}

static void put_code(struct buf *out, uint32_t code)
{
	char bytes[4];
	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		code = 0xfffd;
	buf_append(out, bytes, utf8_write(code, bytes));
}

/* \uXXXX; JSON writes code points above U+FFFF as two of them. */
static bool put_short_code(struct reader *reader, struct buf *out)
{
	uint32_t code, low;
	if (!read_hex(reader, 4, &code))
		return false;
	const char *behind = reader->at;
	if (code >= 0xd800 && code < 0xdc00 && accept_char(reader, '\\') &&
		accept_char(reader, 'u') && read_hex(reader, 4, &low) && low >= 0xdc00 &&
		low < 0xe000) {
		put_code(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
		return true;
	}
	reader->at = behind;
	put_code(out, code);
	return true;
}

/* Decodes the sequence after a backslash; an unknown one stands for itself. */
static bool put_escape(struct reader *reader, struct buf *out)
{
	static const char plain[] = "\\'\"/bfnrt", meaning[] = "\\'\"/\b\f\n\r\t";
	uint32_t code;
	char c = reader->at < reader->end ? *reader->at++ : '\0';
	const char *known = c ? strchr(plain, c) : NULL;
	if (known) {
		buf_char(out, meaning[known - plain]);
	} else if (c == 'u') {
		return put_short_code(reader, out);
	} else if (c == 'x' || c == 'U') {
		if (!read_hex(reader, c == 'x' ? 2 : 8, &code))
			return false;
		put_code(out, code);
	} else {
		buf_char(out, '\\');
		reader->at -= c != '\0';
	}
	return true;
}

/* Reads a string from its quote on. */
static bool read_string(struct reader *reader)
{
	char quote = *reader->at++;
	struct buf *out = &reader->text;
	buf_clear(out);
	buf_reserve(out, 0);
	while (reader->at < reader->end && *reader->at != quote) {
		if (*reader->at == '\\') {
			reader->at++;
			if (!put_escape(reader, out))
				return false;
			continue;
		}
		size_t length = utf8_length(reader->at, (size_t)(reader->end - reader->at));
		if (length == 0 || *reader->at == '\0')
			put_code(out, 0xfffd);
		else
			buf_append(out, reader->at, length);
		reader->at += length ? length : 1;
	}
	reader->has_text = reader->is_string = true;
	return accept_char(reader, quote);
}

static bool is_word_part(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '.';
}

/* Stores [from, at) as the text of the value, without the L of Python 2's long integers. */
static void keep_word(struct reader *reader, const char *from)
{
	size_t length = (size_t)(reader->at - from);
	buf_clear(&reader->text);
	buf_append(&reader->text, from, length - (from[length - 1] == 'L'));
	reader->has_text = true;
}

/* A number, None, True and the like, or a string with a prefix: u'text', b'text'. */
static bool read_word(struct reader *reader)
{
	static const char *const words[] = {
		"None", "null", "True", "true", "False", "false", "inf", "nan", "-inf", "+inf"};
	const char *from = reader->at;
	bool number = strchr("+-.0123456789", *from) && *from, digits = false;
	reader->at += *from == '-' || *from == '+';
	for (; reader->at < reader->end; reader->at++) {
		char c = *reader->at;
		bool exponent = (c == '-' || c == '+') && (reader->at[-1] | 0x20) == 'e';
		if (!is_word_part(c) && !(exponent && digits))
			break;
		digits |= number && c >= '0' && c <= '9';
	}
	size_t length = (size_t)(reader->at - from), i = 0, n = sizeof words / sizeof *words;
	while (i < n && (strlen(words[i]) != length || memcmp(words[i], from, length) != 0))
		i++;
	if (digits || (i >= 2 && i < n))
		keep_word(reader, from);
	return digits || i < n ||
	       (length == 1 && strchr("ub", *from) && reader->at < reader->end &&
		       strchr("'\"", *reader->at) && read_string(reader));
}

static bool add_member(struct reader *reader, const char *key)
{
	if (reader->count == PYTHON_PAIRS_MAX)
		return false;
	reader->pairs =
		arena_grow(reader->arena, reader->pairs, reader->count, sizeof *reader->pairs);
	reader->pairs[reader->count++] = (struct pair){
		key, reader->has_text
			     ? arena_strndup(reader->arena, reader->text.data, reader->text.length)
			     : NULL};
	return true;
}

static bool read_member(struct reader *reader, int depth)
{
	const char *key = NULL;
	if (!read_value(reader, depth))
		return false;
	if (depth == 1 && reader->is_string)
		key = arena_strndup(reader->arena, reader->text.data, reader->text.length);
	skip_space(reader);
	if (!accept_char(reader, ':'))
		return false;
	skip_space(reader);
	return read_value(reader, depth) && (!key || add_member(reader, key));
}

/* Reads values up to `close`, separated by commas; a trailing comma is allowed. */
static bool read_container(struct reader *reader, char close, int depth)
{
	reader->at++;
	skip_space(reader);
	while (!accept_char(reader, close)) {
		if (close == '}' ? !read_member(reader, depth) : !read_value(reader, depth))
			return false;
		skip_space(reader);
		if (!accept_char(reader, ',') &&
			!(reader->at < reader->end && *reader->at == close))
			return false;
		skip_space(reader);
	}
	reader->has_text = reader->is_string = false;
	return true;
}

static bool read_value(struct reader *reader, int depth)
{
	reader->has_text = reader->is_string = false;
	if (reader->at == reader->end || depth >= PYTHON_DEPTH)
		return false;
	switch (*reader->at) {
	case '\'':
	case '"': return read_string(reader);
	case '{': return read_container(reader, '}', depth + 1);
	case '[': return read_container(reader, ']', depth + 1);
	case '(': return read_container(reader, ')', depth + 1);
	default: return read_word(reader);
	}
}

bool python_literal_read_dict(
	struct arena *arena, const char *text, size_t length, struct pairs *out)
{
	struct reader reader = {.arena = arena, .at = text, .end = text + length};
	skip_space(&reader);
	bool good = reader.at < reader.end && *reader.at == '{' && read_value(&reader, 0);
	skip_space(&reader);
	good = good && reader.at == reader.end;
	buf_free(&reader.text);
	*out = good ? (struct pairs){reader.pairs, reader.count} : (struct pairs){0};
	return good;
}
