/* Base64 is read strictly: one spelling for each text. */
#include "agent/http/authorization.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Returns the text, NUL-terminated; NULL: it is malformed or has a NUL. */
static char *decode(const char *text, size_t length, struct arena *arena)
{
	size_t padding = 0, count = 0;
	char *out = arena_alloc(arena, length / 4 * 3 + 1);
	uint32_t bits = 0;

	if (length == 0 || length % 4 != 0)
		return NULL;
	while (padding < 2 && text[length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < length; i++) {
		int value = i < length - padding ? digit(text[i]) : 0;

		if (value < 0)
			return NULL;
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 != 3)
			continue;
		for (int shift = 16; shift >= 0; shift -= 8)
			out[count++] = (char)(bits >> shift & 0xff);
		bits = 0;
	}
	count -= padding;
	/* Bits that padding cuts off must be 0. */
	for (size_t i = 0; i < padding; i++)
		if (out[count + i])
			return NULL;
	out[count] = '\0';
	return memchr(out, '\0', count) ? NULL : out;
}

static bool has_controls(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static bool parse_basic(const char *text, struct arena *arena, struct authorization *out)
{
	size_t length = strnlen(text, 2 * AUTHORIZATION_BYTES);
	char *pair, *colon;

	if (length > AUTHORIZATION_BYTES / 3 * 4)
		return false;
	pair = decode(text, length, arena);
	colon = pair ? strchr(pair, ':') : NULL;
	if (!colon)
		return false;
	*colon = '\0';
	*out = (struct authorization){pair, colon + 1};
	return *pair && !has_controls(pair);
}

static bool parse_bearer(const char *text, struct arena *arena, struct authorization *out)
{
	size_t length = strnlen(text, AUTHORIZATION_BYTES + 1);

	if (length == 0 || length > AUTHORIZATION_BYTES || strpbrk(text, " \t") ||
		has_controls(text))
		return false;
	*out = (struct authorization){NULL, arena_strndup(arena, text, length)};
	return true;
}

bool authorization_parse(const char *header, struct arena *arena, struct authorization *out)
{
	size_t scheme = strcspn(header, " ");
	const char *rest = header + scheme + strspn(header + scheme, " ");

	arena_holds_secrets(arena);
	if (scheme == strlen("Basic") && strncasecmp(header, "Basic", scheme) == 0)
		return parse_basic(rest, arena, out);
	return scheme == strlen("Bearer") && strncasecmp(header, "Bearer", scheme) == 0 &&
	       parse_bearer(rest, arena, out);
}
