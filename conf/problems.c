/*
 * The list of problems. A hostile or generated file may have millions, so only the first are kept.
 * Texts quote keys and names of the file, so they are truncated and stripped of control characters.
 */
#include <stdio.h>
#include <string.h>

#include "agent/base/error.h"
#include "agent/base/utf8.h"
#include "conf/yaml.h"

enum { PROBLEMS_KEPT = 1000, PROBLEM_TEXT = 1000 };

static void keep(struct problems *problems, bool warning, const char *text)
{
	problems->items = arena_grow(
		problems->arena, problems->items, problems->count, sizeof *problems->items);
	problems->items[problems->count++] = (struct config_problem){warning, text};
}

static void add(struct problems *problems, bool warning, const char *file, int line, int column,
	const char *format, va_list arguments) PRINTF_LIKE(6, 0);

static void add(struct problems *problems, bool warning, const char *file, int line, int column,
	const char *format, va_list arguments)
{
	char text[PROBLEM_TEXT + 1];
	problems->errors += !warning;
	if (problems->count >= PROBLEMS_KEPT) {
		problems->dropped++;
		return;
	}
	if (vsnprintf(text, sizeof text, format, arguments) < 0)
		text[0] = '\0';
	text[utf8_cut(text, PROBLEM_TEXT - 1)] = '\0';
	const char *kind = warning ? "warning: " : "";
	char *whole = line > 0 ? arena_printf(problems->arena, "%s:%d:%d: %s%s", file, line, column,
					 kind, text)
			       : arena_printf(problems->arena, "%s: %s%s", file, kind, text);
	error_blank(whole);
	keep(problems, warning, whole);
}

void problems_add(struct problems *problems, bool warning, const struct yaml_node *where,
	const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	add(problems, warning, where->file, where->line, where->column, format, arguments);
	va_end(arguments);
}

void problems_add_file(struct problems *problems, bool warning, const char *file, int line,
	int column, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	add(problems, warning, file, line, column, format, arguments);
	va_end(arguments);
}

void problems_finish(struct problems *problems)
{
	if (problems->dropped == 0)
		return;
	keep(problems, problems->errors == 0,
		arena_printf(problems->arena, "... and %zu more problems", problems->dropped));
	problems->dropped = 0;
}
