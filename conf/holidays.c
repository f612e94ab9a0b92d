/*
 * `holidays` of detection: days, and files with a day a line, which may have empty lines and
 * comments after a #.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/when.h"
#include "conf/load.h"

enum { MOST_DAYS = 10000 };

/* The days read so far. */
struct list {
	int64_t *days;
	size_t count;
};

static struct list list_new(struct arena *arena)
{
	return (struct list){arena_array(arena, MOST_DAYS, sizeof(int64_t)), 0};
}

static bool read_day(const char *text, int64_t *out)
{
	struct date date;
	long long year;
	int length = 0;

	if (sscanf(text, "%4lld-%2d-%2d%n", &year, &date.month, &date.day, &length) != 3 ||
		length != 10 || text[length] != '\0')
		return false;
	date.year = year;
	return when_from_date(date, out);
}

/* A day, with space around it and a comment behind it, or nothing. */
static bool read_line(struct list *list, char *line, struct error *error)
{
	size_t length = strcspn(line, "#\r\n");
	const char *text;

	while (length > 0 && isspace((unsigned char)line[length - 1]))
		length--;
	line[length] = '\0';
	text = line + strspn(line, " \t");
	if (!*text)
		return true;
	if (list->count == MOST_DAYS)
		return error_set(error, ERROR_USAGE, "more than %d days", MOST_DAYS);
	return read_day(text, &list->days[list->count++]) ||
	       error_set(error, ERROR_USAGE, "\"%.40s\" is not a date like 2026-12-25", text);
}

static bool read_file(struct list *list, const char *path, struct error *error)
{
	char line[256];
	size_t number = 0;
	FILE *file = fopen(path, "re");
	bool good = true;

	if (!file)
		return error_set(error, ERROR_USAGE,
			"%.200s is neither a date (2026-12-25) nor a file with a date a line: %s",
			path, strerror(errno));
	while (good && fgets(line, sizeof line, file)) {
		number++;
		good = read_line(list, line, error) ||
		       error_prefix(error, "%.200s:%zu: ", path, number);
	}
	if (good && ferror(file))
		good = error_set(error, ERROR_USAGE, "cannot read %.200s", path);
	fclose(file);
	return good;
}

/* A text that begins with a digit and is not a path is meant as a date. */
static bool is_date(const char *text)
{
	return isdigit((unsigned char)*text) && !strchr(text, '/');
}

static struct holidays in_order(struct list list)
{
	qsort(list.days, list.count, sizeof *list.days, order_times);
	return (struct holidays){list.days, list.count};
}

bool holidays_parse(
	struct arena *arena, const char *texts, struct holidays *out, struct error *error)
{
	struct list list = list_new(arena);
	char *copy = arena_strdup(arena, texts), *rest;
	bool good = true;

	for (char *text = strtok_r(copy, ",", &rest); text && good;
		text = strtok_r(NULL, ",", &rest))
		good = is_date(text) ? read_line(&list, text, error)
				     : read_file(&list, text, error);
	*out = in_order(list);
	return good || error_prefix(error, "holidays: ");
}

struct holidays holidays_read(
	const struct yaml_node *node, const struct scope *scope, struct strings texts)
{
	struct list list = list_new(scope->loader->arena);

	for (size_t i = 0; i < texts.count; i++) {
		const struct yaml_node *where =
			node->kind == YAML_LIST && node->count == texts.count ? node->items[i]
									      : node;
		const char *text = texts.items[i];
		size_t before = list.count;
		struct error error;
		bool good =
			is_date(text)
				? read_line(&list, arena_strdup(scope->loader->arena, text), &error)
				: read_file(
					  &list, loader_beside(scope->loader, where, text), &error);

		if (!good)
			loader_error(where, scope, "holidays: %s", error.text);
		else if (list.count == before)
			loader_warn(where, scope, "holidays: %.200s has no dates", text);
	}
	return in_order(list);
}
