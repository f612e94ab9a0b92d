/*
 * Classifies the error codes of Slack, the same for posting a message and searching for one.
 */
#ifndef NOTIFIERS_SLACK_REASON_H
#define NOTIFIERS_SLACK_REASON_H

enum slack_reason {
	SLACK_UNKNOWN,   /* Slack has a problem, or the code is unknown: it may have been done */
	SLACK_TEMPORARY, /* it was not done; a retry may help */
	SLACK_CONFIG,    /* token, scope, channel or api_url has to be changed */
	SLACK_PERMANENT,
	SLACK_BLOCKS, /* the blocks are rejected; the text alone may be accepted */
	SLACK_THREAD, /* the thread cannot be read or replied to; the channel may be */
};

enum slack_reason slack_reason(const char *word);

#endif
