/*
 * An exchange: one HTTP transfer on libcurl's easy interface, from its options to its reply.
 *
 * It restricts credentials and headers to the configured origin, also on redirects, and classifies
 * failures (not sent, or maybe delivered).
 */
#ifndef AGENT_IO_EXCHANGE_H
#define AGENT_IO_EXCHANGE_H

#include <curl/curl.h>

#include "agent/base/arena.h"
#include "agent/base/transfer.h"

struct exchange;

/* Returns an easy handle for the transfer, ready to be added to a multi handle, with `context`
 * as its private pointer. The memory the answer needs is counted in *held until exchange_free:
 * `wants` bytes, or its announced or received size if that is larger; in the end the bytes
 * received. NULL and an error if the request cannot be made. */
struct exchange *exchange_new(const struct transfer *transfer, void *context, size_t *held,
	size_t wants, struct error *error);
void exchange_free(struct exchange *exchange);
CURL *exchange_easy(struct exchange *exchange);

/* The bytes counted in *held; and the most that the answer may need, as far as is known. */
size_t exchange_claim(const struct exchange *exchange);
size_t exchange_needs(const struct exchange *exchange);

/* To be called when libcurl is done: false if the handle must be added again (a redirect is
 * followed), else sets the reply. */
bool exchange_finish(struct exchange *exchange, CURLcode code, struct reply *reply);

/* "https://host:port" of a URL, in lower case; NULL if it is not an http or https URL. */
const char *exchange_origin(struct arena *arena, const char *url);

/* The value of a Retry-After header in ms; `now` is the server's time in s. -1: malformed. */
int64_t exchange_retry_after(const char *value, int64_t now);

/* The same of a limit that is used up, of GitHub's X-RateLimit-Reset (a date) or GitLab's
 * RateLimit-Reset (a date, or s to wait). -1: malformed, or something is left of it. */
int64_t exchange_reset_after(const char *remaining, const char *reset, int64_t now);

#endif
