#include "agent/http/head.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "agent/base/field.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

/* Decoding never makes text longer, so each piece is decoded into a copy of its own size. NULL if a
 * % is not followed by two hexadecimal digits, or the text contains a NUL or invalid UTF-8. */
static const char *decode(struct arena *arena, const char *text, size_t length)
{
	char *out = arena_alloc(arena, length + 1);
	size_t made = 0, size = 1;

	for (size_t i = 0; i < length; i++) {
		int high = 0, low = 0;

		if (text[i] != '%') {
			out[made++] = text[i] == '+' ? ' ' : text[i];
			continue;
		}
		high = i + 2 < length ? number_hex_digit(text[i + 1]) : -1;
		low = i + 2 < length ? number_hex_digit(text[i + 2]) : -1;
		if (high < 0 || low < 0)
			return NULL;
		out[made++] = (char)(high << 4 | low);
		i += 2;
	}
	for (text = out; made > 0 && size > 0 && *text; text += size, made -= size)
		size = utf8_length(text, made);
	return made == 0 ? out : NULL;
}

/* Whether it is one of the words; else an error. */
static bool is_known(struct arena *arena, const char *words, const char *name, struct error *error)
{
	const char **names = NULL;
	size_t count = 0;

	for (words = words ? words : ""; *words; words += strspn(words, " ")) {
		size_t length = strcspn(words, " ");

		names = arena_grow(arena, names, count, sizeof *names);
		names[count] = arena_strndup(arena, words, length);
		if (strcmp(names[count++], name) == 0)
			return true;
		words += length;
	}
	error_set(error, ERROR_USAGE, "unknown parameter \"%.100s\"", name);
	return field_hint(error, name, names, count);
}

static bool add(struct arena *arena, const char *text, size_t length, const char *names,
	size_t most, struct http_query *out, struct error *error)
{
	const char *equals = memchr(text, '=', length);
	size_t size = equals ? (size_t)(equals - text) : length;
	const char *name = decode(arena, text, size);
	const char *value = equals ? decode(arena, equals + 1, length - size - 1) : "";

	if (!name)
		return error_set(
			error, ERROR_USAGE, "the name of a parameter is not percent-encoded UTF-8");
	if (!is_known(arena, names, name, error))
		return false;
	if (http_query_get(out, name))
		return error_set(error, ERROR_USAGE, "duplicate parameter \"%s\"", name);
	if (!value)
		return error_set(
			error, ERROR_USAGE, "parameter \"%s\" is not percent-encoded UTF-8", name);
	if (strlen(value) > most)
		return error_set(
			error, ERROR_USAGE, "parameter \"%s\" has more than %zu bytes", name, most);
	out->items = arena_grow(arena, out->items, out->count, sizeof *out->items);
	out->items[out->count++] = (struct http_pair){name, value};
	return true;
}

bool http_query_parse(struct arena *arena, const char *text, size_t length, const char *names,
	size_t most, struct http_query *out, struct error *error)
{
	const char *end = text + length;

	for (bool more = true; more;) {
		const char *next = memchr(text, '&', (size_t)(end - text));
		size_t size = (size_t)((next ? next : end) - text);

		if (size > 0 && !add(arena, text, size, names, most, out, error))
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

/* Without blanks around it. */
static const char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length > 0 && strchr(" \t", text[length - 1]))
		text[--length] = '\0';
	return text;
}

double http_quality(struct arena *arena, const char *header, const char *name, const char *version)
{
	char *rest = arena_strdup(arena, header), *item, *parameter;

	while ((item = strsep(&rest, ","))) {
		bool fits = strcasecmp(trim(strsep(&item, ";")), name) == 0;
		double quality = 1;

		while (fits && (parameter = strsep(&item, ";"))) {
			const char *key = trim(strsep(&parameter, "="));
			const char *value = parameter ? trim(parameter) : "";

			if (strcasecmp(key, "q") == 0)
				fits = number_parse(value, strlen(value), &quality) &&
				       quality >= 0 && quality <= 1;
			else if (version && strcasecmp(key, "version") == 0)
				fits = strcmp(value, version) == 0;
		}
		if (fits)
			return quality;
	}
	return -1;
}

/* IP addresses in Host need no check: only a name can be made to resolve to another address. */

enum { NAME = 256 };

/* Cuts off the port and an IPv6 address' brackets. False: not a host. */
static bool name_of(const char *host, char out[NAME])
{
	const char *end = *host == '[' ? strchr(host, ']') : strchrnul(host, ':');
	size_t length = end ? (size_t)(end - host) : 0;
	const char *rest = end ? end + (*end == ']') : "";

	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (*host == '[' && length > 0)
		host++, length--;
	if (length == 0 || length >= NAME || *rest)
		return false;
	memcpy(out, host, length);
	out[length] = '\0';
	return true;
}

static bool is_ours(const struct http_claim *claim)
{
	char name[NAME], external[NAME];
	struct in6_addr address;

	if (!name_of(claim->host, name))
		return false;
	for (size_t i = 0; i < sizeof claim->names / sizeof *claim->names; i++)
		if (claim->names[i] && strcasecmp(claim->names[i], name) == 0)
			return true;
	if (claim->external && name_of(strstr(claim->external, "://") + 3, external) &&
		strcasecmp(external, name) == 0)
		return true;
	size_t length = strlen(name), local = strlen(".localhost");

	return inet_pton(AF_INET, name, &address) == 1 ||
	       inet_pton(AF_INET6, name, &address) == 1 || strcasecmp(name, "localhost") == 0 ||
	       (length > local && strcasecmp(name + length - local, ".localhost") == 0);
}

/* A proxy may send another Host than the browser used. */
static bool is_same_origin(const struct http_claim *claim)
{
	const char *name = strstr(claim->origin, "://");

	if (claim->external && strcasecmp(claim->origin, claim->external) == 0)
		return true;
	if (claim->tls && strncasecmp(claim->origin, "https://", 8) != 0)
		return false;
	return name && claim->host && strcasecmp(name + 3, claim->host) == 0;
}

bool http_guard(const struct http_claim *claim, struct error *error)
{
	bool link = !claim->posted && claim->mode && strcmp(claim->mode, "navigate") == 0;
	bool image = claim->shown && claim->destination && strcmp(claim->destination, "image") == 0;

	if (claim->host && !is_ours(claim))
		return error_set(error, ERROR_USAGE,
			"\"%.200s\" is not a name of this agent: use its address", claim->host);
	if (claim->origin && !is_same_origin(claim))
		return error_set(error, ERROR_USAGE, "cross-site request rejected");
	if (claim->site && !link && !image && strcmp(claim->site, "same-origin") != 0 &&
		strcmp(claim->site, "none") != 0)
		return error_set(error, ERROR_USAGE, "cross-site request rejected");
	return true;
}
