/*
 * Parses a dict as written by Python's repr() or by JSON. Graphite stores the `data` of an event in
 * the first form if an object was posted, in the second if text was.
 *
 *     {'commit': "it's", u'version': None, 'runs': [1, 2.5], "ok": true}
 *
 * One parser handles both, as no repr() has another meaning in JSON.
 */
#ifndef SOURCES_GRAPHITE_PYTHON_LITERAL_H
#define SOURCES_GRAPHITE_PYTHON_LITERAL_H

#include "agent/core/arena.h"
#include "agent/core/field.h"

enum { PYTHON_PAIRS_MAX = 1000, PYTHON_DEPTH = 100 };

/*
 * The dict's members in their order, in the arena: strings decoded (a zero byte and what is no
 * UTF-8 become U+FFFD), numbers and truth values as written, NULL for None, null and containers.
 * Members whose key is no string are left out. False if the text is no such dict.
 */
bool python_literal_read_dict(
	struct arena *arena, const char *text, size_t length, struct pairs *out);

#endif
