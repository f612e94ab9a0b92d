/*
 * Telling: from changes and notices to messages in the outbox, and from there to the courier.
 *
 * Changes are told in groups, one message for each destination of a receiver. A group that belongs
 * to what was told lately continues that message.
 */
#ifndef AGENT_NOTIFY_TELLING_H
#define AGENT_NOTIFY_TELLING_H

#include "agent/notify/delivery_manager.h"
#include "agent/notify/environments.h"

struct publisher {
	struct agent *agent;
	struct delivery_manager *delivery_manager;
	const struct environments *environments;
};

/* Add all messages for the receiver to a request of STORE_QUEUE; or none, and an error. */
bool publisher_changes(const struct publisher *publisher, struct store_request *request,
	const struct receiver *receiver, const struct change_record **records, size_t count,
	struct error *error) MUST_USE;
bool publisher_notice(const struct publisher *publisher, struct store_request *request,
	const struct receiver *receiver, const struct notice *notice, struct error *error) MUST_USE;

/* Says in the event's thread of each receiver that has one that another environment, `value`,
 * followed. */
void publisher_followed(const struct publisher *publisher, struct store_request *request,
	const struct environment_event *event, const char *value);

/* Says that cannot render message for the receiver, as it is misconfigured. */
void publisher_complain(const struct publisher *publisher, const struct receiver *receiver,
	const struct error *error);

/* Hands the parcels that are in the outbox now to the courier. */
void publisher_send(const struct publisher *publisher, const struct store_request *request);

/* Later changes may belong to what the parcel told. */
void publisher_remember(const struct publisher *publisher, const struct delivery *delivery);

#endif
