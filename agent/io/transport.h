/*
 * The route to a server, TLS and proxy of an endpoint, set on libcurl's handle; and why a request
 * failed, with advice. For HTTP (exchange.h) and mail (mail.h).
 */
#ifndef AGENT_IO_TRANSPORT_H
#define AGENT_IO_TRANSPORT_H

#include <curl/curl.h>

#include "agent/base/arena.h"
#include "agent/base/transfer.h"

/* Zeroed at first; holds the CONNECT_TO entry while the handle is used. */
struct transport {
	struct curl_slist *connect_to;
};

void transport_free(struct transport *transport);

/* Sets certificate checks and the proxy, for all requests of the handle. */
bool transport_set(CURL *easy, const struct endpoint *endpoint, struct error *error) MUST_USE;

/* Sets the handle's address. With `own` it is the endpoint's server, which server_name may give
 * another name than the one it is reached by: the connection still goes to the URL's host and
 * the Host header (of HTTP; `headers` is NULL for mail) names that, while the certificate must be
 * for server_name. Returns the URL that libcurl works on, against which it resolves redirects;
 * NULL and an error (ERROR_USAGE) if server_name is not a host name. */
const char *transport_aim(struct transport *transport, CURL *easy, struct arena *arena,
	const struct endpoint *endpoint, const char *url, bool own, struct curl_slist **headers,
	struct error *error);

/* The address without user info; NULL: it is none. */
const char *transport_bare_url(struct arena *arena, const char *url);

/* Why a request failed. libcurl's messages are passed on, except those that quote a proxy's address
 * with its password. */
struct problem {
	CURL *easy;
	CURLcode code;
	const char *message; /* libcurl's own, or "" */
	const struct endpoint *endpoint;
	const char *here; /* the origin of the request */
	bool sent;        /* the request was sent, at least in part */
	bool body_too_big, head_too_big;
};

/* A sentence that names the origin and contains no secret; into the arena. */
const char *problem_explain(const struct problem *problem, struct arena *arena);

#endif
