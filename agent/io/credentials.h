/*
 * Credentials: an endpoint's user, token, key and headers, set on libcurl's handle.
 *
 * They are sent to the configured origin only. Secrets in files are read for each request, so a
 * changed file takes effect with the next one.
 */
#ifndef AGENT_IO_CREDENTIALS_H
#define AGENT_IO_CREDENTIALS_H

#include <curl/curl.h>

#include "agent/base/arena.h"
#include "agent/base/transfer.h"

/* Sets the transfer's own credentials and, if `trusted` (its address is the endpoint's), the
 * endpoint's. `headers` must outlive the use of the handle. `secrets`, in the arena, receives the
 * secrets that the server may echo, in every form in which they are sent. */
bool credentials_set(CURL *easy, struct arena *arena, const struct transfer *transfer, bool trusted,
	struct curl_slist **headers, struct strings *secrets, struct error *error) MUST_USE;

/* Removes all credentials before the handle is pointed at another origin. */
void credentials_forget(CURL *easy);

#endif
