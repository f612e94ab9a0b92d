/*
 * Environment variables in values. Hunter expands the whole file as text before parsing; here
 * scalars are expanded after parsing, so that a value with a colon or a line break stays one value.
 * Names are those of a shell, so PromQL's `${1}` and the `$` of a regular expression are left
 * alone. Only the first malformed reference of a value is reported; the rest of the value stays as
 * written.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "conf/load.h"
#include "conf/reference.h"

enum { SHOWN = 60 };

struct expansion {
	struct loader *loader;
	const struct yaml_node *where;
	bool dollar, failed;
	const char **missing;
	struct buf out;
};

const char *loader_variable(const struct loader *loader, const char *name)
{
	const struct config_source *source = loader->source;
	return source->env ? source->env(source->env_context, name) : NULL;
}

static void expand(struct expansion *expansion, const char *text, const char *end);

/* Appends the variable's value or default; notes it as missing if it has neither. */
static void append_variable(struct expansion *expansion, const struct reference *reference)
{
	const char *name =
		arena_strndup(expansion->loader->arena, reference->name, reference->name_length);
	const char *value = loader_variable(expansion->loader, name);
	if (reference->fallback && (!value || (reference->if_empty && !*value)))
		expand(expansion, reference->fallback,
			reference->fallback + reference->fallback_length);
	else if (value)
		buf_text(&expansion->out, value);
	else if (!*expansion->missing)
		*expansion->missing = name;
}

/* Hunter's files may have `$NAME` anywhere. Where it is not expanded it is kept, with one warning
 * if such a variable exists. */
static void keep_name(struct expansion *expansion, const char *text, size_t length)
{
	struct loader *loader = expansion->loader;
	const char *name = arena_strndup(loader->arena, text, length);
	const char *value = loader_variable(loader, name);
	if (!value || !*value || loader->in_command)
		return;
	const void **place = dict_place(&loader->unexpanded, name);
	if (!*place)
		loader_warn(expansion->where, &loader->root,
			"\"$%.80s\" is not expanded here: write ${%.80s}", name, name);
	*place = name;
}

/* Handles the text at a `$`; returns the end of the consumed text. */
static const char *expand_reference(struct expansion *expansion, const char *text, const char *end)
{
	struct reference reference = {0};
	const char *problem;
	if (end - text >= 3 && memcmp(text, "$${", 3) == 0) {
		buf_text(&expansion->out, "${");
		return text + 3;
	}
	if (end - text >= 2 && text[1] == '{') {
		switch (reference_parse(text, end, &reference, &problem)) {
		case REFERENCE_GOOD:
			append_variable(expansion, &reference);
			return text + reference.length;
		case REFERENCE_TEXT: break;
		case REFERENCE_BAD:
			loader_error(expansion->where, &expansion->loader->root,
				"\"%.*s\" %s; write $${ for a literal ${",
				(int)(end - text < SHOWN ? end - text : SHOWN), text, problem);
			expansion->failed = true;
		}
	} else if ((reference.name_length = reference_name(text + 1, end)) > 0) {
		reference.name = text + 1;
		if (expansion->dollar) {
			append_variable(expansion, &reference);
			return text + 1 + reference.name_length;
		}
		keep_name(expansion, reference.name, reference.name_length);
	}
	buf_char(&expansion->out, '$');
	return text + 1;
}

static void expand(struct expansion *expansion, const char *text, const char *end)
{
	while (text < end) {
		const char *dollar = memchr(text, '$', (size_t)(end - text));
		if (!dollar || expansion->failed)
			dollar = end;
		buf_append(&expansion->out, text, (size_t)(dollar - text));
		text = dollar < end ? expand_reference(expansion, dollar, end) : end;
	}
}

const char *loader_expand(
	struct loader *loader, const struct yaml_node *where, bool dollar, const char **missing)
{
	const char *text = where->text;
	if (!strchr(text, '$'))
		return text;
	struct expansion expansion = {.loader = loader,
		.where = where,
		.dollar = dollar,
		.missing = missing,
		.out.secret = true};
	expand(&expansion, text, text + strlen(text));
	const struct buf *out = &expansion.out;
	const char *result = arena_strndup(loader->arena, out->data ? out->data : "", out->length);
	buf_free(&expansion.out);
	loader_written(loader, result, where);
	return result;
}

const char *loader_name(struct loader *loader, const struct yaml_node *key)
{
	const char *missing = NULL;
	return loader_expand(loader, key, false, &missing);
}

enum { ADDRESS = 2 + 2 * sizeof(void *) + 1 };

void loader_written(struct loader *loader, const char *value, const struct yaml_node *where)
{
	if (loader->written && strcmp(value, where->text) != 0)
		*dict_place(loader->written,
			arena_printf(loader->arena, "%p", (const void *)value)) = where->text;
}

const char *config_written(const struct config *config, const char *value)
{
	char address[ADDRESS];
	snprintf(address, sizeof address, "%p", (const void *)value);
	const char *written =
		value && config && config->written ? dict_get(config->written, address) : NULL;
	return written ? written : value;
}

const char *loader_path(struct loader *loader, const char *text, const char **missing)
{
	if (strncmp(text, "~/", 2) != 0)
		return text;
	const char *home = loader_variable(loader, "HOME");
	if (home && *home)
		return arena_printf(loader->arena, "%s%s", home, text + 1);
	*missing = "HOME";
	return text;
}

static const char *get(void *context, const char *name)
{
	return loader_variable(context, name);
}

void loader_set_variables(const struct field *fields, void *options, const struct yaml_node *where,
	const struct scope *scope)
{
	struct error error;
	if (!field_variables(fields, options, get, scope->loader, scope->loader->arena, &error))
		loader_warn(where, scope, "%s", error.text);
}
