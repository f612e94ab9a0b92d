/*
 * References to environment variables: `${NAME}`, `${NAME-default}` (if not set) and
 * `${NAME:-default}` (if not set or empty). Defaults may contain references. Private to conf/.
 */
#ifndef CONF_REFERENCE_H
#define CONF_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct reference {
	const char *name;
	size_t name_length;
	const char *fallback; /* or NULL */
	size_t fallback_length;
	bool if_empty; /* the default also replaces an empty value */
	size_t length; /* of the whole reference, braces included */
};

/* REFERENCE_TEXT: braces with another meaning, like PromQL's `${1}`. */
enum reference_kind { REFERENCE_GOOD, REFERENCE_TEXT, REFERENCE_BAD };

/* Parses the "${" at `text`. REFERENCE_BAD sets *problem, such as "is not closed". */
enum reference_kind reference_parse(
	const char *text, const char *end, struct reference *out, const char **problem);

/* The length in bytes of the variable name at the start of the text. */
size_t reference_name(const char *text, const char *end);

/*
 * Braces end a word in YAML's flow style, so `{url: ${X}}` would be a syntax error. Writes the text
 * to `out` with such characters of references replaced by as many placeholders, so that lines and
 * columns stay; returns false and writes nothing if nothing needs replacing. references_unguard
 * restores a text in place.
 */
bool references_guard(const char *text, size_t length, struct buf *out);
void references_unguard(char *text);

#endif
