#include "agent/core/utf8.h"

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
