/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef AGENT_BASE_UTF8_H
#define AGENT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the valid sequence at `text`, which has `left` >= 1 bytes; 0: invalid. */
size_t utf8_length(const char *text, size_t left);

/*
 * Whether that sequence affects a terminal or the text around it: C0, DEL, C1, line and
 * paragraph separators, marks that change the direction of text.
 */
bool utf8_is_control(const char *text, size_t length);

/* Whether the whole text is valid, and has none of them but those in `but`. */
bool utf8_is_shown(const char *text, const char *but);

/* Replaces each byte of such a sequence, and each invalid byte, by `blank`. */
void utf8_blank(char *text, char blank);

/* The length of the text, or of its longest prefix of whole characters within `most` bytes. */
size_t utf8_cut(const char *text, size_t most);

/* Writes a code point, which must not be a surrogate; returns its 1 to 4 bytes. */
size_t utf8_write(unsigned code, char out[4]);

#endif
