/*
 * Exact conversion between text and double: reading gives the double nearest to the decimal,
 * writing gives text that reads back as the same double. Many times faster than strtod and
 * printf for typical measurements (at most 19 digits, neither tiny nor huge), equal to them for
 * all others. The program never leaves the C locale.
 */
#ifndef AGENT_BASE_NUMBER_H
#define AGENT_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

enum { NUMBER_TEXT = 32 };

/*
 * Reads the JSON number at `text` and returns its end; NULL if there is none. Overflow gives an
 * infinity, underflow a zero.
 */
const char *number_scan(const char *text, const char *end, double *out);

/*
 * Reads all of `text` in the forms used by people and programs: besides JSON's also "+1", ".5",
 * "5.", "007", "inf" and "-Infinity" in any case, with blanks around. False for anything else,
 * including "nan".
 */
bool number_parse(const char *text, size_t length, double *out);

/* Whether the text, trimmed, stands for a missing value: nothing, "nan", "-nan" or "null" in any
 * case. */
bool number_missing(const char *text, size_t length);

/*
 * Writes the fewest of 15, 16 or 17 significant digits that read back as the same double, with a
 * NUL; returns the length. Valid JSON if the value is finite, otherwise "nan", "inf" or "-inf".
 */
size_t number_format(double value, char out[NUMBER_TEXT]);

/*
 * Writes the value for people, with a NUL, and returns the length: four significant digits, all
 * digits of the integer part below a million, thousands separated by commas ("50,123",
 * "31,700,000"); "1.234e-05" and "1.234e+15" beyond.
 */
size_t number_display(double value, char out[NUMBER_TEXT]);

/* The value of a hexadecimal digit, or -1. */
static inline int number_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
