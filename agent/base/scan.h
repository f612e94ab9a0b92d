/*
 * The JSON reader: a cursor that reads text in place, value by value, without building a tree. It
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
 * Every function that fails leaves `at` at the error, at most at `end`, and describes it in
 * `problem`. A caller that ignores that may loop for ever, so the compiler warns.
 *
 * A string that is no Unicode text (bytes that are not UTF-8, half a surrogate pair, \u0000) is a
 * problem like any other, but still shows where it ends: scan_recover steps over what holds it.
 */
#ifndef AGENT_BASE_SCAN_H
#define AGENT_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/buf.h"
#include "agent/base/error.h"
#include "agent/base/number.h"

enum { SCAN_DEPTH = 2048 }; /* levels of nested values, including the outermost and scalars */

struct scan {
	const char *at, *end;
	const char *problem; /* first problem found, for the user; or NULL */
	const char *wanted;  /* expected token at `at` if the text is invalid JSON; or NULL */
	bool spoilt;         /* the problem is a string that is not Unicode text */
	int depth;           /* open arrays and objects */
	bool first;          /* at the start of the innermost array or object */
	bool words;          /* accept NaN, Infinity and -Infinity, as Python writes them */
	bool lax;            /* skip strings that are no Unicode text; they must not be decoded */
	struct buf text;     /* the last decoded string or key; the owner frees it */
};

/* Records a problem, if it is the first; always false. */
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

/* Whether `c` is next. */
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

/* Skips blanks and a mandatory `c`. */
MUST_USE static inline bool scan_expect(struct scan *scan, char c)
{
	scan_space(scan);
	return scan_take(scan, c) || scan_broken(scan, c == ':' ? "a colon" : "a comma or ]");
}

/* Skips the word ("null") if it is next. */
bool scan_word(struct scan *scan, const char *word) MUST_USE;

/* Reads a number if one is next; no problem is recorded if not. */
MUST_USE static inline bool scan_number(struct scan *scan, double *out)
{
	const char *after = number_scan(scan->at, scan->end, out);
	if (after)
		scan->at = after;
	return after != NULL;
}

/* Whether a number is next, or a word that stands for one. */
static inline bool scan_sees_number(const struct scan *scan)
{
	return scan->at < scan->end &&
	       ((*scan->at >= '0' && *scan->at <= '9') || *scan->at == '-' ||
		       (scan->words && (*scan->at == 'N' || *scan->at == 'I')));
}

/* Skips a string with its quotes. */
bool scan_string(struct scan *scan) MUST_USE;

/* Appends the decoded string that lies between its opening quote at `from` and `to`, behind its
 * closing quote; it must have been skipped before. out->data is a C string afterwards, even if
 * empty. */
void scan_decode(const char *from, const char *to, struct buf *out);

/* Skips a string and decodes it into scan->text. */
bool scan_text(struct scan *scan) MUST_USE;

/* Skips a value of any kind. */
bool scan_value(struct scan *scan) MUST_USE;

/*
 * After a problem within the value at `from`, which lies within `depth` arrays and objects: skips
 * that value if it is JSON but for strings that are no Unicode text, forgets the problem, and
 * returns a description of it. NULL: the problem remains, since nothing after it can be trusted.
 */
const char *scan_recover(struct scan *scan, const char *from, int depth) MUST_USE;

/* Enters the array or object ('[' or '{') if one is next; scan_item or scan_key then iterate
 * over it and leave it. */
MUST_USE static inline bool scan_open(struct scan *scan, char bracket)
{
	if (!scan_take(scan, bracket))
		return false;
	scan->depth++;
	scan->first = true;
	return true;
}

/* The first item, or the text after the last one: see scan_item. */
bool scan_item_first(struct scan *scan);
bool scan_item_end(struct scan *scan);

/* Moves to the next item of the open array. False at its end, which is skipped, and with a
 * problem if neither comes. Inline for the commas: there is one for each point. */
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

/* The same for an object: decodes the key into scan->text and moves to its value. */
bool scan_key(struct scan *scan) MUST_USE;

/* Whether the text ends after the outermost value. */
bool scan_end(struct scan *scan) MUST_USE;

#endif
