/*
 * A message as bodies of chat.postMessage, within Slack's limits at any size.
 *
 * What fits is one post. What does not begins with a summary and the worst changes, and the rest
 * follows in its thread, in several posts; what passes even these is said, with its number and how
 * to list it. A payload holds one body a line.
 */
#ifndef NOTIFIERS_SLACK_RENDER_H
#define NOTIFIERS_SLACK_RENDER_H

#include "notifiers/notifier.h"

enum { SLACK_POSTS = 10 }; /* of one message */

/* Appends the payload; `channel` is NULL for an incoming webhook, which has no threads. */
void slack_render(const struct message *message, const char *channel, struct buf *payload);

/* The body with that number, from 0 on, in the arena; NULL behind the last. */
const char *slack_body(struct arena *arena, const char *payload, size_t number);
size_t slack_body_count(const char *payload);

#endif
