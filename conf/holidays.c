/*
 * `holidays` of detection: days, and files with a day a line, which may have empty lines and
 * comments after a #.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "conf/load.h"

enum { MOST_DAYS = 10000 };

/* The days read so far. */
struct list {
	struct loader *loader;
	const struct error_context *subject;
	int64_t *days;
	size_t count;
};

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

static void add(struct list *list, const struct yaml_node *where, int64_t day)
{
	if (list->count == MOST_DAYS)
		loader_report(list->loader, false, where, list->subject,
			"holidays: more than %d days", MOST_DAYS);
	if (list->count < MOST_DAYS)
		list->days[list->count++] = day;
}

/* The line without its comment and the space around it. */
static char *trim(char *line)
{
	size_t length = strcspn(line, "#\r\n");

	while (length > 0 && isspace((unsigned char)line[length - 1]))
		length--;
	line[length] = '\0';
	return line + strspn(line, " \t");
}

static void read_file(struct list *list, const struct yaml_node *where, const char *path)
{
	char line[256];
	size_t number = 0, before = list->count;
	FILE *file = fopen(path, "re");
	int64_t day;

	if (!file) {
		loader_report(list->loader, false, where, list->subject,
			"holidays: %.200s is neither a date (2026-12-25) nor a file with a date a "
			"line: %s",
			path, strerror(errno));
		return;
	}
	while (fgets(line, sizeof line, file) && list->count < MOST_DAYS) {
		const char *text = trim(line);

		number++;
		if (*text && read_day(text, &day)) {
			add(list, where, day);
		} else if (*text) {
			loader_report(list->loader, false, where, list->subject,
				"holidays: %.200s:%zu: \"%.40s\" is not a date like 2026-12-25",
				path, number, text);
			break;
		}
	}
	if (ferror(file))
		loader_report(list->loader, false, where, list->subject,
			"holidays: cannot read %.200s", path);
	else if (list->count == before && feof(file))
		loader_report(list->loader, true, where, list->subject,
			"holidays: %.200s has no dates", path);
	fclose(file);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

struct holidays holidays_read(struct loader *loader, const struct yaml_node *node,
	const struct error_context *subject, struct strings texts)
{
	struct list list = {
		loader, subject, arena_array(loader->arena, MOST_DAYS, sizeof(int64_t)), 0};

	for (size_t i = 0; i < texts.count; i++) {
		const struct yaml_node *where =
			node->kind == YAML_LIST && node->count == texts.count ? node->items[i]
									      : node;
		const char *text = texts.items[i];
		int64_t day;

		if (read_day(text, &day))
			add(&list, where, day);
		else if (isdigit((unsigned char)*text) && !strchr(text, '/'))
			loader_report(loader, false, where, subject,
				"holidays: \"%.40s\" is not a date like 2026-12-25", text);
		else
			read_file(&list, where,
				*text == '/' ? text : loader_beside(loader, where, text));
	}
	qsort(list.days, list.count, sizeof *list.days, by_time);
	return (struct holidays){list.days, list.count};
}
