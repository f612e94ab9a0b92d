/*
 * Creates deliveries: one outbox row per message and destination.
 */
#ifndef AGENT_NOTIFY_DELIVERIES_H
#define AGENT_NOTIFY_DELIVERIES_H

#include "agent/store/store.h"
#include "conf/config.h"

/* The destination of a message. */
struct recipient {
	const struct receiver *receiver;
	const char *destination;
};

/* What the message is about, the same for all recipients; borrowed by the delivery. */
struct delivery_content {
	uint64_t hash; /* of the content */
	const struct change_record *records;
	size_t record_count;
	const int64_t *ids; /* of the records */
	int64_t now;        /* ms */
};

/*
 * Renders the message and adds a delivery with it to a store_queue. The delivery's key is a
 * function of recipient and content; the message's own key is ignored. Returns false with an error,
 * and adds nothing, if the message cannot be rendered.
 */
bool deliveries_add(struct store_queue *request, const struct recipient *to,
	const struct message *message, const struct delivery_content *content,
	struct error *error) MUST_USE;

#endif
