/*
 * What Slack's one-word reasons for not taking a message mean for it.
 */
#ifndef NOTIFIERS_SLACK_REASON_H
#define NOTIFIERS_SLACK_REASON_H

enum slack_reason {
	SLACK_UNSURE, /* Slack is not well, or the word is not known: the message may be there */
	SLACK_PASSES, /* not now */
	SLACK_MEND,   /* somebody must change token, scope or channel */
	SLACK_NEVER,  /* it will never go through */
	SLACK_LAYOUT, /* the blocks are at fault; the text alone may go through */
	SLACK_THREAD, /* the thread cannot be replied to; the channel may take it */
};

enum slack_reason slack_reason(const char *word);

#endif
