/*
 * Slack's Web API: its requests, and the meaning of its errors.
 */
#ifndef NOTIFIERS_SLACK_API_H
#define NOTIFIERS_SLACK_API_H

#include <jansson.h>

#include "notifiers/notifier.h"

enum slack_reason {
	SLACK_UNKNOWN,   /* Slack has a problem, or the code is unknown: it may have been done */
	SLACK_TEMPORARY, /* it was not done; a retry may help */
	SLACK_CONFIG,    /* token, scope, channel or api_url has to be changed */
	SLACK_PERMANENT,
	SLACK_BLOCKS, /* the blocks are rejected; the text alone may be accepted */
	SLACK_THREAD, /* the thread cannot be read or replied to; the channel may be */
};

/* The class of an error code. */
enum slack_reason slack_reason(const char *word);

extern const char slack_alien[]; /* the text of an answer that is not Slack's */

/* The error of an answer, with the scope that it needs: "missing_scope: reactions:read". */
const char *slack_words(struct arena *arena, const json_t *answer, const struct reply *reply);

/* STEP_FAILED with the error "slack #perf: what". */
enum step slack_fail(struct attempt *attempt, bool retry, enum error_kind kind, const char *what);

/* Sets the next request to a call of a method, by the bot's token; with a body it is a POST of
 * JSON. STEP_FAILED if the token cannot be read. */
enum step slack_call(struct attempt *attempt, const char *method, const char *body);

#endif
