#include "agent/base/database.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/number.h"
#include "agent/base/transfer.h"

static const char *const schemes[] = {"postgresql://", "postgres://"};

enum { SCHEMES = sizeof schemes / sizeof *schemes };

static const char *after_scheme(const char *state)
{
	for (size_t i = 0; i < SCHEMES; i++)
		if (strncmp(state, schemes[i], strlen(schemes[i])) == 0)
			return state + strlen(schemes[i]);
	return NULL;
}

bool database_is(const char *state)
{
	return after_scheme(state) != NULL;
}

static bool is_named(const char *parameter, const char *name)
{
	size_t length = strcspn(parameter, "=&");

	return strlen(name) == length && strncmp(parameter, name, length) == 0;
}

/* A parameter name may be percent-encoded; such a one counts as a secret. */
static bool is_secret(const char *parameter)
{
	return is_named(parameter, "password") || is_named(parameter, "password_file") ||
	       is_named(parameter, "sslpassword") ||
	       memchr(parameter, '%', strcspn(parameter, "=&"));
}

static bool is_file(const char *parameter)
{
	return is_named(parameter, "password_file");
}

/* Appends "?a=b&c=d" without the parameters that are to be left out. */
static void put_parameters(struct buf *out, const char *parameters, bool (*left_out)(const char *))
{
	char before = '?';

	while (*parameters) {
		size_t length = strcspn(parameters, "&");

		if (length > 0 && !left_out(parameters)) {
			buf_char(out, before);
			buf_append(out, parameters, length);
			before = '&';
		}
		parameters += length + (parameters[length] == '&');
	}
}

/* A password may have an '@' that is not written as %40; the last one before the hosts ends it. */
static const char *end_of_user(const char *at, const char *end)
{
	const char *last = NULL;

	for (const char *next = at; (next = memchr(next, '@', (size_t)(end - next))); next++)
		last = next;
	return last;
}

const char *database_shown(struct arena *arena, const char *state)
{
	const char *at = after_scheme(state), *end, *user, *colon;
	struct buf out = {0};

	if (!at)
		return state;
	end = at + strcspn(at, "?");
	buf_append(&out, state, (size_t)(at - state));
	user = end_of_user(at, end);
	/* A password may hold a '?', too: then an '@' comes after it. */
	if (strchr(end, '@') && !(user && memchr(at, '/', (size_t)(end - at)))) {
		buf_text(&out, "...");
		return buf_keep(&out, arena);
	}
	colon = user ? memchr(at, ':', (size_t)(user - at)) : NULL;
	if (user)
		buf_append(&out, at, (size_t)((colon ? colon : user) - at));
	if (user)
		at = user;
	buf_append(&out, at, (size_t)(end - at));
	if (*end)
		put_parameters(&out, end + 1, is_secret);
	return buf_keep(&out, arena);
}

const char *database_with_password_file(struct arena *arena, const char *address, const char *file)
{
	struct buf out = {0};

	buf_text(&out, address);
	buf_text(&out, strchr(address, '?') ? "&" : "?");
	buf_text(&out, "password_file=");
	transfer_encode(&out, file);
	return buf_keep(&out, arena);
}

static const char *decoded(struct arena *arena, const char *text, size_t length)
{
	char *out = arena_alloc(arena, length + 1), *at = out;

	for (size_t i = 0; i < length; i++)
		if (text[i] == '%' && i + 2 < length && number_hex_digit(text[i + 1]) >= 0 &&
			number_hex_digit(text[i + 2]) >= 0) {
			*at++ = (char)(number_hex_digit(text[i + 1]) * 16 +
				       number_hex_digit(text[i + 2]));
			i += 2;
		} else {
			*at++ = text[i];
		}
	return out;
}

const char *database_address(struct arena *arena, const char *address, const char **password_file)
{
	const char *parameters = strchr(address, '?');
	struct buf out = {0};

	*password_file = NULL;
	if (!parameters)
		return address;
	for (const char *at = parameters; at; at = strchr(at, '&')) {
		at++;
		if (is_file(at) && at[strcspn(at, "=&")] == '=') {
			const char *value = strchr(at, '=') + 1;

			*password_file = decoded(arena, value, strcspn(value, "&"));
		}
	}
	buf_append(&out, address, (size_t)(parameters - address));
	put_parameters(&out, parameters + 1, is_file);
	return buf_keep(&out, arena);
}
