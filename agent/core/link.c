/*
 * See link.h.
 */
#include "agent/core/link.h"

#include <string.h>

#include "agent/core/buf.h"
#include "agent/core/transfer.h"

/* The value that a template names at `text`, which begins with a brace, or NULL; `length` is that
 * of the name with its braces. */
static const char *const *value_at(
	const char *text, const struct link_values *values, size_t *length)
{
	const struct {
		const char *name;
		const char *const *value;
	} names[] = {
		{"{commit}", &values->commit},
		{"{before}", &values->before},
		{"{after}", &values->after},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		*length = strlen(names[i].name);
		if (strncmp(text, names[i].name, *length) == 0)
			return names[i].value;
	}
	return NULL;
}

/* A link is written between "<" and ">", with a "|" before its text, in messages. */
static bool harmless(const char *template)
{
	for (const char *at = template; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f ||
			strchr("<>|\"\\", *at))
			return false;
	return true;
}

static bool has_user(const char *template)
{
	const char *host = strstr(template, "//") + 2;
	size_t length = strcspn(host, "/?#");

	return memchr(host, '@', length) != NULL;
}

bool link_check(const char *option, const char *template, struct error *error)
{
	struct link_values values = {0};
	size_t length;

	if (!*template)
		return true;
	if (strncasecmp(template, "https://", 8) != 0 && strncasecmp(template, "http://", 7) != 0)
		return error_set(
			error, ERROR_USAGE, "%s: it must begin with http:// or https://", option);
	if (!harmless(template) || strlen(template) > LINK_LONGEST / 2)
		return error_set(error, ERROR_USAGE,
			"%s: it is no address, or too long; write other characters than ASCII, "
			"blanks, quotes, \"|\", \"<\" and \">\" with %%",
			option);
	if (has_user(template))
		return error_set(error, ERROR_USAGE,
			"%s: everyone who is told sees it, so it must not hold a user or password",
			option);
	for (const char *at = template; (at = strchr(at, '{')); at += length)
		if (!value_at(at, &values, &length))
			return error_set(error, ERROR_USAGE,
				"%s: there is {commit}, {before} and {after}, but no \"%.20s\"",
				option, at);
	return true;
}

const char *link_expand(struct arena *arena, const char *template, const struct link_values *values)
{
	const char *link = NULL;
	struct buf out = {0};

	while (template && *template) {
		size_t length;
		const char *const *value = value_at(template, values, &length);

		if (!value) {
			buf_char(&out, *template ++);
			continue;
		}
		if (!*value || !**value)
			break;
		transfer_encode(&out, *value);
		template += length;
	}
	if (template && !*template && out.length > 0 && out.length <= LINK_LONGEST)
		link = arena_strndup(arena, out.data, out.length);
	buf_free(&out);
	return link;
}
