/*
 * The parts of a request: parameters, accepted content types, and headers about its origin. All
 * pure functions on untrusted text.
 */
#ifndef AGENT_HTTP_HEAD_H
#define AGENT_HTTP_HEAD_H

#include <stddef.h>

#include "agent/base/arena.h"

/* Bytes of a value in an address, and in a form, which may list many ids. */
enum { HTTP_VALUE = 4096, HTTP_FORM_VALUE = 32768 };

struct http_query {
	struct http_pair {
		const char *name, *value;
	} * items;
	size_t count;
};

/*
 * Adds the parameters of the query string or of the body of a form, `length` bytes of "a=b&c=d", to
 * `out`. Unknown names, duplicates and malformed text are errors: a typo in a name would otherwise
 * silently give the answer to another question. `names` has the known ones, with blanks between
 * them; NULL: none. Values have up to `most` bytes, decoded, are UTF-8 and contain no NUL; all live
 * in the arena. Fails with ERROR_USAGE.
 */
bool http_query_parse(struct arena *arena, const char *text, size_t length, const char *names,
	size_t most, struct http_query *out, struct error *error) MUST_USE;

/* The value, or NULL. */
const char *http_query_get(const struct http_query *query, const char *name);

/*
 * The quality, 0 (not accepted) to 1, that a header such as Accept (NULL: there is none) gives a
 * name, such as "gzip" or "text/plain"; -1: it does not have the name. With a version only an item
 * that has that one, or none, counts; malformed items do not.
 */
double http_quality(struct arena *arena, const char *header, const char *name, const char *version);

/*
 * The headers by which requests from pages of other sites are refused.
 *
 * A browser on this machine runs other sites' scripts, which can reach the loopback. They cannot
 * forge three headers: Host is the name in the URL (a site that lets its own name resolve to
 * this machine still sends that name), Origin is the requesting site, and Sec-Fetch-Site says
 * whether that is this one. Programs such as curl send no Origin, and the Host they are given.
 */
struct http_claim {
	const char *host, *origin, *site, *mode, *destination; /* headers, or NULL */
	bool posted;
	bool shown;           /* pages of other sites may show it as an image, but not read it */
	bool tls;             /* the connection's: no page without TLS is this agent's then */
	const char *external; /* the origin under which users know the agent, or NULL */
	const char *names[2]; /* the agent's names, besides addresses and localhost; or NULL */
};

/* False and an error: the request is refused. Following a link to this site is allowed. */
bool http_guard(const struct http_claim *claim, struct error *error) MUST_USE;

#endif
