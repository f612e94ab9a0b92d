/*
 * Consecutive series have mostly the same labels: a label equal to the one at the same position in
 * the series before is not stored again.
 */
#include "sources/prometheus/json.h"

#include <stdlib.h>
#include <string.h>

void parse_start(struct parse *parse, struct query *query, const char *text, size_t length)
{
	parse->scan = (struct scan){.at = text, .end = text + length};
	parse->begin = text;
	parse->query = query;
	parse->arena = query->arena;
}

void parse_end(struct parse *parse)
{
	buf_free(&parse->scan.text);
	free(parse->times);
	free(parse->values);
}

const char *parse_keep(struct parse *parse, const char *before)
{
	if (before && strcmp(before, parse->scan.text.data) == 0)
		return before;
	return arena_strndup(parse->arena, parse->scan.text.data, parse->scan.text.length);
}

bool parse_string_once(struct parse *parse, const char **out)
{
	if (*out)
		return scan_fail(&parse->scan, "a key occurs twice");
	if (!scan_text(&parse->scan))
		return false;
	*out = parse_keep(parse, NULL);
	return true;
}

bool parse_once(struct parse *parse, bool *seen)
{
	if (*seen)
		return scan_fail(&parse->scan, "a key occurs twice");
	*seen = true;
	return true;
}

bool parse_object(struct parse *parse, parse_value *read)
{
	if (!scan_open(&parse->scan, '{'))
		return scan_fail(&parse->scan, "an object is expected");
	while (scan_key(&parse->scan))
		if (!read(parse, parse->scan.text.data))
			return false;
	return !parse->scan.problem;
}

static bool read_label(struct parse *parse, const char *key)
{
	(void)key;
	if (parse->label_count == PARSE_LABELS_MAX)
		return scan_fail(&parse->scan, "more than 512 labels");
	struct pair *label = &parse->labels[parse->label_count++];
	label->key = parse_keep(parse, label->key);
	if (!scan_text(&parse->scan))
		return false;
	label->value = parse_keep(parse, label->value);
	return true;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static bool read_labels(struct parse *parse)
{
	parse->label_count = 0;
	if (!parse_object(parse, read_label))
		return false;
	qsort(parse->labels, parse->label_count, sizeof *parse->labels, compare_labels);
	for (size_t i = 1; i < parse->label_count; i++)
		if (strcmp(parse->labels[i - 1].key, parse->labels[i].key) == 0)
			return scan_fail(&parse->scan, "a label occurs twice");
	return true;
}

bool parse_labels(struct parse *parse)
{
	struct scan *scan = &parse->scan;
	const char *from = scan->at;
	int depth = scan->depth;
	bool object = scan_sees(scan, '{');
	parse->unlabelled = !read_labels(parse);
	if (!parse->unlabelled)
		return true;
	const char *why = object ? scan_recover(scan, from, depth) : NULL;
	if (why)
		query_leave_out(parse->query, "series", from, (size_t)(scan->at - from), why);
	return why != NULL;
}

void parse_grow(struct parse *parse)
{
	size_t capacity = parse->capacity;

	parse->times = memory_grow(parse->times, &capacity, capacity + 1, sizeof *parse->times);
	parse->values = memory_grow(
		parse->values, &parse->capacity, parse->capacity + 1, sizeof *parse->values);
}
