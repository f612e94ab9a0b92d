/*
 * Common to the HTTP sources: requests with parameters, and errors that a user can act on.
 */
#ifndef SOURCES_HTTP_H
#define SOURCES_HTTP_H

#include "agent/base/buf.h"
#include "sources/source.h"

/*
 * Requests `path` from the query's server with the parameters, which it frees: by GET, or by POST
 * if they are long. Returns the address without parameters, for messages.
 */
const char *http_ask(
	const struct query *query, const char *path, struct buf *parameters, struct transfer *next);

/* The first line of a reply's body for display: truncated, without control characters and without
 * secrets that were sent. */
const char *http_error_line(struct arena *arena, const struct reply *reply, const char *text);

/* Whether the reply is an HTML page, with any status. */
bool http_error_is_page(const struct reply *reply);

/*
 * The error of an unusable reply: address, status, the server's message, a remedy. `advice` is the
 * source's own (": shorten range"), or NULL. Always false.
 */
bool http_error_answer(const char *address, const struct reply *reply, const char *message,
	const char *advice, struct error *error);

#endif
