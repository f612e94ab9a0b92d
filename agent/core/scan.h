/*
 * The JSON reader: a cursor over text that is read in place and without a tree, value by value. It
 * accepts exactly what jansson does: RFC 8259, valid UTF-8, surrogates in pairs, no \u0000, at most
 * SCAN_DEPTH deep. Numbers are read by number_scan, which takes any size.
 *
 *     if (!scan_open(&scan, '{'))
 *             return scan_fail(&scan, "an object is missing");
 *     while (scan_key(&scan))
 *             if (!read_member(&scan, scan.text.data))
 *                     return false;
 *     return !scan.problem;
 *
 * Every function that fails leaves `at` where the trouble is, at most at `end`, and says in
 * `problem` what it is. Whoever ignores that may loop for ever, so the compiler warns.
 */
#ifndef CORE_SCAN_H
#define CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/buf.h"
#include "agent/core/error.h"
#include "agent/core/number.h"

enum { SCAN_DEPTH = 2048 }; /* levels of values within values, the outermost and a scalar counted */

struct scan {
	const char *at, *end;
	const char *problem; /* what is wrong, for people: the first that was seen; or NULL */
	const char *wanted;  /* what should stand at `at` of what is no valid JSON; or NULL */
	int depth;           /* arrays and objects that are open */
	bool first;          /* nothing of the innermost was read yet */
	bool words;          /* NaN, Infinity and -Infinity are values, too, as Python has them */
	struct buf text;     /* the string or key that was decoded last; the owner frees it */
};

/* Remember what is wrong, if nothing was before; always false. */
static inline bool scan_fail(struct scan *scan, const char *problem)
{
	if (!scan->problem)
		scan->problem = problem;
	return false;
}

bool scan_broken(struct scan *scan, const char *wanted);

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

/* Steps over `c`, with blanks in front of it, which has to come. */
MUST_USE static inline bool scan_expect(struct scan *scan, char c)
{
	scan_space(scan);
	return scan_take(scan, c) || scan_broken(scan, c == ':' ? "a colon" : "a comma or ]");
}

/* Steps over the word ("null") if it is next. */
bool scan_word(struct scan *scan, const char *word) MUST_USE;

/* Steps over the number and gives it if one is next; says nothing if not. */
MUST_USE static inline bool scan_number(struct scan *scan, double *out)
{
	const char *after = number_scan(scan->at, scan->end, out);
	if (after)
		scan->at = after;
	return after != NULL;
}

/* Is a number next, or a word that stands for one? */
static inline bool scan_sees_number(const struct scan *scan)
{
	return scan->at < scan->end &&
	       ((*scan->at >= '0' && *scan->at <= '9') || *scan->at == '-' ||
		       (scan->words && (*scan->at == 'N' || *scan->at == 'I')));
}

/* Steps over a string with its quotes. */
bool scan_string(struct scan *scan) MUST_USE;

/* Appends what the string from its quote at `from` to behind its quote at `to`, stepped over
 * before, stands for. out->data is a string afterwards, even if that is nothing. */
void scan_decode(const char *from, const char *to, struct buf *out);

/* Steps over a string and decodes it into scan->text. */
bool scan_text(struct scan *scan) MUST_USE;

/* Steps over a value of any kind. */
bool scan_value(struct scan *scan) MUST_USE;

/* Steps over the bracket ('[' or '{') if it is next; scan_item or scan_key then go through what it
 * opens, and behind its end. */
MUST_USE static inline bool scan_open(struct scan *scan, char bracket)
{
	if (!scan_take(scan, bracket))
		return false;
	scan->depth++;
	scan->first = true;
	return true;
}

/* The first item, or what stands behind the last one: see scan_item. */
bool scan_item_first(struct scan *scan);
bool scan_item_end(struct scan *scan);

/* Up to the next item of the array that is open. False at its end, which is stepped over, and
 * with a problem where neither comes. Inline for the commas: there is one for each point. */
MUST_USE static inline bool scan_item(struct scan *scan)
{
	if (scan->first)
		return scan_item_first(scan);
	scan_space(scan);
	if (!scan_sees(scan, ','))
		return scan_item_end(scan);
	scan->at++;
	scan_space(scan);
	return true;
}

/* The same for an object: decodes the key into scan->text and goes to its value. */
bool scan_key(struct scan *scan) MUST_USE;

/* Behind the outermost value: is that all? */
bool scan_end(struct scan *scan) MUST_USE;

#endif
