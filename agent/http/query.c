/* Decoding never makes text longer, so each piece is decoded into a copy of its own size. */
#include "agent/http/query.h"

#include <assert.h>
#include <string.h>

#include "agent/core/field.h"
#include "agent/core/utf8.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(const char *text, size_t length)
{
	size_t size = 1;

	for (; length > 0 && size > 0 && *text; text += size, length -= size)
		size = utf8_length(text, length);
	return length == 0;
}

/* NULL if a % is not followed by two hexadecimal digits, or the text contains a NUL or invalid
 * UTF-8. */
static const char *decode(struct arena *arena, const char *text, size_t length)
{
	char *out = arena_alloc(arena, length + 1);
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		int high = 0, low = 0;

		if (text[i] != '%') {
			out[made++] = text[i] == '+' ? ' ' : text[i];
			continue;
		}
		high = i + 2 < length ? hex(text[i + 1]) : -1;
		low = i + 2 < length ? hex(text[i + 2]) : -1;
		if (high < 0 || low < 0)
			return NULL;
		out[made++] = (char)(high << 4 | low);
		i += 2;
	}
	return is_text(out, made) ? out : NULL;
}

static bool is_known(const char *const *names, const char *name)
{
	while (names && *names && strcmp(*names, name) != 0)
		names++;
	return names && *names;
}

static bool unknown(const char *const *names, const char *name, struct error *error)
{
	size_t count = 0;

	while (names && names[count])
		count++;
	error_set(error, ERROR_USAGE, "unknown parameter \"%.100s\"", name);
	return field_hint(error, name, names, count);
}

static bool add(struct arena *arena, const char *text, size_t length, const char *const *names,
	struct http_query *out, struct error *error)
{
	const char *equals = memchr(text, '=', length);
	size_t size = equals ? (size_t)(equals - text) : length;
	const char *name = decode(arena, text, size);
	const char *value = equals ? decode(arena, equals + 1, length - size - 1) : "";

	if (!name)
		return error_set(
			error, ERROR_USAGE, "the name of a parameter is not percent-encoded UTF-8");
	if (!is_known(names, name))
		return unknown(names, name, error);
	if (http_query_get(out, name))
		return error_set(
			error, ERROR_USAGE, "parameter \"%s\" is given more than once", name);
	if (!value)
		return error_set(
			error, ERROR_USAGE, "parameter \"%s\" is not percent-encoded UTF-8", name);
	if (strlen(value) > HTTP_VALUE)
		return error_set(error, ERROR_USAGE, "parameter \"%s\" has more than %d bytes",
			name, HTTP_VALUE);
	assert(out->count < HTTP_PARAMETERS);
	out->items[out->count++] = (struct http_pair){name, value};
	return true;
}

bool http_query_parse(struct arena *arena, const char *text, size_t length,
	const char *const *names, struct http_query *out, struct error *error)
{
	const char *end = text + length;

	for (bool more = true; more;) {
		const char *next = memchr(text, '&', (size_t)(end - text));
		size_t size = (size_t)((next ? next : end) - text);

		if (size > 0 && !add(arena, text, size, names, out, error))
			return false;
		more = next != NULL;
		text = more ? next + 1 : end;
	}
	return true;
}

const char *http_query_get(const struct http_query *query, const char *name)
{
	for (size_t i = 0; i < query->count; i++)
		if (strcmp(query->items[i].name, name) == 0)
			return query->items[i].value;
	return NULL;
}
