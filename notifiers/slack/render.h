/*
 * Renders a message as bodies of chat.postMessage, within Slack's limits at any size.
 *
 * A small message is one post. A large one begins with a summary and the worst changes; the rest
 * follows in its thread, in several posts; what exceeds these is counted, with the command that
 * lists it. A payload holds one body per line.
 */
#ifndef NOTIFIERS_SLACK_RENDER_H
#define NOTIFIERS_SLACK_RENDER_H

#include "notifiers/notifier.h"

enum { SLACK_POSTS = 10 }; /* per message */

/* Appends the payload; `channel` is NULL for an incoming webhook, which has no threads. */
void slack_render(const struct message *message, const char *channel, struct buf *payload);

/* The body with that number (from 0), in the arena; NULL past the last. */
const char *slack_body(struct arena *arena, const char *payload, size_t number);
size_t slack_body_count(const char *payload);

#endif
