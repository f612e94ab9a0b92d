/*
 * A message as Slack's Block Kit, within Slack's limits at any size.
 */
#ifndef NOTIFIERS_SLACK_BLOCKS_H
#define NOTIFIERS_SLACK_BLOCKS_H

#include "notifiers/notifier.h"

/*
 * Slack's limits. Slack counts characters; we count the bytes of what is sent, which are never
 * fewer. What all blocks may hold together is not documented; posts were refused from about 13,200
 * on.
 */
enum {
	SLACK_BLOCKS = 50,
	SLACK_BLOCKS_TEXT = 13000,
	SLACK_HEADER = 150,
	SLACK_SECTION = 3000,
	SLACK_FIELDS = 10,
	SLACK_FIELD = 2000,
	SLACK_TEXT = 4000,
};

/*
 * Appends the JSON body of chat.postMessage, or of an incoming webhook where `channel` is NULL.
 * Where not all changes fit, the worst are shown and the number left out is said.
 */
void slack_render(const struct message *message, const char *channel, struct buf *payload);

#endif
