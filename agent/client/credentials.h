/*
 * Who we are: an endpoint's user, token, key and headers, set on libcurl's handle.
 *
 * They are for the configured origin alone. What lies in files is read here, for each request, so
 * that a changed file counts from the next request on.
 */
#ifndef AGENT_CLIENT_CREDENTIALS_H
#define AGENT_CLIENT_CREDENTIALS_H

#include <curl/curl.h>

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

/*
 * Sets what the transfer brings along itself and, if its address is `trusted` to be the endpoint's,
 * the endpoint's own. `headers` must outlive the handle's use. `secrets`, in the arena, are those
 * that the server may repeat in its answer, in all forms they are sent in.
 */
bool credentials_set(CURL *easy, struct arena *arena, const struct transfer *transfer, bool trusted,
	struct curl_slist **headers, struct strings *secrets, struct error *error) MUST_USE;

/* From now on the handle goes to somebody else: takes all of it back. */
void credentials_forget(CURL *easy);

#endif
