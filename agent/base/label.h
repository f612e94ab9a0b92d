/*
 * Labels in the names of series: http_requests{host="a",code="200"}, and the tags and path parts
 * of Graphite's names.
 */
#ifndef AGENT_BASE_LABEL_H
#define AGENT_BASE_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/buf.h"

/* A label as written, its value still escaped and without quotation marks. */
struct label_text {
	const char *key, *value;
	size_t key_length, value_length;
};

/* The start of a name's label set, behind its brace; NULL: it has none. */
const char *label_set(const char *name);

/* Reads the label at `*at` and moves `*at` behind it; false if there is none. A value ends at an
 * unescaped quotation mark. */
bool label_next(const char **at, struct label_text *label);

/*
 * Appends a series' value for a name, unescaped: a label's, a tag's ("used;host=a" has host), or
 * for "path[2]" the second part of a name that is a path ("web.a.latency"), Graphite's target if
 * there is one. False, with nothing appended, if it is missing or empty.
 */
bool label_value(const char *identity, const char *name, size_t length, struct buf *out);

/* Whether a series has all labels of a set as users write it: {region=eu, code="200"}; ignores text
 * before the set. False if there is no such set. */
bool label_has_asked(const char *identity, const char *text);

/* Appends the identity without that value: equal for series that differ in it alone. False, with
 * nothing appended, if label_value fails. */
bool label_rest(const char *identity, const char *name, size_t length, struct buf *out);

/* Whether it is a valid label name: letters, digits, and "_", ".", ":", "-"; or "path[2]". */
bool label_is_name(const char *name, size_t length);

#endif
