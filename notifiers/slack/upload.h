/*
 * Uploads a picture into the thread of a message: Slack returns an address, receives the bytes
 * there, and is given the thread.
 */
#ifndef NOTIFIERS_SLACK_UPLOAD_H
#define NOTIFIERS_SLACK_UPLOAD_H

#include "notifiers/notifier.h"

enum upload_stage { UPLOAD_ASK, UPLOAD_SEND, UPLOAD_COMPLETE };

struct slack_upload {
	struct illustration picture;
	const char *thread, *channel; /* the message's ts, and its channel's id */
	enum upload_stage stage;
	struct endpoint bare; /* of the place that Slack names: gets no credentials */
	const char *file;     /* its id */
};

/* Begins an upload whose picture, thread and channel are set; like slack_call. */
enum step slack_upload_begin(struct slack_upload *upload, struct attempt *attempt);

/* Takes an answer. STEP_TRANSFER with the next request, STEP_DONE, or STEP_FAILED with a reason,
 * in the arena. */
enum step slack_upload_take(struct slack_upload *upload, struct attempt *attempt,
	const struct reply *reply, const char **reason);

#endif
