/*
 * Links made from templates: the page about a commit, or about what lies between two.
 *
 *     https://example.com/app/compare/{before}...{after}
 *
 * A template comes from the configuration, the values from data; values are percent-encoded, so
 * whatever they hold, the link leads to the template's host.
 */
#ifndef CORE_LINK_H
#define CORE_LINK_H

#include "agent/core/arena.h"
#include "agent/core/error.h"

enum { LINK_LONGEST = 1000 }; /* bytes */

/* The commit is the one after the change. NULL or empty: not known. */
struct link_values {
	const char *commit, *before, *after;
};

/* Whether the template can be used; the empty one can, and makes no links. Fails with ERROR_USAGE.
 */
bool link_check(const char *option, const char *template, struct error *error) MUST_USE;

/* NULL where there is no template, where it names a value that is not known, and where the link
 * would be too long. */
const char *link_expand(
	struct arena *arena, const char *template, const struct link_values *values);

#endif
