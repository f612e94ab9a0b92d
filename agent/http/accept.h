/* The Accept header: a client's preference for a content type. */
#ifndef AGENT_HTTP_ACCEPT_H
#define AGENT_HTTP_ACCEPT_H

#include <stdbool.h>

struct http_liking {
	double quality; /* 0: not accepted, 1: most preferred */
	bool named;     /* the type itself is named, not only matched by a wildcard */
};

/*
 * The header's preference (NULL: no header) for a type and version, as "text/plain" and "0.0.4".
 * A range with a version matches only that one. The most specific range counts; malformed ones
 * are ignored.
 */
struct http_liking http_accept(const char *accept, const char *type, const char *version);

#endif
