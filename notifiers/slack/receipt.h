/*
 * The receipt of a Slack message: "1503435956.000247 2 1503435999.000100 C0123456789".
 *
 * The `ts` of the message that starts the thread and the number of posts sent; then the message's
 * own `ts` and its channel's id, by which it can be read and edited later. A webhook's receipt
 * lacks these two.
 */
#ifndef NOTIFIERS_SLACK_RECEIPT_H
#define NOTIFIERS_SLACK_RECEIPT_H

#include <stddef.h>

struct arena;

struct slack_receipt {
	const char *thread; /* NULL: no receipt */
	size_t posts;
	const char *stamp, *channel; /* of its first post; NULL: unknown */
};

/* Both in the arena. `text` may be NULL. */
struct slack_receipt slack_receipt_read(struct arena *arena, const char *text);
const char *slack_receipt(struct arena *arena, const struct slack_receipt *receipt);

#endif
