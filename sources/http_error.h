/*
 * Turns error responses of servers into errors that a user can act on.
 */
#ifndef SOURCES_HTTP_ERROR_H
#define SOURCES_HTTP_ERROR_H

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

/* The first line of a reply's body for display: truncated, without control characters and without
 * secrets that were sent. */
const char *http_error_line(struct arena *arena, const struct reply *reply, const char *text);

/* Whether the reply is an HTML page, whatever its status. */
bool http_error_is_page(const struct reply *reply);

/*
 * The error of an unusable reply: address, status, the server's own words, what to do. `advice` is
 * the source's own (": shorten range"), or NULL. Returns STEP_FAILED.
 */
enum step http_error_answer(const char *address, const struct reply *reply, const char *said,
	const char *advice, struct error *error);

#endif
