/*
 * Retractions: a change that was announced and is not found any more, or was withdrawn while its
 * message was being sent (`announce_withdrawn`), or whose suspects changed because a deployment was
 * recorded late. The threads of its messages get a reply, where the receiver has threads and keeps
 * receipts; other receivers get nothing. This is best effort: a failed store request is retried,
 * but a retraction in progress is lost if the program ends.
 *
 * The change may have been announced long ago, so the store knows the messages.
 */
#ifndef AGENT_NOTIFY_RETRACTION_H
#define AGENT_NOTIFY_RETRACTION_H

#include "agent/notify/publisher.h"
#include "agent/runtime/store_backlog.h"

/* `publisher` must live as long as the engine. */
void retraction_send(struct publisher *publisher, struct store_backlog *backlog,
	const struct delivery_rows *retractions);

#endif
