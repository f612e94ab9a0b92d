/*
 * References are read twice: by the guard, which knows no YAML and touches only what is certainly a
 * reference, on one line and without quotes; and by the expansion of each value.
 *
 * The guard's characters are Unicode noncharacters, which no text contains; a file that does is
 * left as it is. The number of references within a reference is limited, which also keeps the
 * search for closing braces linear.
 */
#include "conf/reference.h"

#include <ctype.h>
#include <string.h>

#include "agent/base/buf.h"

enum { NESTED_MAX = 10, GUARD_BYTES = 3 };

static const char guarded[] = "{}[],:#";
static const char guard_prefix[] = "\xef\xb7"; /* U+FDD0 + the index into `guarded` */
enum { GUARD_FIRST = 0x90 };

size_t reference_name(const char *text, const char *end)
{
	size_t n = 0;
	if (text < end && (isalpha((unsigned char)*text) || *text == '_'))
		while (text + n < end && (isalnum((unsigned char)text[n]) || text[n] == '_'))
			n++;
	return n;
}

static bool starts(const char *text, const char *end, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(end - text) >= n && memcmp(text, with, n) == 0;
}

/* The brace that closes the one before `text`, or NULL. */
static const char *closing(const char *text, const char *end, const char **problem)
{
	size_t open = 1, opened = 1;
	*problem = "is not closed";
	while (text < end) {
		if (starts(text, end, "$${")) {
			text += 3;
		} else if (starts(text, end, "${")) {
			text += 2;
			open++;
			if (++opened > NESTED_MAX) {
				*problem = "contains too many references";
				return NULL;
			}
		} else if (*text++ == '}' && --open == 0) {
			return text - 1;
		}
	}
	return NULL;
}

/* `${1}` of PromQL, `${2,}` of a regular expression. */
static bool is_number(const char *text, const char *end)
{
	const char *c = text;
	while (c < end && (isdigit((unsigned char)*c) || *c == ','))
		c++;
	return c > text && c < end && *c == '}';
}

enum reference_kind reference_parse(
	const char *text, const char *end, struct reference *out, const char **problem)
{
	const char *name = text + 2;
	size_t length = reference_name(name, end);
	if (is_number(name, end))
		return REFERENCE_TEXT;
	const char *brace = closing(name, end, problem);
	if (!brace)
		return REFERENCE_BAD;
	*out = (struct reference){
		.name = name, .name_length = length, .length = (size_t)(brace + 1 - text)};
	const char *rest = name + length;
	*problem = "does not begin with the name of a variable";
	if (length == 0)
		return REFERENCE_BAD;
	if (rest == brace)
		return REFERENCE_GOOD;
	out->if_empty = *rest == ':';
	rest += out->if_empty;
	*problem = "is not ${NAME}, ${NAME-default} or ${NAME:-default}";
	if (*rest != '-')
		return REFERENCE_BAD;
	out->fallback = rest + 1;
	out->fallback_length = (size_t)(brace - out->fallback);
	return REFERENCE_GOOD;
}

/* The length in bytes of the reference at `text` if it is to be guarded, else 0. */
static size_t guard_length(const char *text, const char *end)
{
	struct reference reference;
	const char *problem;
	if (reference_parse(text, end, &reference, &problem) != REFERENCE_GOOD)
		return 0;
	for (size_t i = 0; i < reference.length; i++)
		if (strchr("'\"\r\n", text[i]))
			return 0;
	return reference.length;
}

static void write_guarded(struct buf *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char *at = text[i] ? strchr(guarded, text[i]) : NULL;
		if (at) {
			buf_text(out, guard_prefix);
			buf_char(out, (char)(GUARD_FIRST + (at - guarded)));
		} else {
			buf_char(out, text[i]);
		}
	}
}

/* The index into `guarded` of the character that the guard replaced, or -1. */
static int guard_index(const char *text)
{
	if (strncmp(text, guard_prefix, GUARD_BYTES - 1) != 0)
		return -1;
	int index = (unsigned char)text[GUARD_BYTES - 1] - GUARD_FIRST;
	return index >= 0 && index < (int)sizeof guarded - 1 ? index : -1;
}

static bool has_guards(const char *text, size_t length)
{
	const char *end = text + length, *at = text;
	while ((at = memmem(at, (size_t)(end - at), guard_prefix, GUARD_BYTES - 1))) {
		if (end - at >= GUARD_BYTES && guard_index(at) >= 0)
			return true;
		at += GUARD_BYTES - 1;
	}
	return false;
}

bool references_guard(const char *text, size_t length, struct buf *out)
{
	const char *end = text + length, *at = memmem(text, length, "${", 2);
	if (!at || has_guards(text, length))
		return false;
	const char *line_end = text;
	for (; at; at = memmem(text, (size_t)(end - text), "${", 2)) {
		if (line_end <= at)
			line_end = memchr(at, '\n', (size_t)(end - at));
		if (!line_end)
			line_end = end;
		size_t n = guard_length(at, line_end);
		buf_append(out, text, (size_t)(at + 2 - text) - (n > 0));
		if (n > 0)
			write_guarded(out, at + 1, n - 1);
		text = at + (n > 0 ? n : 2);
	}
	buf_append(out, text, (size_t)(end - text));
	return true;
}

void references_unguard(char *text)
{
	char *to = text;
	while (*text) {
		int index = guard_index(text);
		*to++ = index < 0 ? *text : guarded[index];
		text += index < 0 ? 1 : GUARD_BYTES;
	}
	*to = '\0';
}
