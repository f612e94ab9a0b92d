/*
 * The publisher turns groups of changes and notices into deliveries in the outbox, and hands those
 * to the delivery manager.
 *
 * Each group is one message per destination. A group that belongs to a recent message continues its
 * thread.
 */
#ifndef AGENT_NOTIFY_PUBLISHER_H
#define AGENT_NOTIFY_PUBLISHER_H

#include "agent/notify/delivery_manager.h"
#include "agent/notify/environments.h"

struct publisher {
	struct agent *agent;
	struct delivery_manager *delivery_manager;
	const struct environments *environments;
};

/* Adds all messages for the receiver to a store_queue; or none, with an error. */
bool publisher_changes(const struct publisher *publisher, struct store_queue *request,
	const struct receiver *receiver, const struct change_record **records, size_t count,
	struct error *error) MUST_USE;
bool publisher_notice(const struct publisher *publisher, struct store_queue *request,
	const struct receiver *receiver, const struct notice *notice, struct error *error) MUST_USE;

/* Replies in the event's threads that `value`, another environment, followed. */
void publisher_followed(const struct publisher *publisher, struct store_queue *request,
	const struct environment_event *event, const char *value);

/* Logs that no message can be rendered for the receiver because of its configuration. */
void publisher_complain(const struct publisher *publisher, const struct receiver *receiver,
	const struct error *error);

/* Hands the deliveries of a stored request to the delivery manager. */
void publisher_send(const struct publisher *publisher, const struct store_queue *request);

/* Remembers the delivery's thread, which later changes may continue. */
void publisher_remember(const struct publisher *publisher, const struct delivery *delivery);

#endif
