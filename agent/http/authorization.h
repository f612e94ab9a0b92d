/* The Authorization header: a name and a password (RFC 7617), or a token (RFC 6750). */
#ifndef AGENT_HTTP_AUTHORIZATION_H
#define AGENT_HTTP_AUTHORIZATION_H

#include "agent/base/arena.h"

enum { AUTHORIZATION_BYTES = 4096 }; /* of a name and password, or of a token */

struct authorization {
	const char *user;   /* NULL: a token */
	const char *secret; /* the password or the token */
};

/* False: of another scheme, or malformed. The texts live in the arena, contain no NUL and have
 * no control characters, but for passwords, which are any bytes. */
bool authorization_parse(
	const char *header, struct arena *arena, struct authorization *out) MUST_USE;

#endif
