#include "agent/base/utf8.h"

#include <string.h>

size_t utf8_length(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t length = s[0] < 0x80   ? 1
			: s[0] < 0xC2 ? 0
			: s[0] < 0xE0 ? 2
			: s[0] < 0xF0 ? 3
			: s[0] < 0xF5 ? 4
				      : 0;
	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
		(s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return length;
}

bool utf8_is_control(const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;

	if (length == 1)
		return at[0] < 0x20 || at[0] == 0x7f;
	if (length == 2)
		return (at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c);
	return at[0] == 0xe2 && ((at[1] == 0x80 && at[2] >= 0x8e && at[2] <= 0x8f) ||
					(at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
					(at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xaf));
}

bool utf8_is_shown(const char *text, const char *but)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		if (length == 0 || (utf8_is_control(text, length) && !strchr(but, *text)))
			return false;
	}
	return true;
}

void utf8_blank(char *text, char blank)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		bool broken = length == 0;
		length = broken ? 1 : length;
		if (broken || utf8_is_control(text, length))
			memset(text, blank, length);
	}
}

size_t utf8_cut(const char *text, size_t most)
{
	size_t length = strnlen(text, most + 1), start = most;
	if (length <= most)
		return length;
	while (start > 0 && most - start < 3 && ((unsigned char)text[start] & 0xC0) == 0x80)
		start--;
	return start + utf8_length(text + start, strnlen(text + start, 4)) > most ? start : most;
}

size_t utf8_write(unsigned code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = length - 1; i > 0; i--, code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3F));
	out[0] = (char)((0xF00 >> length & 0xFF) | code);
	return length;
}
