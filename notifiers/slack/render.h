/*
 * Renders a message as bodies of chat.postMessage, within Slack's limits at any size.
 *
 * A small message is one post. A large one begins with a summary and the worst changes; the rest
 * follows in its thread, in several posts; further changes are counted, with the command that lists
 * them. A payload holds one body per line.
 */
#ifndef NOTIFIERS_SLACK_RENDER_H
#define NOTIFIERS_SLACK_RENDER_H

#include "notifiers/notifier.h"

/*
 * SLACK_POSTS: per message. SLACK_POST_BLOCKS and SLACK_POST_TEXT: in a post, and characters in all
 * of them together; that limit is undocumented: posts were rejected from about 13,200 on.
 */
enum { SLACK_POSTS = 10, SLACK_POST_BLOCKS = 50, SLACK_POST_TEXT = 13000 };

/* Appends the payload; `channel` is NULL for an incoming webhook, which has no threads. `charts`:
 * with charts of its worst changes, where points are known. */
void slack_render(
	const struct message *message, const char *channel, bool charts, struct buf *payload);

/* A body of a message in a simpler form, in the arena: without its charts, or without all its
 * blocks. NULL if it is not a message of ours, or has none of these. */
const char *slack_simpler(struct arena *arena, const char *body, bool charts_alone);

/* The body with that number (from 0), in the arena; NULL past the last. */
const char *slack_body(struct arena *arena, const char *payload, size_t number);
size_t slack_body_count(const char *payload);

#endif
