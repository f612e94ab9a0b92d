/*
 * Parcels: messages as they lie in the outbox, one for each destination of a receiver.
 */
#ifndef AGENT_NOTIFY_PARCELS_H
#define AGENT_NOTIFY_PARCELS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* Who gets a message. */
struct recipient {
	const struct receiver *receiver;
	const char *destination;
};

/* What is told, the same to all; the parcel borrows it. */
struct delivery_content {
	uint64_t hash; /* of what is told */
	const struct change_record *records;
	size_t record_count;
	const int64_t *ids; /* of the records */
	int64_t now;        /* ms */
};

/*
 * Adds a parcel with the message, rendered, to a request of STORE_QUEUE. The parcel's key is the
 * same for the same content to the same addressee, and for no other; the message's own key is
 * ignored. False and an error: it cannot be rendered, and nothing is added.
 */
bool deliveries_add(struct store_request *request, const struct recipient *to,
	const struct message *message, const struct delivery_content *content,
	struct error *error) MUST_USE;

#endif
