/*
 * Refuses requests from pages of other sites.
 *
 * A browser on this machine runs other sites' scripts, which can reach the loopback. They cannot
 * forge three headers: Host is the name in the URL (a site that lets its own name resolve to
 * this machine still sends that name), Origin is the requesting site, and Sec-Fetch-Site says
 * whether that is this one. Programs such as curl send no Origin, and the Host they are given.
 */
#ifndef AGENT_HTTP_GUARD_H
#define AGENT_HTTP_GUARD_H

#include "agent/core/error.h"

struct http_claim {
	const char *host, *origin, *site, *mode; /* headers, or NULL */
	bool posted;
	const char *names[2]; /* the agent's names, besides addresses and localhost; or NULL */
};

/* False: the request is refused, and error says why. Following a link to this site is allowed. */
bool http_guard(const struct http_claim *claim, struct error *error) MUST_USE;

#endif
