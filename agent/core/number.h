/*
 * Numbers between text and double, exactly: what is read is the double nearest to the decimal, what
 * is written reads back as the same double. Many times faster than strtod and printf for numbers as
 * measurements have them (at most 19 digits, neither tiny nor huge), equal to them for all others.
 * The program never leaves the C locale.
 */
#ifndef CORE_NUMBER_H
#define CORE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { NUMBER_TEXT = 32 };

/*
 * Reads the JSON number that begins at `text` and stops at its end, which is returned; NULL if none
 * begins there. Too big for a double gives an infinity, too small a zero.
 */
const char *number_scan(const char *text, const char *end, double *out);

/*
 * Reads all of `text` as people and programs write numbers: besides JSON's also "+1", ".5", "5.",
 * "007", "inf" and
 * "-Infinity" in any case, with blanks around. False for anything else, "nan" included.
 */
bool number_parse(const char *text, size_t length, double *out);

/* Does the text (blanks around it aside) stand for a missing value: nothing, "nan", "-nan" or
 * "null" in any case? */
bool number_missing(const char *text, size_t length);

/*
 * Writes the fewest of 15, 16 or 17 significant digits that read back as the same double, with a
 * NUL; returns the length. Valid JSON if the value is finite, otherwise "nan", "inf" or "-inf".
 */
size_t number_format(double value, char out[NUMBER_TEXT]);

#endif
