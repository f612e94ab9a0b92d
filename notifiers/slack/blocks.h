/*
 * Blocks of Slack's Block Kit, written one after the other, and Slack's limits.
 */
#ifndef NOTIFIERS_SLACK_BLOCKS_H
#define NOTIFIERS_SLACK_BLOCKS_H

#include "notifiers/notifier.h"

/*
 * Slack counts characters; we count the bytes of what is sent, which are never fewer. What all
 * blocks may hold together is not documented; posts were refused from about 13,200 on.
 */
enum {
	SLACK_BLOCKS = 50,
	SLACK_BLOCKS_TEXT = 13000,
	SLACK_SECTION = 3000,
	SLACK_FIELDS = 10,
	SLACK_FIELD = 2000,
	SLACK_TEXT = 4000,
};

/* Blocks as JSON, and what they come to. Zeroed: none. */
struct slack_blocks {
	struct buf json;
	struct buf field; /* the text of the field that is being written */
	size_t count, text, fields;
};

void slack_blocks_free(struct slack_blocks *blocks);
void slack_blocks_clear(struct slack_blocks *blocks);

/* Takes the text and empties the buffer. */
void slack_blocks_section(struct slack_blocks *blocks, struct buf *text);

/*
 * A time, under it a field for each test, in it a line for each metric and the commits at the end.
 * Returns how many of the changes fit Slack's limits, at least one after a section.
 */
size_t slack_blocks_changes(
	struct slack_blocks *blocks, const struct announcement *const *items, size_t count);

#endif
