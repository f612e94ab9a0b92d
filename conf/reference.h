/*
 * How a value refers to the environment: `${NAME}`, `${NAME-default}` (where it is not set) and
 * `${NAME:-default}` (where it is not set or empty). Defaults may hold references. Private to
 * conf/.
 */
#ifndef CONF_REFERENCE_H
#define CONF_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct reference {
	const char *name;
	size_t name_length;
	const char *fallback; /* NULL: none */
	size_t fallback_length;
	bool if_empty; /* the default also counts where the variable is empty */
	size_t length; /* of the whole, with its braces */
};

/* REFERENCE_TEXT: braces that mean something else, like PromQL's `${1}`. */
enum reference_kind { REFERENCE_GOOD, REFERENCE_TEXT, REFERENCE_BAD };

/* Reads what begins with "${" at `text`. REFERENCE_BAD sets *problem: "is not closed". */
enum reference_kind reference_parse(
	const char *text, const char *end, struct reference *out, const char **problem);

/* Bytes of a variable's name at the beginning of the text. */
size_t reference_name(const char *text, const char *end);

/*
 * Braces end a word in YAML's flow style, so `{url: ${X}}` would be no YAML. Writes the text to
 * `out` with such characters within references replaced by as many others, so that lines and
 * columns stay; false, and nothing written, if there is nothing to replace. references_unguard
 * restores a text in place.
 */
bool references_guard(const char *text, size_t length, struct buf *out);
void references_unguard(char *text);

#endif
