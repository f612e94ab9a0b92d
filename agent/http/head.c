#include "agent/http/head.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "agent/base/field.h"
#include "agent/base/number.h"
#include "agent/base/utf8.h"

static bool is_text(const char *text, size_t length)
{
	size_t size = 1;

	for (; length > 0 && size > 0 && *text; text += size, length -= size)
		size = utf8_length(text, length);
	return length == 0;
}

/* Decoding never makes text longer, so each piece is decoded into a copy of its own size. NULL if a
 * % is not followed by two hexadecimal digits, or the text contains a NUL or invalid UTF-8. */
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
		high = i + 2 < length ? number_hex_digit(text[i + 1]) : -1;
		low = i + 2 < length ? number_hex_digit(text[i + 2]) : -1;
		if (high < 0 || low < 0)
			return NULL;
		out[made++] = (char)(high << 4 | low);
		i += 2;
	}
	return is_text(out, made) ? out : NULL;
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

/* The Accept header (RFC 9110, 12.5.1): ranges are separated by commas and their parameters by
 * semicolons, except within a quoted string. */

/* A piece of the header. */
struct piece {
	const char *text;
	size_t length;
};

/* How specifically a range matches, from not at all. */
enum fit { FIT_NONE, FIT_ANY, FIT_KIND, FIT_TYPE, FIT_VERSION };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct piece trim(const char *text, size_t length)
{
	while (length > 0 && is_blank(*text))
		text++, length--;
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	return (struct piece){text, length};
}

/* Cuts the piece before the next separator off *rest; false at the end. */
static bool cut(struct piece *rest, char separator, struct piece *out)
{
	size_t size = 0;
	bool quoted = false;

	if (!rest->text)
		return false;
	for (; size < rest->length && (quoted || rest->text[size] != separator); size++) {
		if (rest->text[size] == '"')
			quoted = !quoted;
		else if (quoted && rest->text[size] == '\\' && size + 1 < rest->length)
			size++;
	}
	*out = trim(rest->text, size);
	*rest = size < rest->length ? (struct piece){rest->text + size + 1, rest->length - size - 1}
				    : (struct piece){0};
	return true;
}

static bool equals(struct piece piece, const char *text)
{
	return piece.length == strlen(text) && strncasecmp(piece.text, text, piece.length) == 0;
}

/* "0", "1", "0.75": up to three decimals. */
static bool read_quality(struct piece piece, double *out)
{
	double unit = 1;

	if (piece.length == 0 || piece.length > 5 || (piece.text[0] != '0' && piece.text[0] != '1'))
		return false;
	*out = piece.text[0] - '0';
	if (piece.length > 1 && piece.text[1] != '.')
		return false;
	for (size_t i = 2; i < piece.length; i++) {
		if (piece.text[i] < '0' || piece.text[i] > '9')
			return false;
		unit /= 10;
		*out += unit * (piece.text[i] - '0');
	}
	return *out <= 1;
}

static struct piece unquote(struct piece piece)
{
	if (piece.length >= 2 && piece.text[0] == '"' && piece.text[piece.length - 1] == '"')
		return (struct piece){piece.text + 1, piece.length - 2};
	return piece;
}

static enum fit fit_of(struct piece range, const char *type)
{
	size_t kind = (size_t)(strchr(type, '/') - type) + 1;

	if (equals(range, "*/*"))
		return FIT_ANY;
	if (equals(range, type))
		return FIT_TYPE;
	if (range.length == kind + 1 && range.text[kind] == '*' &&
		strncasecmp(range.text, type, kind) == 0)
		return FIT_KIND;
	return FIT_NONE;
}

/* How specifically the range with its parameters matches, and its quality. */
static enum fit read_range(
	struct piece rest, const char *type, const char *version, double *quality)
{
	struct piece piece;
	enum fit fit = cut(&rest, ';', &piece) ? fit_of(piece, type) : FIT_NONE;

	*quality = 1;
	while (fit != FIT_NONE && cut(&rest, ';', &piece)) {
		struct piece value = piece, name;

		cut(&value, '=', &name);
		value = value.text ? unquote(trim(value.text, value.length))
				   : (struct piece){"", 0};
		if (equals(name, "q") && !read_quality(value, quality))
			return FIT_NONE;
		if (equals(name, "version"))
			fit = equals(value, version) ? FIT_VERSION : FIT_NONE;
	}
	return fit;
}

struct http_preference http_accept(const char *accept, const char *type, const char *version)
{
	struct http_preference preference = {.quality = accept && *accept ? 0 : 1};
	struct piece rest = {accept, accept ? strlen(accept) : 0}, range;
	enum fit best = FIT_NONE;

	while (cut(&rest, ',', &range)) {
		double quality;
		enum fit fit = read_range(range, type, version, &quality);

		if (fit <= best)
			continue;
		best = fit;
		preference = (struct http_preference){quality, fit >= FIT_TYPE};
	}
	return preference;
}

bool http_accept_encoding(const char *accept, const char *encoding)
{
	struct piece rest = {accept, accept ? strlen(accept) : 0}, item, name;
	bool any = false;

	while (cut(&rest, ',', &item)) {
		double quality = 1;

		cut(&item, ';', &name);
		if (item.length > 2 && strncasecmp(item.text, "q=", 2) == 0 &&
			!read_quality((struct piece){item.text + 2, item.length - 2}, &quality))
			continue;
		if (equals(name, encoding))
			return quality > 0;
		any |= equals(name, "*") && quality > 0;
	}
	return any;
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

static bool is_address(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

static bool is_local(const char *name)
{
	size_t length = strlen(name), local = strlen("localhost");

	return length >= local && strcasecmp(name + length - local, "localhost") == 0 &&
	       (length == local || name[length - local - 1] == '.');
}

static bool is_ours(const struct http_claim *claim)
{
	char name[NAME], external[NAME];

	if (!name_of(claim->host, name))
		return false;
	for (size_t i = 0; i < sizeof claim->names / sizeof *claim->names; i++)
		if (claim->names[i] && strcasecmp(claim->names[i], name) == 0)
			return true;
	if (claim->external && name_of(strstr(claim->external, "://") + 3, external) &&
		strcasecmp(external, name) == 0)
		return true;
	return is_address(name) || is_local(name);
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
