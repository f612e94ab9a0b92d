/*
 * The output comes from a program of the user's and has much else in it, so a value is taken only
 * if it is unambiguous: the last number is refused if it may be part of something else, as of
 * "1,234", of a date or of a version.
 */
#include "agent/bisect/extract.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"

enum {
	MOST_TRIES = 1000, /* beginnings of JSON documents */
	SHOWN = 40,
};

static const char json[] = "json:"; /* and a path */

/* One step of a path: a key, or an index (`key` is NULL then). */
struct segment {
	const char *key;
	size_t length, index;
};

/* Takes a segment from the path; false at its end, or with *wrong if there is none. */
static bool next_segment(const char **path, bool first, struct segment *out, bool *wrong)
{
	const char *at = *path;

	*wrong = false;
	if (!*at)
		return false;
	if (*at == '[') {
		size_t digits = strspn(at + 1, "0123456789");
		const char *quote = at[1] == '"' ? strchr(at + 2, '"') : NULL;

		*wrong = quote ? quote[1] != ']'
			       : digits == 0 || digits > 9 || at[1 + digits] != ']';
		if (*wrong)
			return false;
		*out = quote ? (struct segment){at + 2, (size_t)(quote - at - 2), 0}
			     : (struct segment){NULL, 0, strtoul(at + 1, NULL, 10)};
		*path = quote ? quote + 2 : at + digits + 2;
		return true;
	}
	at += !first && *at == '.';
	*out = (struct segment){at, strcspn(at, ".["), 0};
	*wrong = out->length == 0 || (!first && **path != '.');
	*path = at + out->length;
	return !*wrong;
}

bool extract_check(const char *text, struct error *error)
{
	struct segment segment;
	bool wrong;

	if (!text || strcmp(text, "last") == 0)
		return true;
	if (strncmp(text, json, strlen(json)) != 0)
		return error_set(
			error, ERROR_USAGE, "\"%.200s\" is neither last nor json:PATH", text);
	text += strlen(json);
	const char *at = text;

	wrong = !*text;
	for (bool first = true; !wrong && next_segment(&at, first, &segment, &wrong);)
		first = false;
	return !wrong || error_set(error, ERROR_USAGE,
				 "\"json:%.200s\" is not a path: json:p99, json:results[0].p99, "
				 "json:[\"a.b\"]",
				 text);
}

static bool is_digit(const char *at, const char *end)
{
	return at < end && *at >= '0' && *at <= '9';
}

/* The end of the number that begins at `at`, or NULL. */
static const char *number_end(const char *at, const char *end)
{
	const char *start, *exponent;

	at += at < end && (*at == '-' || *at == '+');
	start = at;
	while (is_digit(at, end))
		at++;
	if (at < end && *at == '.' && (at > start || is_digit(at + 1, end)))
		for (at++; is_digit(at, end);)
			at++;
	if (at == start || (at == start + 1 && *start == '.'))
		return NULL;
	if (at < end && (*at == 'e' || *at == 'E')) {
		exponent = at + 1;
		exponent += exponent < end && (*exponent == '-' || *exponent == '+');
		if (is_digit(exponent, end))
			for (at = exponent; is_digit(at, end);)
				at++;
	}
	return at;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Whether adjacent characters show that the number is part of something else. */
static bool is_part(const char *start, const char *at, const char *stop, const char *end)
{
	bool joins = at > start && strchr(",:/.+-", at[-1]) != NULL;

	if (at - start > 1 && joins && is_digit(at - 2, end))
		return true; /* 1,234 12:30 2026-01-02 1.2.3 */
	if (at > start && strchr("+-.", *at) && is_word(at[-1]))
		return true; /* 2026-01 p-99 1.2.3 */
	if (stop < end && strchr(",:/.", *stop) && is_digit(stop + 1, end))
		return true;
	return stop < end && stop[-1] == '0' && (*stop == 'x' || *stop == 'X');
}

/* Skips "ESC [ 32 m" as terminals do. */
static const char *skip_colours(const char *at, const char *end)
{
	while (end - at > 1 && at[0] == '\33' && at[1] == '[') {
		for (at += 2; at < end && !isalpha((unsigned char)*at);)
			at++;
		at += at < end;
	}
	return at;
}

static bool last_number(const char *text, size_t length, double *value, struct error *error)
{
	const char *end = text + length, *last = NULL, *last_end = NULL;
	const char *start = text, *last_start = text; /* of text without colour codes */

	for (const char *at = text; at < end;) {
		const char *stop = NULL, *bare = skip_colours(at, end);

		start = bare > at ? bare : start;
		at = bare;
		if (at < end && !(at > start && is_word(at[-1]) && is_word(*at)))
			stop = number_end(at, end);
		if (stop) {
			last_start = start;
			last = at;
			last_end = stop;
		}
		at = stop ? stop : at + (at < end);
	}
	if (!last)
		return error_set(error, ERROR_DATA,
			"its output has no number (a check that passes or fails can end with "
			"'; echo $?')");
	if (is_part(last_start, last, last_end, end))
		return error_set(error, ERROR_DATA,
			"the last number of its output, at \"%.*s\", is ambiguous: give --extract "
			"json:PATH",
			(int)(last_end - last < SHOWN ? last_end - last : SHOWN), last);
	if (!number_parse(last, (size_t)(last_end - last), value) || !isfinite(*value))
		return error_set(
			error, ERROR_DATA, "the last number of its output is out of range");
	return true;
}

/* The last document that begins at the beginning of a line, preferably one that nothing follows. */
static json_t *last_document(const char *text, size_t length)
{
	for (size_t flags = 0; flags <= JSON_DISABLE_EOF_CHECK; flags += JSON_DISABLE_EOF_CHECK) {
		size_t tries = 0;

		for (size_t at = length; at-- > 0 && tries < MOST_TRIES;) {
			json_t *document;

			if ((text[at] != '{' && text[at] != '[') ||
				(at > 0 && text[at - 1] != '\n'))
				continue;
			tries++;
			document = json_loadb(text + at, length - at, flags, NULL);
			if (document)
				return document;
		}
	}
	return NULL;
}

bool extract_value(
	const char *how, const char *output, size_t length, double *value, struct error *error)
{
	if (!how || strcmp(how, "last") == 0)
		return last_number(output, length, value, error);
	json_t *document = last_document(output, length);
	const char *path = how + strlen(json), *at = path, *words;
	const json_t *found = document;
	struct segment segment;
	bool wrong, good;

	for (bool first = true; found && next_segment(&at, first, &segment, &wrong); first = false)
		found = segment.key ? json_object_getn(found, segment.key, segment.length)
				    : json_array_get(found, segment.index);
	words = json_string_value(found);
	good = json_is_number(found) ||
	       (words && number_parse(words, strlen(words), value) && isfinite(*value));
	if (json_is_number(found))
		*value = json_number_value(found);
	if (!good)
		error_set(error, ERROR_DATA,
			!document ? "its output has no JSON object or array at the beginning of a "
				    "line"
			: !found  ? "its JSON output has no %s"
				  : "%s in its JSON output is not a number",
			path);
	json_decref(document);
	return good;
}
