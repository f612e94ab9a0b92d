/*
 * No recursion: scan_value keeps one bit for each open array or object, so hostile nesting ends
 * at SCAN_DEPTH, not at the end of the stack.
 */
#include "agent/base/scan.h"
#include "agent/base/number.h"

#include <limits.h>
#include <string.h>

#include "agent/base/utf8.h"

bool scan_broken(struct scan *scan, const char *wanted)
{
	if (!scan->problem)
		scan->wanted = wanted;
	return scan_fail(scan, "it is not valid JSON");
}

bool scan_word(struct scan *scan, const char *word)
{
	size_t length = strlen(word);
	if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0)
		return false;
	scan->at += length;
	return true;
}

/* The four digits of \uXXXX; -1: malformed. */
static int hex_quad(const char *at, const char *end)
{
	int code = 0;
	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = number_hex_digit(at[i]);
		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static bool is_high(int code)
{
	return code >= 0xD800 && code <= 0xDBFF;
}

static bool is_low(int code)
{
	return code >= 0xDC00 && code <= 0xDFFF;
}

/* Skips what follows "\u", or both halves of a surrogate pair. */
static bool scan_unicode(struct scan *scan)
{
	int code = hex_quad(scan->at, scan->end);
	if (scan->lax ? code < 0 : code <= 0 || is_low(code))
		return false;
	if (scan->lax || !is_high(code)) {
		scan->at += 4;
		return true;
	}
	if (scan->end - scan->at < 10 || scan->at[4] != '\\' || scan->at[5] != 'u' ||
		!is_low(hex_quad(scan->at + 6, scan->end)))
		return false;
	scan->at += 10;
	return true;
}

static bool scan_escape(struct scan *scan)
{
	if (scan->at + 1 >= scan->end || !strchr("\"\\/bfnrtu", scan->at[1]) || !scan->at[1])
		return false;
	scan->at += 2;
	return scan->at[-1] != 'u' || scan_unicode(scan);
}

bool scan_string(struct scan *scan)
{
	if (!scan_take(scan, '"'))
		return scan_broken(scan, "a text");
	while (scan->at < scan->end && *scan->at != '"') {
		unsigned char c = (unsigned char)*scan->at;
		if (c == '\\') {
			scan->spoilt = !scan_escape(scan);
			if (scan->spoilt)
				return scan_broken(scan, "an escape of JSON");
			continue;
		}
		size_t length =
			c < 0x20 ? 0 : utf8_length(scan->at, (size_t)(scan->end - scan->at));
		length += length == 0 && scan->lax && c >= 0x20;
		scan->spoilt = length == 0 && c >= 0x20;
		if (length == 0)
			return scan_broken(scan, c < 0x80 ? "the rest of a string" : "valid UTF-8");
		scan->at += length;
	}
	return scan_take(scan, '"') || scan_broken(scan, "the rest of a string");
}

/* Decodes what follows "\u" and returns its length in bytes. */
static size_t decode_unicode(const char *at, const char *end, struct buf *out)
{
	char text[4];
	size_t used = 4;
	unsigned code = (unsigned)hex_quad(at, end);
	if (is_high((int)code)) {
		unsigned low = (unsigned)hex_quad(at + 6, end);
		code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
		used = 10;
	}
	buf_append(out, text, utf8_write(code, text));
	return used;
}

void scan_decode(const char *from, const char *to, struct buf *out)
{
	static const char names[] = "bfnrt";
	static const char codes[] = "\b\f\n\r\t";
	const char *end = to - 1;
	buf_reserve(out, 0);
	for (const char *at = from + 1; at < end; at++) {
		const char *plain = memchr(at, '\\', (size_t)(end - at));
		size_t length = (size_t)((plain ? plain : end) - at);
		buf_append(out, at, length);
		at += length;
		if (!plain)
			break;
		char c = *++at;
		const char *name = strchr(names, c);
		if (c == 'u')
			at += decode_unicode(at + 1, end, out);
		else
			buf_char(out, name ? codes[name - names] : c);
	}
}

bool scan_text(struct scan *scan)
{
	const char *from = scan->at;
	if (!scan_sees(scan, '"'))
		return scan_fail(scan, "a string is missing");
	if (!scan_string(scan))
		return false;
	buf_clear(&scan->text);
	scan_decode(from, scan->at, &scan->text);
	return true;
}

static bool scan_scalar(struct scan *scan)
{
	double value;
	if (scan_sees(scan, '"'))
		return scan_string(scan);
	return scan_number(scan, &value) || scan_word(scan, "null") || scan_word(scan, "true") ||
	       scan_word(scan, "false") ||
	       (scan->words && (scan_word(scan, "NaN") || scan_word(scan, "Infinity") ||
				       scan_word(scan, "-Infinity"))) ||
	       scan_broken(scan, "a value");
}

bool scan_item_end(struct scan *scan)
{
	if (!scan_take(scan, ']'))
		return scan_broken(scan, "a comma or ]");
	scan->depth--;
	return false;
}

bool scan_item_first(struct scan *scan)
{
	scan->first = false;
	scan_space(scan);
	return !scan_sees(scan, ']') || scan_item_end(scan);
}

/* Skips a key and its colon; *from and *to are the positions of its quotes. */
static bool scan_member(struct scan *scan, const char **from, const char **to)
{
	scan_space(scan);
	if (!scan_sees(scan, '"'))
		return scan_broken(scan, "a key in quotes");
	*from = scan->at;
	if (!scan_string(scan))
		return false;
	*to = scan->at;
	if (!scan_expect(scan, ':'))
		return false;
	scan_space(scan);
	return true;
}

bool scan_key(struct scan *scan)
{
	bool first = scan->first;
	const char *from, *to;
	scan->first = false;
	scan_space(scan);
	if (scan_take(scan, '}')) {
		scan->depth--;
		return false;
	}
	if (!first && !scan_take(scan, ','))
		return scan_broken(scan, "a comma or }");
	if (!scan_member(scan, &from, &to))
		return false;
	buf_clear(&scan->text);
	scan_decode(from, to, &scan->text);
	return true;
}

/* The arrays and objects that are open within a value: one bit each, set for an object. */
struct nest {
	unsigned char objects[SCAN_DEPTH / CHAR_BIT + 1];
	int open;
};

static void nest_push(struct nest *nest, bool object)
{
	unsigned char bit = (unsigned char)(1 << nest->open % CHAR_BIT);
	unsigned char *byte = &nest->objects[nest->open++ / CHAR_BIT];
	*byte = object ? *byte | bit : *byte & (unsigned char)~bit;
}

static bool nest_in_object(const struct nest *nest)
{
	int top = nest->open - 1;
	return nest->objects[top / CHAR_BIT] >> top % CHAR_BIT & 1;
}

/* Moves to the next value of the innermost array or object: in an object, past the key. */
static bool scan_to_value(struct scan *scan, const struct nest *nest)
{
	const char *from, *to;
	scan_space(scan);
	return !nest_in_object(nest) || scan_member(scan, &from, &to);
}

/* After a value: closes the containers that end here and moves to the next value; *done if the
 * outermost was closed. */
static bool scan_onward(struct scan *scan, struct nest *nest, bool *done)
{
	while (nest->open > 0) {
		bool object = nest_in_object(nest);
		scan_space(scan);
		if (scan_take(scan, ','))
			return scan_to_value(scan, nest);
		if (!scan_take(scan, object ? '}' : ']'))
			return scan_broken(scan, object ? "a comma or }" : "a comma or ]");
		nest->open--;
	}
	*done = true;
	return true;
}

bool scan_value(struct scan *scan)
{
	struct nest nest;
	nest.open = 0;
	for (bool done = false; !done;) {
		if (scan->depth + nest.open >= SCAN_DEPTH)
			return scan_fail(scan, "it is nested more than 2048 deep");
		bool object = scan_sees(scan, '{');
		if (object || scan_sees(scan, '[')) {
			scan->at++;
			nest_push(&nest, object);
			scan_space(scan);
			if (!scan_sees(scan, object ? '}' : ']')) {
				if (!scan_to_value(scan, &nest))
					return false;
				continue;
			}
		} else if (!scan_scalar(scan)) {
			return false;
		}
		if (!scan_onward(scan, &nest, &done))
			return false;
	}
	return true;
}

const char *scan_recover(struct scan *scan, const char *from, int depth)
{
	struct scan skip = {
		.at = from, .end = scan->end, .words = scan->words, .lax = true, .depth = depth};
	const char *problem = scan->spoilt ? "a string is not Unicode text" : scan->problem;
	if (!scan_value(&skip))
		return NULL;
	scan->at = skip.at;
	scan->depth = depth;
	scan->first = false;
	scan->problem = scan->wanted = NULL;
	scan->spoilt = false;
	return problem;
}

bool scan_end(struct scan *scan)
{
	scan_space(scan);
	return scan->at == scan->end || scan_broken(scan, "the end");
}
