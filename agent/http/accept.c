/*
 * RFC 9110, 12.5.1. Ranges are separated by commas and their parameters by semicolons, except
 * within a quoted string.
 */
#include "agent/http/accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

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

struct http_liking http_accept(const char *accept, const char *type, const char *version)
{
	struct http_liking liking = {.quality = accept && *accept ? 0 : 1};
	struct piece rest = {accept, accept ? strlen(accept) : 0}, range;
	enum fit best = FIT_NONE;

	while (cut(&rest, ',', &range)) {
		double quality;
		enum fit fit = read_range(range, type, version, &quality);

		if (fit <= best)
			continue;
		best = fit;
		liking = (struct http_liking){quality, fit >= FIT_TYPE};
	}
	return liking;
}
