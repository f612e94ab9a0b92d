/*
 * Parses a dict as written by Python's repr() or by JSON. Graphite stores the `data` of an event in
 * the first form if an object was posted, in the second if text was posted.
 *
 *     {'commit': "it's", u'version': None, 'runs': [1, 2.5], "ok": true}
 *
 * One parser handles both, since no repr() has another meaning in JSON.
 */
#ifndef SOURCES_GRAPHITE_PYTHON_LITERAL_H
#define SOURCES_GRAPHITE_PYTHON_LITERAL_H

#include "agent/base/arena.h"
#include "agent/base/field.h"

enum { PYTHON_PAIRS_MAX = 1000, PYTHON_DEPTH = 100 };

/*
 * The dict's members in order, in the arena: strings decoded (NUL bytes and invalid UTF-8 become
 * U+FFFD), numbers and booleans as written, NULL for None, null and containers. Members whose key
 * is not a string are skipped. Returns false if the text is not a dict.
 */
bool python_literal_read_dict(
	struct arena *arena, const char *text, size_t length, struct pairs *out);

#endif
