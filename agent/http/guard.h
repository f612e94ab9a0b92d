/*
 * Keeps out pages of other sites.
 *
 * A browser on this machine runs what other sites wrote, and that can reach the loopback. It cannot
 * forge three headers: Host is the name that was asked for (a site that lets its own name lead here
 * still has that name there), Origin is the site the request comes from, and Sec-Fetch-Site says
 * whether that is this one. Programs such as curl send no Origin, and Host as they were told.
 */
#ifndef AGENT_HTTP_GUARD_H
#define AGENT_HTTP_GUARD_H

#include "agent/core/error.h"

struct http_claim {
	const char *host, *origin, *site, *mode; /* headers, or NULL */
	bool posted;
	const char *names[2]; /* the agent is known by, besides addresses and localhost; or NULL */
};

/* False: the request is refused, and error says why. A link that is followed here is fine. */
bool http_guard(const struct http_claim *claim, struct error *error) MUST_USE;

#endif
