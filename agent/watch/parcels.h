/*
 * Parcels: messages as they lie in the outbox, one for each destination of a receiver.
 */
#ifndef AGENT_PARCELS_H
#define AGENT_PARCELS_H

#include "agent/news/store.h"
#include "conf/config.h"

/* Who gets a message. */
struct addressee {
	const struct receiver *receiver;
	const char *destination;
};

/*
 * Adds a parcel with the message, rendered, to a request of STORE_QUEUE. `content` is a hash of
 * what is told: the parcel's key is the same for the same content to the same addressee, and for no
 * other. The message's own key is ignored. `now` is in ms. False and an error: it cannot be
 * rendered, and nothing is added.
 */
bool parcels_add(struct store_request *request, const struct addressee *to,
	const struct message *message, uint64_t content, int64_t now, struct error *error) MUST_USE;

#endif
