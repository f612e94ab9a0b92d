/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
 */
#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the valid sequence at `text`, which has `left` >= 1 bytes; 0 if there is none. */
size_t utf8_length(const char *text, size_t left);

/*
 * Whether that sequence does something to a terminal or to the text around it: C0, DEL, C1, the
 * separators of lines and paragraphs, the marks that turn the direction of text.
 */
bool utf8_is_control(const char *text, size_t length);

/* Puts `blank` in the place of each byte of such a sequence, and of each that is no UTF-8. */
void utf8_blank(char *text, char blank);

/* Bytes of the text if it has at most `most`, else as many of these as are whole characters. */
size_t utf8_cut(const char *text, size_t most);

/* Writes the sequence of a code point that is no surrogate; returns its 1 to 4 bytes. */
size_t utf8_write(unsigned code, char out[4]);

#endif
