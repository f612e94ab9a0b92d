/*
 * Queues notices in the outbox. A notice that cannot be rendered because its receiver is
 * misconfigured is retried until it can.
 */
#ifndef AGENT_NOTIFY_NOTICES_H
#define AGENT_NOTIFY_NOTICES_H

#include "agent/deliver/delivery_manager.h"
#include "agent/runtime/store_backlog.h"

struct notices;

/* All are borrowed. */
struct notices *notices_new(struct agent *agent, struct delivery_manager *delivery_manager,
	struct store_backlog *backlog);
void notices_free(struct notices *notices);

/*
 * Queues a notice to the named receivers; names that are not configured are skipped. A condition is
 * stored, or deleted, in the same transaction, so that a crash before it loses neither and the next
 * process sends the notice. In a fleet the notice is the test's (NULL: the leader's), and is
 * dropped if another agent has that.
 */
void notices_queue(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition, const char *test);

/* The same with any store_queue, which it takes over; in a fleet the caller has fenced it. */
void notices_queue_storing(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request);

/* Queues a message without changes that has a notice to the receiver, with the request, which it
 * takes over. False: its configuration has no destinations, or it cannot be rendered; nothing is
 * stored. */
bool notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request) MUST_USE;

#endif
