/* Base64 is read strictly: one spelling for each text. */
#include "agent/http/authorization.h"

#include <gnutls/gnutls.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "agent/base/buf.h"

/* Returns the text, NUL-terminated; NULL: it is malformed or has a NUL. */
static char *decode(const char *text, size_t length, struct arena *arena)
{
	const gnutls_datum_t coded = {(unsigned char *)(uintptr_t)text, (unsigned)length};
	gnutls_datum_t plain;
	struct buf again = {.secret = true};
	char *out = NULL;

	if (length == 0 || gnutls_base64_decode2(&coded, &plain) != GNUTLS_E_SUCCESS)
		return NULL;
	buf_base64(&again, plain.data, plain.size);
	if (again.length == length && memcmp(again.data, text, length) == 0 &&
		!memchr(plain.data, '\0', plain.size))
		out = arena_strndup(arena, (char *)plain.data, plain.size);
	explicit_bzero(plain.data, plain.size);
	gnutls_free(plain.data);
	buf_free(&again);
	return out;
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
