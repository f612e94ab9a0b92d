/*
 * An exchange: one HTTP transfer on libcurl's easy interface, from its options to its reply.
 *
 * Here it is decided what is sent to whom (credentials and headers go to the configured origin and
 * to no other, however the server redirects) and what a failure means (nothing sent, or nobody
 * knows).
 */
#ifndef AGENT_CLIENT_EXCHANGE_H
#define AGENT_CLIENT_EXCHANGE_H

#include <curl/curl.h>

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

struct exchange;

/*
 * An easy handle for the transfer, ready to be added to a multi handle; its private pointer is
 * `context`. What the answer needs is counted into *held until exchange_free: `wants` bytes, or as
 * many as are announced or come if they are more; in the end those that came. NULL and an error
 * if it cannot even be asked for.
 */
struct exchange *exchange_new(const struct transfer *transfer, void *context, size_t *held,
	size_t wants, struct error *error);
void exchange_free(struct exchange *exchange);
CURL *exchange_easy(struct exchange *exchange);

/* Bytes that it counts for; and that the answer may have in the end, as far as is known. */
size_t exchange_claim(const struct exchange *exchange);
size_t exchange_needs(const struct exchange *exchange);

/* What to do when libcurl is done: false if the handle is to be added again (a redirect is
 * followed), else the reply. */
bool exchange_finish(struct exchange *exchange, CURLcode code, struct reply *reply);

/* "https://host:port" of a URL, in lower case; NULL if it is no http or https URL. */
const char *exchange_origin(struct arena *arena, const char *url);

/* The value of a Retry-After header in ms; `now` is the server's time in s. -1: rubbish. */
int64_t exchange_retry_after(const char *value, int64_t now);

#endif
