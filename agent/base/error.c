/*
 * Error texts are cut to a fixed size, so that reporting a failure cannot itself fail. A cut
 * text ends with a complete UTF-8 sequence.
 */
#include "agent/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/utf8.h"

/* Drops an incomplete UTF-8 sequence at the end of a text that was cut. */
static void mend_cut(char *text, size_t length)
{
	size_t start = length;
	while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
		start--;
	if (start == 0)
		return;
	unsigned char lead = (unsigned char)text[start - 1];
	size_t wanted = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
	if (lead >= 0xC0 && length - (start - 1) < wanted)
		text[start - 1] = '\0';
}

void error_blank(char *text)
{
	utf8_blank(text, '?');
}

bool error_set(struct error *error, enum error_kind kind, const char *format, ...)
{
	va_list arguments;
	error->kind = kind;
	va_start(arguments, format);
	int length = vsnprintf(error->text, sizeof error->text, format, arguments);
	va_end(arguments);
	if (length >= ERROR_TEXT)
		mend_cut(error->text, ERROR_TEXT - 1);
	error_blank(error->text);
	return false;
}

bool error_prefix(struct error *error, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return false;
	if (length >= ERROR_TEXT) {
		length = ERROR_TEXT - 1;
		mend_cut(text, (size_t)length);
		length = (int)strlen(text);
	}
	size_t room = sizeof text - (size_t)length - 1;
	size_t kept = strlen(error->text);
	memcpy(text + length, error->text, kept < room ? kept : room);
	text[(size_t)length + (kept < room ? kept : room)] = '\0';
	if (kept > room)
		mend_cut(text, ERROR_TEXT - 1);
	memcpy(error->text, text, sizeof text);
	error_blank(error->text);
	return false;
}
