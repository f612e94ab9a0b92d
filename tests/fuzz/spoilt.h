/*
 * What the readers of answers leave out and jansson rejects: strings that are no Unicode text. With
 * them replaced by as many plain characters, jansson must read the rest.
 */
#ifndef TESTS_FUZZ_SPOILT_H
#define TESTS_FUZZ_SPOILT_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A copy of the text in which bytes of strings that are not ASCII, and escapes \uXXXX, are
 * replaced. Freed by the caller. */
static inline char *spoilt_mend(const char *text, size_t size)
{
	char *copy = malloc(size + 1);
	int inside = 0;
	memcpy(copy, text, size);
	copy[size] = '\0';
	for (size_t i = 0; i < size; i++) {
		if (inside && copy[i] == '\\' && i + 1 < size) {
			i++;
			int digits = 0;
			while (copy[i] == 'u' && digits < 4 &&
				isxdigit((unsigned char)copy[i + 1 + (size_t)digits]))
				digits++;
			if (digits == 4)
				memcpy(copy + i - 1, "uuuuuu", 6);
		} else if (copy[i] == '"') {
			inside = !inside;
		} else if (inside && copy[i] & 0x80) {
			copy[i] = '?';
		}
	}
	return copy;
}

#endif
