/*
 * Shared by the readers of Prometheus' and VictoriaMetrics' answers: a JSON reader with labels as
 * sorted pairs and room for points.
 *
 * A reader's own struct begins with a struct parse. A known key or a label that occurs twice is an
 * error.
 */
#ifndef SOURCES_PROMETHEUS_JSON_H
#define SOURCES_PROMETHEUS_JSON_H

#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/field.h"
#include "agent/base/scan.h"
#include "sources/source.h"

enum { PARSE_LABELS_MAX = 512 };

struct parse {
	struct scan scan;
	const char *begin;
	struct query *query; /* gets notices of series that are left out */
	struct arena *arena; /* for labels and kept texts */

	struct pair labels[PARSE_LABELS_MAX];
	size_t label_count;
	bool unlabelled; /* the labels read last cannot be used */
	int64_t *times;  /* ms */
	double *values;
	size_t capacity;
};

/* `key` is valid until something is decoded. */
typedef bool parse_value(struct parse *parse, const char *key);
typedef bool parse_item(struct parse *parse);

void parse_start(struct parse *parse, struct query *query, const char *text, size_t length);
void parse_end(struct parse *parse);

/* The text decoded last, in the arena; `before` itself if it is equal. */
const char *parse_keep(struct parse *parse, const char *before);

/* Reads the next string into the arena; fails if *out is set already. */
bool parse_string_once(struct parse *parse, const char **out);

/* Sets *seen; fails if it is set already. */
bool parse_once(struct parse *parse, bool *seen);

/* Reads an object, each of its values by `read`. */
bool parse_object(struct parse *parse, parse_value *read);

/* The same for an array; inline, so that `read` is inlined, too: it is called for each point. */
static inline bool parse_array(struct parse *parse, parse_item *read)
{
	if (!scan_open(&parse->scan, '['))
		return scan_fail(&parse->scan, "an array is expected");
	while (scan_item(&parse->scan))
		if (!read(parse))
			return false;
	return !parse->scan.problem;
}

/*
 * Reads an object of strings into parse->labels, sorted by name. Labels that are JSON but cannot be
 * used (no Unicode text, too many) cost their series only: the query gets a notice, and
 * parse->unlabelled is set. As a series has the same labels in each piece of the range, none is
 * left out of some of them only.
 */
bool parse_labels(struct parse *parse);

/* Doubles the room for points. */
void parse_grow(struct parse *parse);

#endif
