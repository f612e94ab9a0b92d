/*
 * The parameters of a request, from its query string or the body of a form.
 *
 * Unknown names, duplicates and malformed text are errors: a typo in a name would otherwise
 * silently give the answer to another question.
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
 * Adds the parameters in `length` bytes of "a=b&c=d" to `out`. `names` lists the known ones, at
 * most HTTP_PARAMETERS, and ends with NULL; NULL: none. Values have up to HTTP_VALUE bytes,
 * decoded, are UTF-8 and contain no NUL; they live in the arena. Fails with ERROR_USAGE.
 */
bool http_query_parse(struct arena *arena, const char *text, size_t length,
	const char *const *names, struct http_query *out, struct error *error) MUST_USE;

/* The value, or NULL. */
const char *http_query_get(const struct http_query *query, const char *name);

#endif
