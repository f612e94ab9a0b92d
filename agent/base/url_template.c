/*
 * Templates are checked when the configuration is loaded, and expanded when a message is written.
 */
#include "agent/base/url_template.h"

#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/label.h"
#include "agent/base/transfer.h"

#define LABEL "{label."

/* Whether a placeholder starts at `text`, which is a brace; `length` includes the braces.
 * Appends its value, if that is known. */
static bool value_at(
	const char *text, const struct url_values *values, size_t *length, struct buf *out)
{
	const struct {
		const char *name, *value;
	} names[] = {
		{"{commit}", values->commit},
		{"{before}", values->before},
		{"{after}", values->after},
		{"{test}", values->test},
		{"{metric}", values->metric},
		{"{from}", values->from},
		{"{to}", values->to},
	};
	const char *label = text + sizeof LABEL - 1;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		*length = strlen(names[i].name);
		if (strncmp(text, names[i].name, *length) != 0)
			continue;
		if (names[i].value)
			buf_text(out, names[i].value);
		return true;
	}
	*length = strcspn(text, "}") + 1;
	if (strncmp(text, LABEL, sizeof LABEL - 1) != 0 || text[*length - 1] != '}' ||
		!label_is_name(label, *length - sizeof LABEL))
		return false;
	if (values->series)
		(void)label_value(values->series, label, *length - sizeof LABEL, out);
	return true;
}

/* In messages a link is written between "<" and ">", with a "|" before its text. */
static bool harmless(const char *template)
{
	for (const char *at = template; *at; at++)
		if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f ||
			strchr("<>|\"\\", *at))
			return false;
	return true;
}

static bool check_names(const char *option, const char *template, struct error *error)
{
	struct url_values values = {0};
	struct buf none = {0};
	size_t length;

	for (const char *at = template; (at = strchr(at, '{')); at += length)
		if (!value_at(at, &values, &length, &none))
			return error_set(error, ERROR_USAGE,
				"%s: placeholders are {commit}, {before}, {after}, {test}, "
				"{metric}, {from}, {to} and {label.NAME}, but no \"%.40s\"",
				option, at);
	return true;
}

bool url_template_check(const char *option, const char *template, struct error *error)
{
	if (!*template)
		return true;
	if (!transfer_url_is_http(template))
		return error_set(
			error, ERROR_USAGE, "%s: it must begin with http:// or https://", option);
	if (!harmless(template) || strlen(template) > LINK_LONGEST / 2)
		return error_set(error, ERROR_USAGE,
			"%s: not an address, or too long; percent-encode blanks, quotes, "
			"backslashes, \"|\", \"<\", \">\" and characters other than ASCII",
			option);
	if (transfer_url_has_user(template))
		return error_set(error, ERROR_USAGE,
			"%s: visible to all recipients, so it must not contain a user or password",
			option);
	return check_names(option, template, error);
}

bool url_template_check_text(const char *option, const char *template, struct error *error)
{
	if (strlen(template) > LINK_LONGEST / 2)
		return error_set(error, ERROR_USAGE, "%s: it is too long", option);
	return check_names(option, template, error);
}

const char *url_template_expand(
	struct arena *arena, const char *template, const struct url_values *values, bool encode)
{
	const char *link = NULL;
	struct buf out = {0}, value = {0};

	while (template && *template) {
		size_t length;

		buf_clear(&value);
		if (*template != '{' || !value_at(template, values, &length, &value)) {
			buf_char(&out, *template ++);
			continue;
		}
		if (value.length == 0)
			break;
		buf_reserve(&value, 0);
		if (encode)
			transfer_encode(&out, value.data);
		else
			buf_append(&out, value.data, value.length);
		template += length;
	}
	if (template && !*template && out.length > 0 && out.length <= LINK_LONGEST)
		link = arena_strndup(arena, out.data, out.length);
	buf_free(&out);
	buf_free(&value);
	return link;
}
