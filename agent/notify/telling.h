/*
 * Telling: from changes and notices to messages in the outbox, and from there to the courier.
 *
 * Changes are told in groups, one message for each destination of a receiver. A group that belongs
 * to what was told lately continues that message.
 */
#ifndef AGENT_NOTIFY_TELLING_H
#define AGENT_NOTIFY_TELLING_H

#include "agent/notify/courier.h"
#include "agent/notify/environments.h"

struct telling {
	struct agent *agent;
	struct courier *courier;
	const struct environments *environments;
};

/* Add all messages for the receiver to a request of STORE_QUEUE; or none, and an error. */
bool telling_changes(const struct telling *telling, struct store_request *request,
	const struct receiver *receiver, const struct record **records, size_t count,
	struct error *error) MUST_USE;
bool telling_notice(const struct telling *telling, struct store_request *request,
	const struct receiver *receiver, const struct notice *notice, struct error *error) MUST_USE;

/* Says in the event's thread of each receiver that has one that another environment, `value`,
 * followed. */
void telling_followed(const struct telling *telling, struct store_request *request,
	const struct environment_event *event, const char *value);

/* Says that cannot render message for the receiver, as it is misconfigured. */
void telling_complain(
	const struct telling *telling, const struct receiver *receiver, const struct error *error);

/* Hands the parcels that are in the outbox now to the courier. */
void telling_send(const struct telling *telling, const struct store_request *request);

/* Later changes may belong to what the parcel told. */
void telling_remember(const struct telling *telling, const struct parcel *parcel);

#endif
