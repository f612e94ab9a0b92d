/*
 * No message says the same thing twice in a row: "zone: zone: ...".
 */
#ifndef TESTS_UNIT_REPEATS_H
#define TESTS_UNIT_REPEATS_H

#include <stdbool.h>
#include <string.h>

/* The length of a text that ends there without the numbers of lines behind it. */
static inline size_t without_lines(const char *text, size_t length)
{
	size_t end = length;

	while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9')
		end--;
	return end > 1 && end < length && text[end - 1] == ':' ? without_lines(text, end - 1)
							       : length;
}

/* Whether a piece of the text between two ": " is followed by itself; either may name lines. */
static inline bool repeats(const char *text)
{
	const char *next = strstr(text, ": "), *after = next ? strstr(next + 2, ": ") : NULL;
	size_t length, again;

	if (!after)
		return false;
	length = without_lines(text, (size_t)(next - text));
	again = without_lines(next + 2, (size_t)(after - next - 2));
	return (length == again && strncmp(text, next + 2, length) == 0) || repeats(next + 2);
}

#endif
