/*
 * Environment variables in values. Hunter expands the whole file as text before it parses it; here
 * scalars are expanded after parsing, so that a value with a colon or a newline stays one value.
 * Names are those of a shell, so that PromQL's `${1}` and a regular expression's `$` stay what they
 * are.
 */
#include <ctype.h>
#include <string.h>

#include "agent/core/buf.h"
#include "conf/load.h"

static size_t name_length(const char *text)
{
	size_t n = 0;
	if (isalpha((unsigned char)text[0]) || text[0] == '_')
		while (isalnum((unsigned char)text[n]) || text[n] == '_')
			n++;
	return n;
}

/* Appends the variable's value, or its default; notes it as missing if it has neither. */
static void append_variable(struct loader *loader, struct buf *out, const char *name, size_t length,
	const char *fallback, size_t fallback_length, const char **missing)
{
	const struct config_source *source = loader->source;
	const char *copy = arena_strndup(loader->arena, name, length);
	const char *value = source->env ? source->env(source->env_context, copy) : NULL;
	if (fallback && (!value || !*value))
		buf_append(out, fallback, fallback_length);
	else if (value)
		buf_text(out, value);
	else if (!*missing)
		*missing = copy;
}

/* Handles what stands at a `$`; returns how much of the text it was. */
static size_t append_reference(
	struct loader *loader, struct buf *out, const char *text, bool dollar, const char **missing)
{
	if (strncmp(text, "$${", 3) == 0) {
		buf_text(out, "${");
		return 3;
	}
	if (text[1] == '{') {
		const char *name = text + 2;
		size_t length = name_length(name);
		const char *end = strchr(name, '}');
		const char *rest = name + length;
		if (length > 0 && rest == end) {
			append_variable(loader, out, name, length, NULL, 0, missing);
			return (size_t)(end + 1 - text);
		}
		if (length > 0 && end && strncmp(rest, ":-", 2) == 0) {
			append_variable(loader, out, name, length, rest + 2,
				(size_t)(end - rest - 2), missing);
			return (size_t)(end + 1 - text);
		}
	} else if (dollar && name_length(text + 1) > 0) {
		append_variable(loader, out, text + 1, name_length(text + 1), NULL, 0, missing);
		return 1 + name_length(text + 1);
	}
	buf_char(out, '$');
	return 1;
}

const char *loader_expand(
	struct loader *loader, const char *text, bool dollar, const char **missing)
{
	if (!strchr(text, '$'))
		return text;
	struct buf out = {0};
	while (*text) {
		size_t plain = strcspn(text, "$");
		buf_append(&out, text, plain);
		text += plain;
		if (*text)
			text += append_reference(loader, &out, text, dollar, missing);
	}
	const char *result = arena_strndup(loader->arena, out.data ? out.data : "", out.length);
	buf_free(&out);
	return result;
}
