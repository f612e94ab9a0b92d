/*
 * A cursor over JSON text that is read in place: the small, fast readers of the hot JSON shapes are
 * made of this. It accepts exactly what jansson does: RFC 8259, valid UTF-8, surrogates in pairs,
 * no \u0000, at most SCAN_DEPTH deep.
 *
 * Every function that fails leaves `at` where the trouble is, at most at `end`. Whoever ignores
 * that may loop for ever, so the compiler warns.
 */
#ifndef CORE_SCAN_H
#define CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/buf.h"
#include "agent/core/error.h"

enum { SCAN_DEPTH = 2048 }; /* levels of values within values, the outermost and a scalar counted */

struct scan {
	const char *at, *end;
};

/* Skips blanks and line ends. */
static inline void scan_space(struct scan *scan)
{
	while (scan->at < scan->end &&
		(*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

/* Is `c` next? */
static inline bool scan_sees(const struct scan *scan, char c)
{
	return scan->at < scan->end && *scan->at == c;
}

/* Steps over `c` if it is next. */
MUST_USE static inline bool scan_take(struct scan *scan, char c)
{
	bool seen = scan_sees(scan, c);
	scan->at += seen;
	return seen;
}

/* Steps over the word ("null") if it is next. */
bool scan_word(struct scan *scan, const char *word) MUST_USE;

/* Steps over a string with its quotes. */
bool scan_string(struct scan *scan) MUST_USE;

/* Appends what the string from its quote at `from` to behind its quote at `to`, stepped over
 * before, stands for. out->data is a string afterwards, even if that is nothing. */
void scan_decode(const char *from, const char *to, struct buf *out);

/* Steps over an item of an array, which is at this depth. */
typedef bool scan_item(void *context, struct scan *scan, int depth);

/* Steps over an array, at whose bracket it is and whose level is `depth`, item by item. */
bool scan_array(struct scan *scan, int depth, scan_item *item, void *context) MUST_USE;

/* Steps over a value of any kind; `depth` is its own level, 1 for the outermost. */
bool scan_value(struct scan *scan, int depth) MUST_USE;

#endif
