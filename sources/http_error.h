/*
 * What servers say instead of an answer, as errors a person can act on.
 */
#ifndef SOURCES_REFUSE_H
#define SOURCES_REFUSE_H

#include "agent/core/arena.h"
#include "agent/core/transfer.h"

/* The first line of what a server says in its reply, fit to be shown: cut, without control
 * characters and without what it was sent in secret. */
const char *http_error_line(struct arena *arena, const struct reply *reply, const char *text);

/* Whether an answer is an HTML page, whatever its status. */
bool http_error_is_page(const struct reply *reply);

/*
 * The error of an answer that is of no use: address, status, the server's own words, what to do.
 * `advice` is what the source knows about it (": shorten range"), or NULL. Returns STEP_FAILED.
 */
enum step http_error_answer(const char *address, const struct reply *reply, const char *said,
	const char *advice, struct error *error);

#endif
