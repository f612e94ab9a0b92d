/*
 * Slack's Web API: its requests, and the meaning of its errors.
 */
#ifndef NOTIFIERS_SLACK_API_H
#define NOTIFIERS_SLACK_API_H

#include <jansson.h>

#include "notifiers/notifier.h"

enum slack_reason {
	SLACK_DONE,
	SLACK_UNKNOWN,   /* Slack has a problem, or the code is unknown: it may have been done */
	SLACK_TEMPORARY, /* it was not done; a retry may help */
	SLACK_CONFIG,    /* token, scope, channel or api_url has to be changed */
	SLACK_PERMANENT,
	SLACK_BLOCKS, /* the blocks are rejected; the text alone may be accepted */
	SLACK_THREAD, /* the thread cannot be read or replied to; the channel may be */
};

extern const char slack_alien[]; /* the text of an answer that is not Slack's */

/* What became of a request. */
struct slack_answer {
	enum slack_reason reason;
	const char *error; /* Slack's code, or "" */
	const char *words; /* of an error, with the scope that it needs: "missing_scope:
			      reactions:read" */
	json_t *json;      /* of SLACK_DONE, but for a webhook; to be released */
};

/* Reads a reply, or that there is none. Nothing but Slack's codes is shown: an error page may
 * repeat the request's address, and a webhook's address is a secret. */
struct slack_answer slack_read(struct arena *arena, const struct reply *reply, bool webhook);

/* STEP_FAILED with the error "slack #perf: what". */
enum step slack_fail(struct attempt *attempt, bool retry, enum error_kind kind, const char *what);

/* The same with the answer's words, by its reason. */
enum step slack_refused(struct attempt *attempt, const struct slack_answer *answer);

/* Sets the next request to a call of a method, by the bot's token; with a body it is a POST of
 * JSON. STEP_FAILED if the token cannot be read. */
enum step slack_call(struct attempt *attempt, const char *method, const char *body);

/*
 * The receipt of a message: "1503435956.000247 2 1503435999.000100 C0123456789".
 *
 * The `ts` of the message that starts the thread and the number of posts sent; then the message's
 * own `ts` and its channel's id, by which it can be read and edited later. A webhook's receipt
 * lacks these two.
 */
struct slack_receipt {
	const char *thread; /* NULL: no receipt */
	size_t posts;
	const char *stamp, *channel; /* of its first post; NULL: unknown */
};

/* Both in the arena. `text` may be NULL. */
struct slack_receipt slack_receipt_read(struct arena *arena, const char *text);
const char *slack_receipt(struct arena *arena, const struct slack_receipt *receipt);

#endif
