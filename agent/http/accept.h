/*
 * The header Accept: how much a client wants a type of answer.
 */
#ifndef AGENT_HTTP_ACCEPT_H
#define AGENT_HTTP_ACCEPT_H

#include <stdbool.h>

struct http_liking {
	double quality; /* 0: not wanted, 1: most */
	bool named;     /* the type itself is, not only by a wildcard */
};

/*
 * What the header (NULL: there is none) says of type and version, as "text/plain" and "0.0.4". A
 * range that names a version is for that one only. The most specific range counts; what is not well
 * formed is passed over.
 */
struct http_liking http_accept(const char *accept, const char *type, const char *version);

#endif
