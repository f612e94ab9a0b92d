/*
 * The way to a server: TLS and proxy of an endpoint, set on libcurl's handle.
 */
#ifndef AGENT_CLIENT_TRANSPORT_H
#define AGENT_CLIENT_TRANSPORT_H

#include <curl/curl.h>

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

/* A way with an entry of its own keeps it here while the handle is used; zeroed at first. */
struct transport {
	struct curl_slist *connect_to;
};

void transport_free(struct transport *transport);

/* Checks of certificates and the proxy, for all that the handle is going to ask. */
bool transport_set(CURL *easy, const struct endpoint *endpoint, struct error *error) MUST_USE;

/*
 * Sets the handle's address. With `own` it is the endpoint's server, which server_name may give
 * another name than it is reached by: the connection still goes to the URL's host and the Host
 * header names it, while the certificate must hold server_name. Returns the URL that libcurl works
 * on, from which it makes that of a redirect; NULL and an error (ERROR_USAGE) if server_name is no
 * name.
 */
const char *transport_aim(struct transport *transport, CURL *easy, struct arena *arena,
	const struct endpoint *endpoint, const char *url, bool own, struct curl_slist **headers,
	struct error *error);

#endif
