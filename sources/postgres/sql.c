/*
 * Each piece begins where the one before ended, so every byte is looked at once. A word may turn
 * out to be the prefix of a string (E, U&, ...).
 */
#include "sources/postgres/sql.h"

#include <string.h>

bool sql_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (c & 0x80) != 0;
}

static struct sql_piece piece(
	enum sql_kind kind, const char *text, const char *stop, const char *end)
{
	return (struct sql_piece){kind, text, (size_t)((stop ? stop : end) - text), stop != NULL};
}

/* Behind the closing quote of the string that `at`, its first byte, begins; NULL: not closed. */
static const char *skip_quoted(const char *at, const char *end, bool escapes)
{
	char quote = *at++;
	while (at < end) {
		if (escapes && *at == '\\' && end - at > 1) {
			at += 2;
		} else if (*at != quote) {
			at++;
		} else if (end - at > 1 && at[1] == quote) {
			at += 2;
		} else {
			return at + 1;
		}
	}
	return NULL;
}

static const char *skip_comment(const char *at, const char *end)
{
	int depth = 0;
	while (end - at > 1) {
		if (at[0] == '/' && at[1] == '*') {
			depth++;
			at += 2;
		} else if (at[0] == '*' && at[1] == '/') {
			depth--;
			at += 2;
			if (depth == 0)
				return at;
		} else {
			at++;
		}
	}
	return NULL;
}

static const char *skip_line(const char *at, const char *end)
{
	while (at < end && *at != '\n' && *at != '\r')
		at++;
	return at;
}

/* Text that begins with a dollar sign: $1, $$...$$, $tag$...$tag$, or just the sign. */
static struct sql_piece dollar(const char *text, const char *end)
{
	const char *at = text + 1;
	if (at < end && *at >= '0' && *at <= '9') {
		while (at < end && *at >= '0' && *at <= '9')
			at++;
		return piece(SQL_PARAMETER, text, at, end);
	}
	while (at < end && *at != '$' && sql_in_word(*at))
		at++;
	if (at == end || *at != '$')
		return piece(SQL_CODE, text, text + 1, end);
	size_t length = (size_t)(++at - text);
	const char *close = memmem(at, (size_t)(end - at), text, length);
	return piece(SQL_OTHER, text, close ? close + length : NULL, end);
}

/* A word, or the string whose prefix it is. */
static struct sql_piece word(const char *text, const char *end)
{
	const char *at = text;
	while (at < end && sql_in_word(*at))
		at++;
	if (at - text == 1 && at < end) {
		bool quote = *at == '\'';
		if (quote && strchr("eE", *text))
			return piece(SQL_ESCAPES, text, skip_quoted(at, end, true), end);
		if (quote && strchr("bBxXnN", *text))
			return piece(SQL_OTHER, text, skip_quoted(at, end, false), end);
		if (strchr("uU", *text) && end - at > 1 && *at == '&' &&
			(at[1] == '\'' || at[1] == '"'))
			return piece(SQL_OTHER, text, skip_quoted(at + 1, end, false), end);
	}
	return piece(SQL_WORD, text, at, end);
}

struct sql_piece sql_next(const char *text, const char *end)
{
	bool two = end - text > 1;
	if (text == end)
		return piece(SQL_END, text, text, end);
	if (*text == '\'')
		return piece(SQL_STRING, text, skip_quoted(text, end, false), end);
	if (*text == '"')
		return piece(SQL_NAME, text, skip_quoted(text, end, false), end);
	if (two && text[0] == '-' && text[1] == '-')
		return piece(SQL_COMMENT, text, skip_line(text, end), end);
	if (two && text[0] == '/' && text[1] == '*')
		return piece(SQL_COMMENT, text, skip_comment(text, end), end);
	if (*text == '$')
		return dollar(text, end);
	if (sql_in_word(*text))
		return word(text, end);
	return piece(SQL_CODE, text, text + 1, end);
}
