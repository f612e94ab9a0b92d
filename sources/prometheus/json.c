/*
 * Series follow one another with mostly the same labels: a label that is equal to the one in its
 * place before is kept once.
 */
#include "sources/prometheus/json.h"

#include <stdlib.h>
#include <string.h>

void parse_start(struct parse *parse, struct arena *arena, const char *text, size_t length)
{
	parse->scan = (struct scan){text, text + length};
	parse->begin = text;
	parse->arena = arena;
}

void parse_end(struct parse *parse)
{
	buf_free(&parse->text);
	free(parse->times);
	free(parse->values);
}

bool parse_skip(struct parse *parse, int depth)
{
	return scan_value(&parse->scan, depth) || parse_fail(parse, "it is no valid JSON");
}

bool parse_text(struct parse *parse)
{
	const char *from = parse->scan.at;
	if (!scan_sees(&parse->scan, '"'))
		return parse_fail(parse, "a text is missing");
	if (!scan_string(&parse->scan))
		return parse_fail(parse, "it is no valid JSON");
	buf_clear(&parse->text);
	scan_decode(from, parse->scan.at, &parse->text);
	return true;
}

const char *parse_keep(struct parse *parse, const char *before)
{
	if (before && strcmp(before, parse->text.data) == 0)
		return before;
	return arena_strndup(parse->arena, parse->text.data, parse->text.length);
}

bool parse_string_once(struct parse *parse, const char **out)
{
	if (*out)
		return parse_fail(parse, "a key comes twice");
	if (!parse_text(parse))
		return false;
	*out = parse_keep(parse, NULL);
	return true;
}

bool parse_once(struct parse *parse, bool *seen)
{
	if (*seen)
		return parse_fail(parse, "a key comes twice");
	*seen = true;
	return true;
}

bool parse_object(struct parse *parse, int depth, parse_value *read)
{
	if (!scan_sees(&parse->scan, '{'))
		return parse_fail(parse, "an object is missing");
	parse->scan.at++;
	scan_space(&parse->scan);
	if (scan_take(&parse->scan, '}'))
		return true;
	do {
		scan_space(&parse->scan);
		if (!parse_text(parse) || !parse_expect(parse, ':'))
			return false;
		scan_space(&parse->scan);
		if (!read(parse, parse->text.data, depth + 1))
			return false;
		scan_space(&parse->scan);
	} while (scan_take(&parse->scan, ','));
	return parse_expect(parse, '}');
}

static bool read_label(struct parse *parse, const char *key, int depth)
{
	(void)key, (void)depth;
	if (parse->label_count == PARSE_LABELS_MAX)
		return parse_fail(parse, "a series has more than 512 labels");
	struct pair *label = &parse->labels[parse->label_count++];
	label->key = parse_keep(parse, label->key);
	if (!parse_text(parse))
		return false;
	label->value = parse_keep(parse, label->value);
	return true;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

bool parse_labels(struct parse *parse, int depth)
{
	parse->label_count = 0;
	if (!parse_object(parse, depth, read_label))
		return false;
	qsort(parse->labels, parse->label_count, sizeof *parse->labels, compare_labels);
	for (size_t i = 1; i < parse->label_count; i++)
		if (strcmp(parse->labels[i - 1].key, parse->labels[i].key) == 0)
			return parse_fail(parse, "a label comes twice");
	return true;
}

void parse_grow(struct parse *parse)
{
	size_t capacity = parse->capacity;

	parse->times = memory_grow(parse->times, &capacity, capacity + 1, sizeof *parse->times);
	parse->values = memory_grow(
		parse->values, &parse->capacity, parse->capacity + 1, sizeof *parse->values);
}
