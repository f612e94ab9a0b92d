/*
 * Classifies Slack's error codes.
 */
#ifndef NOTIFIERS_SLACK_REASON_H
#define NOTIFIERS_SLACK_REASON_H

enum slack_reason {
	SLACK_UNSURE, /* Slack has a problem, or the code is unknown: the message may have arrived
		       */
	SLACK_PASSES, /* temporary */
	SLACK_MEND,   /* token, scope or channel has to be changed */
	SLACK_NEVER,  /* permanent */
	SLACK_LAYOUT, /* the blocks are rejected; the text alone may be accepted */
	SLACK_THREAD, /* the thread cannot be replied to; the channel may accept it */
};

enum slack_reason slack_reason(const char *word);

#endif
