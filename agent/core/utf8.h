/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
 */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stddef.h>

/* Bytes of the valid sequence at `text`, which has `left` >= 1 bytes; 0 if there is none. */
size_t utf8_length(const char *text, size_t left);

/* Writes the sequence of a code point that is no surrogate; returns its 1 to 4 bytes. */
size_t utf8_write(unsigned code, char out[4]);

#endif
