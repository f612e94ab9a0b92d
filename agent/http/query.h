/*
 * The parameters of a request, as they stand behind the ? of its address or in the body of a form.
 *
 * A name that the page does not know, one that is there twice, and text that is not well formed are
 * errors: a slip in a name would otherwise silently answer another question.
 */
#ifndef AGENT_HTTP_QUERY_H
#define AGENT_HTTP_QUERY_H

#include <stddef.h>

#include "agent/core/arena.h"

enum { HTTP_PARAMETERS = 12, HTTP_VALUE = 4096 };

struct http_query {
	struct http_pair {
		const char *name, *value;
	} items[HTTP_PARAMETERS];
	size_t count;
};

/*
 * Adds the parameters in `length` bytes of "a=b&c=d" to `out`. `names` are those that are known,
 * HTTP_PARAMETERS at most, and end with NULL; NULL: there are none. Values have up to HTTP_VALUE
 * bytes, decoded, are UTF-8 and hold no NUL; they live in the arena. Fails with ERROR_USAGE.
 */
bool http_query_parse(struct arena *arena, const char *text, size_t length,
	const char *const *names, struct http_query *out, struct error *error) MUST_USE;

/* The value, or NULL. */
const char *http_query_get(const struct http_query *query, const char *name);

#endif
