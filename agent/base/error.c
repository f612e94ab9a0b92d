/*
 * Error texts are cut to a fixed size, so that reporting a failure cannot itself fail. A cut
 * text ends with a complete UTF-8 sequence.
 */
#include "agent/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/utf8.h"

void error_blank(char *text)
{
	utf8_blank(text, '?');
}

/* The arguments may be those of the error itself. */
bool error_set(struct error *error, enum error_kind kind, const char *format, ...)
{
	char text[ERROR_TEXT + 4] = "";
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	text[utf8_cut(text, ERROR_TEXT - 1)] = '\0';
	error_blank(text);
	error->kind = kind;
	memcpy(error->text, text, ERROR_TEXT);
	return false;
}

bool error_prefix(struct error *error, const char *format, ...)
{
	char prefix[ERROR_TEXT];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(prefix, sizeof prefix, format, arguments);
	va_end(arguments);
	return error_set(error, error->kind, "%s%s", prefix, error->text);
}
