/*
 * What the readers of Prometheus' and VictoriaMetrics' answers share: a cursor that remembers what
 * was wrong, objects and arrays as loops, labels as sorted pairs, and room for points.
 *
 * A reader's own struct begins with a struct parse, to which its callbacks cast back. What is
 * accepted is what jansson accepts; a known key or a label that comes twice is an error.
 */
#ifndef SOURCES_PROMETHEUS_JSON_H
#define SOURCES_PROMETHEUS_JSON_H

#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/field.h"
#include "agent/core/scan.h"

enum { PARSE_LABELS_MAX = 512 };

struct parse {
	struct scan scan;
	const char *begin;
	struct arena *arena; /* of labels and texts that are kept */
	const char *problem; /* what is wrong, for people */
	struct buf text;     /* the string that was decoded last */

	struct pair labels[PARSE_LABELS_MAX];
	size_t label_count;
	int64_t *times; /* ms */
	double *values;
	size_t capacity;
};

/* Good: `key` until something is decoded. */
typedef bool parse_value(struct parse *parse, const char *key, int depth);
typedef bool parse_item(struct parse *parse, int depth);

void parse_start(struct parse *parse, struct arena *arena, const char *text, size_t length);
void parse_end(struct parse *parse);

static inline bool parse_fail(struct parse *parse, const char *problem)
{
	if (!parse->problem)
		parse->problem = problem;
	return false;
}

static inline bool parse_expect(struct parse *parse, char c)
{
	scan_space(&parse->scan);
	return scan_take(&parse->scan, c) || parse_fail(parse, "it is no valid JSON");
}

/* Steps over a value at `depth`. */
bool parse_skip(struct parse *parse, int depth);

/* Decodes the string that is next into parse->text. */
bool parse_text(struct parse *parse);

/* What was decoded, in the arena: `before` itself if it is the same text. */
const char *parse_keep(struct parse *parse, const char *before);

/* The string that is next, into the arena; the second time *out is set it fails. */
bool parse_string_once(struct parse *parse, const char **out);

/* Fails if it was seen before. */
bool parse_once(struct parse *parse, bool *seen);

/* An object at `depth`, each of whose values is read by `read`. */
bool parse_object(struct parse *parse, int depth, parse_value *read);

/* An object of strings, into parse->labels, sorted by name. */
bool parse_labels(struct parse *parse, int depth);

/* Doubles the room for points. */
void parse_grow(struct parse *parse);

/* An array at `depth`; inline, so that the item's reader is too: there is one for each point. */
static inline bool parse_array(struct parse *parse, int depth, parse_item *read)
{
	if (!scan_sees(&parse->scan, '['))
		return parse_fail(parse, "an array is missing");
	parse->scan.at++;
	scan_space(&parse->scan);
	if (scan_take(&parse->scan, ']'))
		return true;
	do {
		scan_space(&parse->scan);
		if (!read(parse, depth + 1))
			return false;
		scan_space(&parse->scan);
	} while (scan_take(&parse->scan, ','));
	return parse_expect(parse, ']');
}

#endif
