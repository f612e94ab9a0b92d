/*
 * Labels in the names of series: http_requests{host="a",code="200"}, the tags and path parts of
 * Graphite's names.
 */
#ifndef CORE_LABEL_H
#define CORE_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/buf.h"

/* A label as it is written, its value with escapes and without quotation marks. */
struct label_text {
	const char *key, *value;
	size_t key_length, value_length;
};

/* Where the label set of a name begins, behind its brace; NULL: it has none. */
const char *label_set(const char *name);

/* The label at `*at`, which is moved behind it; false where there is none. A value ends at a
 * quotation mark that no backslash guards. */
bool label_next(const char **at, struct label_text *label);

/*
 * Appends the value that a series has for a name, unescaped: a label's, a tag's
 * ("used;host=a" has host), or of "path[2]" the second part of a name that is a path
 * ("web.a.latency"), Graphite's target where there is one. False and nothing if it has none, or an
 * empty one.
 */
bool label_value(const char *identity, const char *name, size_t length, struct buf *out);

/* Whether the text has a set of labels as people write it: {region=eu, code="200"}. */
bool label_is_asked(const char *text);

/* Whether a series has all labels of such a text; what stands before the set is not looked at. */
bool label_has_asked(const char *identity, const char *text);

/* Appends what the identity says besides that value: the same of series that differ in it alone.
 * False and nothing where label_value has none. */
bool label_rest(const char *identity, const char *name, size_t length, struct buf *out);

/* Whether it can be the name of a label: letters, digits, and "_", ".", ":", "-"; or "path[2]". */
bool label_is_name(const char *name, size_t length);

#endif
