/*
 * The buffer doubles as it grows and keeps a NUL behind the content. JSON text follows RFC 8259;
 * invalid UTF-8 becomes U+FFFD, so that one bad byte in a label does not make a whole document
 * unreadable. Characters that control a terminal or the direction of text are escaped like other
 * control characters: the document stays the same and is safe to display.
 */
#include "agent/base/buf.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

static void release(struct buf *buf)
{
	if (buf->secret && buf->data)
		explicit_bzero(buf->data, buf->capacity);
	free(buf->data);
}

void buf_free(struct buf *buf)
{
	release(buf);
	*buf = (struct buf){.secret = buf->secret};
}

void buf_clear(struct buf *buf)
{
	buf->length = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_reserve(struct buf *buf, size_t more)
{
	if (buf->data && more < buf->capacity - buf->length)
		return;
	size_t need = buf->length + more + 1;
	size_t capacity = buf->capacity ? buf->capacity : 64;
	while (capacity < need && capacity <= SIZE_MAX / 2)
		capacity *= 2;
	if (capacity < need)
		capacity = need;
	if (buf->secret) { /* realloc would leave a copy behind */
		char *data = memory_new(capacity, 1);
		if (buf->data)
			memcpy(data, buf->data, buf->length);
		release(buf);
		buf->data = data;
	} else {
		buf->data = memory_resize(buf->data, capacity, 1);
	}
	buf->capacity = capacity;
	buf->data[buf->length] = '\0';
}

void buf_append(struct buf *buf, const void *data, size_t length)
{
	buf_reserve(buf, length);
	if (length > 0)
		memcpy(buf->data + buf->length, data, length);
	buf->length += length;
	buf->data[buf->length] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_append(buf, &c, 1);
}

void buf_markup(struct buf *buf, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		switch (text[i]) {
		case '&': buf_text(buf, "&amp;"); break;
		case '<': buf_text(buf, "&lt;"); break;
		case '>': buf_text(buf, "&gt;"); break;
		case '"': buf_text(buf, "&quot;"); break;
		case '\'': buf_text(buf, "&#39;"); break;
		default: buf_char(buf, text[i]);
		}
}

void buf_vprintf(struct buf *buf, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	buf_reserve(buf, 64);
	size_t room = buf->capacity - buf->length;
	int length = vsnprintf(buf->data + buf->length, room, format, again);
	va_end(again);
	if (length < 0)
		return;
	if ((size_t)length >= room) {
		buf_reserve(buf, (size_t)length);
		vsnprintf(buf->data + buf->length, (size_t)length + 1, format, arguments);
	}
	buf->length += (size_t)length;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(buf, format, arguments);
	va_end(arguments);
}

const char *buf_keep(struct buf *buf, struct arena *arena)
{
	const char *text = arena_strndup(arena, buf->data ? buf->data : "", buf->length);

	buf_free(buf);
	return text;
}

char *buf_steal(struct buf *buf)
{
	buf_reserve(buf, 0);
	char *data = buf->data;
	*buf = (struct buf){0};
	return data;
}

static void json_escape(struct buf *buf, unsigned char c)
{
	switch (c) {
	case '"': buf_text(buf, "\\\""); break;
	case '\\': buf_text(buf, "\\\\"); break;
	case '\n': buf_text(buf, "\\n"); break;
	case '\r': buf_text(buf, "\\r"); break;
	case '\t': buf_text(buf, "\\t"); break;
	default: buf_printf(buf, "\\u%04x", c); break;
	}
}

/* The code point of a valid sequence of two or three bytes. */
static unsigned code_of(const unsigned char *s, size_t length)
{
	unsigned code = s[0] & (0xFFU >> (length + 1));

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (s[i] & 0x3F);
	return code;
}

void buf_json_string(struct buf *buf, const char *text, size_t length)
{
	const unsigned char *s = (const unsigned char *)text;
	buf_reserve(buf, length + 2);
	buf_char(buf, '"');
	for (size_t i = 0, size; i < length; i += size) {
		size_t plain = i;
		while (plain < length && s[plain] >= 0x20 && s[plain] < 0x7F && s[plain] != '"' &&
			s[plain] != '\\')
			plain++;
		buf_append(buf, s + i, plain - i);
		size = plain - i;
		if (size > 0)
			continue;
		size = utf8_length(text + i, length - i);
		if (size == 0) {
			buf_text(buf, "\xEF\xBF\xBD");
			size = 1;
		} else if (size == 1) {
			json_escape(buf, s[i]);
		} else if (utf8_is_control(text + i, size)) {
			buf_printf(buf, "\\u%04x", code_of(s + i, size));
		} else {
			buf_append(buf, s + i, size);
		}
	}
	buf_char(buf, '"');
}

void buf_json_text(struct buf *buf, const char *text)
{
	if (text)
		buf_json_string(buf, text, strlen(text));
	else
		buf_text(buf, "null");
}

void buf_json_value(struct buf *buf, const char *json, size_t length)
{
	const unsigned char *s = (const unsigned char *)json;
	size_t done = 0;
	for (size_t i = 0, size; i < length; i += size) {
		size = s[i] < 0x7F ? 1 : utf8_length(json + i, length - i);
		size = size ? size : 1;
		if (s[i] < 0x7F || !utf8_is_control(json + i, size))
			continue;
		buf_append(buf, json + done, i - done);
		buf_printf(buf, "\\u%04x", size == 1 ? s[i] : code_of(s + i, size));
		done = i + size;
	}
	buf_append(buf, json + done, length - done);
}

void buf_json_number(struct buf *buf, double value)
{
	char text[NUMBER_TEXT];
	if (isfinite(value))
		buf_append(buf, text, number_format(value, text));
	else
		buf_text(buf, "null");
}

void buf_base64(struct buf *out, const void *bytes, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes;

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		unsigned bits = (unsigned)at[i] << 16 | (left > 1 ? (unsigned)at[i + 1] << 8 : 0) |
				(left > 2 ? at[i + 2] : 0);

		buf_char(out, digits[bits >> 18]);
		buf_char(out, digits[bits >> 12 & 63]);
		buf_char(out, left > 1 ? digits[bits >> 6 & 63] : '=');
		buf_char(out, left > 2 ? digits[bits & 63] : '=');
	}
}

void buf_clean(struct buf *out, const char *text, size_t limit)
{
	size_t left = strlen(text), last = out->length;

	for (size_t count = 0; left > 0; count++) {
		size_t length = utf8_length(text, left), taken = length == 0 ? 1 : length;

		if (count == limit) {
			out->length = last;
			buf_text(out, "…");
			return;
		}
		last = out->length;
		if (length == 0)
			buf_text(out, "\xef\xbf\xbd");
		else if (utf8_is_control(text, length))
			buf_char(out, ' ');
		else
			buf_append(out, text, length);
		text += taken;
		left -= taken;
	}
}
