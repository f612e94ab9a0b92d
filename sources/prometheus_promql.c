/*
 * One walk over the query that knows quotes, their escapes and comments, as PromQL's lexer does.
 */
#include "sources/prometheus_promql.h"

#include <string.h>

#include "agent/core/buf.h"

static const char variable[] = "%{BRANCH}";

struct walk {
	const char *at;
	char quote;   /* the open one, or 0 */
	bool pattern; /* the quotes hold a regular expression */
	char before;  /* the last character but blanks, outside of quotes */
};

bool promql_has_branch(const char *query)
{
	return strstr(query, variable);
}

/* A byte within quotes. */
static void write_escaped(struct buf *out, char c, const struct walk *walk)
{
	if (walk->pattern && strchr("\\.+*?()|[]{}^$", c))
		buf_text(out, "\\\\");
	if (c == '\n')
		buf_text(out, "\\n");
	else if ((unsigned char)c < ' ')
		buf_printf(out, "\\x%02x", (unsigned char)c);
	else if (c == '\\' || c == walk->quote)
		buf_printf(out, "\\%c", c);
	else
		buf_char(out, c);
}

static bool write_branch(
	struct buf *out, const struct walk *walk, const char *branch, struct error *error)
{
	if (walk->quote == '`') {
		if (strpbrk(branch, walk->pattern ? "`\\.+*?()|[]{}^$" : "`"))
			return error_set(error, ERROR_USAGE,
				"branch \"%s\" cannot stand within backquotes: use quotes in query",
				branch);
		buf_text(out, branch);
		return true;
	}
	if (!walk->quote) {
		for (const char *c = branch; *c; c++)
			if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_:",
				    *c))
				return error_set(error, ERROR_USAGE,
					"branch \"%s\" cannot be part of a name: put %s into "
					"quotes in query",
					branch, variable);
		buf_text(out, branch);
		return true;
	}
	for (const char *c = branch; *c; c++)
		write_escaped(out, *c, walk);
	return true;
}

/* Copies what is next: a character, an escape or a comment. */
static void walk_on(struct walk *walk, struct buf *out)
{
	const char *at = walk->at;
	size_t length = 1;
	if (walk->quote) {
		if (*at == walk->quote)
			walk->quote = walk->before = 0;
		else if (*at == '\\' && walk->quote != '`' && at[1])
			length = 2;
	} else if (*at == '#') {
		length = strcspn(at, "\n");
	} else if (strchr("\"'`", *at)) {
		walk->quote = *at;
		walk->pattern = walk->before == '~';
	} else if (!strchr(" \t\r\n", *at)) {
		walk->before = *at;
	}
	buf_append(out, at, length);
	walk->at += length;
}

bool promql_fill_branch(struct arena *arena, const char *query, const char *branch,
	const char **out, struct error *error)
{
	struct walk walk = {.at = query};
	struct buf text = {0};
	bool filled = true;
	while (filled && *walk.at) {
		if (strncmp(walk.at, variable, strlen(variable)) != 0) {
			walk_on(&walk, &text);
			continue;
		}
		filled = write_branch(&text, &walk, branch, error);
		walk.at += strlen(variable);
	}
	while (text.length > 0 && strchr(" \t\r\n", text.data[text.length - 1]))
		text.length--;
	*out = arena_strndup(arena, text.data ? text.data : "", text.length);
	buf_free(&text);
	return filled;
}
